"""Random casts and functions of nanoseconds through a table: pruning never changes an answer."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.errors import EvaluationError
from tests.predicate.test_nanoseconds import DATAFUSION, DUCKDB, JUDGES, NANOS, OPS, batch_of
from tests.profiles import judged

NAME = {"ARROW:extension:name": "rowsieve.timestamp_ns.1"}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("t", pa.timestamp("ns"), nullable=False, metadata=NAME),
        pa.field("z", pa.timestamp("ns", "UTC"), metadata=NAME),
        pa.field("u", pa.timestamp("us")),
        pa.field("day", pa.date32()),
    ]
)
CONDITIONS = [
    *(("duckdb", each) for each in DUCKDB),
    *(("datafusion", each) for each in DATAFUSION),
    ("postgres", "t::timestamp {op} '1970-01-01'"),
    ("postgres", "t::date {op} '1969-12-31'"),
    ("postgres", "extract(second FROM t) {op} 0.0000005"),
    ("postgres", "extract(epoch FROM z) {op} -0.000000001"),
    ("postgres", "date_trunc('month', z) {op} '1970-01-01Z'"),
    ("postgres", "t + INTERVAL '1 month 1 microsecond' {op} '1970-02-01'"),
    ("postgres", "t {op} u AND date_trunc('day', t) {op} u"),
    ("postgres", "z AT TIME ZONE 'Europe/Berlin' {op} '1970-01-01 01:00:00.000000001'"),
    ("postgres", "(t + INTERVAL '1 day')::date {op} day"),
]


def answer(table: rs.Table, where: str, dialect: str, pruning: Any) -> list[int] | None:
    """The rows in order; None for an error of a row."""
    try:
        found = table.scan(where, dialect=dialect, pruning=pruning).to_arrow()
    except EvaluationError:
        return None
    return sorted(found.column("id").to_pylist())


@judged(60)
@given(
    st.sampled_from(CONDITIONS),
    st.sampled_from(OPS),
    st.lists(NANOS, min_size=1, max_size=16, unique=True),
    st.sampled_from([["id"], ["t"]]),
    st.booleans(),
)
def test_pruning_never_changes_an_answer(
    form: tuple[str, str], op: str, values: list[int], key: list[str], ordered: bool
) -> None:
    dialect, condition = form
    where = condition.format(op=op)
    ticks = sorted(values) if ordered else values
    rows = pa.table(batch_of(ticks)).add_column(0, "id", pa.array(range(len(ticks))))
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", SCHEMA, key=key)
    for start in range(0, len(ticks), 3):
        table.upsert(rows.slice(start, 3))
    answers = [answer(table, where, dialect, pruning) for pruning in ("on", "soft", "off")]
    assert answers[0] == answers[1] == answers[2], where
    if dialect in JUDGES and answers[0] is not None:
        wanted = JUDGES[dialect](where, batch_of(ticks))
        assert wanted is None or answers[0] == wanted, where
