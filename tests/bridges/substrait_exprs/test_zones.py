"""Functions of times in zones in Substrait's messages; pyarrow's kernels judge what is written."""

from __future__ import annotations

import datetime
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rowsieve.bridges.functions import substrait
from rowsieve.bridges.sql import parse_predicate
from rowsieve.bridges.substrait_exprs import from_substrait, function_table, to_substrait, write
from rowsieve.bridges.substrait_exprs.wire import part
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Int, Timestamp
from tests.bridges.conformance import awkward_batch, ours
from tests.strategies import SCHEMA


def _called(name: str, *arguments: bytes) -> bytes:
    """A message that compares a function of times with 5."""
    writer = write.SubstraitWriter(SCHEMA)
    made = writer._scalar_function(substrait.DATETIME, name, Int(64))
    call = part(3, made[2 if made[1] < 0x80 else 3 :], *(part(4, item) for item in arguments))
    five = writer.constant(ir.Literal(5, Int(64)))
    return writer.message([writer._boolean(substrait.COMPARISON, "gt", call, five)])


def _value(content: bytes) -> bytes:
    return part(3, content)


TZ, TS, DAY = (
    _value(write.SubstraitWriter(SCHEMA).column(ir.BoundColumn(field.id, name, field.type)))
    for name in ("tz", "ts", "day")
    for field in [SCHEMA.field(name)]
)
APIA, ONE = _value(part(1, part(12, b"Pacific/Apia"))), part(1, b"ONE")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((part(1, b"HOUR"), TZ, APIA), "extract(hour FROM tz AT TIME ZONE 'Pacific/Apia') > 5"),
        (
            (part(1, b"MONTH"), ONE, TZ, APIA),
            "extract(month FROM tz AT TIME ZONE 'Pacific/Apia') > 5",
        ),
        ((part(1, b"ISO_WEEK"), ONE, DAY), "extract(week FROM day) > 5"),
        ((part(1, b"MINUTE"), TS), "extract(minute FROM ts) > 5"),
        ((part(1, b"MONTH"), TS), None),
        ((part(1, b"MONTH"), part(1, b"ZERO"), TS), None),
        ((part(1, b"SECOND"), ONE, TS), None),
        ((part(1, b"HOUR"), TZ), None),
        ((part(1, b"HOUR"), TS, APIA), None),
        ((part(1, b"US_WEEK"), ONE, TS), None),
    ],
)
def test_parts_of_times_in_zones_are_read(arguments: list[bytes], text: str | None) -> None:
    read = from_substrait(_called("extract", *arguments), SCHEMA)
    if text is None:
        assert read.expression is None
        return
    rules = Semantics.SUBSTRAIT
    for batch in map(awkward_batch, range(5)):
        wanted = ours(parse_predicate(text), SCHEMA, batch, rules)
        assert ours(read.exact(), SCHEMA, batch, rules) == wanted


def test_local_time_is_read_and_an_assumed_zone_is_not() -> None:
    writer = write.SubstraitWriter(SCHEMA)
    column, name = (part(4, item) for item in (TZ, APIA))
    for function, is_read in (("local_timestamp", True), ("assume_timezone", False)):
        made = writer._scalar_function(substrait.DATETIME, function, Timestamp())
        call = part(3, made[2 if made[1] < 0x80 else 3 :], column, name)
        moment = writer.constant(ir.Literal(0, Timestamp()))
        message = writer.message([writer._boolean(substrait.COMPARISON, "gt", call, moment)])
        read = from_substrait(message, SCHEMA)
        assert (read.expression is not None) is is_read
        if is_read:
            text = "tz AT TIME ZONE 'Pacific/Apia' > TIMESTAMP '1970-01-01'"
            for batch in map(awkward_batch, range(5)):
                wanted = ours(parse_predicate(text), SCHEMA, batch, Semantics.SUBSTRAIT)
                assert ours(read.exact(), SCHEMA, batch, Semantics.SUBSTRAIT) == wanted


OF_PYARROW = {
    "year": pc.year,
    "isoyear": pc.iso_year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "doy": pc.day_of_year,
    "isodow": partial(pc.day_of_week, count_from_zero=False),
    "hour": pc.hour,
    "minute": pc.minute,
    "whole_second": pc.second,
}


@pytest.mark.parametrize("name", ["UTC", "Pacific/Apia", "Europe/Berlin", "Asia/Kathmandu"])
@pytest.mark.parametrize("field", sorted(function_table.ZONED_PARTS))
def test_parts_of_times_in_zones_are_written(field: str, name: str) -> None:
    """pyarrow's own kernels judge, as no engine here takes these functions of Substrait's."""
    moment = (
        ir.Column("tz")
        if name == "UTC"
        else ir.Call("local_time", (ir.Literal(name), ir.Column("tz")))
    )
    for number_ in (1, 4, 30, 2013):
        sides = ir.Call("extract", (ir.Literal(field), moment)), ir.Literal(number_)
        written = to_substrait(ir.Comparison(ir.ComparisonOp.GT, *sides), SCHEMA).exact()
        assert (b"ONE" in written) is (field in function_table.COUNTED.values())
        read_back = from_substrait(written, SCHEMA).exact()
        for batch in map(awkward_batch, range(10)):
            local = pc.local_timestamp(batch["tz"].cast(pa.timestamp("us", name)))
            kept = pc.fill_null(pc.greater(OF_PYARROW[field](local), number_), fill_value=False)
            assert (
                ours(read_back, SCHEMA, batch, Semantics.SUBSTRAIT) == np.flatnonzero(kept).tolist()
            )


@pytest.mark.parametrize("name", ["Pacific/Apia", "Europe/Berlin", "Asia/Kathmandu"])
def test_local_times_are_written(name: str) -> None:
    predicate = parse_predicate(f"tz AT TIME ZONE '{name}' < TIMESTAMP '2013-01-01 10:30:00'")
    read_back = from_substrait(to_substrait(predicate, SCHEMA).exact(), SCHEMA).exact()
    limit = pa.scalar(datetime.datetime(2013, 1, 1, 10, 30), pa.timestamp("us"))
    for batch in map(awkward_batch, range(10)):
        local = pc.local_timestamp(batch["tz"].cast(pa.timestamp("us", name)))
        kept = pc.fill_null(pc.less(local, limit), fill_value=False)
        assert ours(read_back, SCHEMA, batch, Semantics.SUBSTRAIT) == np.flatnonzero(kept).tolist()


def test_an_offset_is_not_a_zone_name_in_substrait() -> None:
    local = ir.Call("local_time", (ir.Literal("+05:30"), ir.Column("tz")))
    predicate = ir.Comparison(
        ir.ComparisonOp.GT, ir.Call("extract", (ir.Literal("hour"), local)), ir.Literal(5)
    )
    assert to_substrait(predicate, SCHEMA).expression is None
