"""What Rowsieve makes of one table of a corpus, held against the table's judge and DuckDB.

First all rows are compared with those that the judge reads. Then conditions over the table's own
values are counted by a scan, which prunes, and by DuckDB over the judge's rows in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import rowsieve as rs
from rowsieve.errors import RowsieveError
from tests.corpora.conditions import conditions
from tests.corpora.tables import Case
from tests.duckdb_sessions import duckdb_session

MAX_ROWS = 20_000
"""Rows that are compared one by one; of longer tables only the counts are."""


@dataclass
class Verdict:
    """What came out for one table.

    `state` is `equal`, `wrong`, `refused` (by us, with an error of ours), `raw` (another error),
    `unread` (the judge cannot read it) or `broken` (neither reads it).
    """

    state: str
    said: str = ""
    rows: int = 0
    conditions: int = 0
    refused_conditions: int = 0
    wrong: list[str] = field(default_factory=list)


def verdict_of(case: Case) -> Verdict:
    try:
        ours = case.open()
        rows = ours.to_arrow()
    except RowsieveError as error:
        return Verdict("broken" if _fault_of_judge(case) else "refused", _told(error))
    except Exception as error:  # what no caller may meet, unless it is of the library we are given
        return Verdict("broken" if _fault_of_judge(case) == _told(error) else "raw", _told(error))
    try:
        judged = case.judged()
    except Exception as error:  # whatever a foreign reader raises
        return Verdict("unread", _told(error), rows.num_rows)
    if wrong := list(_different(rows, judged)):
        return Verdict("wrong", rows=rows.num_rows, wrong=wrong)
    return _verdict_of_conditions(ours, rows)


def _fault_of_judge(case: Case) -> str | None:
    """What the judge says of a table that it cannot read; None if it can."""
    try:
        case.judged()
    except Exception as error:  # whatever a foreign reader raises
        return _told(error)
    return None


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:400]


def _different(rows: pa.Table, judged: pa.Table) -> Iterator[str]:
    if rows.num_rows != judged.num_rows:
        yield f"{rows.num_rows} rows, {judged.num_rows} expected"
        return
    names = [name for name in judged.column_names if name in rows.column_names]
    if lost := [name for name in judged.column_names if name not in names]:
        yield f"no columns {lost}"
    if rows.num_rows > MAX_ROWS:
        return
    for name in names:
        mine, theirs = (_column(table, name, rows.schema) for table in (rows, judged))
        if mine.type != theirs.type and pa.types.is_nested(theirs.type):
            continue  # a Variant, which is JSON text here
        if mine.equals(theirs):
            continue
        has, expected = _texts(mine), _texts(theirs)
        if lacking := expected - has:
            yield f"{name}: lacks {list(lacking)[:3]}, has {list(has - expected)[:3]}"


def _texts(column: pa.ChunkedArray) -> Counter[str]:
    """The values as text, each with its count."""
    try:
        return Counter(map(repr, column.to_pylist()))
    except OverflowError:  # times that Python's types cannot hold
        return Counter(map(repr, column.cast(pa.string()).to_pylist()))


def _column(table: pa.Table, name: str, schema: pa.Schema) -> pa.ChunkedArray:
    """A column of either table; in the type that it has here, where that holds each value."""
    column = table.column(table.schema.get_all_field_indices(name)[0])
    try:
        return column.cast(schema.field(name).type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return column


def _verdict_of_conditions(ours: rs.Table, rows: pa.Table) -> Verdict:
    verdict = Verdict("equal", rows=rows.num_rows)
    session = duckdb_session()
    session.execute("SET TimeZone = 'UTC'")
    try:
        session.register("arrow_rows", rows)
        session.execute("CREATE OR REPLACE TEMP TABLE judged AS SELECT * FROM arrow_rows")
    except Exception as error:  # a type that DuckDB lacks, or twin names
        verdict.said = f"no conditions: {_told(error)}"
        return verdict
    for text in conditions(rows):
        expected = _count_in(session, text)
        if expected is None:
            continue
        try:
            count = ours.scan(text, dialect="duckdb").count()
        except RowsieveError:
            verdict.refused_conditions += 1
        except Exception as error:  # what no caller may meet
            verdict.state, verdict.said = "raw", f"{text}: {_told(error)}"
        else:
            verdict.conditions += 1
            if count != expected:
                verdict.state = "wrong"
                verdict.wrong.append(f"{text}: {count} rows, {expected} expected")
    return verdict


def _count_in(session: Any, text: str) -> int | None:
    """How many rows DuckDB finds; None if it refuses the condition."""
    try:
        ((count,),) = session.execute(f"SELECT count(*) FROM judged WHERE {text}").fetchall()
    except Exception:  # each of DuckDB's errors
        return None
    return int(count)
