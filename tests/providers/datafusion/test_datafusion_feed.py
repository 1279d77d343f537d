"""The table function `changes` of our DataFusion session gives the rows of `Table.changes`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, SnapshotExpired, VersionNotFound
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.datafusion.table_functions.changes_function import ChangesDataset
from tests.profiles import some

ZONED = pa.timestamp("us", "-05:00")


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """Versions 1 to 4: an insert of two rows, an update, a delete, an insert of NaN."""
    schema = pa.schema([("id", pa.int64()), ("v", pa.float64()), ("at", ZONED)])
    made = rs.create_table(str(tmp_path / "t"), schema, key=["id"])
    at = pa.array([0, 1], ZONED)
    made.upsert(pa.table({"id": [1, 2], "v": [1.0, None], "at": at}))
    made.update({"v": "5"}, where="id = 2")
    made.delete("id = 1")
    made.upsert(pa.table({"id": [3], "v": [float("nan")], "at": at[:1]}))
    return made


@pytest.fixture
def context(table: rs.Table) -> SessionContext:
    session = SessionContext()
    session.register_table("t", table)
    return session


CONDITIONS = [
    "TRUE", "_change_type = 'delete'", "_commit_version BETWEEN 2 AND 3", "v > 2", "v = 'NaN'",
    "v IS NULL OR id = 3", "v NOT IN (1.0, 5.0)", "id + 1 = 3", "_change_type LIKE 'update%'",
    "_commit_timestamp > TIMESTAMP '2020-01-01'", "id IN (SELECT id FROM t)", "FALSE",
]  # fmt: skip


COLUMNS = [
    "*",
    "count(*) AS n",
    "_change_type, id",
    "v",
    "extract(hour FROM at) AS h, _commit_version",
]


def in_memory(table: rs.Table, first: int, last: int | None) -> datafusion.SessionContext:
    """The changes as `c` and the table as `t`, in DataFusion alone."""
    memory = datafusion.SessionContext()
    for name, rows in (
        ("c", table.changes(first, last).read_all()),
        ("t", table.scan().to_arrow()),
    ):
        place = rows.column_names.index("at")
        zoned = rows.set_column(place, "at", rows.column("at").cast(ZONED))
        batches = zoned.to_batches() or [pa.RecordBatch.from_pylist([], zoned.schema)]
        memory.register_record_batches(name, [batches])
    return memory


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_rows_are_those_of_the_method(
    context: SessionContext, table: rs.Table, condition: str
) -> None:
    for versions in ((0, None), (2, 3)):
        memory = in_memory(table, *versions)
        numbers = ", ".join(str(each) for each in versions if each is not None)
        for columns in some(COLUMNS, 3, CONDITIONS.index(condition)):
            text = f"SELECT {columns} FROM {{}} AS c WHERE {condition}"
            ours = context.sql(text.format(f"changes('t', {numbers})")).to_arrow_table()
            theirs = memory.sql(text.format("c")).to_arrow_table()
            assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, theirs.to_pylist()))
            assert ours.schema.types == theirs.schema.types


def test_only_the_columns_and_rows_that_are_asked_for_are_read(
    context: SessionContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, str]] = []
    feed = ChangesDataset.feed

    def noted(changes: ChangesDataset, columns: Any, where: Any) -> Any:
        asked.append((columns, str(where)))
        return feed(changes, columns, where)

    monkeypatch.setattr(ChangesDataset, "feed", noted)
    context.sql("SELECT v FROM changes('t', 1) WHERE id = 2 AND _commit_version > 1").collect()
    assert asked[-1] == (["v"], "id = 2 AND _commit_version > 1")


def test_a_statement_reads_one_range(context: SessionContext, table: rs.Table) -> None:
    frame = context.sql("SELECT count(*) AS n FROM changes('t', 1)")
    rs.open_table(table.uri).delete("id = 3")
    assert frame.to_pylist() == [{"n": 6}]
    assert context.sql("SELECT count(*) AS n FROM changes('t', 1)").to_pylist() == [{"n": 7}]
    text = "INSERT INTO t SELECT id + 10, v, at FROM changes('t', 1) WHERE _change_type = 'delete'"
    assert context.sql(text).to_pylist() == [{"count": 2}]


def test_what_is_asked_wrongly(context: SessionContext, table: rs.Table) -> None:
    for arguments in ("'t'", "'t', 'x'", "1, 2", "'t', 1, 2, 3", "'nosuch', 1", "'t', 3, 1", ""):
        with pytest.raises(InvalidInput, match="changes"):
            context.sql(f"SELECT * FROM changes({arguments})")
    with pytest.raises(VersionNotFound):
        context.sql("SELECT * FROM changes('t', 1, 9)")


def test_an_expired_range_is_an_error(context: SessionContext, table: rs.Table) -> None:
    frame = context.sql("SELECT * FROM changes('t', 1)")
    table.expire_versions(retain_last=1)
    with pytest.raises(SnapshotExpired):
        context.sql("SELECT * FROM changes('t', 1)")
    with pytest.raises(Exception, match=r"expired|gone"):
        frame.collect()
    assert isinstance(table.engine_error, SnapshotExpired)


def test_names_are_those_of_the_session(tmp_path: Path, table: rs.Table) -> None:
    context = SessionContext()
    context.register_table('"My T"', table)
    assert context.sql("""SELECT count(*) AS n FROM changes('"My T"', 1)""").to_pylist() == [
        {"n": 6}
    ]
    catalog = rs.Catalog(str(tmp_path / "lake"))
    catalog.register_table("db.t", table.uri)
    context.register_catalog_provider("lake", catalog.to_datafusion())
    found = context.sql("SELECT count(*) AS n FROM changes('lake.db.t', 2, 2)").to_pylist()
    assert found == [{"n": 2}]


def test_net_changes_are_those_of_the_method(context: SessionContext, table: rs.Table) -> None:
    for arguments, versions in (("2, true", (2,)), ("1, 3, true", (1, 3)), ("4, 4, true", (4, 4))):
        ours = context.sql(f"SELECT * FROM changes('t', {arguments})").to_arrow_table()
        theirs = table.changes(*versions, net=True).read_all()
        assert sorted(map(repr, ours.drop_columns("at").to_pylist())) == sorted(
            map(repr, theirs.drop_columns("at").to_pylist())
        )
    each = context.sql("SELECT count(*) AS n FROM changes('t', 1, 3, false)").to_pylist()
    assert each == [{"n": table.changes(1, 3).read_all().num_rows}]
    with pytest.raises(InvalidInput, match="true at the end for net changes"):
        context.sql("SELECT * FROM changes('t', true, 1)")
