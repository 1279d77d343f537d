"""Build a release and check it in fresh environments: `make release`. Nothing is uploaded.

The wheel is installed without extras, with each of them and with all, and a program creates and
reads a table in each environment. The sdist has to give the same wheel. The checksums lie beside
the files, signed if there is a key. At the end it prints what to upload.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tools import checksums
from tools.release_programs import PROGRAMS, program

ROOT: Final = Path(__file__).parents[1]
CHANGELOG: Final = ROOT / "CHANGELOG.md"
FRAGMENTS: Final = ROOT / "changelog.d"


class Unready(Exception):
    """Why the project cannot be released as it is."""


def main() -> None:
    """Build, check and report; exit with 1 and the reasons where something is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draft", action="store_true", help="go on where the tree is not ready")
    parser.add_argument("--extras", nargs="*", help="try these extras only; 'core' is none")
    parser.add_argument("--sign", type=Path, metavar="KEY", help="sign the checksums with this key")
    options = parser.parse_args()
    reasons = list(missing())
    for reason in reasons:
        print(f"not ready: {reason}")
    if reasons and not options.draft:
        sys.exit(1)
    with tempfile.TemporaryDirectory() as folder:
        files = build(Path(folder), ROOT / "dist")
        for extra in PROGRAMS:
            if options.extras is None or (extra or "core") in options.extras:
                check_installed(Path(folder), files.wheel, extra)
    sums = checksums.write(ROOT / "dist", files.all)
    signature = [checksums.sign(sums, options.sign)] if options.sign else []
    print(*to_upload([*files.all, sums, *signature]), sep="\n")


def version() -> str:
    """The version in `rowsieve/__init__.py`, which is the only place that has it."""
    text = (ROOT / "rowsieve" / "__init__.py").read_text("utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    assert found is not None
    return found[1]


def missing() -> Iterator[str]:
    """What has to be done before a release."""
    changes = CHANGELOG.read_text("utf-8")
    if not re.search(rf"^## {re.escape(version())}\b", changes, re.MULTILINE):
        yield f"CHANGELOG.md has no section {version()}"
    if left := [path.name for path in FRAGMENTS.glob("*.md") if path.name != "README.md"]:
        yield f"changelog.d has {len(left)} fragments: run `python -m tools.changelog`"
    if _run("git", "status", "--porcelain"):
        yield "there are changes that are not committed"
    if f"v{version()}" in _run("git", "tag").split():
        yield f"the tag v{version()} exists"


class Built:
    """The files of a release."""

    def __init__(self, folder: Path) -> None:
        (self.wheel,) = folder.glob("*.whl")
        (self.sdist,) = folder.glob("*.tar.gz")

    @property
    def all(self) -> tuple[Path, Path]:
        """The wheel and the sdist."""
        return self.wheel, self.sdist


def build(scratch: Path, target: Path) -> Built:
    """Build wheel and sdist of a clean export of the commit, and compare their contents.

    The wheel is built from the sdist, and once more from the tree: both must have the same files.
    """
    python = _environment(scratch / "build")
    _run("uv", "pip", "install", "--quiet", "--python", python, "build", "twine")
    tree = scratch / "tree"
    _run("git", "worktree", "add", "--detach", str(tree), "HEAD")
    try:
        target.mkdir(exist_ok=True)
        for old in target.iterdir():
            old.unlink()
        _run(python, "-m", "build", "--outdir", str(target), str(tree))
        direct = scratch / "direct"
        _run(python, "-m", "build", "--wheel", "--outdir", str(direct), str(tree))
    finally:
        _run("git", "worktree", "remove", "--force", str(tree))
    files = Built(target)
    (other,) = direct.glob("*.whl")
    if contents(files.wheel) != contents(other):
        raise Unready("the wheel from the sdist differs from the wheel from the tree")
    _run(python, "-m", "twine", "check", "--strict", *map(str, files.all))
    return files


def contents(wheel: Path) -> dict[str, int]:
    """The files of a wheel, with their checksums."""
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.infolist()
    found = {entry.filename: entry.CRC for entry in entries}
    if "rowsieve/py.typed" not in found:
        raise Unready(f"{wheel.name} has no rowsieve/py.typed")
    if strange := [name for name in found if name.startswith(("tests/", "benchmarks/", "tools/"))]:
        raise Unready(f"{wheel.name} has {strange[0]}, which is not for users")
    return found


def check_installed(scratch: Path, wheel: Path, extra: str) -> None:
    """Install the wheel into a fresh environment and run its program there."""
    name = extra or "core"
    python = _environment(scratch / name)
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    _run("uv", "pip", "install", "--quiet", "--python", python, wanted)
    _run("uv", "pip", "check", "--quiet", "--python", python)
    work = scratch / f"{name}-work"
    work.mkdir()
    printed = _run(python, "-c", program(extra), where=work).strip()
    if printed != version():
        raise Unready(f"the wheel with {name} says that it is {printed}, not {version()}")
    print(f"{wheel.name} works with {extra or 'no'} extras")


def to_upload(files: Iterable[Path]) -> Iterator[str]:
    """What whoever makes the release does next, with the checksums of the files."""
    files = list(files)
    yield ""
    for file in files:
        yield f"{checksums.digest(file)}  {file.name}  {file.stat().st_size:,} bytes"
    yield ""
    if "urls" not in _project():
        yield "give pyproject.toml the addresses of the project, [project.urls], and build again"
    yield f"git tag --annotate v{version()} --message 'Rowsieve {version()}'"
    yield f"git push origin v{version()}"
    packages = [file for file in files if file.suffix in (".whl", ".gz")]
    yield "twine upload " + " ".join(str(file.relative_to(ROOT)) for file in packages)
    if beside := [file.name for file in files if file not in packages]:
        yield f"publish {' and '.join(beside)} where the release is announced"


def _project() -> dict[str, object]:
    project: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))[
        "project"
    ]
    return project


def _environment(folder: Path) -> str:
    _run("uv", "venv", "--quiet", "--python", sys.executable, str(folder))
    return str(folder / "bin" / "python")


def _run(*command: str, where: Path = ROOT) -> str:
    beside = Path(sys.executable).parent  # the environment of the project has uv
    path = {"PATH": f"{beside}{os.pathsep}{os.environ.get('PATH', '')}"}
    done = subprocess.run(
        command, cwd=where, env=os.environ | path, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unready(f"{' '.join(command)[:200]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    try:
        main()
    except Unready as error:
        print(error)
        sys.exit(1)
