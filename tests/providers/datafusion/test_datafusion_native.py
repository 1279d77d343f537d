"""Parts that DataFusion reads itself: which ones, and that all answers stay those of memory."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import datafusion
import pyarrow as pa
import pytest
from datafusion.object_store import LocalFileSystem

import rowsieve as rs
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.datafusion.final_frame import FinalFrame
from rowsieve.providers.datafusion.native_scan import _replaced
from tests import random_tables
from tests.profiles import IS_DEEP
from tests.providers.datafusion.native_queries import random_query, random_table

CHUNKS = 60 if IS_DEEP else 3
QUERIES = 60 if IS_DEEP else 15
UPSTREAM = ("unsupported operand type", "bit_wise_")  # NULL in a folded condition, over any dataset


@pytest.fixture(scope="module")
def tiny_row_groups() -> Iterator[None]:
    yield from random_tables.tiny_row_groups()


class _Silent:
    def report(self, report: Any) -> None:
        """Do nothing with it."""


def numbered(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [f"v{i}" for i in ids]})


def striped(folder: Path, stripes: int = 7, rows: int = 30) -> rs.Table:
    """A table of one clean part for each range of keys."""
    table = rs.create_table(str(folder / "t"), numbered(*range(rows)), key=["id"])
    for start in range(rows, rows * stripes, rows):
        table.upsert(numbered(*range(start, start + rows)))
    return table


def session(table: rs.Table, settings: dict[str, str] | None = None, **options: Any) -> Any:
    made = SessionContext(datafusion.SessionConfig(settings or {}), **options)
    made.register_table("t", table)
    return made


def plan_of(context: Any, query: str = "SELECT * FROM t", *, runs: bool = False) -> str:
    """The plan; if the query runs, as the values of its subqueries leave it."""
    explain = "EXPLAIN ANALYZE" if runs else "EXPLAIN"
    return "\n".join(row["plan"] for row in context.sql(f"{explain} {query}").to_pylist())


def files(table: rs.Table) -> list[Path]:
    return sorted((Path(urlsplit(table.uri).path) / "data").glob("*.parquet"))


def answer(context: Any, query: str, *, ordered: bool) -> Any:
    try:
        rows = [repr(tuple(row.values())) for row in context.sql(query).to_pylist()]
    except Exception as error:  # DataFusion's errors have no class of their own
        return error
    return rows if ordered else Counter(rows)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_queries_have_the_answers_of_memory(
    chunk: int, tmp_path: Path, tiny_row_groups: None
) -> None:
    chance = random.Random(chunk)
    tables = {name: random_table(chance, tmp_path / name) for name in ("t", "u")}
    settings = {
        "datafusion.execution.target_partitions": chance.choice("1248"),
        "datafusion.execution.batch_size": chance.choice(("8192", "64")),
    }
    memory = datafusion.SessionContext()
    native, dataset = (
        SessionContext(datafusion.SessionConfig(settings), native=each) for each in (True, False)
    )
    for name, (table, rows) in tables.items():
        memory.register_record_batches(name, [rows.to_batches()])
        native.register_table(name, table)
        dataset.register_table(name, table)
    if not IS_DEEP:  # of more tables, some have no part that DataFusion may read
        assert "DataSourceExec" in plan_of(native)
    assert "DataSourceExec" not in plan_of(dataset)
    for _ in range(QUERIES):
        query, ordered = random_query(chance)
        expected = answer(memory, query, ordered=ordered)
        if isinstance(expected, Exception):
            continue
        for context in (native, dataset):
            found = answer(context, query, ordered=ordered)
            if not any(text in str(found) for text in UPSTREAM):
                assert found == expected, query


def test_clean_parts_are_read_by_datafusion_and_others_by_us(tmp_path: Path) -> None:
    table = striped(tmp_path)
    context = session(table)
    assert "DataFusion's own reader reads 7" in plan_of(context)
    table.upsert(numbered(5, 6))
    table.delete("id = 40")
    assert "reads 6, and 2 without their hidden rows" in plan_of(context)
    assert plan_of(context, "SELECT * FROM t WHERE 9 / (id + 1) >= 0").endswith(
        "own reader reads 5"
    )
    assert "reads 1" in plan_of(context, "SELECT * FROM t WHERE id * 1 BETWEEN 185 AND 190")
    found = context.sql("SELECT count(*) AS n, sum(id) AS total FROM t").to_pylist()
    assert found == [{"n": 209, "total": sum(range(210)) - 40}]


def test_a_scan_of_several_files_declares_no_order(tmp_path: Path) -> None:
    """DataFusion 55.2 loses rows of WHERE with ORDER BY and LIMIT if a scan declares one."""
    table = striped(tmp_path)
    settings = {"datafusion.execution.target_partitions": "8"}
    context = session(table, settings)
    query = "SELECT id FROM t WHERE id % 2 = 0 ORDER BY id LIMIT 20"
    assert "output_ordering" not in plan_of(context, query)
    for _ in range(5):
        assert [row["id"] for row in context.sql(query).to_pylist()] == list(range(0, 40, 2))


def test_bounds_are_taken_from_footers_while_no_row_is_hidden(tmp_path: Path) -> None:  # rule 26
    table = striped(tmp_path)
    context = session(table)
    query = "SELECT min(id) AS least, max(id) AS most, count(*) AS n FROM t"

    def reads_files() -> bool:
        return "DataSourceExec" in context.sql(query).execution_plan().display_indent()

    assert not reads_files()
    assert context.sql(query).to_pylist() == [{"least": 0, "most": 209, "n": 210}]
    table.delete("id IN (0, 209)")
    assert reads_files()
    assert context.sql(query).to_pylist() == [{"least": 1, "most": 208, "n": 208}]


def test_types_are_the_same_by_both_readers(tmp_path: Path) -> None:
    table = striped(tmp_path, 2)
    native, dataset = (session(table, native=each) for each in (True, False))
    schemas = [each.sql("SELECT * FROM t").to_arrow_table().schema for each in (native, dataset)]
    assert schemas[0] == schemas[1]
    assert native.table("t").schema() == native.sql("SELECT * FROM t").schema()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("datafusion.execution.parquet.pushdown_filters", "true"),
        ("datafusion.execution.parquet.pruning", "false"),
        ("datafusion.execution.skip_physical_aggregate_schema_check", "true"),
        ("datafusion.optimizer.enable_sort_pushdown", "false"),
    ],
)
def test_other_settings_lead_to_our_dataset(tmp_path: Path, setting: str, value: str) -> None:
    table = striped(tmp_path, 2)
    assert "DataSourceExec" not in plan_of(session(table, {setting: value}))
    context = session(table)
    assert "DataSourceExec" in plan_of(context)
    context.sql(f"SET {setting} = {value}").collect()
    assert "DataSourceExec" not in plan_of(context)
    context.sql(f"RESET {setting}").collect()
    assert "DataSourceExec" in plan_of(context)


def test_min_and_max_do_not_skip_row_groups_of_each_other(tmp_path: Path) -> None:
    """DataFusion 55.0 skips by one of two MAX while the other has seen only NULL."""
    rows = 64
    table = rs.create_table(
        str(tmp_path / "t"),
        pa.schema([("id", pa.int64()), ("x", pa.int64()), ("y", pa.int64())]),
        key=["id"],
    )
    for part in range(6):
        ids = pa.array(range(rows * part, rows * part + rows), pa.int64())
        x, y = (pa.nulls(rows, pa.int64()), 7) if part < 3 else (ids, 5)
        table.upsert(pa.table({"id": ids, "x": x, "y": pa.array([y] * rows, pa.int64())}))
    settings = {
        "datafusion.execution.target_partitions": "2",
        "datafusion.execution.batch_size": "8",
    }
    context = session(table, settings)
    query = "SELECT max(x) AS x, max(y) AS y FROM t WHERE id + 0 >= 0"
    context.register_view("v", context.sql("SELECT * FROM t"))
    for name in ("t", "v"):
        asked = query.replace("t WHERE", f"{name} WHERE")
        plan = plan_of(context, asked)
        assert "DataSourceExec" in plan
        assert "DynamicFilter" not in plan
        answers = [context.sql(asked).to_pylist() for _ in range(4)]
        assert answers == [[{"x": 383, "y": 7}]] * 4
    setting = "datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown"
    context.sql(f"SET {setting} = true").collect()
    assert "DataSourceExec" not in plan_of(context, query)
    assert context.sql(query).to_pylist() == answers[0]


def test_doubts_lead_to_our_dataset(tmp_path: Path) -> None:
    table = striped(tmp_path, 2)
    context = session(table)
    table.report_to(_Silent())
    assert "DataSourceExec" not in plan_of(context)
    table.report_to(None)
    assert "DataSourceExec" in plan_of(context)
    context.register_object_store("file://", LocalFileSystem(), None)
    assert "DataSourceExec" not in plan_of(context)
    for name, more in (
        ("é", {}),
        ("a b", {}),
        ("a%20b", {}),
        ("a*", {}),
        ("plain", {"audit": "1"}),
    ):
        properties = {"audit_percent": more["audit"]} if more else {}
        made = rs.create_table(
            str(tmp_path / name), numbered(1, 2), key=["id"], properties=properties
        )
        assert "DataSourceExec" not in plan_of(session(made)), name
        assert session(made).sql("SELECT * FROM t").count() == 2


def test_columns_that_changed_are_read_by_us(tmp_path: Path) -> None:
    table = striped(tmp_path, 2)
    context = session(table)
    table.rename_column("s", "old")
    table.add_column("s", pa.string(), default="new")
    query = "SELECT s, old FROM t WHERE id = 3"
    assert "DataSourceExec" not in plan_of(context, query)
    assert context.sql(query).to_pylist() == [{"s": "new", "old": "v3"}]
    table.upsert(pa.table({"id": [500], "old": ["x"], "s": ["y"]}))
    assert "DataFusion's own reader reads 1" in plan_of(context)
    assert context.sql("SELECT s FROM t WHERE old = 'x' OR id = 0").count() == 2


def test_a_file_that_vanishes_after_planning_is_an_error(tmp_path: Path) -> None:
    table = striped(tmp_path)
    context = session(table)
    frames = [
        context.sql(query)
        for query in (
            "SELECT count(*) FROM t",
            "SELECT id FROM t ORDER BY md5(s) LIMIT 3",
            "SELECT s FROM t WHERE md5(s) = 'none'",
            "SELECT a.id FROM t a LEFT ANTI JOIN t b ON a.id = b.id + 1",
            "SELECT id FROM t WHERE id NOT IN (SELECT id FROM t WHERE id > 5 AND id < 9)",
        )
    ]
    files(table)[3].unlink()
    for frame in frames:
        with pytest.raises(Exception, match="is missing: data/"):
            frame.collect()
    view = session(rs.open_table(table.uri), native=False)
    with pytest.raises(Exception, match="is missing: data/"):
        view.sql("SELECT s FROM t").collect()


RUNNING = (
    *("collect", "collect_partitioned", "execute_stream", "execute_stream_partitioned"),
    *("execution_plan", "explain", "to_arrow_table", "to_pandas", "to_polars", "to_pydict"),
    *("to_pylist", "count", "cache", "__arrow_c_stream__"),
)


@pytest.mark.parametrize("call", [*RUNNING, "collect_column"])
def test_each_call_that_runs_a_statement_notices_a_file_that_vanished(
    tmp_path: Path, call: str
) -> None:
    table = striped(tmp_path)
    frame = session(table).sql("SELECT id FROM t")
    assert isinstance(frame, FinalFrame)
    assert "DatasetExec" not in frame.execution_plan().display_indent()
    files(table)[3].unlink()
    with pytest.raises(Exception, match="is missing: data/"):
        getattr(frame, call)(*(["id"] if call == "collect_column" else []))


def test_a_file_that_vanishes_after_the_physical_plan_is_an_error(tmp_path: Path) -> None:
    table = striped(tmp_path)
    context = session(table)
    frame = context.sql("SELECT s FROM t")
    plan, stream = frame.execution_plan(), frame.execute_stream()
    assert isinstance(frame, FinalFrame)
    files(table)[3].unlink()
    with pytest.raises(Exception, match=r"not found|No such file"):
        [list(context.execute(plan, number)) for number in range(plan.partition_count)]
    with suppress(Exception):  # the stream may have opened the file before
        assert sum(batch.to_pyarrow().num_rows for batch in stream) == 210


def test_a_limit_alone_takes_as_many_rows_as_it_names(tmp_path: Path) -> None:
    table = striped(tmp_path)
    context = session(table)
    table.upsert(numbered(5, 6))
    every = {row["id"] for row in context.sql("SELECT id FROM t").to_pylist()}
    for query, taken in (
        ("SELECT id FROM t LIMIT 10", 10),
        ("SELECT id FROM t LIMIT 50 OFFSET 20", 50),
        ("SELECT DISTINCT id FROM (SELECT id FROM t LIMIT 20)", 20),
        ("SELECT id FROM t UNION ALL SELECT id + 1000 FROM t LIMIT 12", 12),
    ):
        rows = [row["id"] % 1000 for row in context.sql(query).to_pylist()]
        assert len(rows) == taken
        assert every >= set(rows)
    for query, result in (
        ("SELECT count(*) AS n FROM (SELECT * FROM t WHERE s <> 'v3' LIMIT 500)", 209),
        ("SELECT (SELECT count(*) FROM t) AS n FROM t LIMIT 1", 210),
        ("SELECT count(*) AS n FROM (SELECT DISTINCT id FROM t LIMIT 205)", 205),
        ("SELECT count(*) AS n FROM (SELECT a.id FROM t a JOIN t b USING (id) LIMIT 205)", 205),
        ("SELECT max(id) AS n FROM (SELECT id FROM t ORDER BY id LIMIT 205)", 204),
        ("SELECT count(*) AS n FROM (SELECT * FROM t LIMIT 4) a, t", 840),
        ("SELECT count(*) AS n FROM (SELECT row_number() OVER () AS n FROM t LIMIT 205)", 205),
    ):
        assert context.sql(query).to_pylist() == [{"n": result}], query


def test_a_file_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    table = striped(tmp_path, 2)
    context = session(table)
    frame = context.sql("SELECT count(s) FROM t")
    os.truncate(files(table)[0], files(table)[0].stat().st_size - 1)
    with pytest.raises(Exception, match=r"restore the file|Parquet"):
        frame.collect()


def test_a_frame_keeps_its_version_in_other_sessions(tmp_path: Path) -> None:
    table = striped(tmp_path)
    context = session(table)
    frame = context.sql("SELECT * FROM t WHERE id < 100")
    context.register_view("v", frame)
    other = datafusion.SessionContext()
    other.register_table("v", frame.into_view())
    table.delete("id < 90")
    assert [each.table("v").count() for each in (context, other)] == [100, 100]
    query = "SELECT id FROM v WHERE id % 2 = 0 ORDER BY id LIMIT 3"
    assert [row["id"] for row in other.sql(query).to_pylist()] == [0, 2, 4]


def test_a_field_is_replaced_once_at_its_place() -> None:
    inner = b"\x0a\x03abc\x10\x96\x01\x1d1234\x219abcdefg"
    message = b"\x08\x01\x12" + bytes([len(inner)]) + inner + b"\x1a\x02xy"
    edited, count = _replaced(message, b"abc", [b"q", b"long"])
    assert count == 1
    changed = b"\x0a\x01q\x0a\x04long" + inner[5:]
    assert edited == b"\x08\x01\x12" + bytes([len(changed)]) + changed + b"\x1a\x02xy"
    assert _replaced(message, b"zzz", [b"q"]) == (message, 0)
    with pytest.raises(ValueError, match="cut off"):
        _replaced(message[:-1], b"abc", [b"q"])
