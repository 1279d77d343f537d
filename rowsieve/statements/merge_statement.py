"""MERGE: clauses, each with the pairs of rows that it applies to, its condition and its action.

DataFusion's session reads them from SQL text (`read_merge`), Spark from its own plan, and
`merge_spark` from its arguments. A condition and values are in the form of the engine: SQL text, or
Spark's Columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, TypeAlias

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.statements.tokens import StatementTokens, Target, quoted


class When(Enum):
    """The pairs of rows that a clause applies to; the value is its parameter of `merge_spark`."""

    MATCHED = "when_matched"
    NOT_MATCHED = "when_not_matched"
    NOT_MATCHED_BY_SOURCE = "when_not_matched_by_source"

    @property
    def words(self) -> str:
        """The words of SQL."""
        return self.value.replace("_", " ").upper()


class Action(Enum):
    """What a clause does to its rows."""

    UPDATE = "update"
    INSERT = "insert"
    DELETE = "delete"


ACTIONS: Final[Mapping[When, tuple[Action, ...]]] = {
    When.MATCHED: (Action.UPDATE, Action.DELETE),
    When.NOT_MATCHED: (Action.INSERT,),
    When.NOT_MATCHED_BY_SOURCE: (Action.UPDATE, Action.DELETE),
}
"""The actions that a clause may have."""

Values: TypeAlias = Mapping[str, Any] | tuple[Any, ...] | None
"""Values by column, or in the order of the table's columns; None: `*`, the source's columns."""


@dataclass(frozen=True, slots=True)
class MergeClause:
    """A WHEN clause; `number` counts those of the same pairs from 1, `start` is its place in text.

    Without a condition, `where` is None. A clause that deletes has no values.
    """

    when: When
    number: int
    action: Action
    values: Values = None
    where: Any = None
    start: int = field(default=0, compare=False)

    @property
    def name(self) -> str:
        """The place of the clause, for messages."""
        return f"{self.when.value}, clause {self.number}"

    @property
    def takes_source(self) -> bool:
        """True for `UPDATE SET *` and `INSERT *`."""
        return self.values is None and self.action is not Action.DELETE

    @property
    def is_plain(self) -> bool:
        """True if it writes the row of the source without a condition."""
        return self.takes_source and self.where is None


@dataclass(frozen=True, slots=True)
class Merge:
    """`MERGE INTO`; `source` is a relation with its alias."""

    target: Target
    source: str
    source_alias: str
    on: str
    clauses: tuple[MergeClause, ...]

    @property
    def takes_source(self) -> bool:
        """True if a clause is `UPDATE SET *` or `INSERT *`."""
        return any(clause.takes_source for clause in self.clauses)

    def spelled_out(self, columns: Iterable[str]) -> Merge:
        """The merge with these columns of the table, which the source has, in place of `*`."""
        values = {name: f"{self.source_alias}.{quoted(name)}" for name in columns}
        clauses = (replace(c, values=values) if c.takes_source else c for c in self.clauses)
        return replace(self, clauses=tuple(clauses))

    @property
    def text(self) -> str:
        """The statement; none of its clauses may have `*`."""
        head = f"MERGE INTO {self.target.relation} USING {self.source} ON {self.on}"
        return " ".join([head, *map(_text_of, self.clauses)])


def _text_of(clause: MergeClause) -> str:
    where = "" if clause.where is None else f" AND {clause.where}"
    head = f"{clause.when.words}{where} THEN {clause.action.name}"
    match clause.values:
        case None:
            return head
        case tuple() as values:
            return f"{head} VALUES ({', '.join(values)})"
    if clause.action is Action.UPDATE:
        pairs = (f"{quoted(name)} = {value}" for name, value in clause.values.items())
        return f"{head} SET {', '.join(pairs)}"
    names = ", ".join(map(quoted, clause.values))
    return f"{head} ({names}) VALUES ({', '.join(clause.values.values())})"


def read_merge(reader: StatementTokens) -> Merge:
    """Consume a MERGE."""
    reader.need("MERGE")
    reader.take("INTO")
    target = reader.target("USING")
    reader.need("USING")
    start = reader.at
    on = reader.find("ON")
    alias = _source_alias(reader, on)
    reader.at = start
    source = reader.until(on, "a source")
    reader.need("ON")
    condition = reader.until(reader.find("WHEN"), "a condition")
    clauses: list[MergeClause] = []
    while reader.at < reader.count:
        clauses.append(_clause(reader, clauses))
    if not clauses:
        raise InvalidInput("sql: MERGE needs a clause, such as WHEN MATCHED THEN UPDATE SET *")
    return Merge(target, source, alias, condition, tuple(clauses))


def read_joined(
    reader: StatementTokens, what: str, target: Target, action: Action, values: Values = None
) -> Merge:
    """Consume `source WHERE condition` of `UPDATE … FROM` or `DELETE … USING`, as a merge.

    Rows of the table that match several rows of the source are an error of an update, for which
    PostgreSQL takes any of them. UnsupportedOperation for several sources.
    """
    start, stop = reader.at, reader.find("WHERE")
    if min(reader.find(","), reader.find("JOIN")) < stop:
        raise UnsupportedOperation(
            f"sql: {what} takes one source; join several in a subquery, as in (SELECT …) AS s"
        )
    alias = _source_alias(reader, stop)
    reader.at = start
    source = reader.until(stop, "a source")
    where = reader.where(what) or "TRUE"
    clause = MergeClause(When.MATCHED, 1, action, values)
    return Merge(target, source, alias, where, (clause,))


def _source_alias(reader: StatementTokens, stop: int) -> str:
    """The alias of the source, or the last part of its name."""
    default = ""
    if reader.next() != "(":
        default = quoted(reader.path()[1][-1])
    if reader.next() == "(":
        reader.bracket()
    reader.take("AS")
    if reader.at < stop and reader.next() != "(":
        return reader.name()[0]
    if not default:
        raise InvalidInput("sql: a query as the source needs an alias: (SELECT …) AS s")
    return default


def _clause(reader: StatementTokens, before: list[MergeClause]) -> MergeClause:
    start = reader.start
    reader.need("WHEN")
    when = _when(reader)
    where = reader.until(reader.find("THEN"), "a condition") if reader.take("AND") else None
    reader.need("THEN")
    stop = reader.find("WHEN")
    action, values = _action(reader, stop)
    if action not in ACTIONS[when]:
        does, takes = "UPDATE or DELETE", "INSERT"
        if action is Action.INSERT:
            does, takes = takes, does
        raise InvalidInput(f"sql: {when.words} cannot {does}; it takes {takes}")
    number = 1 + sum(each.when is when for each in before)
    clause = MergeClause(when, number, action, values, where, start)
    if clause.takes_source and when is When.NOT_MATCHED_BY_SOURCE:
        raise InvalidInput(
            f"sql: {when.words} has no row of the source; write UPDATE SET column = value"
        )
    return clause


def _when(reader: StatementTokens) -> When:
    if reader.take("MATCHED"):
        return When.MATCHED
    reader.need("NOT", "MATCHED")
    if reader.take("BY", "SOURCE"):
        return When.NOT_MATCHED_BY_SOURCE
    reader.take("BY", "TARGET")
    return When.NOT_MATCHED


def _action(reader: StatementTokens, stop: int) -> tuple[Action, Values]:
    if reader.take("DELETE"):
        _end_of_clause(reader, stop, "DELETE in MERGE")
        return Action.DELETE, None
    if reader.take("UPDATE", "SET", "*"):
        _end_of_clause(reader, stop, "UPDATE SET * in MERGE")
        return Action.UPDATE, None
    if reader.take("UPDATE", "SET"):
        return Action.UPDATE, reader.assignments(stop)
    if reader.take("DO", "NOTHING"):
        raise UnsupportedOperation(
            "sql: DO NOTHING in MERGE is not available; leave the clause out, and exclude its rows "
            "by the conditions of the clauses after it"
        )
    reader.need("INSERT")
    if reader.take("*"):
        _end_of_clause(reader, stop, "INSERT * in MERGE")
        return Action.INSERT, None
    columns = reader.names() if reader.next() == "(" else None
    reader.need("VALUES")
    values = _values(reader, stop)
    return Action.INSERT, values if columns is None else _by_column(columns, values)


def _end_of_clause(reader: StatementTokens, stop: int, what: str) -> None:
    if reader.at != stop:
        reader.end(what)


def _values(reader: StatementTokens, stop: int) -> tuple[str, ...]:
    """Consume the values of an INSERT clause: one pair of brackets that ends at `stop`."""
    reader.bracket()
    if reader.at != stop:
        reader.end("several rows in INSERT of MERGE")
    reader.at = start = reader.opened + 1
    values = tuple(reader.piece(*place) for place in reader.terms(stop - 1))
    if start == stop - 1:
        raise InvalidInput(
            "sql: INSERT in MERGE needs values, as in INSERT (id, v) VALUES (s.id, s.v)"
        )
    reader.at = stop
    return values


def _by_column(columns: tuple[str, ...], values: tuple[str, ...]) -> Mapping[str, str]:
    if len(columns) != len(values):
        raise InvalidInput(
            f"merge: {len(values)} values for the {len(columns)} columns of INSERT; give one "
            "for each"
        )
    if len(set(columns)) < len(columns):
        raise InvalidInput(f"sql: INSERT names a column twice: ({', '.join(columns)})")
    return dict(zip(columns, values, strict=True))
