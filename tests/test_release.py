"""A release is refused where something is missing, and its wheel has what users need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

import rowsieve
from tests import profiles
from tools import checksums, release
from tools.release_programs import PROGRAMS, program


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
    assert any(line.startswith("twine upload") for line in lines)
    assert lines[-1] == "publish LICENSE where the release is announced"


@pytest.mark.parametrize("urls", [{}, {"urls": {"Source": "https://example.org"}}])
def test_missing_addresses_are_named_before_the_upload(
    urls: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "_project", lambda: urls)
    lines = list(release.to_upload([release.ROOT / "LICENSE"]))
    assert any("[project.urls]" in line for line in lines) == (not urls)


def test_a_failed_command_is_a_reason() -> None:
    with pytest.raises(release.Unready, match="git no-such-command failed"):
        release._run("git", "no-such-command")


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((release.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert release.version() == rowsieve.__version__
    assert "version" not in project
    assert project["dynamic"] == ["version"]


def test_every_extra_is_tried() -> None:
    project = tomllib.loads((release.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(PROGRAMS) == {"", *project["optional-dependencies"]}


def test_python_releases_are_named() -> None:
    project = tomllib.loads((release.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if ":: 3." in each]
    assert named == ["3.11", "3.12", "3.13", "3.14"]
    assert project["requires-python"] == f">={named[0]}"


def test_the_program_of_the_core_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program("")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(release.ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == rowsieve.__version__


def test_checksums_tell_what_was_changed(tmp_path: Path) -> None:
    wheel, sdist = tmp_path / "r.whl", tmp_path / "r.tar.gz"
    wheel.write_bytes(b"wheel")
    sdist.write_bytes(b"sdist")
    sums = checksums.write(tmp_path, [wheel, sdist])
    assert sums.read_text() == (
        f"{sha256(b'sdist').hexdigest()}  r.tar.gz\n{sha256(b'wheel').hexdigest()}  r.whl\n"
    )
    assert checksums.mismatches(sums) == []
    wheel.write_bytes(b"whee1")
    sdist.unlink()
    assert checksums.mismatches(sums) == ["r.tar.gz", "r.whl"]


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen on this machine")
def test_a_signature_is_of_these_checksums_by_this_key(tmp_path: Path) -> None:
    """The keys are made for this test and thrown away."""
    for name in ("ours", "other"):
        command = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name))
        subprocess.run(command, check=True)
    public = (tmp_path / "ours.pub").read_text()
    signers = tmp_path / "allowed_signers"
    signers.write_text(f'maintainers namespaces="{checksums.PURPOSE}" {public}')
    (tmp_path / "r.whl").write_bytes(b"wheel")
    sums = checksums.write(tmp_path, [tmp_path / "r.whl"])
    with pytest.raises(checksums.SignatureRefused, match=r"no signature SHA256SUMS\.sig"):
        checksums.verify(sums, signers, "maintainers")
    checksums.sign(sums, tmp_path / "ours")
    checksums.verify(sums, signers, "maintainers")
    with pytest.raises(checksums.SignatureRefused):
        checksums.verify(sums, signers, "somebody")
    sums.write_text(sums.read_text().replace("r.whl", "s.whl"))
    with pytest.raises(checksums.SignatureRefused):
        checksums.verify(sums, signers, "maintainers")
    sums.write_text(sums.read_text().replace("s.whl", "r.whl"))
    checksums.sign(sums, tmp_path / "other")
    with pytest.raises(checksums.SignatureRefused):
        checksums.verify(sums, signers, "maintainers")


@pytest.mark.skipif(not profiles.IS_DEEP, reason="packages are built in the deep profile")
def test_a_release_is_built_and_works_without_extras(tmp_path: Path) -> None:
    if shutil.which("uv", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("uv makes the environments; `make release` installs it")
    files = release.build(tmp_path, tmp_path / "dist")
    assert {file.name for file in files.all} == {
        f"rowsieve-{rowsieve.__version__}-py3-none-any.whl",
        f"rowsieve-{rowsieve.__version__}.tar.gz",
    }
    release.check_installed(tmp_path, files.wheel, "")
    release.check_installed(tmp_path, files.wheel, "otel")
