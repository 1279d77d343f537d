"""Faults of DataFusion, over its own files and tables in memory."""

from __future__ import annotations

import contextlib
import datetime
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from tests.engine_faults.fault import Fault, raises, run_apart

_TRIES: Final = 60  # of a query that is wrong in a third of its runs


@contextlib.contextmanager
def files(tables: Mapping[str, pa.Table], **settings: str) -> Iterator[Any]:
    """A session over Parquet files, each a table of its name."""
    with tempfile.TemporaryDirectory() as folder:
        context = session(**settings)
        for name, rows in tables.items():
            path = Path(folder, f"{name}.parquet")
            pq.write_table(rows, path)
            context.register_parquet(name, str(path))
        yield context


def session(**settings: str) -> Any:
    import datafusion

    named = {f"datafusion.{name.replace('__', '.')}": value for name, value in settings.items()}
    return datafusion.SessionContext(datafusion.SessionConfig(named))


def rows_of(context: Any, query: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = context.sql(query).to_pylist()
    return rows


def integers(start: int, stop: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64())})


def often_wrong(ask: Callable[[], bool]) -> bool:
    """Return whether one of many runs gives a wrong answer."""
    return any(ask() for _ in range(_TRIES))


def sorted_files_lose_rows_of_limit() -> bool:
    from datafusion import col

    with tempfile.TemporaryDirectory() as folder:
        for part in range(7):
            rows = pa.table({"id": list(range(part, 210, 7))})
            pq.write_table(
                rows, Path(folder, f"{part}.parquet"), sorting_columns=[pq.SortingColumn(0)]
            )
        order = [[col("id").sort(ascending=True, nulls_first=False)]]

        def is_wrong() -> bool:
            context = session(execution__target_partitions="8")
            context.register_parquet("t", folder, file_sort_order=order)
            query = "SELECT id FROM t WHERE id % 2 = 0 ORDER BY id LIMIT 20"
            return [row["id"] for row in rows_of(context, query)] != list(range(0, 40, 2))

        return often_wrong(is_wrong)


def aggregates_skip_by_each_other() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        for part in range(6):
            ids = pa.array(range(64 * part, 64 * part + 64), pa.int64())
            x, y = (pa.nulls(64, pa.int64()), 7) if part < 3 else (ids, 5)
            rows = pa.table({"id": ids, "x": x, "y": pa.array([y] * 64, pa.int64())})
            pq.write_table(rows, Path(folder, f"{part}.parquet"))

        def is_wrong() -> bool:
            context = session(execution__target_partitions="2", execution__batch_size="8")
            context.register_parquet("t", folder)
            query = "SELECT max(x) AS x, max(y) AS y FROM t WHERE id + 0 >= 0"
            return rows_of(context, query) != [{"x": 383, "y": 7}]

        return often_wrong(is_wrong)


def joins_push_filters_by_name() -> bool:
    tables = {"a": pa.table({"id": ["a1"], "ty": ["x1"]}), "b": pa.table({"id": ["x1"]})}
    with files(tables, optimizer__join_reordering="false") as context:
        joined = "SELECT a.id, b.id FROM a LEFT JOIN b ON a.ty = b.id GROUP BY a.id, b.id"
        return bool(context.sql(f"SELECT 1 FROM b s JOIN ({joined}) ON s.id = b.id").count() == 0)


def outer_joins_push_conditions_by_name() -> bool:
    context = session()
    context.register_record_batches("a", [integers(1, 11).to_batches()])
    context.register_record_batches("b", [integers(0, 8).to_batches()])
    a, b = (f"(SELECT * FROM {name} WHERE abs(id) >= 0) {name}" for name in "ab")
    query = f"SELECT a.id FROM {a} RIGHT JOIN {b} ON a.id = b.id + 3 WHERE nullif(a.id, 0) > 4"
    return len(rows_of(context, query)) != 6


def common_expressions_lose_row_numbers() -> bool:
    with files({"t": integers(0, 10)}) as context:
        numbered = "SELECT id, file_row_index() AS n FROM t"
        query = f"SELECT * FROM ({numbered}) WHERE n > 2 AND id * 3 BETWEEN 5 AND 9"
        return raises("source dependent", lambda: rows_of(context, query))


