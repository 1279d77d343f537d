"""A disk that refuses writes: full, read-only, forbidden. Reads go on, and errors give advice."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.cli import app as cli
from rowsieve.errors import InvalidInput, StoreError
from rowsieve.objects import durable
from tests.faults.files import ERRORS, FileCalls
from tests.faults.vocabulary import Fault
from tests.ordinary_user import ordinary_user

REFUSALS = {
    Fault.NO_SPACE: "free space on this disk",
    Fault.OVER_QUOTA: "within this user's quota",
    Fault.READ_ONLY: "mounted read-only",
    Fault.NOT_PERMITTED: "lacks the permission",
    Fault.TOO_LARGE: "target_part_bytes",
}
CHANGES: dict[str, Callable[[rs.Table], object]] = {
    "upsert": lambda table: table.upsert({"id": [7], "v": [7]}),
    "delete": lambda table: table.delete("v > 1"),
    "update": lambda table: table.update({"v": "v + 1"}),
    "overwrite": lambda table: table.overwrite({"id": [7], "v": [7]}),
    "compact": lambda table: table.compact(),
    "set_properties": lambda table: table.set_properties({"audit_percent": "5"}),
    "restore": lambda table: table.restore(version=0),
}


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    table = rs.create_table(tmp_path / "t", pa.table({"id": [1, 2], "v": [1, 2]}), key=["id"])
    table.upsert({"id": [2], "v": [3]})
    return table


@pytest.fixture(autouse=True)
def _no_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal that no retry changes is not retried."""

    def again(_: durable.Patience) -> bool:
        raise AssertionError("it was tried again")

    monkeypatch.setattr(durable.Patience, "again", again)


@pytest.fixture
def forbidden(table: rs.Table) -> Iterator[Path]:
    """The table's folder, in which nobody may write."""
    folder = Path(table.uri.removeprefix("file://"))
    folders = [folder, *(each for each in folder.rglob("*") if each.is_dir())]
    for each in folders:
        each.chmod(0o555)
    with ordinary_user():
        yield folder
    for each in folders:
        each.chmod(stat.S_IRWXU)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_in_a_read_only_folder_fails_at_once_and_says_so(
    change: str, forbidden: Path
) -> None:
    table = rs.open_table(forbidden)
    with pytest.raises(
        StoreError, match=r"cannot create .*: Permission denied; this proc"
    ) as raised:
        CHANGES[change](table)
    assert type(raised.value) is StoreError  # the driver of Spark finds it by this name
    assert rs.open_table(forbidden).version == 1


def test_a_table_in_a_read_only_folder_is_read(forbidden: Path) -> None:
    table = rs.open_table(forbidden)
    assert table.scan("v > 1").to_arrow().to_pylist() == [{"id": 2, "v": 3}]
    assert rs.open_table(forbidden, version=0).scan().count() == 2
    assert table.to_dataset().to_table().num_rows == len(table) == len(table.to_polars()) == 2
    assert [commit.version for commit in table.history()] == [1, 0]
    runner = CliRunner()
    query = runner.invoke(cli.app, ["query", "SELECT count(*) AS n FROM t", str(forbidden)])
    assert (query.exit_code, "2" in query.output) == (0, True), query.output
    refused = runner.invoke(cli.app, ["delete", str(forbidden), "id = 2"])
    assert (refused.exit_code, refused.output.count("\n")) == (5, 1), refused.output
    assert "run it as a user who has it" in refused.output


def test_a_table_is_not_created_in_a_read_only_folder(forbidden: Path) -> None:
    with pytest.raises(StoreError, match="lacks the permission"):
        rs.create_table(forbidden / "inner" / "u", {"id": [1]}, key=["id"])


def test_a_forbidden_file_says_why_it_is_not_read(table: rs.Table) -> None:
    folder = Path(table.uri.removeprefix("file://"))
    for each in (folder / "data").iterdir():
        each.chmod(0)
    with ordinary_user(), pytest.raises(StoreError, match=r"cannot read .*; this process lacks"):
        rs.open_table(folder).scan().to_arrow()


