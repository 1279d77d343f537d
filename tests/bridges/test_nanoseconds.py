"""Conditions on nanoseconds keep their rows as text and expressions of engines."""

from __future__ import annotations

from typing import Any

import datafusion
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.bridges.languages import BRIDGES
from rowsieve.bridges.meanings import keep_meaning
from rowsieve.bridges.sql.dialects import DIALECTS
from rowsieve.bridges.where import to_predicate
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.sql.engines import ROW, datafusion_rows, duckdb_rows
from tests.profiles import examples, judged

NAME = {"ARROW:extension:name": "rowsieve.timestamp_ns.1"}
SCHEMA = pa.schema(
    [
        pa.field("t", pa.timestamp("ns"), metadata=NAME),
        pa.field("z", pa.timestamp("ns", "UTC"), metadata=NAME),
        pa.field("u", pa.timestamp("us")),
    ]
)
COLUMNS = schema_of(SCHEMA)[0]
TICKS = st.one_of(
    st.sampled_from([-(2**63), 1 - 2**63, 2**63 - 1, 2**63 - 2, -9_223_372_000 * 10**9, 0]),
    st.integers(-1_501, 1_501),
    st.integers(-(2**63), 2**63 - 1),
)


def text(nanos: int, *, zone: str = "") -> str:
    micros, rest = divmod(nanos, 1_000)
    return f"{str(np.datetime64(micros, 'us')).replace('T', ' ')}{rest:03}{zone}"


