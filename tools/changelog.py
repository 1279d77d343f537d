"""Join the fragments of `changelog.d` into a section of CHANGELOG.md: `python -m tools.changelog`.

The section is that of the version in `pyproject.toml`; it is made if there is none, and dated. The
fragments are deleted. Read the result: a release of many fragments wants some of them joined.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tools.release import CHANGELOG, FRAGMENTS, version

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
    """The changelog with these changes at the end of the release's section."""
    lists = [
        f"### {title}\n\n" + "\n".join(f"- {from_root(change)}" for change in changes[kind])
        for kind, title in KINDS.items()
        if changes.get(kind)
    ]
    heading = re.compile(rf"^## {re.escape(release)}\b.*$", re.MULTILINE)
    if (found := heading.search(text)) is None:
        before, mark, after = text.partition("\n## ")
        return "\n\n".join([before.rstrip(), f"## {release} ({date})", *lists]) + f"\n{mark}{after}"
    following = text.find("\n## ", found.end())
    end = len(text) if following < 0 else following
    body = text[found.end() : end].strip()
    section = "\n\n".join([f"## {release} ({date})", *([body] if body else []), *lists])
    return f"{text[: found.start()]}{section}\n{text[end:]}"


def from_root(change: str) -> str:
    """A fragment whose links start at the root of the project, as those of the changelog do."""
    return change.replace("](../", "](").removeprefix("- ")


if __name__ == "__main__":
    main()
