"""Values of events become values of columns without loss, or the event is bad."""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rowsieve
from rowsieve.errors import InvalidData
from tests.small_tables import fresh_uri

BIG = "123456789012345678901234567890.12345678"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def unscaled(number: int) -> str:
    return b64(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))


def extension(name: str, type_: pa.DataType) -> pa.Field:
    return pa.field("v", type_, metadata={"ARROW:extension:name": f"rowsieve.{name}.1"})


def stored(
    field: Any,
    value: Any,
    declared: Any = None,
    form: Any = "debezium",
    text: bool = True,
    **options: Any,
) -> Any:
    """The value that a column has after an event with this one, as JSON text or as a dict."""
    field = field if isinstance(field, pa.Field) else pa.field("v", field)
    table = rowsieve.create_table(fresh_uri(), pa.schema([("id", pa.int64()), field]), key=["id"])
    event: dict[str, Any] = {"op": "c", "after": {"id": 1, "v": value}}
    if form == "maxwell":
        event = {"type": "insert", "data": {"id": 1, "v": value}}
    elif form == "canal":
        event = {"type": "INSERT", "data": [{"id": "1", "v": value}]}
    elif form == "wal2json":
        columns = [{"name": "id", "value": 1}, {"name": "v", "value": value}]
        event = {"action": "I", "columns": columns}
    if declared is not None:
        row = [{"field": "id", "type": "int64"}, {"field": "v", **declared}]
        after = {"field": "after", "type": "struct", "fields": row}
        event = {"schema": {"type": "struct", "fields": [after]}, "payload": event}
    table.apply_events([json.dumps(event) if text else event], format=form, **options)
    return table.scan().to_arrow().column("v")[0].as_py()


def time(name: str, type_: str = "int64") -> dict[str, Any]:
    return {"type": type_, "name": f"io.debezium.time.{name}"}


def data(name: str, type_: str = "bytes", **parameters: str) -> dict[str, Any]:
    return {"type": type_, "name": f"io.debezium.data.{name}", "parameters": parameters}


def connect(name: str, type_: str = "int64", **parameters: str) -> dict[str, Any]:
    return {
        "type": type_,
        "name": f"org.apache.kafka.connect.data.{name}",
        "parameters": parameters,
    }


