"""Generates the rows that benchmarks load and change: from a seed, the same on every machine.

Five columns: int64 key, float64, int64, short text with 1,000 distinct values, timestamp that grows
with the key. Three more for wider rows: float64, a short number, boolean. Keys are even, so that
half of the key space is free for rows that are new.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

KEY = "id"
FILES = {"inline_bytes": 0}  # properties of tables whose files are counted
PLACES = 1_000
START_US = 1_700_000_000_000_000
ROW_GROUP_ROWS = 65_536  # for every system with a setting for it
COLUMNS = ("id", "value", "quantity", "place", "at")
WIDE = (*COLUMNS, "price", "grade", "flag")


def rows(count: int, seed: int = 1) -> pa.Table:
    """`count` rows in key order."""
    return rows_of(np.arange(count, dtype=np.int64) * 2, seed)


def rows_of(keys: npt.NDArray[np.int64], seed: int, *, wide: bool = False) -> pa.Table:
    """One row per key, in the order of `keys`."""
    rng = np.random.default_rng(seed)
    count = len(keys)
    places = pa.array([f"place-{i:04d}" for i in range(PLACES)])
    narrow = pa.table(
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
    if not wide:
        return narrow
    more = {
        "price": pa.array(np.round(rng.random(count) * 1_000, 2)),
        "grade": pa.array(rng.integers(0, 100, count)),
        "flag": pa.array(rng.random(count) < 0.5),
    }
    return pa.table({**dict(zip(COLUMNS, narrow.columns, strict=True)), **more})


def changes(base_rows: int, count: int, seed: int) -> pa.Table:
    """New versions of `count` random rows of `rows(base_rows)`, in random order."""
    keys = np.random.default_rng([seed, base_rows]).choice(base_rows, count, replace=False)
    return rows_of(keys.astype(np.int64) * 2, seed + 1_000)


def replaced(base: pa.Table, changed: pa.Table) -> pa.Table:
    """The rows after upserting `changed` into `base`: `changed` wins; in key order."""
    gone = np.isin(base.column(KEY).to_numpy(), changed.column(KEY).to_numpy())
    kept = base.filter(pa.array(~gone))
    return pa.concat_tables([kept, changed]).sort_by(KEY).combine_chunks()


def same_rows(found: Any, expected: pa.Table) -> bool:
    """Whether a result has exactly these rows, in any order and text encoding."""
    table = pa.table(found) if not isinstance(found, pa.Table) else found
    if table.num_rows != expected.num_rows:
        return False
    table = table.select(expected.column_names).cast(expected.schema)
    return bool(table.sort_by(KEY).equals(expected))


def plain(found: Any) -> pa.Table:
    """Cast text and timestamps to the same Arrow types for every engine."""
    table = found if isinstance(found, pa.Table) else pa.table(found)
    fields = [pa.field(field.name, _plain_type(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def digest(rows_found: pa.Table) -> dict[str, int]:
    """Row count and sums over plain rows: exact, and independent of the order."""
    columns = {name: rows_found.column(name) for name in COLUMNS}
    places = pc.cast(pc.utf8_slice_codeunits(columns["place"], len("place-")), pa.int64())
    return {
        "n": int(rows_found.num_rows),
        "ids": _sum(columns["id"]),
        "quantities": _sum(columns["quantity"]),
        "places": _sum(places),
        "at": _sum(columns["at"].cast(pa.int64())),
        "value_bits": int(columns["value"].to_numpy().view(np.int64).sum()),  # overflow wraps
    }


def _sum(column: pa.ChunkedArray) -> int:
    return int(pc.sum(column).as_py() or 0)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind
