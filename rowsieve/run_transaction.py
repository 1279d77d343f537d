"""Runs a function in a transaction, again after each conflict, until it commits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rowsieve.arguments import checked
from rowsieve.arguments.annotations import Metadata, RetryTimeout, Token
from rowsieve.database.database import Database
from rowsieve.errors import CommitConflict, SnapshotExpired
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S, Retries
from rowsieve.table import Table
from rowsieve.transactions.transaction_methods import IsolationName


@checked
def run_transaction(
    function: Callable[[Any], Any],
    table: Table | Database,
    *,
    isolation: IsolationName | None = None,
    token: Token | None = None,
    metadata: Metadata | None = None,
    retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
) -> Any:
    """Call `function` with a transaction and commit; again after a conflict. Return its result.

    Each attempt begins with the newest version, after a random pause that grows; CommitConflict
    when `retry_timeout_s` seconds have passed. The function may run several times, so it should
    have no other effects. If it raises, the transaction is rolled back. With a `token` that was
    committed already, the function is not called and the result is None. In place of the table may
    be a database, whose transaction the function gets; with a token that was committed, it is
    called, and changes nothing in the tables that have the token.
    """
    if (
        token is not None
        and isinstance(table, Table)
        and table.handle.committed_before(token) is not None
    ):
        return None
    retries = Retries("transaction", retry_timeout_s)
    while True:
        try:
            with table.transaction(isolation=isolation, token=token, metadata=metadata) as tx:
                result = function(tx)
        except (CommitConflict, SnapshotExpired) as error:
            retries.wait(error)
        else:
            return result
