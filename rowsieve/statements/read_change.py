"""Statements that change the rows of a table, create or drop one: values, and their reader.

A statement is cut into its clauses; each clause stays SQL text. DataFusion plans the statement,
too, which checks its grammar and names. The clauses become parts of queries that it evaluates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, TypeAlias

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.statements.merge_statement import Action, Merge, read_joined, read_merge
from rowsieve.statements.refused import BEFORE_COLUMN, check_clauses
from rowsieve.statements.table_options import read_table_options
from rowsieve.statements.tokens import StatementTokens, Target, quoted

_BEFORE_NAME: Final = (
    ("INSERT",), ("REPLACE",), ("DELETE",), ("UPDATE",), ("MERGE",), ("TRUNCATE",), ("CREATE",),
    ("DROP",), ("OR", "REPLACE"), ("UNBOUNDED",), ("EXTERNAL",), ("TEMPORARY",), ("TEMP",),
    ("OVERWRITE",), ("INTO",), ("FROM",), ("TABLE",), ("IF", "NOT", "EXISTS"), ("IF", "EXISTS"),
)  # fmt: skip
"""Keywords that may precede the name of the table, in the order in which they may occur."""

_ENDS_EXPRESSIONS: Final = (
    *("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "INTO"),
    *("UNION", "EXCEPT", "INTERSECT"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """A statement that changes, creates or drops a table; `read_change` reads its clauses.

    `text` has a WITH inside its queries; `name` are the folded parts of the table's name.
    """

    text: str
    verb: str
    name: tuple[str, ...]
    tokens: StatementTokens = field(compare=False, repr=False)

    @property
    def removes(self) -> bool:
        """True if views that it names need not be planned."""
        return self.verb == "DROP"

    @property
    def changes_rows(self) -> bool:
        """True unless it creates or drops a table."""
        return self.verb not in ("CREATE", "DROP")

    @property
    def removes_table(self) -> bool:
        """True for DROP TABLE and CREATE OR REPLACE."""
        words = self.tokens.words
        return words[:2] == ["DROP", "TABLE"] or words[:3] == ["CREATE", "OR", "REPLACE"]

    @property
    def uses_rowsieve(self) -> bool:
        """True for CREATE TABLE … USING rowsieve."""
        tokens = self.tokens
        tokens.at = 0
        if not tokens.take("CREATE"):
            return False
        tokens.take("OR", "REPLACE")
        return tokens.take("TABLE") and tokens.find("USING", "ROWSIEVE") < tokens.count


class OnConflict(Enum):
    """The action of an INSERT for a key that exists in the table."""

    FAIL = "fail"
    IGNORE = "ignore"
    REPLACE = "replace"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class Insert:
    """`INSERT INTO`; `plain` is the statement without ON CONFLICT.

    `by_name`: each column of the query goes into the column of the table with its name.
    """

    target: Target
    columns: tuple[str, ...] | None
    source: str
    on_conflict: OnConflict
    plain: str
    conflict_columns: tuple[str, ...] = ()
    assignments: Mapping[str, str] | None = None
    where: str = ""
    by_name: bool = False

    @property
    def text(self) -> str:
        """The statement without its action for keys that exist, in words that DataFusion plans."""
        columns = [] if self.columns is None else [f"({', '.join(map(quoted, self.columns))})"]
        return " ".join(["INSERT INTO", self.target.name, *columns, self.source])


@dataclass(frozen=True, slots=True)
class Delete:
    """`DELETE FROM`; without a condition `where` is empty."""

    target: Target
    where: str

    @property
    def query(self) -> str:
        """A query of the same relation with the same condition."""
        return " ".join(["SELECT 1 FROM", self.target.relation, "WHERE", self.where or "TRUE"])


@dataclass(frozen=True, slots=True)
class Update:
    """`UPDATE`; `assigns_rows` if it has `(a, b) = (x, y)`, which DataFusion does not plan."""

    target: Target
    assignments: Mapping[str, str]
    where: str
    assigns_rows: bool = False

    @property
    def text(self) -> str:
        """The statement, with each column assigned alone."""
        pairs = (f"{quoted(name)} = {value}" for name, value in self.assignments.items())
        where = ["WHERE", self.where] if self.where else []
        return " ".join(["UPDATE", self.target.relation, "SET", ", ".join(pairs), *where])


@dataclass(frozen=True, slots=True)
class Truncate:
    """`TRUNCATE TABLE`."""

    target: Target


@dataclass(frozen=True, slots=True)
class CreateTable:
    """`CREATE TABLE name [(definition)] [USING format] [WITH (options)] [AS query]`.

    `definition` is the text in its brackets; `format` is in lower case.
    """

    target: Target
    query: str | None
    definition: str
    if_not_exists: bool
    replaces: bool
    format: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DropTable:
    """`DROP TABLE [IF EXISTS] name [PURGE]`."""

    target: Target
    if_exists: bool
    purge: bool = False


ChangeStatement: TypeAlias = Insert | Delete | Update | Merge | Truncate | CreateTable | DropTable


def as_change(text: str, tokens: StatementTokens) -> Change | None:
    """Find the verb and the table of a statement; None for one without the name of a table."""
    tokens.at = 0
    for words in _BEFORE_NAME:
        tokens.take(*words)
    try:
        name = tokens.path()[1]
    except InvalidInput:
        return None
    return Change(text, tokens.words[0], name, tokens)


def read_change(reader: StatementTokens) -> ChangeStatement | None:
    """Read the clauses of a statement; None for one that concerns no table."""
    reader.at = 0
    check_clauses(reader)
    match reader.next():
        case "INSERT" | "REPLACE":
            return _insert(reader)
        case "DELETE":
            return _delete(reader)
        case "UPDATE":
            return _update(reader)
        case "MERGE":
            return read_merge(reader)
        case "TRUNCATE":
            reader.take("TRUNCATE")
            reader.take("TABLE")
            target = reader.target()
            reader.end("TRUNCATE")
            return Truncate(target)
        case "CREATE":
            return _create(reader)
        case _:
            return _drop(reader)


def take_returning(reader: StatementTokens) -> str:
    """Cut the final RETURNING off a statement; return its expressions, empty if there is none."""
    reader.at = 0
    place = reader.find("RETURNING", last=True)
    if place >= reader.count - 1 or reader.words[place - 1] in BEFORE_COLUMN:
        return ""
    reader.at = place + 1
    for word in _ENDS_EXPRESSIONS:
        for end in reader.all(word):
            if reader.words[end - 1] not in {*BEFORE_COLUMN, "RETURNING"}:
                raise InvalidInput(
                    f"sql: RETURNING takes expressions only, and has {word}; nothing was changed"
                )
    text = reader.until(reader.count, "expressions")
    reader.cut(place)
    reader.at = 0
    return text


def _insert(reader: StatementTokens) -> Insert:
    on_conflict = OnConflict.FAIL
    if reader.take("REPLACE") or reader.take("INSERT", "OR", "REPLACE"):
        on_conflict = OnConflict.REPLACE
    else:
        reader.need("INSERT")
    if reader.next() in ("OVERWRITE", "OR"):
        raise UnsupportedOperation(
            f"sql: INSERT {reader.next()} is not available for a Rowsieve table; INSERT OR REPLACE "
            "replaces rows by key, and table.overwrite all rows"
        )
    reader.take("INTO")
    reader.take("TABLE")
    target = reader.target()
    by_name = not reader.take("BY", "POSITION") and reader.take("BY", "NAME")
    columns = reader.names() if not by_name and reader.is_list() else None
    stop = _conflict_clause(reader)
    source = _source(reader, stop)
    insert = Insert(target, columns, source, on_conflict, reader.piece(0, stop), by_name=by_name)
    return insert if stop == reader.count else _with_conflict(reader, insert)


def _with_conflict(reader: StatementTokens, insert: Insert) -> Insert:
    """Read the ON CONFLICT clause of an INSERT."""
    reader.need("ON", "CONFLICT")
    if insert.on_conflict is OnConflict.REPLACE:
        raise InvalidInput(
            "sql: INSERT takes OR REPLACE or ON CONFLICT, not both; remove one of them"
        )
    names = reader.names() if reader.next() == "(" else ()
    reader.need("DO")
    if reader.take("NOTHING"):
        reader.end("ON CONFLICT DO NOTHING")
        return replace(insert, on_conflict=OnConflict.IGNORE, conflict_columns=names)
    reader.need("UPDATE", "SET")
    if not names:
        raise InvalidInput("sql: ON CONFLICT DO UPDATE needs the key: ON CONFLICT (key) DO UPDATE")
    assignments = reader.assignments(reader.find("WHERE"))
    return replace(
        insert,
        on_conflict=OnConflict.UPDATE,
        conflict_columns=names,
        assignments=assignments,
        where=reader.where("ON CONFLICT"),
    )


def _source(reader: StatementTokens, stop: int) -> str:
    """Consume the query of an INSERT; `TABLE t` and `FROM t` become queries of all columns."""
    if reader.take("TABLE"):
        return " ".join(["SELECT * FROM", reader.until(stop, "a table")])
    is_short = reader.next() == "FROM" and reader.find("SELECT") >= stop
    query = reader.until(stop, "a query")
    return f"SELECT * {query}" if is_short else query


def _conflict_clause(reader: StatementTokens) -> int:
    """The position of the final ON CONFLICT clause; ignores a join ON a column `conflict`."""
    place = reader.find("ON", "CONFLICT", last=True)
    words = reader.words[place + 2 :]
    if words[:1] == ["("] and ")" in words:
        words = words[words.index(")") + 1 :]
    return place if words[:2] in (["DO", "NOTHING"], ["DO", "UPDATE"]) else reader.count


def _delete(reader: StatementTokens) -> Delete | Merge:
    reader.need("DELETE")
    reader.take("FROM")
    target = reader.target("WHERE", "LIMIT", "ORDER", "USING")
    if reader.take("USING"):
        return read_joined(reader, "DELETE … USING", target, Action.DELETE)
    return Delete(target, reader.where("DELETE"))


def _update(reader: StatementTokens) -> Update | Merge:
    reader.need("UPDATE")
    target = reader.target("SET")
    reader.need("SET")
    where = reader.find("WHERE")
    joins = (
        place
        for place in reader.all("FROM")
        if place < where and reader.words[place - 1] != "DISTINCT"  # IS DISTINCT FROM compares
    )
    stop = next(joins, where)
    assigns_rows = reader.find(")", "=") < stop
    assignments = reader.assignments(stop)
    if reader.take("FROM"):
        return read_joined(reader, "UPDATE … FROM", target, Action.UPDATE, assignments)
    return Update(target, assignments, reader.where("UPDATE"), assigns_rows)


def _create(reader: StatementTokens) -> CreateTable | None:
    reader.need("CREATE")
    replaces = reader.take("OR", "REPLACE")
    if not reader.take("TABLE"):
        return None
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    written, parts = reader.path()
    definition = ""
    if reader.next() == "(":
        reader.bracket()
        definition = reader.piece(reader.opened + 1, reader.at - 1)
    format_ = reader.name()[1].lower() if reader.take("USING") else ""
    options = read_table_options(reader)
    query = reader.piece(reader.at, reader.count) if reader.take("AS") else None
    if query is None:
        reader.end("CREATE TABLE in a Rowsieve catalog")
    return CreateTable(
        Target(written, parts), query, definition, if_not_exists, replaces, format_, options
    )


def _drop(reader: StatementTokens) -> DropTable | None:
    reader.need("DROP")
    if not reader.take("TABLE"):
        return None
    if_exists = reader.take("IF", "EXISTS")
    target = Target(*reader.path())
    purge = reader.take("PURGE")
    reader.end("DROP TABLE")
    return DropTable(target, if_exists, purge)
