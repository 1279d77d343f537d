"""Columns of geometries: their extents in conditions and statistics, and GeoArrow's form."""

from __future__ import annotations

import itertools
import random
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidPredicate
from rowsieve.types.alias_forms import wkb

NAMED = {"ARROW:extension:name": "rowsieve.geometry.1"}


def point(x: float, y: float) -> bytes:
    return b"\x01" + struct.pack("<Idd", 1, x, y)


def line(*pairs: tuple[float, float]) -> bytes:
    return b"\x01" + struct.pack("<II", 2, len(pairs)) + b"".join(
        struct.pack("<dd", *pair) for pair in pairs
    )  # fmt: skip


_CHOOSER = random.Random(5)
SHAPES: list[bytes | None] = [
    *(point(x, y) for x, y in itertools.product((-10, 0, 3.5), (0, 7))),
    *(line((x, x), (x + 2, -x), (x - 1, 0)) for x in range(-12, 30, 3)),
    *(point(_CHOOSER.uniform(-40, 40), _CHOOSER.uniform(-40, 40)) for _ in range(20)),
    *(None, line(), b"", b"no WKB", point(1, float("inf"))),
]
BOXES = [
    (0, 0, 5, 8),
    (-11.5, -1, -9, 1),
    (3.5, 7, 3.5, 7),
    (100, 100, 101, 101),
    (-50, -50, 50, 0),
]


def _table(shapes: list[bytes | None], key: list[str], metadata: Any = None) -> rs.Table:
    geometry = pa.field("g", pa.binary(), metadata=metadata or NAMED)
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), geometry])
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", schema, key=key)
    write = table.upsert if key else table.append
    for start in range(0, len(shapes), 4):
        taken = pa.array(shapes[start : start + 4], pa.binary())
        write(pa.table({"id": range(start, start + len(taken)), "g": taken}))
    return table


@pytest.fixture(scope="module", params=[["id"], []], ids=["key", "no key"])
def shapes(request: pytest.FixtureRequest) -> rs.Table:
    return _table(SHAPES, request.param)


def _kept(table: rs.Table, where: str, **settings: Any) -> list[int]:
    found = sorted(table.scan(where=where, **settings).to_arrow().column("id").to_pylist())
    off = table.scan(where=where, pruning="off", **settings).to_arrow().column("id")
    assert found == sorted(off.to_pylist())
    return found


def _meets(shape: bytes | None, box: tuple[float, ...]) -> bool | None:
    if shape is None:
        return None
    side = wkb._extent(shape)
    if side is None:
        return False
    return bool(side[0] <= box[2] and side[2] >= box[0] and side[1] <= box[3] and side[3] >= box[1])


@pytest.mark.parametrize("box", BOXES, ids=str)
def test_boxes_find_the_geometries_whose_extent_meets_them(
    box: tuple[float, ...], shapes: rs.Table
) -> None:
    outcomes = [_meets(shape, box) for shape in SHAPES]
    made = f"ST_MakeEnvelope({', '.join(map(str, box))})"
    wanted = [i for i, found in enumerate(outcomes) if found]
    for dialect in ("postgres", "duckdb"):
        assert _kept(shapes, f"g && {made}", dialect=dialect) == wanted
        assert _kept(shapes, f"ST_Intersects_Extent({made}, g)", dialect=dialect) == wanted
    assert _kept(shapes, f"NOT (g && {made})") == [
        i for i, found in enumerate(outcomes) if found is False
    ]


@pytest.mark.parametrize("side", wkb.SIDES)
def test_sides_compare_as_numbers(side: str, shapes: rs.Table) -> None:
    sides = [None if s is None else wkb._extent(s) for s in SHAPES]
    numbers = [None if s is None else float(s[wkb.SIDES.index(side)]) for s in sides]
    for number in (-10.0, 0.0, 3.5):
        wanted = [i for i, found in enumerate(numbers) if found is not None and found < number]
        assert _kept(shapes, f"{side}(g) < {number}") == wanted
    assert _kept(shapes, f"{side}(g) IS NULL") == [
        i for i, found in enumerate(numbers) if found is None
    ]


def test_parts_are_skipped_by_extents() -> None:
    for key in (["id"], []):
        table = _table([point(x, -x) for x in range(40)], key)
        explained = str(table.scan(where="g && ST_MakeEnvelope(8, -9, 9, 0)").explain())
        assert "parts 10 considered, 9 skipped" in explained
        table.compact()
        assert _kept(table, "g && ST_MakeEnvelope(8, -9, 9, 0)") == [8, 9]


