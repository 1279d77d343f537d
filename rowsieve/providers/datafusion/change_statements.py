"""Finds the clauses of a statement that changes a table; each clause stays SQL text.

DataFusion has planned the statement before, which checks its grammar and names. The clauses become
parts of queries, which DataFusion evaluates.

Soundness: a clause is a run of tokens with balanced brackets, without comments. Tokens that are not
understood between two clauses are refused, never skipped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from rowsieve.bridges.sql.dialects import DATAFUSION
from rowsieve.errors import InvalidInput, UnsupportedOperation

_FIRST: Final = re.compile(
    r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
    r"(insert|replace|delete|update|merge|truncate|create|drop)\b",
    re.IGNORECASE | re.DOTALL,
)
_BEFORE_NAME: Final = (
    ("INSERT",), ("REPLACE",), ("DELETE",), ("UPDATE",), ("MERGE",), ("TRUNCATE",), ("CREATE",),
    ("DROP",), ("OR", "REPLACE"), ("UNBOUNDED",), ("EXTERNAL",), ("TEMPORARY",), ("TEMP",),
    ("OVERWRITE",), ("INTO",), ("FROM",), ("TABLE",),
    ("IF", "NOT", "EXISTS"), ("IF", "EXISTS"),
)  # fmt: skip
"""Words between the first one and the name of the table, in their order."""
_OPENS: Final = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


@dataclass(frozen=True, slots=True)
class Target:
    """The table that a statement changes: its name as written, its parts folded, its alias."""

    name: str
    parts: tuple[str, ...]
    alias: str = ""

    @property
    def relation(self) -> str:
        """The table in a FROM clause."""
        return f"{self.name} AS {self.alias}" if self.alias else self.name

    @property
    def qualifier(self) -> str:
        """What qualifies the table's columns."""
        return self.alias or quoted(self.parts[-1])


class OnConflict(Enum):
    """What an INSERT does with a key that the table has."""

    FAIL = "fail"
    IGNORE = "ignore"
    REPLACE = "replace"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class Insert:
    """`INSERT INTO`; `plain` is the statement without ON CONFLICT."""

    target: Target
    columns: tuple[str, ...] | None
    source: str
    on_conflict: OnConflict
    plain: str
    conflict_columns: tuple[str, ...] = ()
    assignments: Mapping[str, str] | None = None
    where: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """`DELETE FROM`; without a condition `where` is empty."""

    target: Target
    where: str


@dataclass(frozen=True, slots=True)
class Update:
    """`UPDATE`."""

    target: Target
    assignments: Mapping[str, str]
    where: str


