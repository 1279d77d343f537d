"""A release is refused where something is missing, and its wheel has what users need."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tools import release


def wheel_of(folder: Path, *names: str) -> Path:
    path = folder / "rowsieve-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, name)
    return path


def test_a_wheel_has_types_and_no_tests(tmp_path: Path) -> None:
    good = wheel_of(tmp_path, "rowsieve/py.typed", "rowsieve/__init__.py")
    assert set(release.contents(good)) == {"rowsieve/py.typed", "rowsieve/__init__.py"}
    with pytest.raises(release.Unready, match=r"has no rowsieve/py\.typed"):
        release.contents(wheel_of(tmp_path, "rowsieve/__init__.py"))
    with pytest.raises(release.Unready, match=r"has tests/test_x\.py, which is not for users"):
        release.contents(wheel_of(tmp_path, "rowsieve/py.typed", "tests/test_x.py"))


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changelog, fragments = tmp_path / "CHANGELOG.md", tmp_path / "changelog.d"
    fragments.mkdir()
    changelog.write_text("# Changelog\n")
    monkeypatch.setattr(release, "CHANGELOG", changelog)
    monkeypatch.setattr(release, "FRAGMENTS", fragments)
    assert f"CHANGELOG.md has no section {release.version()}" in release.missing()
    changelog.write_text(f"# Changelog\n\n## {release.version()} (today)\n")
    (fragments / "README.md").touch()
    (fragments / "types.fixed.md").touch()
    reasons = list(release.missing())
    assert not any("no section" in reason for reason in reasons)
    assert any("1 fragments" in reason for reason in reasons)


def test_what_to_upload_is_printed_with_its_digest() -> None:
    file = release.ROOT / "LICENSE"
    lines = list(release.to_upload([file]))
    assert lines[1].endswith(f"  LICENSE  {file.stat().st_size:,} bytes")
    assert len(lines[1].split()[0]) == 64
    assert lines[-1] == "twine upload LICENSE"


def test_a_failed_command_is_a_reason() -> None:
    with pytest.raises(release.Unready, match="git no-such-command failed"):
        release._run("git", "no-such-command")
