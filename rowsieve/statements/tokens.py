"""A cursor over the tokens of a SQL statement, to cut it into names and clauses of SQL text.

Soundness: a clause is a run of tokens with balanced brackets, without comments. Unknown tokens
between two clauses are an error, never skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rowsieve.bridges.sql.dialects import DATAFUSION, Dialect
from rowsieve.errors import InvalidInput, UnsupportedOperation

_QUOTES: Final = frozenset('"`')
_MARKS: Final = frozenset("'\"`$")  # of a literal, or of a name that may have spaces
_BEFORE: Final = "x "  # so that PREPARE is not first: sqlglot would make the rest one token
_OPENS: Final = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


@dataclass(frozen=True, slots=True)
class Target:
    """The table that a statement changes: its name as written, its folded parts, its alias.

    `start` is its place in the text.
    """

    name: str
    parts: tuple[str, ...]
    alias: str = ""
    start: int = field(default=0, compare=False)

    @property
    def relation(self) -> str:
        """The table in a FROM clause."""
        return f"{self.name} AS {self.alias}" if self.alias else self.name

    @property
    def qualifier(self) -> str:
        """The qualifier of the table's columns: its alias, or the last part of its name."""
        return self.alias or quoted(self.parts[-1])


def tokens_of(
    text: str, *, folds: bool = True, dialect: Dialect = DATAFUSION
) -> StatementTokens | None:
    """Tokenize a statement; None if the text is not a single statement.

    `folds`: unquoted names are folded to lower case.
    """
    import sqlglot  # noqa: PLC0415 - it takes 0.1 s to import

    whole = _BEFORE + _without_carriage_returns(text)
    try:
        tokens = list(sqlglot.tokenize(whole, read=dialect.grammar))[1:]
    except sqlglot.TokenError:
        return None  # the engine reports the error
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    places = [place for token in tokens for place in _places(whole, token)]
    before = len(_BEFORE)
    shifted = [(start - before, stop - before) for start, stop in places]
    statement = StatementTokens(text, shifted, folds=folds)
    return None if ";" in statement.words else statement


def has_several(text: str) -> bool:
    """Return whether a text has more than one statement."""
    import sqlglot  # noqa: PLC0415 - it takes 0.1 s to import

    try:
        tokens = sqlglot.tokenize(_without_carriage_returns(text), read=DATAFUSION.grammar)
    except sqlglot.TokenError:
        return False
    is_end = [token.token_type is sqlglot.TokenType.SEMICOLON for token in tokens]
    statements = [place for place, ends in enumerate(is_end) if not ends]
    return bool(statements) and any(is_end[statements[0] : statements[-1]])


def words_of(text: str) -> frozenset[str]:
    """The keywords and names in a clause, in lower case."""
    import sqlglot  # noqa: PLC0415 - it takes 0.1 s to import

    return frozenset(
        token.text.lower()
        for token in sqlglot.tokenize(_without_carriage_returns(text), read=DATAFUSION.grammar)
    )


def quoted(name: str) -> str:
    """The name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def folded(written: str) -> str:
    """Fold an identifier as DataFusion does: without quotes to lower case."""
    if (quote := written[:1]) in _QUOTES:
        return written[1:-1].replace(quote * 2, quote)
    return written.lower()


def quoted_path(names: Iterable[str]) -> str:
    """The names as one qualified identifier."""
    return ".".join(map(quoted, names))


def _without_carriage_returns(text: str) -> str:
    """Replace carriage returns by spaces, which keeps all positions.

    In sqlglot, a carriage return ends a comment; in DataFusion, only a line feed does.
    """
    return text.replace("\r", " ")


def _places(text: str, token: Any) -> list[tuple[int, int]]:
    """The ranges of a token's words in the text: sqlglot makes one token of `PRIMARY KEY`."""
    written = text[token.start : token.end + 1]
    if any(mark in written for mark in _MARKS):
        return [(token.start, token.end + 1)]
    words = re.finditer(r"\S+", written)
    return [(token.start + word.start(), token.start + word.end()) for word in words]