class When(Enum):
    """Which pairs of rows a clause of MERGE is about."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


@dataclass(frozen=True, slots=True)
class Clause:
    """A WHEN clause of MERGE: `values` by column; None deletes the row."""

    when: When
    where: str
    values: Mapping[str, str] | None
    columns: tuple[str, ...] | None = None
    positional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """`MERGE INTO`; `source` is a relation with its alias."""

    target: Target
    source: str
    source_alias: str
    on: str
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Truncate:
    """`TRUNCATE TABLE`."""

    target: Target


@dataclass(frozen=True, slots=True)
class CreateTable:
    """`CREATE TABLE`; `query` is None unless it is `[(PRIMARY KEY (…))] AS query`."""

    target: Target
    query: str | None
    key: tuple[str, ...]
    if_not_exists: bool
    replaces: bool


@dataclass(frozen=True, slots=True)
class DropTable:
    """`DROP TABLE`."""

    target: Target
    if_exists: bool


ChangeStatement: TypeAlias = Insert | Delete | Update | Merge | Truncate | CreateTable | DropTable


def read_change(text: str) -> ChangeStatement | None:
    """Read a statement that changes a table; None for others, and for several statements."""
    if (reader := _reader(text)) is None:
        return None
    match reader.next().lower():
        case "insert" | "replace":
            return _insert(reader)
        case "delete":
            return _delete(reader)
        case "update":
            return _update(reader)
        case "merge":
            return _merge(reader)
        case "truncate":
            reader.take("TRUNCATE")
            reader.take("TABLE")
            target = reader.target()
            reader.end("TRUNCATE")
            return Truncate(target)
        case "create":
            return _create(reader)
        case _:
            return _drop(reader)


def _reader(text: str) -> _Reader | None:
    """The tokens of a statement; None if it changes no table, or is not one statement."""
    if _FIRST.match(text) is None:
        return None
    import sqlglot  # noqa: PLC0415 - it takes 0.1 s to import

    try:
        tokens = list(sqlglot.tokenize(_one_kind_of_line(text), read=DATAFUSION.grammar))
    except sqlglot.TokenError:
        return None  # DataFusion reports it
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    reader = _Reader(text, [place for token in tokens for place in _places(text, token)])
    return None if ";" in reader.words else reader


def _one_kind_of_line(text: str) -> str:
    """The text, of the same length, in which sqlglot ends comments where DataFusion ends them.

    For DataFusion, only a line feed ends a comment; for sqlglot, a carriage return does, too.
    """
    return text.replace("\r", " ")


def _places(text: str, token: Any) -> list[tuple[int, int]]:
    """The places of a token, or of its words: sqlglot makes one token of `PRIMARY KEY`."""
    written = text[token.start : token.end + 1]
    if any(mark in written for mark in "'\"$"):
        return [(token.start, token.end + 1)]
    words = re.finditer(r"\S+", written)
    return [(token.start + word.start(), token.start + word.end()) for word in words]


def changed_name(text: str) -> tuple[str, ...] | None:
    """The name of the table that a statement changes, folded; None for other statements."""
    if (reader := _reader(text)) is None:
        return None
    for words in _BEFORE_NAME:
        reader.take(*words)
    try:
        return reader.path()[1]
    except InvalidInput:
        return None


def takes_name(text: str) -> bool:
    """Whether DataFusion removes the name that the statement begins with, or gives it anew."""
    reader = _reader(text)
    return reader is not None and (
        reader.take("DROP", "TABLE") or reader.take("CREATE", "OR", "REPLACE")
    )


def words_of(text: str) -> frozenset[str]:
    """The words and quoted names of a clause, folded to lower case."""
    import sqlglot  # noqa: PLC0415 - it takes 0.1 s to import

    return frozenset(
        token.text.lower()
        for token in sqlglot.tokenize(_one_kind_of_line(text), read=DATAFUSION.grammar)
    )


def quoted(name: str) -> str:
    """The name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


