"""`arrow_cast` to timestamps of every unit and spelling keeps the rows that DataFusion keeps."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from rowsieve.bridges.where import to_predicate
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from tests.bridges.sql.engines import datafusion_rows
from tests.predicate.part_statistics import check, statistics
from tests.profiles import examples
from tests.strategies import COLUMN_TYPES, SCHEMA

_MICROS = st.one_of(
    st.sampled_from([0, 1, -1, 999, 1_000, -999, -1_000, 1_700_000, -1_700_000, -1_000_000]),
    st.integers(-3_000_000, 3_000_000),
    st.integers(-(10**15), 10**15),
)
_COLUMNS = ("ts", "tz", "day")


def names(unit: str, long: str) -> list[str]:
    return [
        f"Timestamp({unit})",
        f"Timestamp({unit}, None)",
        f"Timestamp({long}, None)",
        f'Timestamp({unit}, "UTC")',
        f'Timestamp({unit}, Some("+00:00"))',
        f'Timestamp({long}, Some("UTC"))',
    ]


NAMES = [
    *names("s", "Second"),
    *names("ms", "Millisecond"),
    *names("us", "Microsecond"),
    *names("ns", "Nanosecond"),
]


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    rows = draw(st.lists(st.one_of(st.none(), _MICROS), min_size=1, max_size=8))
    return batch_of(rows)


def batch_of(rows: list[int | None]) -> pa.RecordBatch:
    micros = pa.array(rows, pa.int64())
    days = pa.array([None if row is None else row // 1_000_000 % 400 for row in rows], pa.int32())
    columns = (micros.cast(pa.timestamp("us")), micros.cast(pa.timestamp("us", "UTC")))
    return pa.record_batch([*columns, days.cast(pa.date32())], names=list(_COLUMNS))


def _text(micros: int) -> str:
    return str(datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros))


@st.composite
def texts(draw: st.DrawFn) -> str:
    name, column = draw(st.sampled_from(NAMES)), draw(st.sampled_from(_COLUMNS))
    zoned = "UTC" in name or "+00" in name
    cast = f"arrow_cast({column}, '{name}')"

    def constant() -> str:
        text = f"'{_text(draw(_MICROS))}'"
        forms = [text, text, f"arrow_cast({text}, '{draw(st.sampled_from(NAMES))}')"]
        forms += [f"arrow_cast({draw(st.integers(-5000, 5000))}, '{name}')"]
        return draw(st.sampled_from(forms if zoned else [*forms, f"TIMESTAMP {text}"]))

    def other() -> str:
        return draw(st.sampled_from([constant(), "ts", "tz"]))

    op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    distinct = draw(st.sampled_from(["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]))
    members = ", ".join(constant() for _ in range(draw(st.integers(1, 5))))
    found = draw(
        st.sampled_from(
            [
                f"{cast} {op} {other()}",
                f"{other()} {op} {cast}",
                f"{cast} {distinct} {constant()}",
                f"{cast} BETWEEN {constant()} AND {other()}",
                f"{cast} NOT BETWEEN {constant()} AND {constant()}",
                f"{cast} IN ({members})",
                f"{cast} NOT IN ({members})",
                f"{cast} IS NOT NULL",
                f"extract(second FROM {cast}) = {draw(st.integers(-1, 3))}",
                f"CAST({cast} AS DATE) {op} DATE '1970-01-01'",
                f"arrow_cast(arrow_cast({column}, 'Timestamp(ns)'), '{name}') {op} {constant()}",
            ]
        )
    )
    return f"NOT ({found})" if draw(st.booleans()) else found


@examples(500)
@given(texts(), batches())
def test_random_casts_keep_the_rows_of_the_engine(text: str, batch: pa.RecordBatch) -> None:
    try:
        wanted = datafusion_rows(text, batch)
    except Exception as error:
        if "type_coercion" in str(error) or "coerc" in str(error):
            reject()  # types that DataFusion does not compare
        raise
    try:
        predicate = to_predicate(text, "datafusion", SCHEMA)
    except (InvalidPredicate, UnsupportedOperation):
        reject()
    whole = with_all_columns(batch)
    outcome = evaluate(bind(predicate, SCHEMA, Semantics.DATAFUSION), whole)
    if wanted is not None:
        assert not outcome.failed.any()
        assert outcome.true.nonzero()[0].tolist() == wanted
    check(predicate, [whole], statistics([whole], frozenset()), Semantics.DATAFUSION)


def with_all_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    count = batch.num_rows
    columns = {name: pa.nulls(count, arrow_type(type_)) for name, type_ in COLUMN_TYPES.items()}
    own = dict(zip(batch.schema.names, batch.columns, strict=True))
    return pa.record_batch(columns | own)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "condition",
    [
        "{} = '1970-01-01 00:00:01.7'",
        "'1969-12-31 23:59:58.3' >= {}",
        "{} IN ('1970-01-01 00:00:01.7', '1970-01-01 00:00:00.0017')",
        "{} BETWEEN '1969-12-31 23:59:59.7' AND '1970-01-01 00:00:01.7'",
        "{} = ts",
        "{} = arrow_cast('1969-12-31 23:59:58.3', 'Timestamp(s)')",
        "{} IS DISTINCT FROM '1970-01-01 00:00:00.0017'",
        "extract(second FROM {}) = 1",
    ],
)
def test_constants_beside_a_cast_have_its_unit(condition: str, name: str) -> None:
    batch = batch_of([0, 1, 999_999, 1_000_000, 1_700_000, -1, -1_699_999, 1_700, 1_001, None])
    text = condition.format(f"arrow_cast(ts, '{name}')")
    bound = bind(to_predicate(text, "datafusion", SCHEMA), SCHEMA, Semantics.DATAFUSION)
    found = evaluate(bound, with_all_columns(batch)).true
    assert found.nonzero()[0].tolist() == datafusion_rows(text, batch)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("arrow_cast(ts, 'Timestamp(s, \"+05:45\")') < '1970-01-01'", "with the zone UTC"),
        ("arrow_cast(ts, 'Timestamp(s, \"Asia/Tokyo\")') < '1970-01-01'", "with the zone UTC"),
        ("arrow_cast(ts, 'timestamp(s, none)') < '1970-01-01'", "with the zone UTC"),
        ("CASE arrow_cast(ts, 'Timestamp(s)') WHEN '1970-01-01' THEN TRUE END", "date_trunc"),
        ("coalesce(arrow_cast(ts, 'Timestamp(s)'), ts) = ts", "date_trunc"),
        ("arrow_cast(ts, 'Timestamp(s)') IN (ts, '1970-01-01')", "date_trunc"),
        ("arrow_cast(arrow_cast(ts, 'Timestamp(s)'), 'Timestamp(us)') = ts", "date_trunc"),
        ("CAST(arrow_cast(ts, 'Timestamp(s)') AS TIMESTAMP) = ts", "date_trunc"),
        ("date_trunc('day', arrow_cast(ts, 'Timestamp(s)')) = '1970-01-01'", "date_trunc"),
    ],
)
def test_casts_whose_type_matters_otherwise_are_refused(text: str, why: Any) -> None:
    with pytest.raises(InvalidPredicate, match=why):
        to_predicate(text, "datafusion", SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        "arrow_cast(day, 'Timestamp(ns)') IN (arrow_cast(1, 'Timestamp(ns)'))",
        "arrow_cast(day, 'Timestamp(ns)') = arrow_cast(-1, 'Timestamp(ns)')",
        "date_trunc('day', arrow_cast(day, 'Timestamp(us)')) < arrow_cast(1, 'Timestamp(ns)')",
    ],
)
def test_nanoseconds_beside_a_cast_are_refused(text: str) -> None:
    with pytest.raises(InvalidPredicate, match="compare with whole microseconds"):
        bind(to_predicate(text, "datafusion", SCHEMA), SCHEMA, Semantics.DATAFUSION)


def test_a_list_beside_a_column_is_cut_to_its_microseconds() -> None:
    text = "ts IN (arrow_cast(1, 'Timestamp(ns)'))"
    batch = batch_of([0, 1])
    bound = bind(to_predicate(text, "datafusion", SCHEMA), SCHEMA, Semantics.DATAFUSION)
    kept = evaluate(bound, with_all_columns(batch)).true.nonzero()[0].tolist()
    assert kept == datafusion_rows(text, batch) == [0]
