"""Adds a row to the result of EXPLAIN: the parts of our tables that the statement reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import datafusion
import pyarrow as pa

from rowsieve.predicate.ir import TRUE

if TYPE_CHECKING:
    from rowsieve.providers.datafusion.hybrid_table import HybridTable
    from rowsieve.providers.datafusion.own_table import OwnTable


def explained(
    frame: datafusion.DataFrame,
    named: Mapping[str, OwnTable],
    chosen: Mapping[str, frozenset[str]],
    hybrids: Mapping[str, HybridTable],
) -> pa.Table:
    """The result of EXPLAIN, plus a row with the versions and the numbers of parts to read."""
    plans = frame.to_arrow_table()
    lines = []
    for name, own in named.items():
        total = len(own.read_parts(TRUE))
        count = len(chosen[name]) if name in chosen else total
        version = own.snapshot.version
        line = f"{own.given_name}: version {version}, conditions leave {count:,} of {total:,} parts"
        if name in hybrids:
            hybrid = hybrids[name]
            line += f"; DataFusion's own reader reads {hybrid.native_parts:,}"
            if hybrid.bitmap_parts:
                line += f", and {hybrid.bitmap_parts:,} without their hidden rows"
        lines.append(line)
    row = {"plan_type": ["rowsieve"], "plan": ["\n".join(lines)]}
    if plans.schema.names != list(row):
        return plans
    return pa.concat_tables([plans, pa.table(row).cast(plans.schema)])
