"""Reads `BEGIN`, `COMMIT`, `ROLLBACK`, `SAVEPOINT` and `RELEASE`, as PostgreSQL writes them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.statements.tokens import StatementTokens, tokens_of

IsolationName: TypeAlias = Literal["serializable", "snapshot"]

CONTROL_VERBS: Final = frozenset(
    {"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"}
)
_LEVELS: Final[tuple[tuple[tuple[str, ...], IsolationName], ...]] = (
    (("SERIALIZABLE",), "serializable"),
    (("REPEATABLE", "READ"), "snapshot"),
    (("SNAPSHOT",), "snapshot"),
)


class ControlAction(Enum):
    """What a statement does to the transaction."""

    BEGIN = "BEGIN"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    SAVEPOINT = "SAVEPOINT"
    ROLLBACK_TO = "ROLLBACK TO"
    RELEASE = "RELEASE"


@dataclass(frozen=True, slots=True)
class TransactionControl:
    """One statement. `name`: of the savepoint. `isolation`: of BEGIN, None if it names none."""

    action: ControlAction
    name: str = ""
    isolation: IsolationName | None = None


def read_transaction_control(verb: str, text: str, *, folds: bool = True) -> TransactionControl:
    """Read a statement whose first word is one of `CONTROL_VERBS`; InvalidInput if it is none."""
    tokens = tokens_of(text, folds=folds)
    if tokens is None or not tokens.take(verb):
        raise InvalidInput(f"sql: {verb} must be a statement of its own; give one statement")
    control = _read(verb, tokens)
    tokens.end(verb)
    return control


def _read(verb: str, tokens: StatementTokens) -> TransactionControl:
    match verb:
        case "SAVEPOINT":
            return TransactionControl(ControlAction.SAVEPOINT, tokens.name()[1])
        case "RELEASE":
            tokens.take("SAVEPOINT")
            return TransactionControl(ControlAction.RELEASE, tokens.name()[1])
        case "START":
            tokens.need("TRANSACTION")
            return TransactionControl(ControlAction.BEGIN, isolation=_isolation(tokens))
    _ = tokens.take("WORK") or tokens.take("TRANSACTION")
    match verb:
        case "BEGIN":
            return TransactionControl(ControlAction.BEGIN, isolation=_isolation(tokens))
        case "COMMIT" | "END":
            return TransactionControl(ControlAction.COMMIT)
    if tokens.take("TO"):
        tokens.take("SAVEPOINT")
        return TransactionControl(ControlAction.ROLLBACK_TO, tokens.name()[1])
    return TransactionControl(ControlAction.ROLLBACK)


def _isolation(tokens: StatementTokens) -> IsolationName | None:
    """Consume `ISOLATION LEVEL …`; a level that would promise less than snapshot is refused."""
    if not tokens.take("ISOLATION", "LEVEL"):
        return None
    for words, level in _LEVELS:
        if tokens.take(*words):
            return level
    written = " ".join(tokens.words[tokens.at : tokens.at + 2])
    raise UnsupportedOperation(
        f"sql: ISOLATION LEVEL {written} is not available; write SERIALIZABLE, or REPEATABLE READ "
        "for snapshot isolation"
    )
