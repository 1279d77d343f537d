"""What the golden tables hold: the rows of each version, and the program that wrote them.

`python -m tests.golden.story before FOLDER` and `plain FOLDER` need nothing of Rowsieve but what it
had before columns could change; `evolve FOLDER` makes every change of columns on the former.
"""

from __future__ import annotations

import datetime as dt
import math
import sys
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa

import rowsieve

Row = dict[str, Any]
Rows = dict[int, Row]  # by key

BEFORE = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("i", pa.int32()),
        ("f", pa.float32()),
        ("d", pa.decimal128(5, 2)),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("j", pa.json_()),
        ("st", pa.struct([("x", pa.int64()), ("y", pa.string())])),
        ("l", pa.list_(pa.int32())),
        pa.field("must", pa.int64(), nullable=False),
    ]
)
PROPERTIES = {"checkpoint_interval": "3", "json_statistics": "j.k"}
UTC = dt.UTC
LONG = "z" * 200
EMPTY = dict.fromkeys(BEFORE.names)


def _row(key: int, **given: Any) -> Row:
    return {**EMPTY, "must": key, **given, "id": key}


FIRST: Rows = {
    1: _row(1, i=2**31 - 1, f=math.nan, d=Decimal("999.99"), s="", b=True, j='{"k": 5}', l=[1, 2]),
    2: _row(2, i=-(2**31), f=-0.0, d=Decimal("-0.01"), s="é😀", b=False, j='{"k": "x"}', l=[]),
    3: _row(3),
    4: _row(4, i=5, f=0.1, s=LONG, st={"x": 5, "y": None}, day=dt.date(1, 1, 1), l=[None]),
}
FIRST[4]["f"] = pa.scalar(0.1, pa.float32()).as_py()
SECOND: Rows = {
    3: _row(3, i=3, f=math.inf, s="5", b=True, day=dt.date(9999, 12, 31), st={"x": None, "y": "y"}),
    5: _row(5, d=Decimal("5.00"), at=dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), j="[]"),
    6: _row(6, i=6, s="five", b=False, at=dt.datetime(2013, 2, 8, 12, 30, tzinfo=UTC), j="null"),
}
THIRD: Rows = {7: _row(7, i=7, s="seven", j='{"k": null}')}


def _but(rows: Rows, *gone: int, **changed: Row) -> Rows:
    """The rows without those that are gone; `_2` changes row 2."""
    kept = {key: row for key, row in rows.items() if key not in gone}
    return {key: {**row, **changed.get(f"_{key}", {})} for key, row in kept.items()}


_V2 = {**FIRST, **SECOND}
_V3 = _but(_V2, 5)
_V4 = _but(_V3, _2={"i": 0, "s": "two"})
BEFORE_VERSIONS: tuple[Rows, ...] = ({}, FIRST, _V2, _V3, _V4, _V4, {**_V4, **THIRD})
"""Created, two upserts, a delete by condition, an update, a compaction, and an upsert."""

PLAIN_VERSIONS: tuple[Rows, ...] = ({}, FIRST, _but(FIRST, 2))
"""Created, an append, a delete; and an append that repeats key 3, see `PLAIN_LAST`."""
PLAIN_LAST: tuple[Row, ...] = (*PLAIN_VERSIONS[-1].values(), *SECOND.values())
CLUSTERED_VERSIONS: tuple[Iterable[Row], ...] = (
    *(rows.values() for rows in PLAIN_VERSIONS),
    PLAIN_VERSIONS[-1].values(),
    PLAIN_LAST,
    PLAIN_LAST,
)
"""Created, an append, a delete, a property, an append in another order, and a compaction."""


def table_of(rows: Rows, schema: pa.Schema) -> pa.Table:
    """Return rows as a table."""
    return pa.Table.from_pylist(list(rows.values()), schema=schema)


# Every change of columns, after the versions above


def _each(rows: Rows, change: Callable[[Row], Row]) -> Rows:
    return {key: change(row) for key, row in rows.items()}


def _with(row: Row, **added: Any) -> Row:
    return {**row, **added}


def _without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


