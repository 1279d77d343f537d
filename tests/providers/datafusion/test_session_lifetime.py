"""Sessions end with the last reference of the program: nothing of ours keeps one alive."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidData, NotFound, RowsieveError, SnapshotExpired, without_frames
from rowsieve.providers.datafusion import SessionContext

SESSIONS = 3


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> rs.Catalog:
    catalog = rs.Catalog(tmp_path_factory.mktemp("lifetime") / "lake")
    table = catalog.create_table("db.t", pa.table({"id": range(50), "v": range(50)}), ["id"])
    for i in range(3):
        table.upsert(pa.table({"id": [i], "v": [i]}))
    return catalog


def run(context: datafusion.SessionContext, statements: str) -> None:
    for statement in statements.split("; "):
        try:
            context.sql(statement).to_arrow_table()
        except Exception:  # an error may not keep the session alive either
            continue


def alive_after(make: Any) -> int:
    """The sessions that still exist after some were used and dropped."""
    references: list[weakref.ref[Any]] = []
    for _ in range(SESSIONS):
        make(references)
    gc.collect()
    datafusion.lit(0)  # any call makes Rust release objects that its threads dropped
    gc.collect()
    return sum(reference() is not None for reference in references)


@pytest.mark.parametrize(
    "statements",
    [
        "SELECT 1 FROM t LIMIT 1",
        "SELECT count(*) FROM t WHERE v > 3; EXPLAIN SELECT * FROM t WHERE v > 3",
        "CREATE VIEW w AS SELECT * FROM t WHERE v > 3; SELECT a.id FROM w a LEFT JOIN t b ON true",
        "PREPARE q AS SELECT * FROM t WHERE v = $1; EXECUTE q(3)",
        "CREATE TABLE x AS SELECT * FROM t; SELECT * FROM x",
        "UPDATE t SET v = v + 1 WHERE id = 3; DELETE FROM t WHERE id = 4",
        "SELECT * FROM changes('t', 1, 2); SELECT * FROM changes('t', 99)",
        "SELECT * FROM changes('nope', 1)",
        "SELECT * FROM lake.db.t WHERE v > 5; SELECT * FROM lake.db.nope",
        "INSERT INTO lake.db.nope VALUES (1); CALL lake.system.nope()",
        "SELECT * FROM t WHERE 1 / (v - v) = 1; UPDATE t SET v = 1 / (v - v)",
        "SELECT * FROM nope; SELEC",
    ],
)
def test_a_session_that_nobody_references_is_gone(catalog: rs.Catalog, statements: str) -> None:
    table = catalog.open_table("db.t")

    def make(references: list[weakref.ref[Any]]) -> None:
        context = SessionContext()
        context.register_table("t", table)
        context.register_catalog_provider("lake", catalog.to_datafusion())
        run(context, statements)
        references.append(weakref.ref(context))

    assert alive_after(make) == 0


def test_a_plain_session_with_our_tables_is_gone(catalog: rs.Catalog) -> None:
    table = catalog.open_table("db.t")

    def make(references: list[weakref.ref[Any]]) -> None:
        context = datafusion.SessionContext()
        context.register_table("t", table.to_datafusion())
        context.register_catalog_provider("lake", catalog.to_datafusion())
        run(context, "SELECT count(*) FROM t; SELECT * FROM lake.db.t; SELECT * FROM lake.db.nope")
        references.append(weakref.ref(context))

    assert alive_after(make) == 0


def test_queries_of_a_catalog_leave_no_session(catalog: rs.Catalog) -> None:
    def sessions() -> int:
        gc.collect()
        return sum(isinstance(each, datafusion.SessionContext) for each in gc.get_objects())

    before = sessions()
    for _ in range(SESSIONS):
        catalog.sql("SELECT count(*) FROM db.t")
        with pytest.raises(NotFound):
            catalog.sql("SELECT * FROM db.nope")
    assert sessions() <= before


def test_a_frame_outlives_its_session(catalog: rs.Catalog) -> None:
    context = SessionContext()
    context.register_table("t", catalog.open_table("db.t"))
    frame = context.sql("SELECT count(*) AS n FROM t WHERE id < 50")
    del context
    gc.collect()
    assert frame.to_pydict()["n"][0] > 40


@pytest.mark.parametrize(
    "error", [InvalidData("too wide"), SnapshotExpired("gone", path="data/x"), ValueError("a", 2)]
)
def test_a_kept_error_is_equal_and_has_no_frames(error: Exception) -> None:
    try:
        try:
            raise KeyError("cause")
        except KeyError as cause:
            raise error from cause
    except Exception as raised:
        kept = without_frames(raised)
    assert type(kept) is type(error)
    assert (str(kept), kept.__dict__) == (str(error), error.__dict__)
    assert (kept.__traceback__, kept.__cause__, kept.__context__) == (None, None, None)


def test_the_last_error_of_a_table_holds_no_frames(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", pa.table({"id": [1, 2]}), key=["id"])
    context = datafusion.SessionContext()
    context.register_table("t", table.to_datafusion())
    for part in (tmp_path / "t/data").iterdir():
        part.write_bytes(b"damaged")
    with pytest.raises(Exception, match=r"damaged|decoded|truncated"):
        context.sql("SELECT * FROM t").to_arrow_table()
    found = table.engine_error
    assert isinstance(found, RowsieveError)
    assert found.__traceback__ is None
    assert table.engine_error is not found  # a raised one would keep the frames of its handlers