@pytest.mark.parametrize("call", ["create", "write", "link"])
@pytest.mark.parametrize("fault", REFUSALS, ids=lambda fault: fault.name)
def test_a_disk_that_refuses_a_write_gives_advice(
    fault: Fault, call: str, table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = list(Path(table.uri.removeprefix("file://")).rglob("*"))
    FileCalls(monkeypatch, names=[call]).meet_where(fault, call)
    with pytest.raises(StoreError, match=REFUSALS[fault]) as raised:
        table.upsert({"id": [7], "v": [7]})
    with pytest.raises(StoreError, match=r"set_properties: .*; nothing was committed"):
        table.set_properties({"audit_percent": "5"})
    monkeypatch.undo()
    assert os.strerror(ERRORS[fault]) in str(raised.value)
    assert list(Path(table.uri.removeprefix("file://")).rglob("*")) == before
    assert table.upsert({"id": [7], "v": [7]}).version == 2


def test_a_commit_whose_folder_cannot_be_synced_is_said_to_be_visible(
    table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = FileCalls(monkeypatch, names=["open"])
    calls.meet_where(Fault.NO_DESCRIPTOR, "open", lambda target: target.endswith("log"))
    with pytest.raises(StoreError, match=r"Readers see commit [0-9a-f]{32} as version 2 unless"):
        table.set_properties({"audit_percent": "5"})
    monkeypatch.undo()
    assert rs.open_table(table.uri).version == 2


NAMED: dict[str, Callable[[Path], object]] = {
    "create a database": lambda folder: rs.Database(folder / "new").ensure(),
    "rename a table": lambda folder: rs.Database(folder / "d").rename_table("t", "u"),
    "drop a table": lambda folder: rs.Database(folder / "d").drop_table("t"),
    "create a namespace": lambda folder: rs.Catalog(folder / "c").create_namespace("n"),
    "rename in a catalog": lambda folder: rs.Catalog(folder / "c").rename_table("a.t", "a.u"),
    "branch": lambda folder: rs.open_table(folder / "t").branch("b"),
    "move in": lambda folder: rs.Database(folder / "d").move_in("m", folder / "t"),
}


@pytest.mark.parametrize("call", NAMED)
@pytest.mark.parametrize("fault", [Fault.NO_SPACE, Fault.IO_ERROR], ids=lambda fault: fault.name)
def test_names_and_databases_on_a_bad_disk_say_what_happened(
    fault: Fault, call: str, table: rs.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rs.Database(tmp_path / "d").create_table("t", {"id": [1]}, key=["id"])
    rs.Catalog(tmp_path / "c").create_table("a.t", {"id": [1]}, key=["id"])
    name = "create" if fault is Fault.NO_SPACE else "fsync"
    FileCalls(monkeypatch, names=[name]).meet_where(
        fault, name, lambda target: "_rowsieve/leases" not in target
    )
    with pytest.raises(StoreError, match=r"repeat the call|was not created|Check the disk") as met:
        NAMED[call](tmp_path)
    assert type(met.value) is StoreError
    monkeypatch.undo()
    NAMED[call](tmp_path)
    assert rs.open_table(table.uri).verify().is_whole if call != "move in" else True


LONG = "n" * 300
PLACES: dict[str, Callable[[rs.Table, Path], object]] = {
    "create_table": lambda _, place: rs.create_table(place / "t", {"id": [1]}, key=["id"]),
    "open_table": lambda _, place: rs.open_table(place),
    "clone": lambda table, place: table.clone(place),
    "publish": lambda table, place: table.publish("iceberg", place),
    "catalog": lambda _, place: rs.Catalog(place).create_namespace("n"),
    "database": lambda _, place: rs.Database(place).ensure(),
    "drop_table": lambda _, place: rs.drop_table(place),
    "file": lambda table, place: table.upsert(str(place)),
}


@pytest.mark.parametrize("call", PLACES)
def test_a_name_that_the_file_system_cannot_have_is_the_callers_error(
    call: str, table: rs.Table, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=r"give a shorter one|File name too long; nothing was"):
        PLACES[call](table, tmp_path / LONG)