ADDED: Row = {
    "nan": math.nan,
    "zero": -0.0,
    "text": LONG,
    "money": Decimal("1.25"),
    "moment": dt.datetime(2026, 11, 23, 1, 2, 3, 456789, UTC),
    "none": None,
    "inner": None,
}
_E1 = _each(BEFORE_VERSIONS[-1], lambda row: _with(row, **ADDED))
_E2 = _each(_E1, lambda row: _with(_without(row, "b"), b="50"))
_E3 = _each(_E2, lambda row: _with(_without(row, "s", "j"), **{"a.b": row["s"], "doc": row["j"]}))
_E4 = _each(_E3, lambda row: _with(_without(row, "id"), key=row["id"]))
NEW: Row = {
    **_E4[7],
    "key": 8,
    "i": 2**40,
    "f": 0.1,
    "d": Decimal("12345.6789"),
    "b": "new",
    "nan": 1.0,
    "zero": 0.0,
    "none": 1,
    "inner": {"p": 1},
    "must": None,
}
_E6 = {**_E4, 8: NEW}
_E7 = _each(_E6, lambda row: _with(row, merged=None))
_E7[9] = {**dict.fromkeys(_E7[8]), "key": 9, "must": 9, "b": "merged", "merged": "m"}
_E8 = {key: row for key, row in _E7.items() if row["b"] != "50" or key != 1}
EVOLVED_VERSIONS: tuple[Rows, ...] = (
    *BEFORE_VERSIONS,
    *(_E1, _E2, _E2, _E3, _E4),  # a property is unset in between
    *(_E4, _E4),  # wider types and an order; other rules
    _E6,
    _E7,
    _E8,
)


def write_before(folder: str, **properties: str) -> None:
    """Write the versions of `BEFORE_VERSIONS`."""
    table = rowsieve.create_table(
        folder, BEFORE, key=["id"], properties={**PROPERTIES, **properties}
    )
    table.upsert(table_of(FIRST, BEFORE))
    table.upsert(table_of(SECOND, BEFORE))
    table.delete("d = 5")
    table.update({"i": "0", "s": "'two'"}, where="id = 2")
    table.compact()
    table.upsert(table_of(THIRD, BEFORE))
    assert table.version == len(BEFORE_VERSIONS) - 1, table.history()


def write_plain(folder: str) -> None:
    """Write `PLAIN_VERSIONS` and `PLAIN_LAST`: a table without a key, with a deletion vector."""
    table = rowsieve.create_table(folder, BEFORE, properties={"checkpoint_interval": "2"})
    table.append(table_of(FIRST, BEFORE))
    table.delete("id = 2")
    table.append(table_of(SECOND, BEFORE))
    assert table.version == len(PLAIN_VERSIONS), table.history()


def write_clustered(folder: str) -> None:
    """Write `PLAIN_VERSIONS` and twice `PLAIN_LAST`: parts of two orders, and a compaction."""
    properties = {"checkpoint_interval": "3", "cluster_by": "hilbert(i, d)"}
    table = rowsieve.create_table(folder, BEFORE, properties=properties)
    table.append(table_of(FIRST, BEFORE))
    table.delete("id = 2")
    table.set_properties({"cluster_by": "s DESC NULLS LAST, id"})
    table.append(table_of(SECOND, BEFORE))
    table.compact()
    assert table.version == len(CLUSTERED_VERSIONS) - 1, table.history()


NUMBER = {"approx": 1.5, "exact": b"\x03\x80\x00\x00\x01\x0f"}
FORMS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("i", pa.int32()),
        pa.field("n", pa.string(), metadata={b"ARROW:extension:name": b"rowsieve.numeric.1"}),
        ("u", pa.uuid()),
        ("j", pa.json_()),
    ]
)
_F1: Rows = {
    key: {"id": key, "i": key, "n": NUMBER, "u": bytes(15) + b"u", "j": '{"k": 1}'}
    for key in (1, 2, 3)
}
_F3: Rows = {
    3: {"id": 3, "i": 5, "n": None, "u": None, "j": None},
    4: {"id": 4, "i": 4, "n": {"approx": 0.0, "exact": b"\x02"}, "u": b"v" * 16, "j": "[]"},
}
FORMS_VERSIONS: tuple[Rows, ...] = ({}, _F1, _F1, {**_F1, **_F3}, _but({**_F1, **_F3}, 2))
"""Created; an upsert in structured form; a property; an upsert in opaque form, and a delete."""