def bounds_are_negated() -> bool:
    query, rows = "SELECT * FROM t WHERE -i < -3", pa.table({"i": [-(2**63), 5]})
    memory = session()
    memory.register_record_batches("t", [rows.to_batches()])
    assert len(rows_of(memory, query)) == 2
    with files({"t": rows}) as context:
        return raises("Overflow", lambda: rows_of(context, query))


def slices_of_nested_structs_panic() -> bool:
    column = pa.array([{"a": {"b": number}} for number in range(5)]).slice(2)
    batch = pa.record_batch({"s": column})
    return raises("end <= self.len()", lambda: session().create_dataframe([[batch]]).to_pylist())


def prepared_statements_are_optimised_twice() -> bool:
    context = session()
    context.register_record_batches("t", [integers(0, 3).to_batches()])

    def prepare_and_run() -> Any:
        context.sql("PREPARE p AS SELECT DISTINCT ON (id) id FROM t ORDER BY id")
        return rows_of(context, "EXECUTE p")

    return raises("", prepare_and_run)


def days_without_a_date_panic() -> bool:
    from datafusion import lit

    constant = lit(pa.scalar(-(2**63), pa.date64()))
    return raises("unwrap", constant.canonical_name)


def null_constants_cannot_be_pushed() -> bool:
    context = session()
    context.register_table("t", pads.dataset(pa.table({"v": [1, 2]})))
    query = "SELECT * FROM t WHERE v IN (NULL, 1)"
    return raises("BooleanScalar", lambda: rows_of(context, query))


def plans_with_bytes_panic() -> bool:
    context = session()
    context.register_table("t", pads.dataset(pa.table({"v": pa.array([b"a"], pa.binary_view())})))
    query = "EXPLAIN SELECT * FROM t WHERE v = x'ff'"
    return raises("Display", lambda: rows_of(context, query))


def long_lists_compare_bits_of_floats() -> bool:
    context = session()
    context.register_record_batches("t", [[pa.record_batch({"f": [-0.0]})]])
    short, long = (
        rows_of(context, f"SELECT count(*) AS n FROM t WHERE f IN ({values})")
        for values in ("0, 1", "0, 1, 5, 7")
    )
    return short != long


def streams_claim_to_have_views() -> bool:
    rows = pa.table({"s": ["a"]})
    with files({"t": rows}, optimizer__expand_views_at_output="true") as context:
        frame = context.sql("SELECT s FROM t")
        claimed = pa.RecordBatchReader.from_stream(frame).schema
        return bool(claimed != frame.collect()[0].schema)


def missing_files_are_empty() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.parquet")
        pq.write_table(integers(0, 3), path)
        context = session()
        context.register_parquet("t", str(path))
        path.unlink()
        try:
            return rows_of(context, "SELECT count(*) AS n FROM t") == [{"n": 0}]
        except Exception:
            return False


def bounds_without_nan_skip_rows() -> bool:
    with files({"t": pa.table({"x": [1.0, float("nan")]})}) as context:
        return rows_of(context, "SELECT count(*) AS n FROM t WHERE x > 2") == [{"n": 0}]


def equal_bounds_replace_nan() -> bool:
    with files({"t": pa.table({"x": [1.0, float("nan")]})}) as context:
        return [row["x"] for row in rows_of(context, "SELECT x FROM t")] == [1.0, 1.0]


def deep_conditions_end_the_process() -> bool:
    code = (
        "import datafusion\n"
        "context = datafusion.SessionContext()\n"
        "context.from_pydict({'id': [1]}, name='t')\n"
        "terms = ' OR '.join(f'id % {number + 2} = 1' for number in range(10000))\n"
        "context.sql('SELECT * FROM t WHERE ' + terms).collect()"
    )
    return run_apart(code).code < 0


def keys_cannot_be_declared() -> bool:
    context = session()
    context.register_table("t", pads.dataset(pa.table({"k": [1], "v": [2]})))
    query = "SELECT k, v FROM t GROUP BY k"
    return raises("must be in GROUP BY", lambda: rows_of(context, query))


