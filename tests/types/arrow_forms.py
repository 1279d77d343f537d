"""Arrow arrays of every type that a user may bring: three values, the second is NULL."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_DAYS = [datetime.date(2020, 1, 1), None, datetime.date(1, 1, 1)]
_IDS = pa.array([bytes(16), None, b"\xff" * 16], pa.binary(16))
_METADATA = {
    "Enum of Polars": {b"_PL_ENUM_VALUES2": b"1;b1;a"},
    "rowsieve.timestamp_ns.1": {b"ARROW:extension:name": b"rowsieve.timestamp_ns.1"},
}
_PAIRS = [[1, 2], None, [3, 4]]


def forms() -> dict[str, pa.Array]:
    """The arrays by the name of their type, as Arrow users write it."""
    return dict([*_numbers(), *_texts(), *_times(), *_nested(), *_encoded(), *_extensions()])


def field_of(name: str, values: pa.Array) -> pa.Field:
    """The column `c` of these values, with the metadata that some forms have."""
    return pa.field("c", values.type, metadata=_METADATA.get(name.partition(",")[0]))


def _numbers() -> Iterator[tuple[str, pa.Array]]:
    yield "bool", pa.array([True, None, False])
    for bits in (8, 16, 32, 64):
        yield f"int{bits}", pa.array([-1, None, 3], f"int{bits}")
        yield f"uint{bits}", pa.array([1, None, 3], f"uint{bits}")
    for name in ("float16", "float32", "float64"):
        yield name, pa.array([1.5, None, -0.5], name)
    values = [decimal.Decimal("1.5"), None, decimal.Decimal("-2.25")]
    yield "decimal32(5, 2)", pa.array(values, pa.decimal32(5, 2))
    yield "decimal64(12, 2)", pa.array(values, pa.decimal64(12, 2))
    yield "decimal128(38, 2)", pa.array(values, pa.decimal128(38, 2))
    yield "decimal256(38, 2)", pa.array(values, pa.decimal256(38, 2))
    yield "decimal256(39, 2)", pa.array(values, pa.decimal256(39, 2))
    yield (
        "decimal128(5, -2)",
        pa.array([decimal.Decimal(100), None, decimal.Decimal(0)], pa.decimal128(5, -2)),
    )


def _texts() -> Iterator[tuple[str, pa.Array]]:
    for text in (pa.string(), pa.large_string(), pa.string_view()):
        yield str(text), pa.array(["a", None, "b"], text)
    for raw in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield str(raw), pa.array([b"a", None, b"b"], raw)
    yield "binary(3)", pa.array([b"abc", None, b"abd"], pa.binary(3))


def _times() -> Iterator[tuple[str, pa.Array]]:
    yield "date32", pa.array(_DAYS, pa.date32())
    yield "date64", pa.array(_DAYS, pa.date64())
    for unit in ("s", "ms"):
        yield f"time32({unit})", pa.array([0, None, 1_000], pa.int32()).cast(pa.time32(unit))
    for unit in ("us", "ns"):
        yield f"time64({unit})", pa.array([0, None, 1_000], pa.int64()).cast(pa.time64(unit))
    for unit in ("s", "ms", "us", "ns"):
        ticks = pa.array([0, None, 1_000_000], pa.int64())
        yield f"timestamp({unit})", ticks.cast(pa.timestamp(unit))
        yield f"timestamp({unit}, zone)", ticks.cast(pa.timestamp(unit, "Europe/Rome"))
        yield f"duration({unit})", ticks.cast(pa.duration(unit))
    spans = [(1, 2, 3_000), None, (-1, 0, 0)]
    yield "month_day_nano_interval", pa.array(spans, pa.month_day_nano_interval())


def _nested() -> Iterator[tuple[str, pa.Array]]:
    item = pa.int64()
    yield "list", pa.array(_PAIRS, pa.list_(item))
    yield "large_list", pa.array(_PAIRS, pa.large_list(item))
    yield "list of 2", pa.array(_PAIRS, pa.list_(item, 2))
    yield "list_view", pa.array(_PAIRS, pa.list_view(item))
    yield "large_list_view", pa.array(_PAIRS, pa.large_list_view(item))
    yield "struct", pa.array([{"m": 1}, None, {"m": None}], pa.struct({"m": item}))
    yield "struct without fields", pa.array([{}, None, {}], pa.struct([]))
    yield "map", pa.array([[("k", 1)], None, []], pa.map_(pa.string(), item))
    yield "struct of uuid", _struct(_uuids())
    yield "struct of time32(s)", _struct(pa.array([0, None, 9], pa.int32()).cast(pa.time32("s")))
    yield "struct of float16", _struct(pa.array([1.5, None, -0.5], pa.float16()))
    yield "struct of run-end encoded", _struct(pc.run_end_encode(pa.array(["a", None, "a"])))
    yield (
        "list of dictionary",
        pa.array([["a"], None, []], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    )
    yield "list of null", pa.array([[None], None, []], pa.list_(pa.null()))


def _encoded() -> Iterator[tuple[str, pa.Array]]:
    texts = pa.array(["a", None, "b"])
    yield "dictionary of string", texts.dictionary_encode()
    yield "dictionary of large_string", texts.cast(pa.large_string()).dictionary_encode()
    codes = pa.array([1, None, 0], pa.uint8())
    yield "Enum of Polars", pa.DictionaryArray.from_arrays(codes, ["b", "a"], ordered=True)
    yield "dictionary of int64", pa.array([1, None, 5]).dictionary_encode()
    yield "run_end_encoded of string", pc.run_end_encode(texts)
    yield "run_end_encoded of int64", pc.run_end_encode(pa.array([1, None, 5]))
    yield "null", pa.nulls(3)
    yield (
        "dense_union",
        pa.UnionArray.from_dense(
            pa.array([0, 0, 1], pa.int8()),
            pa.array([0, 1, 0], pa.int32()),
            [pa.array([1, None]), pa.array(["a"])],
        ),
    )


def _extensions() -> Iterator[tuple[str, pa.Array]]:
    yield "arrow.uuid", _uuids()
    yield "arrow.json", _extension(pa.json_(), pa.array(['{"a": 1}', None, "[]"]))
    yield "arrow.bool8", _extension(pa.bool8(), pa.array([1, None, 0], pa.int8()))
    ticks = pa.array([1_000, None, 0], pa.int64())
    yield "rowsieve.timestamp_ns.1", ticks.cast(pa.timestamp("ns"))
    yield "rowsieve.timestamp_ns.1, zone", ticks.cast(pa.timestamp("ns", "Europe/Rome"))
    yield (
        "arrow.opaque of binary",
        _extension(pa.opaque(pa.binary(), "geometry", "x"), pa.array([b"a", None, b"b"])),
    )
    yield (
        "arrow.fixed_shape_tensor",
        _extension(
            pa.fixed_shape_tensor(pa.int64(), [2]), pa.array(_PAIRS, pa.list_(pa.int64(), 2))
        ),
    )


def _uuids() -> pa.Array:
    return _extension(pa.uuid(), _IDS)


def _extension(type_: Any, storage: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(type_, storage)


def _struct(members: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([members], names=["m"])
