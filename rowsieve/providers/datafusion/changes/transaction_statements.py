"""Runs `BEGIN`, `COMMIT` and the like in our session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import datafusion

from rowsieve.providers.datafusion.own_table import OwnTable
from rowsieve.providers.datafusion.session.own_session import OwnSession
from rowsieve.providers.datafusion.session_settings import IDENTIFIERS
from rowsieve.statements.parse_statement import Statement
from rowsieve.statements.refused import Refused
from rowsieve.statements.transaction_control import CONTROL_VERBS


def is_control(statement: Statement) -> bool:
    """Return whether a statement is one of transactions, which only our session runs."""
    return isinstance(statement, Refused) and statement.verb in CONTROL_VERBS


def control(
    session: OwnSession, query: str, options: Any, tables: Sequence[OwnTable]
) -> datafusion.DataFrame:
    """Run BEGIN, COMMIT or the like; the result of COMMIT is the number of its version."""
    plan = datafusion.SessionContext.sql
    if options is not None:
        plan(session, "COMMIT", options)  # DataFusion knows whether they allow it
    with session.planning():
        try:
            folds = session.setting(IDENTIFIERS) != "false"
            version = session.transactions.run(query, folds=folds)
        finally:
            for own in tables:
                session.transactions.leave(own)
    number = "NULL" if version is None else str(version)
    return plan(session, f"SELECT arrow_cast({number}, 'Int64') AS version")