US, TZ, TIME = pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.time64("us")
MOMENT = dt.datetime(2027, 1, 15, 8, 0, 0, 123_000)
MS = 1_800_000_000_123
FINE = 1_800_000_000_123_456_789
NUMERIC = extension("numeric", pa.struct([("approx", pa.float64()), ("exact", pa.binary())]))
DECLARED: dict[str, tuple[Any, Any, Any, Any]] = {
    "Date": (pa.date32(), 20_833, time("Date", "int32"), dt.date(2027, 1, 15)),
    "Timestamp": (US, MS, time("Timestamp"), MOMENT),
    "MicroTimestamp": (US, MS * 1000, time("MicroTimestamp"), MOMENT),
    "NanoTimestamp": (US, MS * 10**6, time("NanoTimestamp"), MOMENT),
    "ZonedTimestamp": (
        TZ,
        "2027-01-15T09:00:00.123+01:00",
        time("ZonedTimestamp", "string"),
        MOMENT.replace(tzinfo=dt.UTC),
    ),
    "ZonedTimestamp as text": (
        pa.string(),
        "2027-01-15T08:00:00Z",
        time("ZonedTimestamp", "string"),
        "2027-01-15T08:00:00Z",
    ),
    "Time": (TIME, 36_000_123, time("Time", "int32"), dt.time(10, 0, 0, 123_000)),
    "MicroTime": (TIME, 36_000_000_001, time("MicroTime"), dt.time(10, 0, 0, 1)),
    "NanoTime": (TIME, 36_000_000_001_000, time("NanoTime"), dt.time(10, 0, 0, 1)),
    "ZonedTime": (TIME, "10:00:00.5Z", time("ZonedTime", "string"), dt.time(10, 0, 0, 500_000)),
    "IsoDate": (pa.date32(), "2027-01-15Z", time("IsoDate", "string"), dt.date(2027, 1, 15)),
    "IsoTimestamp": (US, "2027-01-15T08:00:00.123Z", time("IsoTimestamp", "string"), MOMENT),
    "IsoTime": (TIME, "10:00:00Z", time("IsoTime", "string"), dt.time(10)),
    "Year": (pa.int32(), 2027, time("Year", "int32"), 2027),
    "a date in an integer": (pa.int64(), 20_833, time("Date", "int32"), 20_833),
    "connect Date": (pa.date32(), 20_833, connect("Date", "int32"), dt.date(2027, 1, 15)),
    "connect Time": (TIME, 36_000_123, connect("Time", "int32"), dt.time(10, 0, 0, 123_000)),
    "connect Timestamp": (US, MS, connect("Timestamp"), MOMENT),
    "connect Timestamp, zoned": (TZ, MS, connect("Timestamp"), MOMENT.replace(tzinfo=dt.UTC)),
    "Decimal": (
        pa.decimal128(10, 2),
        unscaled(-1250),
        connect("Decimal", "bytes", scale="2"),
        Decimal("-12.50"),
    ),
    "Decimal of other scale": (
        pa.decimal128(10, 2),
        unscaled(1250),
        connect("Decimal", "bytes", scale="1"),
        Decimal("125.00"),
    ),
    "Decimal in an integer": (
        pa.uint64(),
        unscaled(2**64 - 1),
        connect("Decimal", "bytes", scale="0"),
        2**64 - 1,
    ),
    "Decimal as text": (
        pa.string(),
        unscaled(1250),
        connect("Decimal", "bytes", scale="2"),
        "12.50",
    ),
    "decimal text": (pa.decimal128(38, 8), BIG, {"type": "string"}, Decimal(BIG)),
    "decimal double": (pa.decimal128(10, 2), 12.5, {"type": "double"}, Decimal("12.50")),
    "VariableScaleDecimal": (
        pa.decimal128(10, 2),
        {"scale": 3, "value": unscaled(12500)},
        data("VariableScaleDecimal", "struct"),
        Decimal("12.50"),
    ),
    "Json": (extension("json", pa.string()), '{"a": 1.00}', data("Json", "string"), '{"a": 1.00}'),
    "Uuid": (
        extension("uuid", pa.binary(16)),
        "00000000-0000-0000-0000-00000000000a",
        data("Uuid", "string"),
        bytes(15) + b"\n",
    ),
    "Enum": (pa.string(), "oak", data("Enum", "string", allowed="oak,elm"), "oak"),
    "EnumSet": (pa.string(), "oak,elm", data("EnumSet", "string"), "oak,elm"),
    "Xml": (pa.string(), "<a/>", data("Xml", "string"), "<a/>"),
    "Bits": (pa.binary(), b64(b"\x01\x02"), data("Bits", length="10"), b"\x01\x02"),
    "Bits as a number": (pa.int32(), b64(b"\x01\x02"), data("Bits", length="10"), 513),
    "bytes": (pa.binary(), b64(b"\0\xff"), {"type": "bytes"}, b"\0\xff"),
    "Point": (
        pa.binary(),
        {"x": 1.0, "y": 2.0, "wkb": b64(b"wkb"), "srid": None},
        data("geometry.Point", "struct"),
        b"wkb",
    ),
}


@pytest.mark.parametrize("name", DECLARED)
def test_a_declared_value_becomes_that_of_the_column(name: str) -> None:
    field, value, declared, expected = DECLARED[name]
    assert stored(field, value, declared) == expected
    assert stored(field, None, declared) is None


