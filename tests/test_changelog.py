"""Fragments become a section of the changelog, and lose nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import changelog, release

TEXT = "# Changelog\n\nAn introduction.\n\n## 0.1.0 (1 May 2026)\n\n- Old.\n"
CHANGES = {"fixed": ["Two."], "added": ["One, see [x](../docs/x.md).", "- Three."]}


def test_a_new_release_gets_a_section_above_the_older_ones() -> None:
    text = changelog.with_section(TEXT, "0.2.0", "2 June 2026", CHANGES)
    assert text == (
        "# Changelog\n\nAn introduction.\n\n## 0.2.0 (2 June 2026)\n\n### Added\n\n"
        "- One, see [x](docs/x.md).\n- Three.\n\n### Fixed\n\n- Two.\n\n"
        "## 0.1.0 (1 May 2026)\n\n- Old.\n"
    )


def test_a_section_that_exists_is_dated_and_keeps_its_text() -> None:
    text = changelog.with_section(TEXT, "0.1.0", "2 June 2026", {"fixed": ["Two."]})
    assert text.endswith("## 0.1.0 (2 June 2026)\n\n- Old.\n\n### Fixed\n\n- Two.\n")
    both = changelog.with_section(TEXT + "\n## 0.0.1\n\n- Oldest.\n", "0.1.0", "today", CHANGES)
    assert both.index("- Two.") < both.index("## 0.0.1") < both.index("- Oldest.")


def test_a_fragment_names_its_kind() -> None:
    assert changelog.kind_of(Path("types.fixed.md")) == "fixed"
    with pytest.raises(ValueError, match=r"the kind 'mended' is none of added"):
        changelog.kind_of(Path("types.mended.md"))


def test_every_fragment_of_the_project_has_a_kind() -> None:
    paths = [path for path in release.FRAGMENTS.glob("*.md") if path.name != "README.md"]
    assert {changelog.kind_of(path) for path in paths} <= set(changelog.KINDS)


def test_a_section_takes_changes_twice() -> None:
    once = changelog.with_section(TEXT, "0.2.0", "2 June 2026", CHANGES)
    twice = changelog.with_section(once, "0.2.0", "3 June 2026", {"added": ["Four."]})
    assert (
        "## 0.2.0 (3 June 2026)\n\n### Added\n\n- One, see [x](docs/x.md).\n- Three.\n- Four.\n"
        in twice
    )
    assert twice.count("### Added") == 1


def test_a_long_change_is_wrapped() -> None:
    lines = changelog.item("word " * 100).split("\n")
    assert max(map(len, lines)) <= 120
    assert all(line.startswith("  ") for line in lines[1:])
