"""The rows that benchmarks load and change: made from a seed, the same on every machine.

Five columns: int64 key, float64, int64, short text with 1,000 distinct values, timestamp that grows
with the key. Keys are even, so that half of the key space is free for rows that are new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

KEY = "id"
PLACES = 1_000
START_US = 1_700_000_000_000_000


def rows(count: int, seed: int = 1) -> pa.Table:
    """`count` rows in key order."""
    return rows_of(np.arange(count, dtype=np.int64) * 2, seed)


def rows_of(keys: npt.NDArray[np.int64], seed: int) -> pa.Table:
    """One row per key, in the order of the keys given."""
    rng = np.random.default_rng(seed)
    count = len(keys)
    places = pa.array([f"place-{i:04d}" for i in range(PLACES)])
    return pa.table(
        {
            KEY: pa.array(keys),
            "value": pa.array(rng.normal(size=count)),
            "quantity": pa.array(rng.integers(0, 10_000, count)),
            "place": places.take(pa.array(rng.integers(0, PLACES, count))),
            "at": pa.array(
                START_US + keys * 500_000 + rng.integers(0, 1_000_000, count), pa.timestamp("us")
            ),
        }
    )


def changes(base_rows: int, count: int, seed: int) -> pa.Table:
    """New versions of `count` random rows of `rows(base_rows)`, in random order."""
    keys = np.random.default_rng([seed, base_rows]).choice(base_rows, count, replace=False)
    return rows_of(keys.astype(np.int64) * 2, seed + 1_000)


def replaced(base: pa.Table, changed: pa.Table) -> pa.Table:
    """What upserting `changed` into `base` gives: both by key, `changed` wins; in key order."""
    gone = np.isin(base.column(KEY).to_numpy(), changed.column(KEY).to_numpy())
    kept = base.filter(pa.array(~gone))
    return pa.concat_tables([kept, changed]).sort_by(KEY).combine_chunks()


def same_rows(found: Any, expected: pa.Table) -> bool:
    """Whether a result holds exactly these rows, whatever their order and text encoding."""
    table = pa.table(found) if not isinstance(found, pa.Table) else found
    if table.num_rows != expected.num_rows:
        return False
    table = table.select(expected.column_names).cast(expected.schema)
    return bool(table.sort_by(KEY).equals(expected))


def digest(table: Any) -> dict[str, int]:
    """Row count and exact sums, which any engine can give."""
    return {
        "n": int(table.num_rows),
        "ids": int(pc.sum(table.column(KEY)).as_py() or 0),
        "quantities": int(pc.sum(table.column("quantity")).as_py() or 0),
    }


DIGEST_SQL = "SELECT count(*) AS n, sum(id) AS ids, sum(quantity) AS quantities FROM {table}"


def as_ints(rows_found: Sequence[dict[str, Any]]) -> dict[str, int]:
    """The only row of a `DIGEST_SQL` result; engines differ in the type of their sums."""
    (row,) = rows_found
    return {name: int(value) for name, value in row.items()}
