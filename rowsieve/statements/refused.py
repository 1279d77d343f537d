"""Statements of other systems that no engine here runs, each with what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rowsieve.errors import UnsupportedOperation


@dataclass(frozen=True, slots=True)
class Refused:
    """A statement by its first word, such as VACUUM."""

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
    **dict.fromkeys(_OF_TRANSACTIONS, _COMMITS),
}
"""By the first word of the statement."""


def refused(verb: str) -> Refused | None:
    """The refusal of a statement with this first word; None for other statements."""
    instead = REFUSED.get(verb)
    return None if instead is None else Refused(verb, instead)