FREE: dict[str, tuple[Any, Any, str, dict[str, Any], Any]] = {
    "days": (pa.date32(), 20_833, "debezium", {}, dt.date(2027, 1, 15)),
    "ms": (US, MS, "debezium", {"times": "ms"}, MOMENT),
    "us": (US, MS * 1000, "debezium", {"times": {"v": "us"}}, MOMENT),
    "ns": (US, MS * 10**6, "debezium", {"times": "ns"}, MOMENT),
    "time in us": (TIME, 36_000_000_001, "debezium", {"times": "us"}, dt.time(10, 0, 0, 1)),
    "micro duration": (extension("interval", pa.binary(16)), 1_500_000, "debezium", {}, None),
    "base64": (
        pa.decimal128(10, 2),
        unscaled(1250),
        "debezium",
        {"decimals": "base64"},
        Decimal("12.50"),
    ),
    "digits": (pa.decimal128(38, 8), BIG, "debezium", {"decimals": "string"}, Decimal(BIG)),
    "infinity": (pa.float64(), "-Infinity", "debezium", {}, float("-inf")),
    "a float": (pa.float64(), 0.1, "debezium", {}, 0.1),
    "10**18": (pa.float64(), 10**18, "debezium", {}, 1e18),
    "2**64": (pa.float64(), 2**64, "debezium", {}, 2.0**64),
    "2**60 as JavaScript writes it": (
        pa.float64(),
        1152921504606847000,
        "debezium",
        {},
        2.0**60,
    ),
    "digits of 10**22": (pa.float64(), str(10**22), "canal", {}, 1e22),
    "a boolean": (pa.bool_(), 1, "debezium", {}, True),
    "a list": (pa.list_(pa.int64()), [1, None, 3], "debezium", {}, [1, None, 3]),
    "a struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        {"b": "x", "a": 1},
        "debezium",
        {},
        {"a": 1, "b": "x"},
    ),
    "a map": (pa.map_(pa.string(), pa.string()), {"a": "b"}, "debezium", {}, [("a", "b")]),
    "JSON of Maxwell": (
        extension("json", pa.string()),
        {"a": [1.50]},
        "maxwell",
        {},
        '{"a": [1.5]}',
    ),
    "text of Maxwell": (US, "2027-01-15 08:00:00.123", "maxwell", {}, MOMENT),
    "bytes of Canal": (pa.binary(), "\xff\x00a", "canal", {}, b"\xff\x00a"),
    "number of Canal": (pa.decimal128(38, 8), BIG, "canal", {}, Decimal(BIG)),
    "boolean of Canal": (pa.bool_(), "1", "canal", {}, True),
    "time of Canal": (TIME, "10:00:00", "canal", {}, dt.time(10)),
    "bytes of wal2json": (pa.binary(), "00ff", "wal2json", {}, b"\0\xff"),
    "zone of wal2json": (
        TZ,
        "2027-01-15 08:00:00.123+00",
        "wal2json",
        {},
        MOMENT.replace(tzinfo=dt.UTC),
    ),
}


@pytest.mark.parametrize("name", FREE)
def test_a_value_without_a_declaration_is_read_by_its_column(name: str) -> None:
    field, value, form, options, expected = FREE[name]
    assert (got := stored(field, value, form=form, **options)) == expected or expected is None
    assert got is not None


def test_every_digit_of_a_number_is_kept() -> None:
    table = rowsieve.create_table(
        fresh_uri(), pa.schema([("id", pa.int64()), ("v", pa.decimal128(38, 8))]), key=["id"]
    )
    table.apply_events([f'{{"op":"c","after":{{"id":1,"v":{BIG}}}}}'], format="debezium")
    assert table.scan().to_arrow().column("v")[0].as_py() == Decimal(BIG)


SINGLES: Any = [0.1, 3.4028235e38, 1.1754944e-38, -0.0, 0, 16_777_217, 123_456_789, 1.5e-45, 1e-5]


@pytest.mark.parametrize("value", SINGLES)
def test_a_float_of_32_bits_is_the_nearest_of_its_digits(value: float) -> None:
    nearest = float(np.float32(value))
    for form in ("debezium", "maxwell", "wal2json"):
        assert stored(pa.float32(), value, form=form) == nearest
        assert stored(pa.list_(pa.float32()), [value], form=form) == [nearest]
    assert stored(pa.float32(), value, {"type": "float"}) == nearest
    assert stored(pa.float32(), str(value), form="canal") == nearest
    table = rowsieve.create_table(
        fresh_uri(), pa.schema([("id", pa.int64()), ("v", pa.float32())]), key=["id"]
    )
    table.apply_events([{"op": "c", "after": {"id": 1, "v": value}}], format="debezium")
    assert table.scan().to_arrow().column("v")[0].as_py() == nearest