def names_of_tables_are_read_as_an_attribute() -> bool:
    from datafusion.catalog import CatalogProvider, SchemaProvider

    class Tables(SchemaProvider):
        def table_names(self) -> set[str]:
            return {"t"}

        def table(self, name: str) -> None:
            return None

        def table_exist(self, name: str) -> bool:
            return name == "t"

        def owner_name(self) -> None:
            return None

    class Catalog(CatalogProvider):
        def schema_names(self) -> set[str]:
            return {"s"}

        def schema(self, name: str) -> Any:
            return Tables()

    context = session(catalog__information_schema="true")
    context.register_catalog_provider("c", Catalog())
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 's'"
    try:
        return not rows_of(context, query)
    except Exception:
        return True


_PROVIDER: Final = "rowsieve.providers.datafusion"
_SETTINGS: Final = f"{_PROVIDER}.session_settings:INITIAL_SETTINGS"
_BARRIERS: Final = f"{_PROVIDER}.pushdown_barriers:behind_barrier"
_STATISTICS: Final = "rowsieve.storage.parts.part_file:FileOptions"


def lists_of_one_value_merge_without_null() -> bool:
    rows = pa.table({"x": pa.array([None], pa.int64())})
    query = "SELECT (x IN (1) AND x IN (2)) IS NULL AS unknown FROM t"
    return _values(query, rows) == [False]


def operands_cancel_without_null() -> bool:
    rows = pa.table({"x": pa.array([None], pa.int64())})
    return _values("SELECT x ^ x FROM t", rows) == [0]


def patterns_of_any_text_lose_null() -> bool:
    rows = pa.table({"s": pa.array([None], pa.string())})
    return _values("SELECT s ~ '.*' FROM t", rows) == [False]


def comparisons_lose_casts() -> bool:
    query = "SELECT count(*) AS c FROM t WHERE CAST(x AS INT) = 7"
    return not raises("", lambda: _values(query, pa.table({"x": [2**33, 7]})))


def tried_times_have_nanoseconds() -> bool:
    query = "SELECT TRY_CAST(x AS TIMESTAMP) IS NULL AS missing FROM t"
    return _values(query, pa.table({"x": [datetime.date(3000, 1, 1)]})) == [True]


def values_make_floats_of_integers() -> bool:
    query = "SELECT CAST(x AS BIGINT) AS x FROM (VALUES (9007199254740993), (0.5)) AS v(x)"
    return 9007199254740993 not in _values(query, pa.table({"x": [1]}))


def fields_of_null_structs_have_values() -> bool:
    structs = pa.StructArray.from_arrays(
        [pa.array([1, 2])], names=["a"], mask=pa.array([False, True])
    )
    return _values("SELECT s['a'] FROM t", pa.table({"s": structs})) == [1, 2]


def groups_with_nan_have_other_extremes() -> bool:
    rows = pa.table({"x": [2.0, math.nan, math.inf]})
    return _values("SELECT min(x) FROM t GROUP BY x > 0", rows) != [2.0]


def offsets_by_unread_columns_lose_their_order() -> bool:
    context = session(execution__target_partitions="8")
    context.register_record_batches("t", [integers(0, 300).to_batches()])
    skipped = "SELECT id, count(*) AS n FROM t GROUP BY id ORDER BY n, id OFFSET 290"
    query = f"SELECT q.id FROM t RIGHT JOIN ({skipped}) AS q ON q.id = t.id"
    expected = list(range(290, 300))
    return often_wrong(lambda: sorted(r["id"] for r in rows_of(context, query)) != expected)


def subtotals_of_constants_have_no_order() -> bool:
    context = session(execution__target_partitions="8")
    context.register_record_batches("t", [pa.table({"x": [7, 8]}).to_batches()])
    query = "SELECT x FROM t WHERE x = 7 GROUP BY ROLLUP (x) ORDER BY x"
    return often_wrong(lambda: [row["x"] for row in rows_of(context, query)] != [7, None])


def _values(query: str, rows: pa.Table) -> list[Any]:
    """The only column of a query over the table `t`."""
    context = session()
    context.register_record_batches("t", [rows.to_batches()])
    values: list[Any] = context.sql(query).to_arrow_table().column(0).to_pylist()
    return values


def _row(
    probe: Callable[[], bool], does: str, *here: str, upstream: str = "", is_slow: bool = False
) -> Fault:
    return Fault("datafusion", does, here, probe, upstream, is_slow)


