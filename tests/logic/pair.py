"""One SQL script, run over our tables and over memory, and the answers compared.

A builder session runs what makes and changes tables. Each table is then given to two sessions: as
rows in memory, and as a table of ours whose rows are spread over overlapping parts, most of them
written more than once. A query must give the same rows in both. Where it does not, it is asked over
memory in other orders of rows: an answer that changes with these has no right answer to compare.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import datafusion
import pyarrow as pa

import rowsieve as rs
from rowsieve.errors import RowsieveError
from tests.logic.stored_types import as_stored

Rows = list[tuple[Any, ...]]

_KEY = "rowsieve row"
_NUMBERS = count()
_CHANGES = re.compile(
    r"\s*(?:CREATE\s+(?:OR\s+REPLACE\s+)?(?:UNBOUNDED\s+)?(?:EXTERNAL\s+)?TABLE"
    r"(?:\s+IF\s+NOT\s+EXISTS)?|INSERT\s+INTO|INSERT\s+OVERWRITE|DROP\s+TABLE(?:\s+IF\s+EXISTS)?"
    r"|DELETE\s+FROM|UPDATE|TRUNCATE\s+TABLE)\s+(\"[^\"]+\"|\w+)(?![\w.])",
    re.IGNORECASE,
)
_VIEW = re.compile(r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?VIEW\s+(\"[^\"]+\"|\w+)", re.IGNORECASE)
_WORDS = re.compile(r"\"[^\"]+\"|\w+")
_UNSTEADY = re.compile(r"\b(random|now|uuid|uuidv4|uuidv7|current_\w+|today|version)\b", re.I)
_ABOUT_PLANS = re.compile(r"\s*(EXPLAIN|SHOW|DESCRIBE|DESC|COPY)\b|information_schema", re.I)


@dataclass(slots=True)
class Outcome:
    """How many queries were compared, the lines of others, and what was wrong: (line, message).

    over_our_tables: how many of the compared ones name a table of ours
    undecided: the answer changes with the order of rows, or with the time
    about_plans: EXPLAIN, SHOW, COPY and the like: not compared
    expects_an_error: the file itself expects the query to fail: not compared
    raised: fails over our tables alone
    """

    compared: int = 0
    over_our_tables: int = 0
    undecided: list[int] = field(default_factory=list)
    failed_in_both: list[int] = field(default_factory=list)
    about_plans: list[int] = field(default_factory=list)
    expects_an_error: list[int] = field(default_factory=list)
    tables: int = 0
    tables_in_memory: int = 0
    wrong: list[tuple[int, str]] = field(default_factory=list)
    raised: list[tuple[int, str]] = field(default_factory=list)


class Failed(Exception):
    """A session refused a statement."""


class Pair:
    """The three sessions of one script. `merges`: tables have a hidden key and many versions."""

    def __init__(self, *, merges: bool = True) -> None:
        self.builder, self.memory, self.ours = (_session() for _ in range(3))
        self.outcome = Outcome()
        self._merges = merges
        self._stale: set[str] = set()
        self._tables: dict[str, pa.Table] = {}
        self._shared: list[str] = []  # run in each session: views, settings
        self._ours: set[str] = set()  # names of our tables, and of views over them

    def statement(self, sql: str) -> None:
        """Run a statement; Failed where the builder refuses it."""
        if change := _CHANGES.match(sql):
            _run(self.builder, sql)
            self._stale.add(_bare(change[1]))
            return
        self._give_tables(sql)
        _run(self.builder, sql)
        for session in (self.memory, self.ours):
            _run(session, sql)
        self._shared.append(sql)
        if (view := _VIEW.match(sql)) and self._reads_ours(sql):
            self._ours.add(_bare(view[1]))

    def answers(self, sql: str) -> tuple[Rows | Failed, Rows | Failed]:
        """The rows, or the failure, over memory and over our tables."""
        self._give_tables(sql)
        return _answer(self.memory, sql), _answer(self.ours, sql)

    def compare(self, line: int, sql: str) -> None:
        """Note whether both answer alike."""
        if _ABOUT_PLANS.search(sql):
            self.outcome.about_plans.append(line)
            return
        if _CHANGES.match(sql):  # its answer is how many rows it changed
            self.statement(sql)
            return
        expected, found = self.answers(sql)
        if isinstance(expected, Failed):
            self.outcome.failed_in_both.append(line)
        elif isinstance(found, Failed):
            self.outcome.raised.append((line, f"{found}\n{sql}"))
        elif _bag(expected) == _bag(found):
            self.outcome.compared += 1
            self.outcome.over_our_tables += self._reads_ours(sql)
        elif _UNSTEADY.search(sql) or self._depends_on_order(sql, expected, found):
            self.outcome.undecided.append(line)
        else:
            missing, more = _bag(expected) - _bag(found), _bag(found) - _bag(expected)
            shown = f"missing {list(missing)[:3]}, too many {list(more)[:3]}"
            self.outcome.wrong.append((line, f"{shown}\n{sql}"))

    def _reads_ours(self, sql: str) -> bool:
        """Whether the words of a query hold the name of a table of ours, or of a view's."""
        return not self._ours.isdisjoint(map(_bare, _WORDS.findall(sql)))

    def _depends_on_order(self, sql: str, expected: Rows, found: Rows) -> bool:
        """Whether memory gives our answer too, or another one, when its rows come otherwise."""
        orders: tuple[Callable[[str, pa.Table], pa.Table], ...] = (
            self._as_ours_come,
            lambda _, rows: _taken(rows, range(rows.num_rows)[::-1]),
            lambda _, rows: _taken(rows, sorted(range(rows.num_rows), key=_scattered)),
        )
        for order in orders:
            session = _session()
            for name, rows in self._tables.items():
                _register(session, name, order(name, rows))
            for statement in self._shared:
                _run(session, statement)
            other = _answer(session, sql)
            if isinstance(other, Failed) or _bag(other) == _bag(found):
                return True
            if _bag(other) != _bag(expected):
                return True
        return False

    def _as_ours_come(self, name: str, rows: pa.Table) -> pa.Table:
        """The rows of memory in the order of ours; as they are where ours are other rows."""
        found = self.ours.table(f'"{name}"').to_arrow_table()
        same = _bag(_rows(found.to_batches())) == _bag(_rows(rows.to_batches()))
        return found if same else rows

    def _give_tables(self, sql: str) -> None:
        """Give the tables that a statement names, and those that were given and have changed."""
        named = self._stale & ({*map(_bare, _WORDS.findall(sql))} | self._tables.keys())
        self._stale -= named
        for name in sorted(named):
            self._forget(name)
            try:
                rows = self.builder.table(f'"{name}"').to_arrow_table()
            except Exception:  # dropped, or not readable here
                continue
            self._give(name, rows)

    def _give(self, name: str, rows: pa.Table) -> None:
        try:
            stored = as_stored(rows)
            self._register_ours(name, stored)
            self.outcome.tables += 1
            self._ours.add(name)
        except (RowsieveError, pa.ArrowException, ValueError):  # a type that no table can have
            stored = rows
            _register(self.ours, name, stored)
            self.outcome.tables_in_memory += 1
            _register(self.memory, name, stored)
        else:
            self._register_memory(name, stored)
        self._tables[name] = stored

    def _register_memory(self, name: str, rows: pa.Table) -> None:
        """Behind a view where ours is: DataFusion refuses some queries over views alone."""
        if not self._merges:
            _register(self.memory, name, rows)
            return
        _register(self.memory, _hidden(name), _keyed(rows))
        _view(self.memory, name, rows)

    def _register_ours(self, name: str, rows: pa.Table) -> None:
        uri = f"memory://logic-{next(_NUMBERS)}"
        if not self._merges:
            table = rs.create_table(uri, rows.slice(0, 1) if rows.num_rows else rows.schema)
            if rows.num_rows > 1:
                table.append(rows.slice(1))
            self.ours.register_table(f'"{name}"', table)
            return
        keyed = _keyed(rows)
        table = rs.create_table(uri, keyed.schema, key=[_KEY])
        for written in _versions(keyed):
            table.upsert(written)
        if rows.num_rows:
            table.delete(keys=pa.table({_KEY: [rows.num_rows]}))
        self.ours.register_table(f'"{_hidden(name)}"', table)
        _view(self.ours, name, rows)

    def _forget(self, name: str) -> None:
        self._tables.pop(name, None)
        self._ours.discard(name)
        for session in (self.memory, self.ours):
            for known in (name, _hidden(name)):
                if session.table_exist(f'"{known}"'):
                    session.deregister_table(f'"{known}"')