def test_digits_are_rounded_to_a_float_of_32_bits_once() -> None:
    just_above = "1.00000005960464477539062500000000000001"  # by way of 64 bits it would be 1
    table = rowsieve.create_table(
        fresh_uri(), pa.schema([("id", pa.int64()), ("v", pa.float32())]), key=["id"]
    )
    text = f'{{"op":"c","after":{{"id":1,"v":{just_above}}}}}'
    table.apply_events([text], format="debezium")
    assert table.scan().to_arrow().column("v")[0].as_py() == 1 + 2**-23


def test_whole_numbers_in_floats_are_judged_one_by_one() -> None:
    """A number above int64 in the same call changed the rule for all of its column."""
    wholes = [2**53 + 1, 2**63 - 1, 2**64, 7]
    table = rowsieve.create_table(
        fresh_uri(), pa.schema([("id", pa.int64()), ("v", pa.float64())]), key=["id"]
    )
    events = [json.dumps({"op": "c", "after": {"id": n, "v": v}}) for n, v in enumerate(wholes)]
    applied = table.apply_events(events, format="debezium", on_bad="collect")
    assert applied.bad["event"].to_pylist() == [0, 1]
    assert table.scan(order_by_key=True).to_arrow()["v"].to_pylist() == [2.0**64, 7.0]


@pytest.mark.parametrize("bits", [32, 64])
def test_decimals_of_decoded_json_are_read_like_its_text(bits: int) -> None:
    """`json.loads(…, parse_float=Decimal)` keeps digits for the other columns of the row."""
    type_ = pa.float32() if bits == 32 else pa.float64()
    number = Decimal("0.1000000000000000000001")
    assert stored(type_, number, text=False) == float(np.float32(0.1) if bits == 32 else 0.1)
    with pytest.raises(InvalidData, match="out of the range"):
        stored(type_, Decimal("1e400"), text=False)


def test_only_events_of_json_are_rounded_to_floats_of_32_bits() -> None:
    table = rowsieve.create_table(
        fresh_uri(), pa.schema([("id", pa.int64()), ("v", pa.float32())]), key=["id"]
    )
    for value in (0.1, 2**24 + 1):
        data = pa.Table.from_pylist([{"op": "c", "after": {"id": 1, "v": value}}])
        with pytest.raises(InvalidData, match="column 'v' cannot be"):
            table.apply_events(data, format="debezium")