FAULTS: Final = (
    _row(
        sorted_files_lose_rows_of_limit,
        "loses rows of `WHERE … ORDER BY key LIMIT n` over several files if their scan has an "
        "order. Our scans declare none, also where `sorting_columns` of the files give one.",
        f"{_PROVIDER}.native_scan:native_frame",
    ),
    _row(
        lists_of_one_value_merge_without_null,
        "makes FALSE of `x IN (1) AND x IN (2)`, and TRUE of `x NOT IN (1) OR x NOT IN (2)`, also "
        "where `x` is NULL. Such lists are neither read from it nor written for it.",
        "rowsieve.bridges.differences.merged_lists:_loses_null_value",
    ),
    _row(
        operands_cancel_without_null,
        "drops an operand that a chain of `^` has twice, also where it is NULL. Such a chain is "
        "neither read from it nor written for it.",
        "rowsieve.bridges.differences.folded_nulls:_cancels",
    ),
    _row(
        patterns_of_any_text_lose_null,
        "makes `IS NOT NULL` of `~ '.*'`, which is FALSE for NULL. Its negation, and a test for "
        "NULL, are neither read from it nor written for it.",
        "rowsieve.bridges.differences.folded_nulls:_tells_null_of_any_text",
    ),
    _row(
        comparisons_lose_casts,
        "removes the cast of a number that is compared with a constant, and no longer fails where "
        "the cast does. Such a condition is refused.",
        "rowsieve.bridges.differences.differing_numbers:_compares_lossy_cast",
    ),
    _row(
        tried_times_have_nanoseconds,
        "makes NULL of `TRY_CAST(day AS TIMESTAMP)` outside of the years 1677 to 2262. Such a cast "
        "is refused.",
        "rowsieve.bridges.differences.ends_of_time:_tries_timestamp",
    ),
    _row(
        values_make_floats_of_integers,
        "makes floats of a column of `VALUES` with integers and fractions, which changes large "
        "integers. Our session reads the integers of an `INSERT` from its text.",
        f"{_PROVIDER}.changes.sql_changes:_values_alone",
    ),
    _row(
        aggregates_skip_by_each_other,
        "loses rows of `SELECT min(a), max(b)`: while one aggregate has seen only NULL, row groups "
        "are skipped by the other alone. Our session turns "
        "`enable_aggregate_dynamic_filter_pushdown` off; if you turn it on, Rowsieve reads every "
        "file. Leave it off in another session that reads a view of ours, too.",
        _SETTINGS,
        upstream="apache/datafusion#25147",
    ),
    _row(
        joins_push_filters_by_name,
        "pushes the keys of one side of a join, and the first rows of `ORDER BY … LIMIT`, into a "
        "table that has a column of the same name, and loses rows. Our session turns both filters "
        "off, the second one only where a statement has a join, a subquery or a union.",
        _SETTINGS,
        upstream="apache/datafusion#25244",
    ),
    _row(
        outer_joins_push_conditions_by_name,
        "does the same with a condition above an outer join, and no setting prevents it. Plans of "
        "our session have a `CrossJoinExec` with one row, which such a condition does not pass.",
        _BARRIERS,
        upstream="apache/datafusion#25259",
    ),
    _row(
        common_expressions_lose_row_numbers,
        "fails to number rows (`file_row_index() is source dependent`) if an expression occurs "
        "twice in conditions. Such a statement is planned again with one pass of the optimiser.",
        f"{_PROVIDER}.final_reads:final_frame",
    ),
    _row(
        bounds_are_negated,
        "negates the bounds of a file when it plans `-i`, and fails on the least integer. Our "
        "dataset reads statements with a negation where rows are hidden.",
        f"{_PROVIDER}.plan_checks:facts_of",
    ),
    _row(
        slices_of_nested_structs_panic,
        "panics when it imports a slice of a struct inside a struct. We copy such columns.",
        f"{_PROVIDER}.nested_slices:without_slices",
        upstream="apache/arrow-rs#7595",
    ),
    _row(
        prepared_statements_are_optimised_twice,
        "optimises a prepared statement at `PREPARE` and at `EXECUTE`, and fails on what the first "
        "time has made of `DISTINCT ON` and of conditions that are pushed down. Our session turns "
        "the optimiser off during `PREPARE`.",
        f"{_PROVIDER}.kept_queries:KeptQueries",
    ),
    _row(
        days_without_a_date_panic,
        "panics when it formats a constant beyond its calendar. Errors that name such a constant "
        "say its kind instead.",
        "rowsieve.bridges.datafusion_exprs:_shown",
    ),
    _row(
        null_constants_cannot_be_pushed,
        "cannot push conditions to a dataset of Python if its optimiser has made a constant of one "
        "of them, as of `v IN (NULL, 1)`: the error names `BooleanScalar`. Our session plans such "
        "a statement once more, over views that no condition passes. In another session omit the "
        "NULL; the rows are the same.",
        f"{_PROVIDER}.plan_checks:pushes_constants",
    ),
    _row(
        plans_with_bytes_panic,
        "panics when `EXPLAIN` shows a condition pushed to a dataset of Python, with a constant of "
        "bytes that are not UTF-8 text. Our session explains such a statement over views that no "
        "condition passes.",
        f"{_PROVIDER}.plan_checks:pushes_bytes",
    ),
    _row(
        long_lists_compare_bits_of_floats,
        "compares floats with a list of more than three constants by their bits, so that -0.0 is "
        "`NOT IN (0, 1, 5, 7)`. Conditions in its dialect mean the same here.",
        "rowsieve.predicate.semantics:Semantics",
        upstream="apache/datafusion#25186",
    ),
    _row(
        streams_claim_to_have_views,
        "declares views of text in an Arrow stream and sends other arrays, if "
        "`expand_views_at_output` is on: `pa.table(frame)` then damages text or crashes. Do not "
        "turn it on; cast columns where you need another type.",
    ),
    _row(
        missing_files_are_empty,
        "takes a missing file for one without rows. Each of our statements checks that its files "
        "exist, while it runs or afterwards.",
        f"{_PROVIDER}.final_reads:FinalReads",
    ),
    _row(
        bounds_without_nan_skip_rows,
        "skips row groups by bounds without NaN, which it takes for the greatest number. Our "
        "files have no statistics of columns with NaN.",
        _STATISTICS,
        upstream="apache/datafusion#15812",
    ),
    _row(
        equal_bounds_replace_nan,
        "returns the bound instead of NaN where the least and the greatest other value are equal.",
        _STATISTICS,
        upstream="apache/datafusion#15812",
    ),
    _row(
        deep_conditions_end_the_process,
        "ends the process on a condition of 10,000 terms. Conditions that we write for it nest to "
        "a limit, and lists of constants become `IN`.",
        "rowsieve.bridges.base.depth:Depth",
        upstream="apache/datafusion#8900",
        is_slow=True,
    ),
    _row(
        names_of_tables_are_read_as_an_attribute,
        "reads the names of the tables of a catalog as an attribute, though its interface has a "
        "method, and finds none. Our list of names can also be called.",
        f"{_PROVIDER}.catalog_tables:_Names",
    ),
    _row(
        fields_of_null_structs_have_values,
        "gives the value that lies below a NULL struct for `s['a']`, where the struct comes from "
        "memory: `s['a'] IS NULL` is FALSE. Rows of our tables have a NULL there. For your own, "
        "write `CASE WHEN s IS NOT NULL THEN s['a'] END`.",
    ),
    _row(
        keys_cannot_be_declared,
        "cannot be told from Python that a table has a key, so that `SELECT key, other … GROUP BY "
        "key` is refused. Write `GROUP BY key, other`, or `first_value(other)`.",
    ),
    _row(
        groups_with_nan_have_other_extremes,
        "has other results than the least and the greatest number for `min(x)` and `max(x)` with "
        "`GROUP BY`, over any table, if `x` has NaN: they depend on the order of the rows. Without "
        "`GROUP BY`, NaN is the greatest. Write `min(nullif(x, 'NaN'))`, or `first_value(x ORDER "
        "BY x)`.",
    ),
    _row(
        offsets_by_unread_columns_lose_their_order,
        "skips any rows for `ORDER BY n OFFSET 5` without a `LIMIT` in the subquery of a join, "
        "over any table, if the statement does not read `n`. Give it a `LIMIT`, too.",
    ),
    _row(
        subtotals_of_constants_have_no_order,
        "does not sort by a column that a condition makes constant, if it is grouped by `ROLLUP`, "
        "`CUBE` or `GROUPING SETS`, over any table. Write `ORDER BY x + 0`.",
    ),
)