def write_forms(folder: str) -> None:
    """Write `FORMS_VERSIONS`: values in structured and in opaque form."""
    table = rowsieve.create_table(
        folder, FORMS, key=["id"], properties={"checkpoint_interval": "3"}
    )
    table.upsert(table_of(_F1, table.schema))
    table.set_properties({"value_forms": "opaque"})
    table.upsert(table_of(_F3, table.schema))
    table.delete("id = 2")
    assert table.version == len(FORMS_VERSIONS) - 1, table.history()


ENUMS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("i", pa.int32()),
        pa.field(
            "mood",
            pa.string(),
            metadata={
                b"ARROW:extension:name": b"rowsieve.enum.1",
                b"ARROW:extension:metadata": '["sad", "ok", "é"]'.encode(),
            },
        ),
    ]
)
_MOODS: Rows = {
    1: {"id": 1, "i": 1, "mood": "sad"},
    2: {"id": 2, "i": 2, "mood": None},
    3: {"id": 3, "i": 3, "mood": "é"},
}
_MORE_MOODS: Rows = {3: {"id": 3, "i": 3, "mood": "ok"}, 4: {"id": 4, "i": 4, "mood": "it's, new"}}
ENUMS_VERSIONS: tuple[Rows, ...] = (
    {},
    _MOODS,
    _MOODS,
    {**_MOODS, **_MORE_MOODS},
    _but({**_MOODS, **_MORE_MOODS}, 2),
)
"""Created; an upsert; a label is added; an upsert with it; a delete."""


def write_enums(folder: str) -> None:
    """Write `ENUMS_VERSIONS`: an enum that gets another label."""
    table = rowsieve.create_table(
        folder, ENUMS, key=["id"], properties={"checkpoint_interval": "3"}
    )
    table.upsert(table_of(_MOODS, table.schema))
    table.widen_column("mood", "enum('sad', 'ok', 'é', 'it''s, new')")
    table.upsert(table_of(_MORE_MOODS, table.schema))
    table.delete("id = 2")
    assert table.version == len(ENUMS_VERSIONS) - 1, table.history()


SHREDDED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("i", pa.int32()),
        pa.field("j", pa.string(), metadata={b"ARROW:extension:name": b"arrow.json"}),
    ]
)
_DOCUMENTS: Rows = {
    1: {"id": 1, "i": 1, "j": '{"k": 5, "a": {"b": "x"}}'},
    2: {"id": 2, "i": 2, "j": '{"k": 1e2, "a": {"b": null}}'},
    3: {"id": 3, "i": 3, "j": None},
    4: {"id": 4, "i": 4, "j": '{"k": 1.5, "a": {"b": "' + LONG + '"}}'},
}
_MORE_DOCUMENTS: Rows = {
    4: {"id": 4, "i": 4, "j": '{"k": 7, "k": 8}'},
    5: {"id": 5, "i": 5, "j": '{"k": 18446744073709551617, "a": [true]}'},
}
SHREDDED_VERSIONS: tuple[Rows, ...] = (
    {},
    _DOCUMENTS,
    {**_DOCUMENTS, **_MORE_DOCUMENTS},
    _but({**_DOCUMENTS, **_MORE_DOCUMENTS}, 2),
)
"""Created; an upsert; an upsert over it; a delete."""


def write_shredded(folder: str) -> None:
    """Write `SHREDDED_VERSIONS`: files with columns of JSON paths."""
    properties = {"checkpoint_interval": "3", "json_shredding": "j.k, j.a.b"}
    table = rowsieve.create_table(folder, SHREDDED, key=["id"], properties=properties)
    table.upsert(table_of(_DOCUMENTS, table.schema))
    table.upsert(table_of(_MORE_DOCUMENTS, table.schema))
    table.delete("id = 2")
    assert table.version == len(SHREDDED_VERSIONS) - 1, table.history()


