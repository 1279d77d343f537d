"""Text of a constant format as a time has the value that the engine reads, or is refused."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.bridges.where import to_operand
from rowsieve.errors import InvalidPredicate, UnreadText
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.types.encodings import schema_of
from tests import profiles
from tests.bridges.sql.engines import JUDGES
from tests.duckdb_sessions import duckdb_session
from tests.small_tables import fresh_uri

SCHEMA, _ = schema_of(pa.schema([("s", pa.string())]))
DUCKDB = ["%Y-%m-%d", "%d/%m/%Y %H:%M", "%Y%m%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"]
DUCKDB += ["%Y-%m-%d %H:%M:%S.%g"]
POSTGRES = ["YYYY-MM-DD", "DD/MM/YYYY HH24:MI", "YYYYMMDD", 'YYYY-MM-DD"T"HH24:MI:SS']
POSTGRES += ["YYYY-MM-DD HH24:MI:SS.US", "YYYY-MM-DD HH24:MI:SS.MS"]
CASES = [
    *(("duckdb", f"strptime(s, '{form}')") for form in DUCKDB),
    *(("duckdb", f"try_strptime(s, '{form}')") for form in DUCKDB),
    *(("postgres", f"to_timestamp(s, '{form}')") for form in POSTGRES),
    *(("postgres", f"to_date(s, '{form}')") for form in POSTGRES),
    *(
        ("datafusion", f"{name}(s, '{form}')")
        for name in ("to_timestamp", "to_date", "to_timestamp_seconds", "to_timestamp_micros")
        for form in DUCKDB[:4]
    ),
    ("datafusion", "to_timestamp(s)"),
    ("datafusion", "to_date(s)"),
]
texts = st.tuples(
    st.sampled_from(
        ["2024-07-03", "20240703", "03/07/2024", "2024-02-30", "31/02/2024", "9999-12-31"]
    )
    | st.sampled_from(["0001-01-01", "0000-01-01", "2024-7-3", "1600-01-01", "n/a", "", " ", "-"])
    | st.sampled_from(["infinity", "-infinity", "epoch", "inf"]),
    st.sampled_from(["", " 10:20", " 10:20:30", "T10:20:30", " 10:20:30.5", " 10:20:30.123456"])
    | st.sampled_from([" 24:00", " 10:20:60", " 1:2", " 10:60:00", "T10:20:30Z", " 10:20:30.123"]),
    st.sampled_from(["", "", "", " ", "x", "."]),
).map("".join)


def read(text: str, expression: str, dialect: str) -> Any:
    """What is read here: the value, "no value", or `UnreadText`."""
    semantics = dialect_named(dialect).semantics
    bound = bind_operand(to_operand(expression, dialect, SCHEMA), SCHEMA, semantics)
    values, failed = compute(bound, pa.record_batch({"s": [text]}))
    return "no value" if failed[0] else plain(values[0].as_py())


def plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat()
    return None if value is None else value.isoformat()


def judged(text: str, expression: str, dialect: str) -> Any:
    """What the engine reads: the value, or "no value"."""
    if dialect == "duckdb":
        import duckdb

        with duckdb_session() as session:
            try:
                found = session.execute(f"SELECT {expression} FROM (SELECT ? AS s)", [text])
                return plain(found.fetchall()[0][0])
            except duckdb.Error:
                return "no value"
    if dialect == "postgres":
        import psycopg

        from tests.bridges.sql.postgres import connection

        try:
            found = connection().execute(f"SELECT {expression} FROM (SELECT %s AS s)", (text,))
            return plain(found.fetchall()[0][0])
        except psycopg.errors.DataError:
            return "no value"
    import datafusion

    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    context.register_record_batches("t", [[pa.record_batch({"s": [text]})]])
    try:
        found = context.sql(f"SELECT {expression} AS y FROM t").to_arrow_table().column("y")
    except Exception as error:
        if "pars" not in str(error).lower() and "nanoseconds" not in str(error):
            raise
        return "no value"
    if pa.types.is_timestamp(found.type):
        found = found.cast(pa.timestamp("us"))
    return plain(found[0].as_py())


@given(text=texts, case=st.sampled_from(CASES))
@profiles.judged(150)
def test_a_text_has_the_time_that_the_engine_reads_or_is_refused(
    text: str, case: tuple[str, str]
) -> None:
    dialect, expression = case
    try:
        found = read(text, expression, dialect)
    except UnreadText:
        return
    assert found == judged(text, expression, dialect), (text, case)


@pytest.mark.parametrize("text", ["infinity", "-Infinity", " \tEPOCH\n"])
def test_moments_by_name_are_refused_where_the_engine_reads_them(text: str) -> None:
    for call in ("strptime(s, '%d/%m/%Y')", "try_strptime(s, '%Y-%m-%d %H:%M')"):
        assert judged(text, call, "duckdb") not in (None, "no value")
        with pytest.raises(UnreadText, match="duckdb has rules of its own"):
            read(text, call, "duckdb")
    assert read(text, "to_timestamp(s, 'YYYY-MM-DD')", "postgres") == "no value"


SPELLED = ["2024-07-03 10:20:30", "2024-02-29 00:00:00", "n/a", "2024-07-04 00:00:00"]


@pytest.mark.parametrize(
    ("dialect", "where"),
    [
        ("duckdb", "try_strptime(s, '%Y-%m-%d %H:%M:%S') < TIMESTAMP '2024-07-04'"),
        ("duckdb", "try_strptime(s, '%Y-%m-%d %H:%M:%S') IS NULL"),
        ("duckdb", "k < 2 AND strptime(s, '%Y-%m-%d %H:%M:%S') > TIMESTAMP '2024-03-01'"),
        ("postgres", "k < 2 AND to_timestamp(s, 'YYYY-MM-DD HH24:MI:SS') < '2024-03-01Z'"),
        ("postgres", "k < 2 AND to_date(s, 'YYYY-MM-DD HH24:MI:SS') = '2024-07-03'"),
        ("datafusion", "k < 2 AND to_timestamp(s) > TIMESTAMP '2024-03-01T00:00:00'"),
        ("datafusion", "k < 2 AND to_date(s, '%Y-%m-%d %H:%M:%S') = DATE '2024-07-03'"),
    ],
)
def test_rows_are_those_of_the_engine(dialect: str, where: str) -> None:
    data = pa.table(
        {"k": range(4), "s": SPELLED},
        schema=pa.schema([pa.field("k", pa.int64(), nullable=False), ("s", pa.string())]),
    )
    table = rs.create_table(fresh_uri(), data.schema, key=["k"])
    table.upsert(data)
    asked = where.replace("k < 2 AND ", "")  # the engine need not keep the order of conditions
    rows = data.slice(0, 2) if asked != where else data
    expected = JUDGES[dialect](asked, rows.to_batches()[0])
    assert expected
    found = table.scan(where, ["k"], dialect=dialect).to_arrow()["k"].to_pylist()
    assert sorted(found) == expected


def test_a_session_decides_on_the_instant_of_a_local_time() -> None:
    table = rs.create_table(
        fresh_uri(), pa.schema([("id", pa.int64()), ("s", pa.string())]), key=["id"]
    )
    table.upsert(pa.table({"id": [1], "s": ["2024-07-03 10:20:30"]}))
    where = "to_timestamp(s, 'YYYY-MM-DD HH24:MI:SS') = '2024-07-03 14:20:30Z'"
    assert table.count(where, session=rs.Session(time_zone="America/New_York")) == 1
    assert table.count(where) == 0


def test_date_parse_of_trino_is_read() -> None:
    where = "date_parse(s, '%d/%m/%Y %H:%i:%s') = TIMESTAMP '2024-07-03 10:20:30.000000'"
    table = rs.create_table(
        fresh_uri(), pa.schema([("id", pa.int64()), ("s", pa.string())]), key=["id"]
    )
    table.upsert(pa.table({"id": [1, 2], "s": ["03/07/2024 10:20:30", "03/07/2024 10:20:31"]}))
    assert table.count(where, dialect="trino") == 1


@pytest.mark.parametrize(
    ("dialect", "expression"),
    [
        ("duckdb", "strptime(s, '%y-%m-%d')"),
        ("duckdb", "strptime(s, '%Y-%m')"),
        ("duckdb", "strptime(s, '%H:%M')"),
        ("duckdb", "strptime(s, '%Y-%m-%d %Y')"),
        ("duckdb", "strptime(s, ['%Y-%m-%d', '%Y'])"),
        ("postgres", "to_date(s, 'Month DD YYYY')"),
        ("postgres", "to_timestamp(s, 'YYYY-MM-DD HH12:MI')"),
        ("datafusion", "to_timestamp(s, '%Y-%m-%d', '%Y%m%d')"),
        ("datafusion", "to_timestamp(s, '%Y-%m-%d %H:%M:%S%.f')"),
    ],
)
def test_formats_that_engines_read_by_rules_of_their_own_are_refused(
    dialect: str, expression: str
) -> None:
    with pytest.raises(InvalidPredicate):
        bind_operand(
            to_operand(expression, dialect, SCHEMA), SCHEMA, dialect_named(dialect).semantics
        )


@pytest.mark.parametrize(
    ("dialect", "call"),
    [("postgres", "to_timestamp(s, 'YYYY-MM-DD')"), ("duckdb", "strptime(s, '%Y-%m-%d')")],
)
def test_a_text_that_is_not_read_stops_only_conditions_that_need_it(
    dialect: str, call: str
) -> None:
    rows = pa.table({"k": [1, 2], "s": ["2024 x", "2024 x"]})
    table = rs.create_table(fresh_uri(), rows, key=["k"])
    later = f"{call} > TIMESTAMP '2024-01-01'"
    guarded = f"CASE WHEN k > 0 THEN k = 1 ELSE {later} END"
    assert table.scan(guarded, dialect=dialect).to_arrow()["k"].to_pylist() == [1]
    with pytest.raises(UnreadText, match=r"'2024 x' as timestamp.* of the format '%Y-%m-%d'"):
        table.scan(later, dialect=dialect).to_arrow()
