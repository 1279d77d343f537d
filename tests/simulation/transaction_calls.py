"""Transactions of several calls, which read and write, as calls of the simulation."""

from __future__ import annotations

from typing import Any

from rowsieve import Commit
from rowsieve.errors import CommitConflict
from tests.simulation.calls import Actor, Call, operation
from tests.simulation.model import State, draw_condition, table_of
from tests.simulation.writer_calls import GONE, OTHER_COLUMNS


@operation("transactions", keyed=12, unkeyed=12)
def transaction(actor: Actor) -> Call | None:
    """Count the rows of a condition, write rows, update some and delete others, in one commit.

    The effect is that of a serial execution right before the commit, so the count must be right
    there.
    """
    draws, table, notes = actor.draws, actor.table, actor.notes
    if set(table.schema.names) != {"k", "v"}:
        return None
    pairs = actor.pairs(3)
    counted, changed, gone = (draw_condition(draws, actor.keys) for _ in range(3))
    undoes, more = draws.random() < 0.3, draws.randint(1, 3)
    counts: list[int] = []

    def run() -> Commit | None:
        with table.transaction(**notes) as tx:
            counts.append(tx.count(str(counted)))
            (tx.upsert if tx.key else tx.append)(table_of(pairs))
            tx.update({"v": f"v + {more}"}, where=str(changed))
            tx.savepoint("before")
            tx.delete(str(gone))
            if undoes:
                tx.rollback_to("before")
        return tx.committed

    def effect(state: State, versions: object, entry: Any) -> State:
        del versions, entry
        found = len(state.matching(counted))
        assert found in counts, f"counted {counts} rows of {counted}, not {found}"
        state = state.with_rows(pairs)
        rows = {k: dict(row) for k, row in state.rows.items()}
        for key in state.matching(changed):
            value = rows[key]["v"]
            rows[key]["v"] = None if value is None else value + more
        state = State(rows, state.defaults)
        return state if undoes else state.without(state.matching(gone))

    return Call(
        run, effect, (CommitConflict, *GONE, *OTHER_COLUMNS), has_token=actor.token is not None
    )