_NS = {b"ARROW:extension:name": b"rowsieve.timestamp_ns.1"}
NANOS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("i", pa.int32()),
        pa.field("at", pa.timestamp("ns"), metadata=_NS),
        pa.field("utc", pa.timestamp("ns", "UTC"), metadata=_NS),
    ]
)
TICK = 1_700_000_000_000_000_001  # 2023-11-14 22:13:20.000000001
_TICKS: Rows = {
    1: {"id": 1, "i": 1, "at": TICK, "utc": TICK},
    2: {"id": 2, "i": 2, "at": TICK + 1, "utc": None},
    3: {"id": 3, "i": 3, "at": -(2**63), "utc": 2**63 - 1},
}
_MORE_TICKS: Rows = {
    3: {"id": 3, "i": 3, "at": -1, "utc": -1},
    4: {"id": 4, "i": 4, "at": None, "utc": TICK + 1},
}
_WITH_DEFAULT = {"later": TICK + 2}
NANOS_VERSIONS: tuple[Rows, ...] = (
    {},
    _TICKS,
    {**_TICKS, **_MORE_TICKS},
    _but({**_TICKS, **_MORE_TICKS}, 2),
    {key: {**row, **_WITH_DEFAULT} for key, row in _but({**_TICKS, **_MORE_TICKS}, 2).items()},
)
"""Created; an upsert; an upsert over it; a delete; a column with a default is added."""


def write_nanos(folder: str) -> None:
    """Write `NANOS_VERSIONS`: columns of nanoseconds, as integers in the rows here."""
    table = rowsieve.create_table(
        folder, NANOS, key=["id"], properties={"checkpoint_interval": "3"}
    )
    table.upsert(table_of(_TICKS, table.schema))
    table.upsert(table_of(_MORE_TICKS, table.schema))
    table.delete("id = 2")
    table.add_column("later", "timestamp_ns", default=pa.scalar(TICK + 2, pa.timestamp("ns")))
    assert table.version == len(NANOS_VERSIONS) - 1, table.history()


def write_tagged(folder: str) -> None:
    """Write `EVOLVED_VERSIONS` with tags in files."""
    write_before(folder, column_names="tag")
    evolve(folder)


def evolve(folder: str) -> None:
    """Make `EVOLVED_VERSIONS` of a table that has `BEFORE_VERSIONS`."""
    table = rowsieve.open_table(folder)
    with table.alter() as change:
        change.add_column("nan", "float64", default=math.nan)
        change.add_column("zero", "float32", default=-0.0)
        change.add_column("text", "string", default=LONG, after="id")
        change.add_column("money", "decimal(5,2)", default=Decimal("1.25"))
        change.add_column("moment", "timestamptz", default=ADDED["moment"])
        change.add_column("none", "int8")
        change.add_column("inner", pa.struct([("p", pa.int8())]))
    with table.alter() as change:
        change.drop_column("b")
        change.add_column("b", "string", default="50")
    table.unset_properties(["json_statistics"])
    with table.alter() as change:
        change.rename_column("s", "a.b").rename_column("j", "doc")
    table.rename_column("id", "key")
    with table.alter() as change:
        change.widen_column("i", "int64").widen_column("f", "float64")
        change.widen_column("d", "decimal(9,4)").widen_column("zero", "float64")
        change.reorder_columns(["b", "key"])
    with table.alter() as change:
        change.relax_not_null("must").set_default("b", "60")
    table.upsert(table_of({8: NEW}, table.schema))
    merged = {"key": [9], "must": [9], "b": ["merged"], "merged": ["m"]}
    nothing = {name: pa.nulls(1, table.schema.field(name).type) for name in table.schema.names}
    table.upsert(pa.table({**nothing, **merged}), schema_mode="merge")
    table.delete("b = '50' AND key = 1")


if __name__ == "__main__":
    WRITERS: dict[str, Callable[[str], None]] = {
        "before": write_before,
        "plain": write_plain,
        "evolve": evolve,
        "tagged": write_tagged,
        "forms": write_forms,
        "clustered": write_clustered,
        "enums": write_enums,
        "shredded": write_shredded,
        "nanos": write_nanos,
    }
    WRITERS[sys.argv[1]](sys.argv[2])
