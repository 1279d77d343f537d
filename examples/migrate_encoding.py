"""Opaque bytes become columns under live data, and every step is compared: a minute.

`python examples/migrate_encoding.py`
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import rowsieve as rs

READINGS = 20_000
QUESTION = "city = 'Bergen' AND degrees < -15"
STEPS: dict[str, dict[str, Any]] = {
    "bytes": {"write_encoding": "codec"},
    "both": {"write_encoding": "both"},
    "shadow": {"read_encoding": "shadow", "on_encoding_difference": "raise"},
    "columns": {"read_encoding": "columns"},
    "no codec": {"write_encoding": "columns"},
}


def readings(first: int, count: int) -> pa.Table:
    """Readings of two cities."""
    ids = range(first, first + count)
    return pa.table(
        {
            "id": list(ids),
            "city": ["Bergen" if n % 2 else "Oslo" for n in ids],
            "degrees": [n % 40 - 20 for n in ids],
        }
    )


def walk(table: rs.Table, steps: list[str]) -> None:
    """Take the steps one by one; others write and read meanwhile."""
    for step in steps:
        table.set_properties(STEPS[step])
        table.upsert(readings(table.count(), 10))
        table.compact()
        scan = table.scan(QUESTION)
        rows, read = scan.to_arrow().num_rows, scan.metrics
        size = table.detail()["size_bytes"]
        print(
            f"{step:9} {rows:5} rows {size:9,} bytes stored {read.bytes_read:9,} read "
            f"{read.rows_shadowed:6,} compared {read.encoding_differences} differ"
        )


def main() -> None:
    """There, and back again."""
    table = rs.create_table(
        "readings", readings(0, READINGS), key=["id"], properties={"row_codec": "msgpack"}
    )
    walk(table, [*STEPS])
    walk(table, ["both", "shadow", "columns", "bytes"])


if __name__ == "__main__":
    main()
