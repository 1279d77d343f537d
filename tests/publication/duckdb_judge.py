"""Run by DuckDB's environment: the rows of published tables as its extensions read them.

Takes folders, prints for each of them and each format the rows in order, or what failed.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import duckdb

SHOWN = 'SELECT * REPLACE (CAST(epoch_us("at") AS VARCHAR) AS "at")'  # Python's zones are not there
EXTENSIONS = ("httpfs", "avro", "iceberg", "delta")


def main(folders: list[str]) -> None:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in EXTENSIONS:
        package = importlib.import_module(f"duckdb_extension_{name}")
        file = next(Path(str(package.__file__)).parent.rglob("*.duckdb_extension"))
        connection.execute(f"LOAD '{file}'")
    for folder in folders:
        for function in ("iceberg_scan", "delta_scan"):
            try:
                rows = connection.execute(f"{SHOWN} FROM {function}('{folder}')").fetchall()
                answer = sorted(map(repr, rows))
            except duckdb.Error as error:
                answer = [f"{type(error).__name__}: {error}"]
            sys.stdout.write(json.dumps([folder, function, answer]) + "\n")


main(sys.argv[1:])
