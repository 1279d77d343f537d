"""Times in INT96, at any depth, through every entry for files of other writers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.cli import app as cli
from rowsieve.errors import SchemaMismatch
from tests.foreign.int96_files import AT, EPOCH, SHAPES, Time, write_times
from tests.foreign.test_from_delta import field, write_log
from tests.profiles import examples

DAY_NS = 86_400_000_000_000
TIMES: list[Time | None] = [
    *[
        (0, 1_000),
        (19_723, 3_600_000_000_000 + 1_999),
        None,
        (-719_162, 0),
        (2_932_896, DAY_NS - 1),
    ],
    *[(-1, DAY_NS - 1), (0, -1), (0, 3 * DAY_NS)],  # nanoseconds outside of their day
]
TZ = pa.timestamp("us", "UTC")
DELTA = {
    "flat": "timestamp",
    "struct": {"type": "struct", "fields": [field("at", "timestamp"), field("n", "long")]},
    "list": {"type": "array", "elementType": "timestamp", "containsNull": True},
    "map": {
        "type": "map", "keyType": "string", "valueType": "timestamp", "valueContainsNull": True,
    },
    "list of structs": {
        "type": "array", "containsNull": True,
        "elementType": {"type": "struct", "fields": [field("at", "timestamp")]},
    },
}  # fmt: skip


def local(time: Time | None) -> datetime | None:
    """The obvious evaluator: whole microseconds, cut toward the past."""
    if time is None:
        return None
    return datetime(1970, 1, 1) + timedelta(days=time[0], microseconds=time[1] // 1_000)


def instant(time: Time | None) -> datetime | None:
    found = local(time)
    return None if found is None else found.replace(tzinfo=UTC)


def values_of(times: list[Time | None], shape: str, *, zoned: bool) -> list[Any]:
    of = instant if zoned else local
    return [SHAPES[shape][1](of(time)) for time in times]


def zoned(type_: pa.DataType) -> pa.DataType:
    """The type with instants instead of local times."""
    if pa.types.is_struct(type_):
        return pa.struct([each.with_type(zoned(each.type)) for each in type_])
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, zoned(type_.item_type))
    if pa.types.is_list(type_):
        return pa.list_(zoned(type_.value_type))
    return TZ if type_ == AT else type_


def add_files(catalog: rs.Catalog, table: str, folder: Path, *, copy: bool) -> None:
    catalog.call(
        f"CALL system.add_files(table => 'db.{table}', source => '{folder}', copy => {copy})"
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_times_at_any_depth_are_read_and_imported(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_times(path, TIMES, shape)
    wanted = values_of(TIMES, shape, zoned=False)
    assert rs.open_parquet(path).to_arrow()["c"].to_pylist() == wanted
    own = rs.from_parquet(path, tmp_path / "own")
    own.compact()
    assert own.to_arrow()["c"].to_pylist() == wanted


@pytest.mark.parametrize("shape", SHAPES)
def test_times_are_instants_where_the_table_says_so(shape: str, tmp_path: Path) -> None:
    path, wanted = tmp_path / "in" / "a.parquet", values_of(TIMES, shape, zoned=True)
    path.parent.mkdir()
    write_times(path, TIMES, shape)
    schema = pa.schema([("n", pa.int64()), ("c", zoned(SHAPES[shape][0]))])
    assert rs.open_parquet(path, schema=schema).to_arrow()["c"].to_pylist() == wanted
    catalog = rs.Catalog(tmp_path / "lake")
    for copy in (False, True):
        table = catalog.create_table(f"db.t{int(copy)}", schema)
        add_files(catalog, f"t{int(copy)}", path.parent, copy=copy)
        table.refresh()
        assert table.to_arrow()["c"].to_pylist() == wanted, copy


@pytest.mark.parametrize("shape", SHAPES)
def test_a_delta_table_is_read_and_imported_with_its_instants(shape: str, tmp_path: Path) -> None:
    delta, wanted = tmp_path / "delta", values_of(TIMES, shape, zoned=True)
    delta.mkdir()
    write_times(delta / "a.parquet", TIMES, shape)
    size = (delta / "a.parquet").stat().st_size
    fields = [field("n", "long"), field("c", DELTA[shape])]
    write_log(delta, fields, [{"path": "a.parquet", "size": size}], [])
    assert rs.from_delta(delta).to_arrow()["c"].to_pylist() == wanted
    imported = rs.import_delta(delta, tmp_path / "own")
    assert imported.scan(columns=["c"]).to_arrow()["c"].to_pylist() == wanted
    if shape == "struct":
        assert imported.count("c.at = timestamptz '1970-01-01 00:00:00.000001+00'") == 1


BEYOND = (106_751_992, -106_751_993, 2**31 - 1 - EPOCH, -(2**31) - EPOCH)


@pytest.mark.parametrize(
    ("day", "shape"), [*((day, "flat") for day in BEYOND), *((BEYOND[0], each) for each in SHAPES)]
)
def test_a_time_beyond_microseconds_is_refused(day: int, shape: str, tmp_path: Path) -> None:
    path = tmp_path / "in" / "a.parquet"
    path.parent.mkdir()
    write_times(path, [(0, 0), (day, 0)], shape)
    for table in (rs.open_parquet(path), rs.from_parquet(path, tmp_path / "own")):
        with pytest.raises(SchemaMismatch, match="is beyond timestamp"):
            table.to_arrow()
        assert table.scan(columns=["n"]).to_arrow().num_rows == 2
    catalog = rs.Catalog(tmp_path / "lake")
    schema = pa.schema([("n", pa.int64()), ("c", SHAPES[shape][0])])
    table = catalog.create_table("db.t", schema)
    for copy in (False, True):
        with pytest.raises(SchemaMismatch, match="is beyond timestamp"):
            add_files(catalog, "t", path.parent, copy=copy)
    assert table.refresh() == 0


days = st.integers(-(2**31) - EPOCH, 2**31 - 1 - EPOCH) | st.integers(-106_751_993, 106_751_993)
within = st.integers(0, DAY_NS - 1) | st.integers(-(2**63), 2**63 - 1)


@given(times=st.lists(st.none() | st.tuples(days, within), min_size=1, max_size=5))
@examples(200)
def test_every_time_is_exact_or_refused(times: list[Time | None], tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("int96") / "a.parquet"
    write_times(path, times)
    wanted = [
        None if each is None else each[0] * 86_400_000_000 + each[1] // 1_000 for each in times
    ]
    fits = all(each is None or -(2**63) <= each < 2**63 for each in wanted)
    table = rs.open_parquet(path)
    if fits:
        assert table.to_arrow()["c"].combine_chunks().view(pa.int64()).to_pylist() == wanted
    else:
        with pytest.raises(SchemaMismatch, match="is beyond"):
            table.to_arrow()


def test_nanoseconds_are_read_where_the_type_has_them(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_times(path, [(1, 123_456_789), None])
    fine = pa.field(
        "c", pa.timestamp("ns"), metadata={"ARROW:extension:name": "rowsieve.timestamp_ns.1"}
    )
    table = rs.open_parquet(path, schema=pa.schema([fine]))
    found = table.to_arrow()["c"].combine_chunks().view(pa.int64())
    assert found.to_pylist() == [DAY_NS + 123_456_789, None]
    write_times(path, [(106_752, 0)])
    with pytest.raises(SchemaMismatch, match="is beyond"):
        rs.open_parquet(path, schema=pa.schema([fine])).to_arrow()


@pytest.mark.parametrize("wanted", [pa.date32(), pa.int64(), pa.binary(), pa.string()])
def test_int96_fits_times_only(wanted: pa.DataType, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_times(path, [(1, 0)])
    with pytest.raises(SchemaMismatch, match="INT96 in the file, which has times only"):
        rs.open_parquet(path, schema=pa.schema([("c", wanted)]))


def test_int96_may_be_a_key(tmp_path: Path) -> None:
    for i in range(3):
        write_times(tmp_path / f"{i}.parquet", [(i, 0), (i, 2_000)])
    table = rs.from_parquet(tmp_path / "*.parquet", tmp_path / "own", key=["c"])
    table.upsert(pa.table({"n": [7], "c": pa.array([local((1, 0))], AT)}))
    assert table.scan("c = timestamp '1970-01-02'").to_arrow()["n"].to_pylist() == [7]
    assert table.count() == 6


def test_the_command_line_reads_far_and_nested_times(tmp_path: Path) -> None:
    times: list[Time | None] = [(2_932_896, 5_000), (-719_162, 0)]
    for shape in SHAPES:
        path, uri = tmp_path / f"{shape}.parquet", str(tmp_path / f"t {shape}")
        write_times(path, times, shape)
        result = CliRunner().invoke(cli.app, ["create", uri, str(path)])
        assert result.exit_code == 0, result.output
        found = rs.open_table(uri).to_arrow()["c"].to_pylist()
        assert found == values_of(times, shape, zoned=False), shape


def test_files_without_int96_are_read_as_before(tmp_path: Path) -> None:
    rows = pa.table({"c": pa.array([1, None], AT), "s": [{"c": b"x" * 12}, None]})
    pq.write_table(rows, tmp_path / "a.parquet")
    assert rs.open_parquet(tmp_path / "a.parquet").to_arrow().to_pylist() == rows.to_pylist()