class _Reader:
    """The tokens of a statement and a place among them.

    `words` are upper case for words, empty for quoted names and texts.
    """

    def __init__(self, text: str, places: Sequence[tuple[int, int]]) -> None:
        self._text = text
        self._places = places
        self.words = [self._word(*place) for place in places]
        self.at = 0
        self.opened = 0
        self._depths: list[int] = []
        depth, cases = 0, 0
        for word in self.words:
            change = _OPENS.get(word, 0)
            if word == "CASE":
                change, cases = 1, cases + 1
            elif word == "END" and cases:
                change, cases = -1, cases - 1
            self._depths.append(depth + min(change, 0))
            depth += change

    def _word(self, start: int, stop: int) -> str:
        written = self._text[start:stop]
        return "" if any(mark in written for mark in "'\"$") else written.upper()

    @property
    def count(self) -> int:
        """The number of tokens."""
        return len(self._places)

    def next(self) -> str:
        """The next word; empty at the end."""
        return self.words[self.at] if self.at < self.count else ""

    def take(self, *words: str) -> bool:
        """Pass these words, if they are next."""
        if tuple(self.words[self.at : self.at + len(words)]) != words:
            return False
        self.at += len(words)
        return True

    def need(self, *words: str) -> None:
        """Pass these words; InvalidInput if others are next."""
        if not self.take(*words):
            raise self._unexpected(" ".join(words))

    def end(self, what: str) -> None:
        """UnsupportedOperation if the statement goes on."""
        if self.at < self.count:
            rest = self.piece(self.at, self.count)
            raise UnsupportedOperation(f"sql: {what} with {rest[:80]!r} is not available")

    def find(self, *words: str, last: bool = False) -> int:
        """The place of these words outside of brackets and CASE, from here on; the end if none."""
        places = [
            i
            for i in range(self.at, self.count - len(words) + 1)
            if self._depths[i] == 0 and tuple(self.words[i : i + len(words)]) == words
        ]
        return (places[-1] if last else places[0]) if places else self.count

    def until(self, stop: int, what: str) -> str:
        """The text up to a place, which must not be empty and have balanced brackets."""
        found = self.piece(self.at, stop)
        if not found or self._depths[self.at] or (stop < self.count and self._depths[stop]):
            raise self._unexpected(what)
        self.at = stop
        return found

    def piece(self, start: int, stop: int) -> str:
        """The text of tokens, without comments."""
        pieces: list[str] = []
        for i in range(start, stop):
            if i > start and self._places[i - 1][1] < self._places[i][0]:
                pieces.append(" ")
            pieces.append(self._text[slice(*self._places[i])])
        return "".join(pieces)

    def name(self) -> tuple[str, str]:
        """Pass an identifier; return it as written and as DataFusion folds it."""
        if self.at >= self.count:
            raise self._unexpected("a name")
        written = self.piece(self.at, self.at + 1)
        is_quoted = written.startswith('"')
        if not is_quoted and not re.fullmatch(r"[^\W\d][\w$]*", written):
            raise self._unexpected("a name")
        self.at += 1
        return written, written[1:-1].replace('""', '"') if is_quoted else written.lower()

    def path(self) -> tuple[str, tuple[str, ...]]:
        """Pass a name with qualifiers."""
        names = [self.name()]
        while self.take("."):
            names.append(self.name())
        return ".".join(written for written, _ in names), tuple(folded for _, folded in names)

    def target(self, *ends: str) -> Target:
        """Pass the table of the statement, and its alias up to one of these words."""
        written, parts = self.path()
        alias = ""
        if self.take("AS") or (ends and self.at < self.count and self.next() not in ends):
            alias, _ = self.name()
        return Target(written, parts, alias)

    def bracket(self) -> None:
        """Pass a bracket with all that is in it; `opened` is its place then."""
        self.opened = self.at
        level = self._depths[self.at] if self.at < self.count else 0
        self.need("(")
        while self.at < self.count and self._depths[self.at] > level:
            self.at += 1
        self.need(")")

    def is_list(self) -> bool:
        """Whether a bracket that holds no query is next."""
        after = self.words[self.at + 1] if self.at + 1 < self.count else ""
        return self.next() == "(" and after not in ("SELECT", "WITH", "VALUES", "(")

    def names(self) -> tuple[str, ...]:
        """Pass names in brackets."""
        self.need("(")
        found = [self.path()[1][-1]]
        while self.take(","):
            found.append(self.path()[1][-1])
        self.need(")")
        return tuple(found)

    def terms(self, stop: int) -> list[tuple[int, int]]:
        """The places of the terms up to a place, which commas outside of brackets separate."""
        level = self._depths[self.at]
        found, start = [], self.at
        for i in range(self.at, stop):
            if self.words[i] == "," and self._depths[i] == level:
                found.append((start, i))
                start = i + 1
        self.at = stop
        return [*found, (start, stop)]

    def assignments(self, stop: int) -> dict[str, str]:
        """Pass `a = x, b = y` up to a place."""
        found: dict[str, str] = {}
        for start, end in self.terms(stop):
            self.at = start
            _, parts = self.path()
            self.need("=")
            if parts[-1] in found:
                raise InvalidInput(f"sql: column {parts[-1]!r} is assigned twice")
            found[parts[-1]] = self.until(end, "a value")
        self.at = stop
        return found

    def where(self, what: str) -> str:
        """Pass the WHERE clause at the end of the statement, if there is one."""
        if not self.take("WHERE"):
            self.end(what)
            return ""
        for words in (("LIMIT",), ("ORDER", "BY"), ("RETURNING",)):
            place = self.find(*words)
            if place < self.count:
                self.at = place
                self.end(what)
        return self.until(self.count, "a condition")

    def _unexpected(self, wanted: str) -> InvalidInput:
        rest = self.piece(self.at, min(self.at + 12, self.count)) or "the end"
        return InvalidInput(f"sql: expected {wanted} at {rest!r}")


def _insert(reader: _Reader) -> Insert:
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
    columns = reader.names() if reader.is_list() else None
    stop = _conflict_clause(reader)
    source = reader.until(stop, "a query")
    plain = reader.piece(0, stop)
    if stop == reader.count:
        return Insert(target, columns, source, on_conflict, plain)
    reader.need("ON", "CONFLICT")
    if on_conflict is OnConflict.REPLACE:
        raise InvalidInput("sql: give OR REPLACE or ON CONFLICT, not both")
    names = reader.names() if reader.next() == "(" else ()
    reader.need("DO")
    if reader.take("NOTHING"):
        reader.end("ON CONFLICT DO NOTHING")
        return Insert(target, columns, source, OnConflict.IGNORE, plain, names)
    reader.need("UPDATE", "SET")
    if not names:
        raise InvalidInput("sql: ON CONFLICT DO UPDATE needs the key: ON CONFLICT (key) DO UPDATE")
    assignments = reader.assignments(reader.find("WHERE"))
    where = reader.where("ON CONFLICT")
    return Insert(target, columns, source, OnConflict.UPDATE, plain, names, assignments, where)


