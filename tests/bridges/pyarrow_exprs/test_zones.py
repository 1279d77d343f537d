"""pyarrow's zones: what it finds itself by `local_timestamp`, `assume_timezone` and parts."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import rowsieve as rs
from rowsieve.bridges.pyarrow_exprs import from_pyarrow, to_pyarrow
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.binding import zoned
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.interpretation.abstract import AbstractColumn
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Timestamp
from rowsieve.types.time_zones import RepeatedTime, SkippedTime
from tests.predicate.part_statistics import Known
from tests.zones import EDGES

F = pc.field
ZONES = (
    *("America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Europe/Berlin", "Asia/Kolkata"),
    *("Asia/Kathmandu", "America/Sao_Paulo", "Africa/Casablanca", "UTC", "+05:30"),
)
SAME_IN_ARROW = ("Asia/Kolkata", "Asia/Kathmandu", "America/Sao_Paulo", "Pacific/Apia")
NAIVE = pa.array([datetime.datetime.fromisoformat(text) for text in EDGES], pa.timestamp("us"))
LOCALS = ("2024-03-31 02:00:00", "2024-10-27 02:30:00", "2011-12-31 00:00:00", "2050-07-01 05:00")


def rows(zone: str) -> pa.Table:
    """The edges as instants of a column in the zone, and as local times; a NULL at the end."""
    columns = {
        "at": pa.concat_arrays([NAIVE, pa.nulls(1, NAIVE.type)]).cast(pa.timestamp("us", zone)),
        "ts": pa.concat_arrays([NAIVE, pa.nulls(1, NAIVE.type)]),
    }
    return pa.table({"id": list(range(len(EDGES) + 1)), **columns})


def moment(text: str, zone: str | None = None) -> pa.Scalar:
    return pa.scalar(datetime.datetime.fromisoformat(text), pa.timestamp("us")).cast(
        pa.timestamp("us", zone)
    )


def conditions(zone: str) -> list[Any]:
    local = pc.local_timestamp(F("at"))
    elsewhere = pc.local_timestamp(F("at").cast(pa.timestamp("us", "America/Havana")))
    found = [local >= moment(text) for text in LOCALS]
    found += [pc.year(F("at")) == 2024, pc.month(F("at")) == 10, pc.day(F("at")) == 31]
    found += [pc.hour(F("at")) == 2, pc.minute(F("at")) == 30, pc.quarter(F("at")) < 2]
    found += [pc.iso_week(F("at")) == 44, pc.day_of_year(F("at")) > 300, pc.hour(local) < 3]
    found += [elsewhere < moment(LOCALS[1]), pc.hour(elsewhere) == 22]
    found += [F("at").cast(pa.timestamp("us")) > moment(LOCALS[0])]
    found += [F("ts").cast(pa.timestamp("us", zone)) > moment(LOCALS[0], "UTC")]
    for rule in ("earliest", "latest"):
        assumed = pc.assume_timezone(F("ts"), zone, ambiguous=rule, nonexistent=rule)
        found += [assumed > moment(text, "UTC") for text in LOCALS]
        found += [assumed == F("at"), pc.hour(assumed.cast(pa.timestamp("us", zone))) == 3]
    return found


def known(batch: pa.RecordBatch) -> Known:
    """Bounds of parts of three neighbours."""
    places = [[row, row + 1, row + 2] for row in range(len(batch) - 3)]
    columns = {}
    none = np.zeros(len(places), np.bool_)
    for name in ("at", "ts"):
        storage = pa.timestamp("us", "UTC" if name == "at" else None)
        values = batch.column(name).cast(storage)
        ends = [pc.min_max(values.take(pa.array(part))) for part in places]
        lower, upper = (
            pa.array([end[side].value for end in ends], pa.int64()).cast(storage)
            for side in ("min", "max")
        )
        columns[name] = AbstractColumn(lower, upper, none, none)
    return Known(len(places), columns)


@pytest.mark.parametrize("zone", ZONES)
def test_read_zone_conditions_keep_the_rows_of_pyarrow(zone: str) -> None:
    data = rows(zone)
    schema = schema_of(data.schema)[0]
    batch = data.to_batches()[0]
    stored = batch.set_column(1, "at", batch["at"].cast(pa.timestamp("us", "UTC")))
    for expression in conditions(zone):
        kept = ds.dataset(data).to_table(filter=expression)["id"].to_pylist()
        bound = bind(from_pyarrow(expression, schema).exact(), schema, Semantics.PYARROW)
        outcome = evaluate(bound, stored)
        assert np.flatnonzero(outcome.true).tolist() == kept, str(expression)
        for row, verdict in enumerate(interpret(bound, known(batch))):
            part = {row, row + 1, row + 2}
            assert verdict != Verdict.NONE or not part & set(kept), str(expression)
            assert verdict != Verdict.ALL or part <= set(kept), str(expression)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Pacific/Apia", "America/Sao_Paulo"])
def test_raise_fails_where_pyarrow_fails(zone: str) -> None:
    data = rows(zone)
    schema = schema_of(data.schema)[0]
    expression = pc.assume_timezone(F("ts"), zone) > moment(LOCALS[0], "UTC")
    bound = bind(from_pyarrow(expression, schema).exact(), schema, Semantics.PYARROW)
    failed = evaluate(bound, data.select(["id", "ts"]).to_batches()[0]).failed
    assert failed.any()
    for row in range(data.num_rows):
        one = ds.dataset(data.slice(row, 1))
        if failed[row]:
            with pytest.raises(pa.ArrowInvalid):
                one.to_table(filter=expression)
        else:
            one.to_table(filter=expression)


def written(zone: str) -> list[ir.Predicate]:
    at, ts = ir.Column("at"), ir.Column("ts")
    local = ir.Literal(1_711_850_400_000_000, Timestamp())
    made = [ir.Comparison(ir.ComparisonOp.GT, zoned.local_time(zone, at), local)]
    for repeated, skipped in (
        (RepeatedTime.EARLIER, SkippedTime.LAST_BEFORE),
        (RepeatedTime.LATER, SkippedTime.FIRST_AFTER),
    ):
        instant = zoned.instant(zone, ts, repeated, skipped)
        made.append(ir.Comparison(ir.ComparisonOp.GE, instant, at))
        bound = ir.Literal(1_300_000_000_000_000, Timestamp(utc=True))
        made.append(ir.Comparison(ir.ComparisonOp.LT, instant, bound))
    return list(made)


@pytest.mark.parametrize("zone", SAME_IN_ARROW)
def test_written_zone_conditions_keep_the_rows_in_pyarrow(zone: str) -> None:
    data = rows("Europe/Berlin")
    schema = schema_of(data.schema)[0]
    stored = data.set_column(1, "at", data["at"].cast(pa.timestamp("us", "UTC"))).to_batches()[0]
    for predicate in written(zone):
        outcome = evaluate(bind(predicate, schema, Semantics.PYARROW), stored)
        expression = to_pyarrow(predicate, schema).exact()
        kept = ds.dataset(data).to_table(filter=expression)["id"].to_pylist()
        assert kept == np.flatnonzero(outcome.true).tolist(), str(expression)
        back = bind(from_pyarrow(expression, schema).exact(), schema, Semantics.PYARROW)
        assert (evaluate(back, stored).true == outcome.true).all()


def test_zones_that_arrow_ends_in_2037_go_to_the_residual() -> None:
    data = rows("UTC")
    schema = schema_of(data.schema)[0]
    for zone in ("America/New_York", "Europe/Berlin", "Australia/Lord_Howe"):
        for predicate in written(zone):
            found = to_pyarrow(predicate, schema)
            assert found.expression is None
            assert "Arrow changes clocks" in found.notes[0]


def test_conditions_read_in_such_a_zone_are_written_again() -> None:
    data = rows("Europe/Berlin")
    schema = schema_of(data.schema)[0]
    expression = pc.local_timestamp(F("at")) > moment("2050-07-01 05:00:00")
    again = to_pyarrow(from_pyarrow(expression, schema).exact(), schema).exact()
    wanted = ds.dataset(data).to_table(filter=expression)
    assert ds.dataset(data).to_table(filter=again).equals(wanted)


@pytest.mark.parametrize(
    "expression",
    [
        pc.local_timestamp(pc.coalesce(F("at"), F("at"))) > moment(LOCALS[0]),
        pc.local_timestamp(pc.scalar(moment(LOCALS[0], "Europe/Berlin"))) > F("ts"),
        pc.strftime(F("at"), format="%H") == "03",
        pc.floor_temporal(F("at"), unit="day") > moment(LOCALS[0], "UTC"),
        pc.assume_timezone(F("ts"), "EST") > moment(LOCALS[0], "UTC"),
        pc.local_timestamp(F("at").cast(pa.timestamp("s", "Asia/Kolkata"))) > moment(LOCALS[0]),
    ],
    ids=str,
)
def test_an_unknown_zone_goes_to_the_residual(expression: pc.Expression) -> None:
    schema = schema_of(rows("Europe/Berlin").schema)[0]
    assert from_pyarrow(expression, schema).expression is None
    with pytest.raises(UnsupportedOperation):
        from_pyarrow(expression, schema, strict=True)


def test_a_dataset_filters_by_the_zone_of_its_column(tmp_path: Any) -> None:
    data = rows("America/New_York")
    table = rs.create_table(str(tmp_path / "t"), data, key=["id"])
    for expression in conditions("America/New_York"):
        wanted = ds.dataset(data).to_table(filter=expression)["id"].to_pylist()
        found = table.to_dataset().to_table(filter=expression)["id"].to_pylist()
        assert sorted(found) == wanted, str(expression)
        assert table.scan(expression).count() == len(wanted), str(expression)