def test_extents_of_defaults_members_and_plain_bytes(tmp_path: Path) -> None:
    table = _table([point(1, 1), point(2, 2)], ["id"])
    table.add_column("h", pa.field("h", pa.binary(), metadata=NAMED).type, default=point(5, 5))
    inner = pa.struct([pa.field("g", pa.binary(), metadata=NAMED)])
    table.add_column("s", inner)
    rows = {"id": [7, 8], "g": [point(9, 9)] * 2, "h": [point(6, 6), None]}
    values = pa.array([{"g": point(3, 3)}, None], pa.struct([("g", pa.binary())]))
    table.upsert(pa.table({**rows, "s": values}))
    assert _kept(table, "ST_XMin(h) = 5") == [0, 1]
    assert _kept(table, "h && ST_MakeEnvelope(5.5, 0, 7, 7)") == [7]
    assert _kept(table, "ST_YMax((s).g) >= 3") == [7]
    assert _kept(table, "(s).g && ST_MakeEnvelope(4, 4, 5, 5)") == []


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("g && ST_MakeEnvelope(1, 2, 3)", "four numbers"),
        ("g && ST_MakeEnvelope(1, 2, 3, 4, 4326)", "without a SRID"),
        ("g && ST_MakeEnvelope(3, 2, 1, 4)", "another order"),
        ("g && ST_MakeEnvelope(id, 2, 3, 4)", "four constant numbers"),
        ("g && ST_MakeEnvelope(TRUE, 2, 3, 4)", "four constant numbers"),
        ("ST_Intersects_Extent(g, g)", "a constant box"),
        ("ST_MakeEnvelope(1, 2, 3, 4) && ST_MakeEnvelope(1, 2, 3, 4)", "a constant box"),
        ("ST_XMin(id) = 1", "no meaning"),
        ("g = g", "cannot be compared"),
    ],
)
def test_other_conditions_are_refused(where: str, what: str, shapes: rs.Table) -> None:
    with pytest.raises(InvalidPredicate, match=what):
        shapes.scan(where=where)


class _Wkb(pa.ExtensionType):  # type: ignore[misc]
    """GeoArrow's type, as its package registers it."""

    def __init__(self) -> None:
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return b"{}"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, text: bytes) -> _Wkb:
        del storage, text
        return cls()


@pytest.fixture
def geoarrow() -> Iterator[pa.DataType]:
    pa.register_extension_type(_Wkb())
    yield _Wkb()
    pa.unregister_extension_type("geoarrow.wkb")


def test_geometries_of_geoarrow_are_accepted(geoarrow: pa.DataType) -> None:
    values = pa.ExtensionArray.from_storage(geoarrow, pa.array([point(1, 2), None, line()]))
    registered = pa.table({"id": [0, 1, 2], "g": values})
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", registered, key=["id"])
    table.upsert(registered)
    assert _kept(table, "g && ST_MakeEnvelope(0, 0, 2, 2)") == [0]
    for form in (pa.binary(), pa.large_binary(), pa.binary_view()):
        named = pa.field("g", form, metadata={"ARROW:extension:name": "geoarrow.wkb"})
        schema = pa.schema([pa.field("id", pa.int64()), named])
        made = rs.create_table(f"memory:///{uuid.uuid4().hex}", schema, key=["id"])
        made.upsert(pa.table({"id": [5], "g": pa.array([point(1, 1)], form)}))
        assert _kept(made, "ST_XMin(g) = 1") == [5]
        extension = made.scan().to_arrow().schema.field("g").metadata[b"ARROW:extension:name"]
        assert extension == b"rowsieve.geometry.1"


def test_a_parquet_file_with_geometries_is_read(geoarrow: pa.DataType, tmp_path: Path) -> None:
    path = tmp_path / "files" / "g.parquet"
    path.parent.mkdir()
    values = pa.ExtensionArray.from_storage(geoarrow, pa.array([point(1, 2), point(30, 4)]))
    pq.write_table(pa.table({"id": [1, 2], "g": values}), path)
    assert pq.read_metadata(path).schema.column(1).logical_type.type == "GEOMETRY"
    opened = rs.open_parquet([path])
    assert _kept(opened, "g && ST_MakeEnvelope(0, 0, 5, 5)") == [1]
    imported = rs.from_parquet([path], key=["id"], uri=str(tmp_path / "t"))
    imported.upsert({"id": [3], "g": [point(2, 2)]})
    assert _kept(imported, "g && ST_MakeEnvelope(0, 0, 5, 5)") == [1, 3]
    imported.compact()
    assert _kept(imported, "g && ST_MakeEnvelope(0, 0, 5, 5)") == [1, 3]