def _conflict_clause(reader: _Reader) -> int:
    """The place of ON CONFLICT at the end; not of a join ON a column or function `conflict`."""
    place = reader.find("ON", "CONFLICT", last=True)
    words = reader.words[place + 2 :]
    if words[:1] == ["("] and ")" in words:
        words = words[words.index(")") + 1 :]
    return place if words[:2] in (["DO", "NOTHING"], ["DO", "UPDATE"]) else reader.count


def _delete(reader: _Reader) -> Delete:
    reader.need("DELETE")
    reader.take("FROM")
    target = reader.target("WHERE", "LIMIT", "ORDER", "RETURNING", "USING")
    return Delete(target, reader.where("DELETE"))


def _update(reader: _Reader) -> Update:
    reader.need("UPDATE")
    target = reader.target("SET")
    reader.need("SET")
    assignments = reader.assignments(reader.find("WHERE"))
    return Update(target, assignments, reader.where("UPDATE"))


def _merge(reader: _Reader) -> Merge:
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
    clauses = []
    while reader.at < reader.count:
        clauses.append(_clause(reader))
    if not clauses:
        raise InvalidInput("sql: MERGE needs a WHEN clause")
    return Merge(target, source, alias, condition, tuple(clauses))


def _source_alias(reader: _Reader, stop: int) -> str:
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
        raise InvalidInput("sql: MERGE needs an alias for its source: USING (query) AS s")
    return default


def _clause(reader: _Reader) -> Clause:
    reader.need("WHEN")
    if reader.take("MATCHED"):
        when = When.MATCHED
    else:
        reader.need("NOT", "MATCHED")
        when = When.NOT_MATCHED
        if reader.take("BY", "SOURCE"):
            when = When.NOT_MATCHED_BY_SOURCE
        else:
            reader.take("BY", "TARGET")
    where = reader.until(reader.find("THEN"), "a condition") if reader.take("AND") else ""
    reader.need("THEN")
    stop = reader.find("WHEN")
    if reader.take("DELETE"):
        if reader.at != stop:
            reader.end("DELETE in MERGE")
        return _fitting(Clause(when, where, None))
    if reader.take("UPDATE", "SET"):
        return _fitting(Clause(when, where, reader.assignments(stop)))
    reader.need("INSERT")
    columns = reader.names() if reader.next() == "(" else None
    reader.need("VALUES")
    return _fitting(Clause(when, where, {}, columns, _values(reader, stop)))


def _values(reader: _Reader, stop: int) -> tuple[str, ...]:
    """Pass the values of an INSERT clause, in one bracket that closes right before `stop`."""
    reader.bracket()
    if reader.at != stop:
        reader.end("several rows in INSERT of MERGE")
    reader.at = start = reader.opened + 1
    values = tuple(reader.piece(*place) for place in reader.terms(stop - 1))
    if start == stop - 1:
        raise InvalidInput("sql: INSERT in MERGE needs values")
    reader.at = stop
    return values


def _fitting(clause: Clause) -> Clause:
    inserts = bool(clause.positional)
    if inserts is not (clause.when is When.NOT_MATCHED):
        does = "INSERT" if inserts else "UPDATE or DELETE"
        raise InvalidInput(f"sql: WHEN {clause.when.value.upper()} cannot {does}")
    return clause


def _create(reader: _Reader) -> CreateTable | None:
    reader.need("CREATE")
    replaces = reader.take("OR", "REPLACE")
    if not reader.take("TABLE"):
        return None
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    written, parts = reader.path()
    key: tuple[str, ...] = ()
    if reader.take("(", "PRIMARY", "KEY"):
        key = reader.names()
        reader.need(")")
    query = reader.piece(reader.at, reader.count) if reader.take("AS") else None
    return CreateTable(Target(written, parts), query, key, if_not_exists, replaces)


def _drop(reader: _Reader) -> DropTable | None:
    reader.need("DROP")
    if not reader.take("TABLE"):
        return None
    if_exists = reader.take("IF", "EXISTS")
    target = Target(*reader.path())
    reader.end("DROP TABLE")
    return DropTable(target, if_exists)