def _versions(rows: pa.Table) -> Iterator[pa.Table]:
    """What is written: first wrong rows and one too many, then the right ones in two parts."""
    size = rows.num_rows
    if not size:
        return
    values = _taken(rows, [(i + 1) % size for i in range(size)])
    wrong = values.set_column(0, _KEY, rows.column(_KEY))
    extra = rows.slice(0, 1).set_column(0, _KEY, pa.array([size], pa.int64()))
    yield pa.concat_tables([wrong.slice(0, 2 * size // 3), extra])
    yield rows.slice(size // 2)
    yield rows.slice(0, size // 2)


def _hidden(name: str) -> str:
    return f"{name} with its key"


def _keyed(rows: pa.Table) -> pa.Table:
    return rows.add_column(0, _KEY, pa.array(range(rows.num_rows), pa.int64()))


def _view(session: datafusion.SessionContext, name: str, rows: pa.Table) -> None:
    """The columns of the rows, without the key that is hidden."""
    columns = ['"' + column.replace('"', '""') + '"' for column in rows.column_names]
    view = session.table(f'"{_hidden(name)}"').select(*map(datafusion.col, columns)).into_view()
    session.register_table(f'"{name}"', view)


def _taken(rows: pa.Table, places: Sequence[int]) -> pa.Table:
    return rows.take(pa.array(places, pa.int64()))


def _scattered(place: int) -> int:
    return place * 7919 % 1009


def _session() -> datafusion.SessionContext:
    return datafusion.SessionContext(
        datafusion.SessionConfig().with_information_schema(enabled=True)
    )


def _register(session: datafusion.SessionContext, name: str, rows: pa.Table) -> None:
    batches = rows.to_batches() or [pa.RecordBatch.from_pylist([], schema=rows.schema)]
    session.register_record_batches(f'"{name}"', [batches])


def _run(session: datafusion.SessionContext, sql: str) -> list[pa.RecordBatch]:
    try:
        found: list[pa.RecordBatch] = session.sql(sql).collect()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise Failed(str(error)) from error  # a panic of Rust is a BaseException
    return found


def _answer(session: datafusion.SessionContext, sql: str) -> Rows | Failed:
    try:
        return _rows(_run(session, sql))
    except Failed as error:
        return error
    except (KeyError, pa.ArrowException) as error:  # a type that pyarrow does not have
        return Failed(f"the answer cannot be read: {error!r}")


def _rows(batches: list[pa.RecordBatch]) -> Rows:
    return [row for batch in batches for row in zip(*map(_values, batch.columns), strict=True)]


def _values(column: pa.Array) -> Sequence[Any]:
    try:
        values = column.to_pylist()
    except (ValueError, ArithmeticError, pa.ArrowException):  # beyond what Python holds
        values = column.cast(pa.string()).to_pylist()
    return [_steady(value) for value in values]


def _steady(value: Any) -> Any:
    """The value with floats to ten digits: sums differ in the last ones by order."""
    match value:
        case float():
            return "NaN" if math.isnan(value) else float(f"{value:.10g}")
        case list() | tuple():
            return [_steady(item) for item in value]
        case dict():
            return {key: _steady(item) for key, item in value.items()}
        case _:
            return value


def _bag(rows: Rows) -> Counter[str]:
    return Counter(map(repr, rows))


def _bare(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name.lower()
