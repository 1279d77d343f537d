"""Statements and clauses of other systems that no engine here runs, each with the way out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from rowsieve.errors import UnsupportedOperation
from rowsieve.statements.comments import blanked
from rowsieve.statements.tokens import StatementTokens

BEFORE_COLUMN: Final = frozenset(
    {
        *("SELECT", "DISTINCT", "ALL", "WHERE", "ON", "HAVING", "BY", "SET", "AND", "OR", "NOT"),
        *("IN", "BETWEEN", "LIKE", "FROM", "JOIN", "INTO", "UPDATE", "AS"),
        *(",", ".", "=", "<>", "!=", "<", ">", "<=", ">=", "+", "-", "/", "%", "||"),
    }
)
"""Words after which RETURNING and LIMIT are names of columns or tables."""

_HAS_VALUES: Final = frozenset({"INSERT", "REPLACE", "UPDATE", "MERGE"})
_BEFORE_VALUE: Final = frozenset({"(", ",", "="})
_AFTER_VALUE: Final = frozenset({")", ",", "WHERE", "WHEN", ""})


@dataclass(frozen=True, slots=True)
class Refused:
    """A statement by its first words, such as VACUUM or CREATE INDEX."""

    verb: str
    instead: str

    @property
    def is_of_transactions(self) -> bool:
        """True for statements that begin, mark or end a transaction."""
        return self.verb in _OF_TRANSACTIONS

    @property
    def error(self) -> UnsupportedOperation:
        """The error that names the statement and the way out."""
        return UnsupportedOperation(f"sql: {self.verb} is not available: {self.instead}")


_BEGINS_AND_ENDS: Final = ("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT")
_OF_TRANSACTIONS: Final = (*_BEGINS_AND_ENDS, "SAVEPOINT", "RELEASE")
_COMMITS: Final = (
    "each statement here is a transaction of its own. Transactions of several statements are open "
    "in rowsieve.providers.datafusion.SessionContext, and by the method transaction of a table "
    "or database"
)
_FILES: Final = (
    "a table gives back the files that no version needs by its method vacuum, or by CALL "
    "system.vacuum in a catalog"
)
_INDEXES: Final = (
    "the bounds and Bloom filters of each part take the place of an index; keep rows that are read "
    "together in the same parts by a key, or by the property cluster_by"
)
_RIGHTS: Final = "who may read and write a table is decided by the store that holds its files"
_CHANGES: Final = "the method changes of a table returns the rows that each commit changed"
_LOCKS: Final = "no commit waits for another: one that conflicts raises CommitConflict; repeat it"
REFUSED: Final[Mapping[str, str]] = {
    "VACUUM": _FILES,
    "OPTIMIZE": (
        "a table is rewritten by its method compact, or by CALL system.rewrite_data_files in a "
        "catalog"
    ),
    "ANALYZE": (
        "statistics are collected when rows are written, and again by the method analyze, or by "
        "CALL system.analyze in a catalog"
    ),
    "RESTORE": (
        "a table returns to a version by its method restore, or by CALL "
        "system.rollback_to_snapshot in a catalog"
    ),
    "REFRESH": "each statement reads the newest version of each table",
    **dict.fromkeys(("CREATE INDEX", "CREATE UNIQUE INDEX", "DROP INDEX", "ALTER INDEX"), _INDEXES),
    "REINDEX": _INDEXES,
    **dict.fromkeys(("GRANT", "REVOKE", "CREATE ROLE", "CREATE USER", "CREATE POLICY"), _RIGHTS),
    **dict.fromkeys(("CREATE TRIGGER", "DROP TRIGGER", "LISTEN", "NOTIFY"), _CHANGES),
    **dict.fromkeys(("LOCK", "UNLOCK"), _LOCKS),
    "SHOW CREATE": (
        "DESCRIBE shows the columns of a table, and the command inspect its key and properties, too"
    ),
    "COMMENT": "the comment of a column is set by the method set_comment of its table",
    **dict.fromkeys(_OF_TRANSACTIONS, _COMMITS),
}
"""By the first words of the statement."""
_FIRST: Final = frozenset(words.split()[0] for words in REFUSED)
_LONGEST: Final = max(len(words.split()) for words in REFUSED)
_WORD: Final = re.compile(r"\w+")


def refused(verb: str, text: str) -> Refused | None:
    """The refusal of a statement, which begins with this word; None for other statements."""
    if verb not in _FIRST:
        return None
    words = [word[0].upper() for word in islice(_WORD.finditer(blanked(text)), _LONGEST)]
    for count in range(len(words), 0, -1):
        begin = " ".join(words[:count])
        if (instead := REFUSED.get(begin)) is not None:
            return Refused(begin, instead)
    return None


def check_clauses(reader: StatementTokens) -> None:
    """Raise UnsupportedOperation for a clause of another system's grammar."""
    for what, instead in _refused(reader):
        raise UnsupportedOperation(f"sql: {what} is not available for a Rowsieve table{instead}")


def _refused(reader: StatementTokens) -> Iterator[tuple[str, str]]:
    words = reader.words
    if reader.find("DEFAULT", "VALUES") < reader.count:
        yield "DEFAULT VALUES", "; name the columns that have values, the others get their defaults"
    if words[0] in _HAS_VALUES and any(_is_value(words, i) for i in range(1, reader.count)):
        yield (
            "DEFAULT as a value",
            ': leave the column out of an INSERT; a column of that name is written "default"',
        )
    if words[0] == "UPDATE":
        limited = min(reader.find("ORDER", "BY"), reader.find("LIMIT"))
        if limited < reader.count and words[limited - 1] not in BEFORE_COLUMN:
            yield f"UPDATE with {words[limited]}", "; choose the rows by a condition"


def _is_value(words: list[str], place: int) -> bool:
    after = words[place + 1] if place + 1 < len(words) else ""
    return words[place] == "DEFAULT" and words[place - 1] in _BEFORE_VALUE and after in _AFTER_VALUE
