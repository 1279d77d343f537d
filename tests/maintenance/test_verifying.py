"""`Table.verify`: each flipped byte, missing file and wrong size is told, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.cli import app as cli
from rowsieve.errors import SnapshotExpired
from tests.small_tables import fresh_uri, kv


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """A table with files of rows, tombstones and stored vectors."""
    table = rs.create_table(
        str(tmp_path / "t"), kv((1, 1), (2, 2), (3, 3)), key=["k"], properties=WITHOUT_INLINE
    )
    table.upsert(kv((2, 20), (4, 4)))
    table.delete(keys={"k": [3]})
    table.build_deletion_vectors()
    return table


WITHOUT_INLINE = {"inline_bytes": 0}


def files_of(table: rs.Table) -> list[Path]:
    return sorted((Path(table.uri.removeprefix("file://")) / "data").iterdir())


def test_a_whole_table_is_whole(table: rs.Table) -> None:
    seen: list[tuple[int, int]] = []
    done = table.verify(progress=lambda *counts: seen.append(counts))
    assert done.is_whole
    assert done.files == len(files_of(table)) == seen[-1][0] == seen[-1][1]
    assert done.size_bytes == sum(file.stat().st_size for file in files_of(table))
    assert table.verify(quick=True).is_whole


def test_each_flipped_bit_of_each_file_is_told(table: rs.Table) -> None:
    for file in files_of(table):
        data = file.read_bytes()
        for place in {0, len(data) // 2, len(data) - 1}:
            flipped = bytearray(data)
            flipped[place] ^= 1
            file.write_bytes(flipped)
            damaged = table.verify().damaged
            assert [each.path for each in damaged] == [f"data/{file.name}"], place
            assert "checksum" in damaged[0].reason
        file.write_bytes(data)
    assert table.verify().is_whole


@pytest.mark.parametrize("quick", [False, True])
def test_missing_short_and_long_files_are_told(table: rs.Table, quick: bool) -> None:
    for file in files_of(table):
        data = file.read_bytes()
        for wrong in (data[:-1], data + b"\0", b""):
            file.write_bytes(wrong)
            (damage,) = table.verify(quick=quick).damaged
            assert f"it has {len(wrong):,} bytes" in damage.reason
        file.unlink()
        (damage,) = table.verify(quick=quick).damaged
        assert damage.reason == "it does not exist"
        file.write_bytes(data)


def test_quick_reads_the_footers_only(table: rs.Table) -> None:
    file = next(file for file in files_of(table) if file.name.endswith(".0.parquet"))
    data = file.read_bytes()
    for place, is_whole in ((4, True), (len(data) - 10, False)):
        flipped = bytearray(data)
        flipped[place] ^= 1
        file.write_bytes(flipped)
        assert table.verify(quick=True).is_whole is is_whole
        assert not table.verify().is_whole


def test_an_older_version_has_its_own_files(table: rs.Table) -> None:
    (ref,) = rs.open_table(table.uri, version=0).handle.pinned.parts.files("data")
    assert ref is not None
    first = next(file for file in files_of(table) if ref.path.endswith(file.name))
    table.overwrite(kv((9, 9)))
    first.unlink()
    assert table.verify().is_whole
    assert not table.verify(version=0).is_whole
    assert not rs.open_table(table.uri, version=0).verify(quick=True).is_whole


def test_a_version_that_expires_meanwhile_is_not_damaged(table: rs.Table) -> None:
    old = rs.open_table(table.uri, version=0)
    table.overwrite(kv((9, 9)))
    table.vacuum(retain_last=1, grace_s=0)
    with pytest.raises(SnapshotExpired):
        old.verify()


def test_files_in_place_are_compared_by_their_footers(tmp_path: Path) -> None:
    path = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"a": range(100)}), path)
    table = rs.from_parquet(str(path), str(tmp_path / "t"))
    assert table.verify().is_whole
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    assert [each.path for each in table.verify().damaged] == [path.as_uri()]


def test_rows_in_the_log_entry_have_no_file() -> None:
    table = rs.create_table(fresh_uri(), kv((1, 1)), key=["k"], properties={"inline_bytes": 9999})
    table.upsert(kv((2, 2)))
    done = table.verify()
    assert done.is_whole
    assert done.files < 2


def test_branches_and_databases_find_their_files(tmp_path: Path) -> None:
    table = rs.create_table(fresh_uri(), kv((1, 1)), key=["k"], properties=WITHOUT_INLINE)
    branch = table.branch("audit")
    branch.upsert(kv((2, 2)))
    assert branch.verify().files == 2
    assert branch.verify().is_whole
    database = rs.Database(str(tmp_path / "db"))
    inside = database.create_table("t", kv((1, 1)), key=["k"], properties=WITHOUT_INLINE)
    inside.upsert(kv((2, 2)))
    assert inside.verify().is_whole


def test_the_command_ends_with_5_if_a_file_is_damaged(table: rs.Table) -> None:
    uri = table.uri
    assert CliRunner().invoke(cli.app, ["verify", uri]).exit_code == 0
    files_of(table)[0].unlink()
    result = CliRunner().invoke(cli.app, ["verify", uri, "--json"])
    assert result.exit_code == 5
    assert '"it does not exist"' in result.output
