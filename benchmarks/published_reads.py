"""DuckDB reads a publication, compared with the same rows in a table that pyiceberg wrote.

    python -m benchmarks.published_reads --rows 2000000

DuckDB's extension for Iceberg comes as packages for one release (`duckdb-extension-iceberg`,
`-avro`), so this runs where they are installed. The answers are compared before they are timed; the
two take turns, and the ratio is that of the least CPU.
"""

from __future__ import annotations

import argparse
import importlib
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import rowsieve as rs
from benchmarks.result import expect

PARTS: Final = 16
BAR: Final = 1.3
QUERIES: Final = {
    "full scan": "SELECT count(*), sum(id), sum(a), sum(b), sum(length(text)) FROM {t}",
    "one column": "SELECT sum(a) FROM {t}",
    "range of 1%": "SELECT count(*), sum(a) FROM {t} WHERE id >= {low} AND id < {high}",
    "group": "SELECT b % 100 AS g, count(*), sum(a) FROM {t} GROUP BY g ORDER BY g",
    "count": "SELECT count(*) FROM {t}",
}


def main() -> None:
    """Print the CPU of each query over both, clean and with 1% of the rows hidden."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    connection = _connection()
    for name, share in (("clean", 0.0), ("1% hidden", 0.01)):
        with tempfile.TemporaryDirectory() as folder:
            places = _places(Path(folder), options.rows, share)
            print(f"{name}, {options.rows:,} rows; load {os.getloadavg()[0]:.1f}")
            for query, text in QUERIES.items():
                print(f"  {query:<12}{_compared(connection, places, text, options)}", flush=True)


def _places(folder: Path, rows: int, share: float) -> dict[str, str]:
    """The metadata of both tables, whose rows are the same."""
    table = rs.create_table(folder / "ours", _rows(np.arange(rows // PARTS), 1), key=["id"])
    for part in range(1, PARTS):
        start = part * (rows // PARTS)
        table.upsert(_rows(np.arange(start, start + rows // PARTS), 1))
    if share:
        keys = np.random.default_rng(2).permutation(rows)[: int(rows * share)]
        table.upsert(_rows(np.sort(keys), 3))
    published = table.publish("iceberg").metadata_location
    module: Any = importlib.import_module("pyiceberg.catalog.sql")
    catalog = module.SqlCatalog("peer", uri="sqlite://", warehouse=f"file://{folder}/theirs")
    catalog.create_namespace("db")
    content = table.scan(order_by_key=True).to_arrow()
    plain = pa.table(content.columns, names=content.column_names)
    theirs = catalog.create_table("db.t", plain.schema)
    size = -(-plain.num_rows // PARTS)
    for start in range(0, plain.num_rows, size):
        theirs.append(plain.slice(start, size))
    location = str(catalog.load_table("db.t").metadata_location)
    return {"pyiceberg": location.removeprefix("file://"), "rowsieve": str(published)}


def _rows(ids: Any, seed: int) -> pa.Table:
    noise = np.random.default_rng(seed + int(ids[0])).integers(0, 10**12, (2, len(ids)))
    text = [f"note {i % 1000}" for i in ids]
    return pa.table({"id": ids, "a": noise[0], "b": noise[1], "text": text})


def _connection() -> Any:
    """DuckDB with the extension, loaded from its packages."""
    duckdb: Any = importlib.import_module("duckdb")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in ("avro", "iceberg"):
        package = importlib.import_module(f"duckdb_extension_{name}")
        (path,) = Path(str(package.__file__)).parent.rglob(f"{name}.duckdb_extension")
        connection.execute(f"LOAD '{path}'")
    return connection


def _compared(connection: Any, places: dict[str, str], text: str, options: Any) -> str:
    low = options.rows // 2
    queries = {
        reader: text.format(t=f"iceberg_scan('{place}')", low=low, high=low + options.rows // 100)
        for reader, place in places.items()
    }
    answers = {reader: connection.execute(query).fetchall() for reader, query in queries.items()}
    expect("rows of the publication", str(answers["rowsieve"]), str(answers["pyiceberg"]))
    least = dict.fromkeys(queries, float("inf"))
    for _ in range(options.repeats):
        for reader, query in queries.items():
            begun = time.process_time()
            connection.execute(query).fetchall()
            least[reader] = min(least[reader], time.process_time() - begun)
    shown = ", ".join(f"{reader} {each * 1e3:.0f} ms" for reader, each in least.items())
    return f"{least['rowsieve'] / least['pyiceberg']:5.2f}x: {shown} (bar {BAR}x)"


if __name__ == "__main__":
    main()
