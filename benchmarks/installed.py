"""`python -m benchmarks.installed`: the installed size of `rowsieve` and of each extra, in MB.

Sizes are those of the package files installed here, found from the requirements in pyproject.toml
and of each package, and of `rowsieve` itself with its bytecode; nothing is downloaded. A package
that is not installed here is named; its size is not in the sum.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rowsieve
from benchmarks.report import wide_console

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


@dataclass(frozen=True, slots=True)
class Installed:
    """The packages that a requirement installs, with their sizes; None: not installed here."""

    name: str
    sizes_bytes: dict[str, int | None]

    @property
    def size_bytes(self) -> int:
        """The total size of the installed packages."""
        return sum(size or 0 for size in self.sizes_bytes.values())

    @property
    def missing(self) -> list[str]:
        """The packages that are not installed here."""
        return [name for name, size in self.sizes_bytes.items() if size is None]


def installations() -> list[Installed]:
    """The core, then the core with each extra alone."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    core: list[str] = project["dependencies"]
    return [
        Installed("rowsieve", _brought(core, extras)),
        *(
            Installed(f"rowsieve[{name}]", _brought([*core, *wanted], extras))
            for name, wanted in extras.items()
        ),
    ]


def _brought(requirements: Iterable[str], extras: dict[str, list[str]]) -> dict[str, int | None]:
    found: dict[str, int | None] = {"rowsieve": _files_bytes(Path(rowsieve.__file__).parent)}
    todo = [Requirement(text) for text in requirements]
    seen: set[str] = set()
    while todo:
        wanted = todo.pop()
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        name = canonicalize_name(wanted.name)
        if name == "rowsieve":
            todo += [Requirement(text) for extra in wanted.extras for text in extras[extra]]
            continue
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            found[name] = None
            continue
        paths = [Path(str(file.locate())) for file in package.files or ()]
        found[name] = sum(path.stat().st_size for path in paths if path.is_file())
        todo += _needed(package, wanted.extras)
    return dict(sorted(found.items()))


def _files_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _needed(package: metadata.Distribution, extras: set[str]) -> list[Requirement]:
    needed = [Requirement(text) for text in package.requires or ()]
    return [
        one
        for one in needed
        if one.marker is None
        or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    ]


def main() -> None:
    """Print the table, largest packages first."""
    console = wide_console()
    for installed in installations():
        size = f"{installed.size_bytes / 1e6:7.1f} MB"
        console.print(f"{installed.name:24} {size}", markup=False)
        largest = sorted(installed.sizes_bytes.items(), key=lambda item: -(item[1] or 0))
        console.print(
            "    " + ", ".join(f"{name} {size / 1e6:.1f}" for name, size in largest[:8] if size),
            highlight=False,
        )
        if installed.missing:
            console.print(f"    not installed here: {', '.join(installed.missing)}")


if __name__ == "__main__":
    main()
