"""A change stream lands in a table, twice, and counts once: `python examples/change_stream.py`."""

from __future__ import annotations

import pyarrow as pa

import rowsieve as rs

ORDERS = pa.schema([("id", pa.int64()), ("status", pa.string()), ("cents", pa.int64())])

BATCHES: list[list[tuple[object, ...]]] = [
    [(1, "open", 500, "c", 1), (2, "open", 700, "c", 2), (1, "paid", 500, "u", 3)],
    [(3, "open", 900, "c", 4), (2, None, None, "d", 5)],
]


def as_table(changes: list[tuple[object, ...]]) -> pa.Table:
    """The changes with what was done (`op`) and in which order (`lsn`)."""
    names = [*ORDERS.names, "op", "lsn"]
    types = [*ORDERS.types, pa.string(), pa.int64()]
    columns = [
        pa.array(values, type_)
        for values, type_ in zip(zip(*changes, strict=True), types, strict=True)
    ]
    return pa.table(columns, names=names)


def main() -> None:
    """Apply every batch twice, as a loader that was restarted would."""
    orders = rs.create_table("orders", ORDERS, key=["id"])
    for number, changes in enumerate([*BATCHES, *BATCHES]):
        batch = number % len(BATCHES)
        commit = orders.apply_changes(
            as_table(changes), op="op", sequence="lsn", token=("orders-loader", batch)
        )
        print(f"batch {batch}: version {commit.version}")
    for row in orders.scan(order_by_key=True).to_arrow().to_pylist():
        print(row)


if __name__ == "__main__":
    main()
