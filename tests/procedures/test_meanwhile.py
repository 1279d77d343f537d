"""Each procedure while each kind of change commits: one commit, or a conflict that commits nothing.

The change is published directly before the procedure publishes its own commit, when all its work is
done. What then is in the table is what one of the two orders makes of it, and a vacuum that follows
deletes no file that the table needs.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import CommitConflict, RowsieveError, SnapshotExpired, UnsupportedOperation
from rowsieve.objects.local import LocalStore
from tests.faults.stores import EveryStore
from tests.profiles import IS_DEEP

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
EXPECTED = (CommitConflict, SnapshotExpired, UnsupportedOperation)
Work: TypeAlias = Callable[[rs.Catalog], Any]
Rows: TypeAlias = list[tuple[Any, ...]]
Made: TypeAlias = Callable[[Path, Sequence[str] | None], rs.Catalog]
KEY = ("id",)


def rows(*ids: int, v: int) -> pa.Table:
    return pa.table({"id": ids, "v": [v] * len(ids)}, schema=SCHEMA)


def call(text: str) -> Work:
    return lambda catalog: catalog.call(f"CALL system.{text}")


def change(make: Callable[[rs.Table], Any]) -> Work:
    return lambda catalog: make(catalog.open_table("db.t"))


def written(*ids: int, v: int) -> Work:
    def write(table: rs.Table) -> None:
        (table.upsert if table.key else table.append)(rows(*ids, v=v))

    return change(write)


PROCEDURES: dict[str, Work] = {
    "rewrite_data_files": call(
        "rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))"
    ),
    "in stages": call(
        "rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true', "
        "'partial-progress.enabled', 'true', 'max-file-group-size-bytes', '1'))"
    ),
    "some of it": call(
        "rewrite_data_files(table => 'db.t', where => 'id < 25', "
        "options => map('rewrite-all', 'true'))"
    ),
    "sort": call(
        "rewrite_data_files(table => 'db.t', strategy => 'sort', sort_order => 'id', "
        "options => map('rewrite-all', 'true'))"
    ),
    "migrate": call("migrate('db', 't')"),
    "analyze": call("analyze('db', 't', rewrite_all => TRUE, distinct_counts => TRUE)"),
    "compact": call("compact('db', 't')"),
    "build_deletion_vectors": call("build_deletion_vectors('db', 't')"),
    "rewrite_position_delete_files": call("rewrite_position_delete_files('db', 't')"),
    "rollback_to_snapshot": call("rollback_to_snapshot('db', 't', 2)"),
    "set_current_snapshot": call("set_current_snapshot('db', 't', 4)"),
    "cherrypick_snapshot": call("cherrypick_snapshot('db', 't', 3)"),
    "expire_snapshots": call("expire_snapshots('db', 't', retain_last => 2)"),
    "vacuum": call("vacuum('db', 't', retain_last => 2)"),
    "add_files": lambda catalog: catalog.call(
        f"CALL system.add_files(table => 'db.t', source => '{catalog.uri}/../more', copy => TRUE)"
    ),
}
CHANGES: dict[str, Work] = {
    "write new rows": written(200, 201, v=9),
    "write old rows": written(3, 23, 200, v=9),
    "delete": change(lambda t: t.delete("id IN (3, 24, 41)")),
    "delete all": change(lambda t: t.delete("TRUE")),
    "update": change(lambda t: t.update({"v": "v + 100"}, where="id IN (2, 22)")),
    "overwrite": change(lambda t: t.overwrite(rows(1, 22, 300, v=9))),
    "overwrite some": change(lambda t: t.overwrite(rows(21, v=9), where="id = 21")),
    "restore": change(lambda t: t.restore(2)),
    "add a column": change(lambda t: t.add_column("w", "int64", default=5)),
    "drop a column": change(lambda t: t.drop_column("v")),
    "rename a column": change(lambda t: t.rename_column("v", "w")),
    "set properties": change(lambda t: t.set_properties({"statistics": "off"})),
    "compact": PROCEDURES["compact"],
    "analyze": PROCEDURES["analyze"],
    "rewrite_data_files": PROCEDURES["rewrite_data_files"],
    "build_deletion_vectors": PROCEDURES["build_deletion_vectors"],
    "rewrite_position_delete_files": PROCEDURES["rewrite_position_delete_files"],
    "cherry-pick": PROCEDURES["cherrypick_snapshot"],
    "vacuum": call("vacuum('db', 't', retain_last => 1, grace_s => 0)"),
    "drop": lambda catalog: catalog.drop_table("db.t"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Copies the catalog of a key into a folder."""
    folders = {key: tmp_path_factory.mktemp("first") for key in (KEY, None)}
    for key, folder in folders.items():
        make(folder, key)

    def copied(folder: Path, key: Sequence[str] | None) -> rs.Catalog:
        shutil.copytree(folders[KEY if key else None], folder, dirs_exist_ok=True)
        return rs.Catalog(folder / "lake")

    return copied


def make(folder: Path, key: Sequence[str] | None) -> None:
    """A table with overlapping parts, deletes, and a version 3 that a restore has undone."""
    catalog = rs.Catalog(folder / "lake")
    table = catalog.create_table("db.t", SCHEMA, list(key) if key else None)
    write = table.upsert if key else table.append
    for start in (0, 20):
        write(rows(*range(start, start + 6), v=start))  # versions 1 and 2
    write(rows(100, 101, v=7))
    table.restore(2)
    write(rows(2, 3, 4, 40, 41, 42, v=3))
    table.delete("id IN (1, 21, 40)")
    write(rows(600, 601, v=4))
    write(rows(601, 602, v=5))
    for condition in ("id >= 600", "id < 100") if key else ():  # a file of vectors each
        table.build_deletion_vectors(condition)
    table.delete("id IN (2, 22)")
    (folder / "more").mkdir()
    pq.write_table(rows(500, 501, v=8), folder / "more/one.parquet")


def content(catalog: rs.Catalog) -> tuple[list[str], Rows]:
    """The names of the columns, and the rows."""
    found = catalog.open_table("db.t").scan().to_arrow()
    return found.column_names, sorted(zip(*found.to_pydict().values(), strict=True), key=repr)


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory, made: Made) -> Callable[..., Any]:
    """What is in the table after some works, one after the other; an error's class if one fails."""
    # No place is used again: all copies have one UUID, by which a table is known again.
    folder, places = tmp_path_factory.mktemp("twins"), count()

    @cache
    def after(key: Sequence[str] | None, *names: tuple[bool, str]) -> Any:
        place = folder / str(next(places))
        catalog = made(place, key)
        for is_change, name in names:
            try:
                (CHANGES if is_change else PROCEDURES)[name](catalog)
            except RowsieveError as error:
                return type(error)
        found = content(catalog) if catalog.tables("db") else "dropped"
        shutil.rmtree(place)
        return found

    return after


PAIRS = [(p, c) for p in PROCEDURES for c in CHANGES]


@pytest.mark.parametrize("key", [KEY, None], ids=["key", "no key"])
@pytest.mark.parametrize(("procedure", "other"), PAIRS if IS_DEEP else PAIRS[::29], ids=str)
def test_procedure_and_change_are_one_after_the_other(
    tmp_path: Path,
    twins: Callable[..., Any],
    made: Made,
    monkeypatch: pytest.MonkeyPatch,
    procedure: str,
    other: str,
    key: tuple[str, ...] | None,
) -> None:
    after_change = twins(key, (True, other))
    if after_change is UnsupportedOperation:
        pytest.skip("such a table has no such change")
    catalog = made(tmp_path, key)
    waits = [True]

    def overtake() -> None:
        waits.clear()
        CHANGES[other](rs.Catalog(catalog.uri))

    EveryStore(monkeypatch, LocalStore).overtake(
        overtake, "put_new", lambda path: path.startswith("_rowsieve/log/") and ".json" in path
    )
    error: RowsieveError | None = None
    try:
        PROCEDURES[procedure](rs.Catalog(catalog.uri))
    except RowsieveError as caught:
        error = caught
    monkeypatch.undo()
    if waits:
        assert error is None or isinstance(error, UnsupportedOperation), error
        pytest.skip("the procedure has nothing to commit")
    if after_change == "dropped":
        assert catalog.tables("db") == []
        return
    found = content(rs.Catalog(catalog.uri))
    if error is not None:
        assert isinstance(error, EXPECTED), error
        assert found == after_change, error
    else:
        orders = [
            twins(key, (True, other), (False, procedure)),
            twins(key, (False, procedure), (True, other)),
        ]
        assert found in orders
    rs.Catalog(catalog.uri).open_table("db.t").vacuum(retain_last=1, grace_s=0)
    assert content(rs.Catalog(catalog.uri)) == found