REFUSED: dict[str, tuple[Any, Any, Any, dict[str, Any], str]] = {
    "unit": (US, MS, None, {}, "a number of unknown unit"),
    "text of a number": (pa.decimal128(10, 2), "1234", None, {}, "digits or base64"),
    "finer": (US, FINE, time("NanoTimestamp"), {}, "would lose data"),
    "local in zoned": (TZ, MS, time("Timestamp"), {}, "has a local time"),
    "no zone": (TZ, "2027-01-15T08:00:00", None, {}, "expected a zone"),
    "a zone": (US, "2027-01-15T08:00:00Z", None, {}, "expected no zone"),
    "another offset": (TIME, "10:00:00+01:00", time("ZonedTime", "string"), {}, "another offset"),
    "too large": (pa.int32(), 2**31, None, {}, "int32"),
    "huge": (pa.int64(), 2**64, None, {}, "out of bounds"),
    "a fraction": (pa.int64(), 1.5, None, {}, "not a whole number of at most 38 digits"),
    "too many digits": (pa.decimal128(4, 2), "1.234", {"type": "string"}, {}, "data loss"),
    "no number": (pa.int64(), "0x1F", {"type": "string"}, {}, "not a number"),
    "no base64": (pa.binary(), "***", None, {}, "base64"),
    "text": (pa.string(), 5, None, {}, "the kind int"),
    "boolean": (pa.bool_(), 2, None, {}, "true, false, 0 or 1"),
    "date": (pa.date32(), "2027-02-30", None, {}, "2027-02-30"),
    "hour 25": (TIME, "25:00:00", None, {}, "25:00:00"),
    "other fields": (pa.struct([("a", pa.int64())]), {"b": 1}, None, {}, "the field"),
    "text in a list": (pa.list_(pa.int64()), "[1]", None, {}, "a value is not a list"),
    "text in a struct": (pa.struct([("a", pa.int64())]), "{}", None, {}, "is not an object"),
    "a list": (pa.int64(), [1], None, {}, "the kind list"),
    "1e39": (pa.float32(), 1e39, None, {}, "out of the range"),
    "-1e39 as text": (pa.float32(), "-1e39", {"type": "string"}, {}, "out of the range"),
    "10**40": (pa.float32(), 10**40, None, {}, "out of the range"),
    "1e-50": (pa.float32(), 1e-50, None, {}, "out of the range"),
    "1e999 as text": (pa.float64(), "1e999", {"type": "string"}, {}, "out of the range"),
    "2**53 + 1": (pa.float64(), 2**53 + 1, None, {}, "float64"),
    "2**64 - 1": (pa.float64(), 2**64 - 1, None, {}, "float64"),
    "-2**65 - 1": (pa.float64(), -(2**65) - 1, None, {}, "float64"),
    "2**64 + 1 in a list": (pa.list_(pa.float64()), [2**64 + 1], None, {}, "float64"),
    "digits of 2**53 + 1": (pa.float64(), str(2**53 + 1), {"type": "string"}, {}, "float64"),
    "uuid": (extension("uuid", pa.binary(16)), "x", None, {}, "UUID"),
    "json": (extension("json", pa.string()), {"a": 1}, None, {}, "str"),
    "no scale": (
        pa.decimal128(5, 2),
        "AQ==",
        connect("Decimal", "bytes"),
        {},
        "without the number",
    ),
    "scale of no digits": (
        pa.decimal128(5, 2),
        "AQ==",
        connect("Decimal", "bytes", scale="--²"),
        {},
        "without the number",
    ),
    "scale of 20 digits": (
        pa.int64(),
        "AQ==",
        connect("Decimal", "bytes", scale="9" * 20),
        {},
        "without the number",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_that_does_not_fit_makes_the_event_bad(name: str) -> None:
    field, value, declared, options, text = REFUSED[name]
    with pytest.raises(InvalidData, match="event 0, counted from 0: column 'v' cannot be") as error:
        stored(field, value, declared, **options)
    assert text in str(error.value)


DOCUMENTS = {
    "text in debezium": ("debezium", '{"a": 1.00}', '{"a": 1.00}'),
    "null of JSON in debezium": ("debezium", "null", "null"),
    "text that is no document in maxwell": ("maxwell", "x", '"x"'),
    "object in maxwell": ("maxwell", {"a": [1, None, "é"]}, '{"a": [1, null, "é"]}'),
    "number in maxwell": ("maxwell", 2**70, str(2**70)),
    "boolean in maxwell": ("maxwell", True, "true"),
    "NULL in maxwell": ("maxwell", None, None),
    "text in canal": ("canal", "[1]", "[1]"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_columns_of_json_take_events_that_are_dicts(name: str) -> None:
    form, value, document = DOCUMENTS[name]
    assert stored(extension("json", pa.string()), value, form=form, text=False) == document


@pytest.mark.parametrize("text", [True, False])
def test_columns_of_json_take_the_text_of_wal2json(text: bool) -> None:
    column = extension("json", pa.string())
    assert stored(column, '{"a": [1.00]}', form="wal2json", text=text) == '{"a": [1.00]}'


def test_columns_of_json_take_events_that_are_structs() -> None:
    schema = pa.schema([("id", pa.int64()), extension("json", pa.string())])
    table = rowsieve.create_table(fresh_uri(), schema, key=["id"])
    table.apply_events(
        pa.table({"op": ["c", "c"], "after": [{"id": 1, "v": "[1]"}, {"id": 2, "v": None}]}),
        format="debezium",
    )
    assert table.scan(order_by_key=True).to_arrow()["v"].to_pylist() == ["[1]", None]


@pytest.mark.parametrize("fields", [5, True, "x", {"a": 1}, [5], None])
def test_a_schema_that_is_none_of_connect_declares_nothing(fields: Any) -> None:
    table = rowsieve.create_table(fresh_uri(), pa.schema([("id", pa.int64())]), key=["id"])
    event = {"schema": {"fields": fields}, "payload": {"op": "c", "after": {"id": 1}}}
    assert table.apply_events([json.dumps(event)], format="debezium").changes == 1
