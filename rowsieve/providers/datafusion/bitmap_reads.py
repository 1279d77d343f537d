"""Chooses the tables whose parts with hidden rows DataFusion scans for a statement.

Soundness: `plan_checks` says which statements allow it. The answer here only decides who reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rowsieve.providers.datafusion.plan_checks import facts_of

if TYPE_CHECKING:
    import datafusion

    from rowsieve.providers.datafusion.hybrid_table import HybridTable
    from rowsieve.providers.datafusion.own_table import OwnTable


def bitmap_hybrids(
    context: datafusion.SessionContext,
    named: Mapping[str, OwnTable],
    chosen: Mapping[str, frozenset[str]],
    frame: datafusion.DataFrame,
    target_partitions: int,
) -> dict[str, HybridTable]:
    """What to register for the tables of a statement whose hidden rows DataFusion leaves out.

    `frame` is the statement as our dataset reads these tables. None of them if the dataset reads
    less: it skips pages by conditions on the first column of a key, and it stops at a LIMIT without
    an order before it has found all hidden rows.
    """
    asked = {name: own for name, own in named.items() if own.has_other_parts(chosen.get(name))}
    if not asked:
        return {}
    facts = facts_of(frame.optimized_logical_plan())
    if not facts.is_total or facts.has_limit:
        return {}
    if any(facts.columns.intersection(own.snapshot.table.key[:1]) for own in asked.values()):
        return {}
    found = {}
    for name, own in asked.items():
        part_ids = chosen.get(name)
        if visible := own.visible_rows(part_ids):
            hybrid = own.hybrid(context, part_ids, target_partitions, visible)
            if hybrid is not None:
                found[name] = hybrid
    return found
