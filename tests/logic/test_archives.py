"""An archive of logic tests is unpacked below its folder, and nowhere else."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.logic import archives
from tests.logic.runs import directory_of, run_all

SLT = b"""\
statement ok
CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 10)

query I
SELECT sum(a) FROM t WHERE a > 4

query I
SELECT 1 / 0

query error
SELECT b FROM t

query TT
EXPLAIN SELECT a FROM t

include ./more.part
"""
MORE = b"""\
query I
SELECT count(*) FROM t
"""


def write_tar(path: Path, *members: tarfile.TarInfo, body: bytes = b"") -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            member.size = len(body) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(body) if member.isreg() else None)
    return path


def write_zip(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as zipped:
        for name, body in members.items():
            zipped.writestr(name, body)
    return path


def member(name: str, type_: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = type_, link
    return info


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz", ".tgz"])
def test_regular_files_are_unpacked(tmp_path: Path, suffix: str) -> None:
    archive, folder = tmp_path / f"files{suffix}", tmp_path / "folder"
    if suffix == ".zip":
        write_zip(archive, **{"p/test_files/a.slt": b"x", "p/data.csv": b"x"})
    else:
        names = ("p/test_files/a.slt", "p/data.csv")
        write_tar(archive, member("p", tarfile.DIRTYPE), *map(member, names), body=b"x")
    archives.unpack(archives.fetched(str(archive), tmp_path), folder)
    (found,) = archives.test_files(folder)
    assert found == folder / "p/test_files/a.slt"
    assert found.read_bytes() == (folder / "p/data.csv").read_bytes() == b"x"
    assert directory_of(found, folder) == folder / "p"


@pytest.mark.parametrize(
    "odd",
    [
        member("../out.slt"),
        member("p/../../out.slt"),
        member("/tmp/out.slt"),
        member("p\\..\\out.slt"),
        member("link.slt", tarfile.SYMTYPE, "/etc/hostname"),
        member("hard.slt", tarfile.LNKTYPE, "a.slt"),
        member("pipe.slt", tarfile.FIFOTYPE),
    ],
    ids=lambda info: info.name,
)
def test_a_member_that_could_leave_the_folder_is_refused(
    tmp_path: Path, odd: tarfile.TarInfo
) -> None:
    archive = write_tar(tmp_path / "odd.tar.gz", member("a.slt"), odd, body=b"x")
    folder = tmp_path / "deep" / "folder"
    with pytest.raises(ValueError, match=r"not a regular file|outside of the archive"):
        archives.unpack(archive, folder)
    assert [path.name for path in tmp_path.rglob("*.slt")] == ["a.slt"]


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link.slt")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "odd.zip", "w") as zipped:
        zipped.writestr(link, "/etc/hostname")
    with pytest.raises(ValueError, match="not a regular file"):
        archives.unpack(tmp_path / "odd.zip", tmp_path / "folder")


def test_an_archive_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_BYTES", 1000)
    archive = write_zip(tmp_path / "large.zip", **{"a.slt": bytes(800), "b.slt": bytes(201)})
    with pytest.raises(ValueError, match="unpacks to more than 1000 bytes"):
        archives.unpack(archive, tmp_path / "folder")


@pytest.mark.parametrize("source", ["http://127.0.0.1/a.zip", "file:///a.zip", "ftp://h/a.tar.gz"])
def test_an_archive_is_fetched_by_https_alone(tmp_path: Path, source: str) -> None:
    with pytest.raises(ValueError, match="https only"):
        archives.fetched(source, tmp_path)


def test_all_files_of_an_archive_are_run_and_counted_once(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "files.zip", **{"p/a.slt": SLT, "p/more.part": MORE})
    report = tmp_path / "report.jsonl"
    sums = run_all(str(archive), "*", 600, report)
    assert sums["files"] == sums["tables"] == 1
    assert (sums["compared"], sums["over_our_tables"], sums["failed_in_both"]) == (2, 2, 1)
    assert sums["expects_an_error"] == sums["about_plans"] == 1
    assert sums["wrong"] == sums["raised"] == sums["crashed"] == 0
    assert run_all(str(archive), "*", 600, report) == sums
    assert len(report.read_text().splitlines()) == 1