def batch_of(rows: list[int | None]) -> pa.RecordBatch:
    columns = {
        "t": pa.array(rows, pa.timestamp("ns")),
        "z": pa.array(rows, pa.timestamp("ns", "UTC")),
        "u": pa.array([None if r is None else r // 1_000 for r in rows], pa.timestamp("us")),
    }
    return pa.record_batch(columns)


@st.composite
def conditions(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(["t", "t", "z"]))
    zone = "Z" if column == "z" else ""

    def point() -> str:
        return f"'{text(draw(TICKS), zone=zone)}'"

    op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"]))
    members = ", ".join(point() for _ in range(draw(st.integers(1, 4))))
    return draw(
        st.sampled_from(
            [
                f"{column} {op} {point()}",
                f"{column} IN ({members})",
                f"{column} NOT IN ({members}, NULL)",
                f"{column} BETWEEN {point()} AND {point()}",
                f"NOT ({column} {op} {point()} OR {column} IS NULL)",
                f"coalesce({column}, {point()}) {op} {point()}",
            ]
        )
    )


def kept(target: str, expression: Any, batch: pa.RecordBatch) -> list[int] | None:
    """The rows that the engine keeps; None if it fails."""
    numbered = batch.append_column(ROW, pa.array(range(batch.num_rows), pa.int64()))
    match target:
        case "duckdb":
            return duckdb_rows(expression, batch)
        case "datafusion":
            return datafusion_rows(expression, batch)
        case "datafusion_exprs":
            frame = datafusion.SessionContext().create_dataframe([[numbered]])
            rows = pa.table(frame.filter(expression)).column(ROW)
        case "polars":
            held = pl.DataFrame(pa.table(numbered))
            return sorted(held.filter(expression)[ROW].to_list())
        case _:
            rows = pa.table(numbered).filter(expression).column(ROW)
    return sorted(rows.to_pylist())


@judged(100)
@given(
    st.sampled_from(["duckdb", "datafusion", "datafusion_exprs", "polars", "pyarrow_exprs"]),
    conditions(),
    st.lists(st.none() | TICKS, min_size=1, max_size=8),
)
def test_engines_keep_the_same_rows(target: str, where: str, rows: list[int | None]) -> None:
    found = rs.translate(where, "postgres", target=target, schema=SCHEMA)
    if found.expression is None or found.residual is not None:
        # Neither DuckDB's instants nor its infinite times have constants.
        assert target == "duckdb" or "coalesce" in where or "DISTINCT" in where, found
        return
    batch = batch_of(rows)
    predicate = to_predicate(where, "postgres", COLUMNS)
    outcome = evaluate(bind(predicate, COLUMNS, Semantics.POSTGRES), batch)
    assert kept(target, found.expression, batch) == outcome.true.nonzero()[0].tolist(), found


@examples(100)
@given(st.sampled_from(["duckdb", "datafusion"]), conditions(), st.lists(TICKS, max_size=8))
def test_written_text_is_read_as_it_was_meant(dialect: str, where: str, rows: list[int]) -> None:
    translated = rs.translate(where, "postgres", target=dialect, schema=SCHEMA)
    found = translated.expression
    if found is None or translated.residual is not None:
        return
    batch, answers = batch_of(list(rows)), []
    for words, language in ((where, "postgres"), (str(found), dialect)):
        predicate = to_predicate(words, language, COLUMNS)
        bound = bind(predicate, COLUMNS, DIALECTS[language].semantics)
        answers.append(evaluate(bound, batch).true.tolist())
    assert answers[0] == answers[1], found


@pytest.mark.parametrize(
    ("where", "dialect", "why"),
    [
        ("t = TIMESTAMP '1970-01-01 00:00:00.000000001'", "postgres", "write the plain text"),
        ("t = TIMESTAMP '1970-01-01 00:00:00.000000001'", "duckdb", "or TIMESTAMP_NS '1970"),
        ("t = arrow_cast('1970-01-01 00:00:00.000000001', 'Timestamp(us)')", "datafusion", "write"),
        ("t = TIMESTAMP '1970-01-01 00:00:00.0000000001'", "datafusion", "not a valid"),
    ],
)
def test_digits_that_a_timestamp_lacks_are_refused(where: str, dialect: str, why: str) -> None:
    with pytest.raises(InvalidPredicate, match=why):
        to_predicate(where, dialect, COLUMNS)


@pytest.mark.parametrize("dialect", ["postgres", "duckdb", "datafusion"])
def test_zeros_after_the_microseconds_are_no_digits(dialect: str) -> None:
    batch = batch_of([1_000, 1_001])
    predicate = to_predicate("t = TIMESTAMP '1970-01-01 00:00:00.000001000'", dialect, COLUMNS)
    bound = bind(predicate, COLUMNS, DIALECTS[dialect].semantics)
    assert evaluate(bound, batch).true.tolist() == [True, False]


@pytest.mark.parametrize("target", ["duckdb", "datafusion", "spark", "polars", "postgres"])
@pytest.mark.parametrize(
    "where",
    [
        "t::timestamp > '1970-01-01'",
        "date_trunc('day', t) = '1970-01-01'",
        "extract(hour FROM t) > 12",
        "last_day(t) > '1970-01-01'",
    ],
)
def test_functions_are_not_written_for_engines_with_other_rules(where: str, target: str) -> None:
    expected = target == "postgres"  # the same rules, but it has no such type
    found = rs.translate(where, "postgres", target=target, schema=SCHEMA)
    assert found.expression is None or expected


@pytest.mark.parametrize("target", [each.name for each in BRIDGES if each.name != "spark_columns"])
def test_times_of_both_units_are_compared_or_left(target: str) -> None:
    if target == "substrait":
        pytest.skip("it has no such columns at all")
    found = rs.translate("t > u", "postgres", target=target, schema=SCHEMA)
    rows = batch_of([-1_501, -1, 0, 1, 999, None])
    if target in ("duckdb", "datafusion", "datafusion_exprs", "polars", "pyarrow_exprs"):
        assert found.expression is None or kept(target, found.expression, rows) == [0, 1, 3, 4]


@pytest.mark.parametrize("where", ["extract(hour FROM t) > 12", "t::date > '1970-01-01'"])
def test_rules_of_nanoseconds_are_not_passed_on(where: str) -> None:
    ours = Semantics.POSTGRES
    root = bind(to_predicate(where, "postgres", COLUMNS), COLUMNS, ours, simplified=False).root
    assert keep_meaning(root, ours, Semantics.SQL) == root
    for theirs in (Semantics.DUCKDB, Semantics.DATAFUSION, Semantics.SPARK):
        with pytest.raises(UnsupportedOperation, match=r"nanoseconds|timestamp_ns"):
            keep_meaning(root, ours, theirs)
