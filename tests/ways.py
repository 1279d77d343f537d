"""How many functions of the package a call passes: the length of the ways through the house.

`make house` prints them. A call is made twice, and the second one counts: caches are warm, and what
is imported at first use is there.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pyarrow as pa

import rowsieve as rs

PACKAGE = str(Path(rs.__file__).parent)
CONDITIONS = (
    "x > 5 AND s LIKE 'a%'",
    "x IN (1, 2, 3) OR s IS NULL",
    "date_trunc('day', at) = TIMESTAMP '2026-01-01'",
)

FORMS: Mapping[str, Mapping[str, int]] = {"": {}, " with files": {"inline_bytes": 0}}
"""Tables of today's default, whose log holds small changes, and tables whose parts are files."""

_BINDS = ("bind", "bind_each")


class Way(NamedTuple):
    """The functions that a call passes, each once, and the files that they stand in."""

    functions: int
    files: int
    binds: int
    """Times that trees were bound: the conditions of one text are bound together."""


def passed(call: Callable[[], object]) -> Way:
    """Count the functions of the package that the second of two calls passes."""
    call()
    codes: set[CodeType] = set()
    binds = 0

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal binds
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            codes.add(code)
            binds += code.co_name in _BINDS and code.co_filename.endswith("bind.py")

    with _profiled(note):
        call()
    return Way(len(codes), len({code.co_filename for code in codes}), binds)


@cache
def ways() -> Mapping[str, Way]:
    """Measure the ways that the architecture promises to keep short."""
    with tempfile.TemporaryDirectory() as folder:
        of_tables = {
            f"{name}{form}": way
            for form, properties in FORMS.items()
            for name, way in _ways_of_table(f"{folder}/t{len(properties)}", properties).items()
        }
    return {**of_tables, **_ways_of_translations()}


def _ways_of_table(place: str, properties: Mapping[str, int]) -> Mapping[str, Way]:
    """The ways of a table of two parts, the second of which was upserted."""
    from rowsieve.providers.datafusion import SessionContext

    rows = pa.table({"k": range(10), "x": range(10), "s": ["a"] * 10})
    table = rs.create_table(place, rows, key=["k"], properties=properties)
    table.upsert(rows.slice(5))
    context = SessionContext()
    context.register_table("t", table)
    keys = iter(range(100, 1_000))
    return {
        "a scan": passed(lambda: table.scan("x > 5").to_arrow()),
        "an upsert": passed(lambda: table.upsert({"k": [next(keys)], "x": [1], "s": ["b"]})),
        "a statement": passed(lambda: context.sql("SELECT s FROM t WHERE x > 5").collect()),
    }


def _ways_of_translations() -> Mapping[str, Way]:
    schema = pa.schema([("x", pa.int64()), ("s", pa.string()), ("at", pa.timestamp("us"))])

    def translate(condition: str) -> None:
        rs.translate(condition, source="postgres", target="duckdb", schema=schema)

    return {
        "a translation": passed(lambda: translate("x > 5")),
        "three translations": passed(lambda: [*map(translate, CONDITIONS)]),
    }


@contextmanager
def _profiled(note: Callable[[FrameType, str, Any], None]) -> Iterator[None]:
    """Call `note` for each call in this thread and in those that start."""
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # ends it
