"""Join the fragments of `changelog.d` into a section of CHANGELOG.md: `python -m tools.changelog`.

The section is that of the version in `rowsieve/__init__.py`; it is made if there is none, and
dated. The fragments are deleted. Another call adds to the lists of the first. Read the result: a
release of many fragments wants a few lines above its lists.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tools.release import CHANGELOG, FRAGMENTS, version

COLUMNS: Final = 120
KINDS: Final = {"added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed"}


def main() -> None:
    """Move the fragments into the changelog."""
    paths = sorted(path for path in FRAGMENTS.glob("*.*.md") if path.name != "README.md")
    changes = defaultdict(list)
    for path in paths:
        changes[kind_of(path)].append(" ".join(path.read_text("utf-8").split()))
    text = CHANGELOG.read_text("utf-8")
    CHANGELOG.write_text(with_section(text, version(), today(), changes), "utf-8")
    for path in paths:
        path.unlink()
    print(f"{len(paths)} fragments are in the section {version()} of {CHANGELOG.name}")


def kind_of(path: Path) -> str:
    """The kind in the name of a fragment; ValueError if it is none."""
    kind = path.name.split(".")[-2]
    if kind not in KINDS:
        raise ValueError(f"{path.name}: the kind {kind!r} is none of {', '.join(KINDS)}")
    return kind


def today() -> str:
    """The date of the section."""
    return f"{datetime.now(UTC):%-d %B %Y}"


def with_section(text: str, release: str, date: str, changes: Mapping[str, Sequence[str]]) -> str:
    """The changelog with these changes in the lists of the release's section, behind its own."""
    heading = re.compile(rf"^## {re.escape(release)}\b.*$", re.MULTILINE)
    if (found := heading.search(text)) is None:
        before, mark, after = text.partition("\n## ")
        section = "\n\n".join([f"## {release} ({date})", *with_lists("", changes)])
        return f"{before.rstrip()}\n\n{section}\n{mark}{after}"
    following = text.find("\n## ", found.end())
    end = len(text) if following < 0 else following
    body = text[found.end() : end].strip()
    section = "\n\n".join([f"## {release} ({date})", *with_lists(body, changes)])
    return f"{text[: found.start()]}{section}\n{text[end:]}"


def with_lists(body: str, changes: Mapping[str, Sequence[str]]) -> list[str]:
    """The parts of a section: its text, and one list of each kind with the changes at its end."""
    before, *lists = re.split(r"^### ", body, flags=re.MULTILINE)
    items = {each.partition("\n")[0]: each.partition("\n")[2].strip() for each in lists}
    for kind, title in KINDS.items():
        added = "\n".join(item(change) for change in changes.get(kind, ()))
        if joined := "\n".join(filter(None, [items.get(title, ""), added])):
            items[title] = joined
    order = [title for title in KINDS.values() if title in items]
    parts = [before.strip(), *(f"### {title}\n\n{items[title]}" for title in order)]
    return [part for part in parts if part]


def item(change: str) -> str:
    """A change as an item of a list, wrapped."""
    return textwrap.fill(
        f"- {from_root(change)}",
        COLUMNS,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def from_root(change: str) -> str:
    """A fragment whose links start at the root of the project, as those of the changelog do."""
    return change.replace("](../", "](").removeprefix("- ")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()  # a word more changes no file
    main()