class StatementTokens:
    """The tokens of a statement, and the position `at` of the next one.

    `words` has a token in upper case; empty for quoted names and string literals.
    """

    def __init__(self, text: str, places: Sequence[tuple[int, int]], *, folds: bool = True) -> None:
        self._text = text
        self._folds = folds
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
        return "" if any(mark in written for mark in _MARKS) else written.upper()

    @property
    def count(self) -> int:
        """The number of tokens."""
        return len(self._places)

    @property
    def whole(self) -> str:
        """The text of all tokens, without comments."""
        return self.piece(0, self.count)

    @property
    def start(self) -> int:
        """The place of the next token in the text."""
        return self._places[self.at][0] if self.at < self.count else len(self._text)

    def next(self) -> str:
        """The next word; empty at the end."""
        return self.words[self.at] if self.at < self.count else ""

    def take(self, *words: str) -> bool:
        """Consume these words if they are next; return whether they were."""
        if tuple(self.words[self.at : self.at + len(words)]) != words:
            return False
        self.at += len(words)
        return True

    def need(self, *words: str) -> None:
        """Consume these words; InvalidInput if others are next."""
        if not self.take(*words):
            raise self._unexpected(" ".join(words))

    def end(self, what: str) -> None:
        """Raise UnsupportedOperation unless all tokens are consumed."""
        if self.at < self.count:
            rest = self.piece(self.at, self.count)
            raise UnsupportedOperation(
                f"sql: {what} with {rest[:80]!r} is not available; leave it out"
            )

    def find(self, *words: str, last: bool = False) -> int:
        """The position of the next such words outside of brackets and CASE; the end if none."""
        places = self.all(*words)
        return (places[-1] if last else places[0]) if places else self.count

    def all(self, *words: str) -> list[int]:
        """The positions of all such words from here on, outside of brackets and CASE."""
        return [
            i
            for i in range(self.at, self.count - len(words) + 1)
            if self._depths[i] == 0 and tuple(self.words[i : i + len(words)]) == words
        ]

    def until(self, stop: int, what: str) -> str:
        """Consume the text up to `stop`, which must not be empty and have balanced brackets."""
        piece = self.piece(self.at, stop)
        depths = self._depths[self.at : stop + 1]
        if not piece or depths[0] or min(depths) < 0 or (stop < self.count and depths[-1]):
            raise self._unexpected(what)
        self.at = stop
        return piece

    def piece(self, start: int, stop: int) -> str:
        """The text of the tokens in `[start, stop)`, without comments."""
        pieces: list[str] = []
        for i in range(start, stop):
            if i > start and self._places[i - 1][1] < self._places[i][0]:
                pieces.append(" ")
            pieces.append(self._text[slice(*self._places[i])])
        return "".join(pieces)

    def name(self) -> tuple[str, str]:
        """Consume an identifier; return it as written and as DataFusion folds it."""
        if self.at >= self.count:
            raise self._unexpected("a name")
        written = self.piece(self.at, self.at + 1)
        is_quoted = written[:1] in _QUOTES
        if not is_quoted and not re.fullmatch(r"[^\W\d][\w$]*", written):
            raise self._unexpected("a name")
        self.at += 1
        return written, folded(written) if is_quoted or self._folds else written

    def path(self) -> tuple[str, tuple[str, ...]]:
        """Consume a qualified name; return it as written, and its folded parts."""
        names = [self.name()]
        while self.take("."):
            names.append(self.name())
        return ".".join(written for written, _ in names), tuple(folded for _, folded in names)

    def target(self, *ends: str) -> Target:
        """Consume the table of the statement and its alias; one of `ends` may follow."""
        start = self.start
        written, parts = self.path()
        alias = ""
        if self.take("AS") or (ends and self.at < self.count and self.next() not in ends):
            alias, _ = self.name()
        return Target(written, parts, alias, start)

    def bracket(self) -> None:
        """Consume a pair of brackets with its content; sets `opened` to its position."""
        self.opened = self.at
        level = self._depths[self.at] if self.at < self.count else 0
        self.need("(")
        while self.at < self.count and self._depths[self.at] > level:
            self.at += 1
        self.need(")")

    def is_list(self) -> bool:
        """Return whether a pair of brackets is next that does not contain a query."""
        after = self.words[self.at + 1] if self.at + 1 < self.count else ""
        return self.next() == "(" and after not in ("SELECT", "WITH", "VALUES", "TABLE", "(")

    def names(self) -> tuple[str, ...]:
        """Consume a list of names in brackets; return their last parts."""
        self.need("(")
        names = [self.path()[1][-1]]
        while self.take(","):
            names.append(self.path()[1][-1])
        self.need(")")
        return tuple(names)

    def terms(self, stop: int) -> list[tuple[int, int]]:
        """Consume terms up to `stop`, separated by commas; return the range of each."""
        level = self._depths[self.at] if self.at < stop else 0
        ranges, start = [], self.at
        for i in range(self.at, stop):
            if self.words[i] == "," and self._depths[i] == level:
                ranges.append((start, i))
                start = i + 1
        self.at = stop
        return [*ranges, (start, stop)]

    def assignments(self, stop: int) -> dict[str, str]:
        """Consume `a = x, (b, c) = (y, z)` up to `stop`; return the texts by column."""
        texts: dict[str, str] = {}
        for start, end in self.terms(stop):
            self.at = start
            names = self.names() if self.next() == "(" else (self.path()[1][-1],)
            is_row = self.at > start and self.words[self.at - 1] == ")"
            self.need("=")
            values = self._row(end, len(names)) if is_row else [self.until(end, "a value")]
            for name, value in zip(names, values, strict=True):
                if name in texts:
                    raise InvalidInput(f"sql: column {name!r} is assigned twice; keep one value")
                texts[name] = value
        self.at = stop
        return texts

    def _row(self, stop: int, count: int) -> list[str]:
        """Consume `(x, y)` or `ROW (x, y)` up to `stop`: `count` values."""
        start, is_list = self.at, self.take("ROW") or self.is_list() or self._is_nested(stop)
        if not is_list:
            shown = self.piece(start, stop)
            raise UnsupportedOperation(
                f"sql: several columns cannot be assigned from {shown[:60]!r}; give a value in "
                "brackets for each, or join the query as a source, as in UPDATE … FROM (…) AS s"
            )
        self.bracket()
        if self.at != stop:
            raise self._unexpected("the end of the values")
        self.at = self.opened + 1
        values = [self.piece(*each) for each in self.terms(stop - 1)]
        if len(values) != count or not all(values):
            raise InvalidInput(f"sql: {len(values)} values for {count} columns; give one for each")
        self.at = stop
        return values

    def _is_nested(self, stop: int) -> bool:
        """Return whether brackets that are next begin with brackets and have several terms."""
        if self.words[self.at : self.at + 2] != ["(", "("]:
            return False
        level = self._depths[self.at] + 1
        places = range(self.at, stop)
        return any(self.words[i] == "," and self._depths[i] == level for i in places)

    def cut(self, place: int) -> str:
        """Remove the tokens from `place` on; return their text."""
        rest = self.piece(place, self.count)
        self._places = self._places[:place]
        del self.words[place:], self._depths[place:]
        return rest

    def where(self, what: str) -> str:
        """Consume the final WHERE clause; empty if there is none."""
        if not self.take("WHERE"):
            self.end(what)
            return ""
        for words in (("LIMIT",), ("ORDER", "BY")):
            place = self.find(*words)
            if place < self.count:
                self.at = place
                self.end(what)
        return self.until(self.count, "a condition")

    def _unexpected(self, wanted: str) -> InvalidInput:
        rest = self.piece(self.at, min(self.at + 12, self.count)) or "the end"
        return InvalidInput(f"sql: expected {wanted} at {rest!r}")
