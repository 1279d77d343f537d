"""Write the tables of `docs/reference/compatibility.md`: `python -m tools.compatibility`.

Protocols and features come from the module that declares them, releases of engines from
`pyproject.toml`; a test compares the page with what this writes.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rowsieve.storage import snapshot

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "reference" / "compatibility.md"
DECLARED: Final = re.compile(
    r"^(?P<name>[A-Z_]+): Final = (?P<value>\d+|\"\w+\")  # (?P<meaning>.+)$", re.MULTILINE
)
TABLE: Final = "<!-- {name} -->\n"
WRITTEN: Final = re.compile(r"\A\n(?:\|.*\n)+")


def declared() -> dict[str, tuple[int | str, str]]:
    """Return the constants of the module by name, with their meanings."""
    text = Path(snapshot.__file__).read_text("utf-8")
    return {
        each["name"]: (ast.literal_eval(each["value"]), each["meaning"])
        for each in DECLARED.finditer(text)
    }


def protocols() -> Iterator[str]:
    """Yield the rows of the table of protocols."""
    yield "| protocol | since it there is |"
    yield "|---|---|"
    for name, (value, meaning) in declared().items():
        if name.endswith(("_WRITER", "_PROTOCOL")):
            part = "reader and writer" if name.endswith("_PROTOCOL") else "writer"
            yield f"| {part} {value} | {meaning} |"


def features() -> Iterator[str]:
    """Yield the rows of the table of features."""
    yield "| feature | of a table in which |"
    yield "|---|---|"
    for value, meaning in declared().values():
        if value in snapshot.FEATURES:
            yield f"| `{value}` | {meaning} |"


def engines() -> Iterator[str]:
    """Yield the rows of the table of packages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    yield "| extra | releases |"
    yield "|---|---|"
    yield f"| none | Python {project['requires-python']} |"
    needed = ", ".join(f"`{each}`" for each in project["dependencies"])
    yield f"| none | {needed} |"
    for extra, requirements in project["optional-dependencies"].items():
        others = [each for each in requirements if not each.startswith("rowsieve[")]
        if others:
            yield f"| `{extra}` | {', '.join(f'`{each}`' for each in others)} |"


def with_tables(page: str) -> str:
    """Return the page with each table written again, after the comment with its name."""
    for name, rows in (("protocols", protocols), ("features", features), ("engines", engines)):
        mark = TABLE.format(name=name)
        before, _, after = page.partition(mark)
        table = "\n".join(rows())
        page = f"{before}{mark}\n{table}\n{WRITTEN.sub('', after, count=1)}"
    return page


def main() -> None:
    """Write the page again."""
    PAGE.write_text(with_tables(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
