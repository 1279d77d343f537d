"""Columns made of fixed-size types take values of their size only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import SchemaMismatch
from rowsieve.types.encodings import schema_of
from rowsieve.types.schema import schema_from_json, schema_to_json

POINT = pa.list_(pa.float64(), 2)


def columns() -> pa.Schema:
    return pa.schema(
        {
            "id": pa.int64(),
            "b": pa.binary(3),
            "l": POINT,
            "s": pa.struct([("x", pa.binary(2)), ("any", pa.binary())]),
            "m": pa.map_(pa.string(), POINT),
            "ll": pa.list_(POINT),
        }
    )


ROW: dict[str, Any] = {
    "b": b"abc",
    "l": [1.0, None],
    "s": {"x": b"xy", "any": b""},
    "m": [("k", [1.0, 2.0]), ("n", None)],
    "ll": [[1.0, 2.0], None],
}
NOTHING = dict.fromkeys(ROW)
LOOSE = pa.schema(
    {
        "id": pa.int64(),
        "b": pa.large_binary(),
        "l": pa.large_list(pa.float64()),
        "s": pa.struct([("x", pa.binary()), ("any", pa.binary())]),
        "m": pa.map_(pa.string(), pa.list_(pa.float64())),
        "ll": pa.list_(pa.list_(pa.float64())),
    }
)


def rows(*given: dict[str, Any], schema: pa.Schema = LOOSE) -> pa.Table:
    return pa.Table.from_pylist([{"id": i, **row} for i, row in enumerate(given)], schema=schema)


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    made = rs.create_table(tmp_path / "t", columns(), key=["id"])
    made.upsert(rows(ROW, NOTHING))
    return made


def test_values_of_the_size_are_taken_in_any_layout(table: rs.Table) -> None:
    table.upsert(rows(ROW, ROW, NOTHING, schema=columns()))
    assert table.to_arrow().sort_by("id").to_pylist() == [
        {"id": 0, **ROW},
        {"id": 1, **ROW},
        {"id": 2, **NOTHING},
    ]
    table.upsert(table.to_arrow())
    table.compact()
    assert table.scan("b = 'abc' AND l[1] = 1").to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"b": b"abcd"}, r"'b' takes values of 3 bytes, and one has 4.*\(row 2"),
        ({"b": b""}, "'b' takes values of 3 bytes, and one has 0"),
        ({"l": [1.0]}, r"'l' takes values of 2 items, and one has 1.*\(row 2"),
        ({"l": []}, "'l' takes values of 2 items, and one has 0"),
        ({"s": {"x": b"x", "any": None}}, r"'s\.x' takes values of 2 bytes, and one has 1"),
        ({"m": [("k", [1.0] * 3)]}, r"'m\.value' takes values of 2 items, and one has 3"),
        ({"ll": [[1.0, 2.0], [1.0]]}, r"'ll\..*' takes values of 2 items, and one has 1"),
    ],
)
def test_other_sizes_are_refused(table: rs.Table, changed: dict[str, Any], message: str) -> None:
    version = table.version
    with pytest.raises(SchemaMismatch, match=message):
        table.upsert(rows(ROW, NOTHING, {**ROW, **changed}))
    assert table.version == version


def test_another_fixed_size_is_refused(table: rs.Table) -> None:
    other = columns().set(1, pa.field("b", pa.binary(4)))
    with pytest.raises(SchemaMismatch, match="takes values of 3 bytes, and one has 4"):
        table.upsert(rows({**ROW, "b": b"abcd"}, schema=other))


def test_updates_are_checked(table: rs.Table) -> None:
    with pytest.raises(SchemaMismatch, match="'b' takes values of 3 bytes, and one has 0"):
        table.update({"b": "(s).any"}, where="id = 0")
    table.update({"b": "NULL"}, where="id = 0")
    assert table.scan("id = 0").to_arrow()["b"].to_pylist() == [None]


def test_the_size_stays_with_the_column(table: rs.Table) -> None:
    again = rs.open_table(table.uri)
    again.rename_column("b", "c")
    with pytest.raises(SchemaMismatch, match="'c' takes values of 3 bytes"):
        again.upsert(rows({**ROW, "b": b"a"}).rename_columns(["id", "c", *LOOSE.names[2:]]))
    found = again.to_arrow()
    assert rs.to_native(found).schema.field("c").type == pa.binary(3)
    native = rs.to_native(found)
    assert pa.types.is_fixed_size_list(native.schema.field("l").type)
    assert native.to_pylist() == found.to_pylist()


def test_a_table_of_the_rows_has_the_sizes_too(table: rs.Table, tmp_path: Path) -> None:
    other = rs.create_table(tmp_path / "other", table.to_arrow(), key=["id"])
    with pytest.raises(SchemaMismatch, match="takes values of 3 bytes"):
        other.upsert(rows({**ROW, "b": b"a"}))


def test_the_log_keeps_sizes_where_readers_may_ignore_them() -> None:
    schema, _ = schema_of(columns())
    stored = schema_to_json(schema)
    assert schema_from_json(stored) == schema
    assert [field.get("size") for field in stored["fields"]] == [None, 3, 2, None, None, None]
    assert stored["fields"][1]["type"] == "binary"


def test_any_size_is_allowed_on_request(table: rs.Table) -> None:
    table.widen_column("b", pa.binary())
    table.widen_column("l", pa.list_(pa.float64()))
    table.widen_column("ll.element", pa.list_(pa.float64()))
    table.widen_column("s.x", pa.binary())
    loose = {**ROW, "b": b"", "l": [], "ll": [[]], "s": {"x": b"", "any": None}}
    table.upsert(rows(ROW, loose))
    assert table.to_arrow().sort_by("id").to_pylist() == [{"id": 0, **ROW}, {"id": 1, **loose}]
    with pytest.raises(rs.errors.InvalidSchemaChange, match="has this type already"):
        table.widen_column("b", pa.binary())
    table.compact()
    assert table.to_arrow().num_rows == 2


def test_the_size_is_not_changed(table: rs.Table) -> None:
    with pytest.raises(rs.errors.InvalidSchemaChange, match="cannot change the size"):
        table.widen_column("b", pa.binary(4))
    with pytest.raises(rs.errors.InvalidSchemaChange, match="of the size 3 in the table"):
        table.evolve(pa.schema({"b": pa.binary(4)}))
    table.evolve(pa.schema({"b": pa.binary(), "more": pa.binary(1)}))
    assert table.schema.names[-1] == "more"
    assert table.schema.field("b").metadata[b"rowsieve.fixed_size"] == b"3"


def test_defaults_have_the_size(table: rs.Table) -> None:
    with pytest.raises(SchemaMismatch, match="the default of column 'd' has 1 bytes"):
        table.add_column("d", pa.binary(2), default=b"x")
    table.add_column("d", pa.binary(2), default=b"xx")
    with pytest.raises(SchemaMismatch, match="the default of column 'd' has 3 bytes"):
        table.set_default("d", b"xxx")
    assert set(table.to_arrow()["d"].to_pylist()) == {b"xx"}


def test_malformed_metadata_is_refused(tmp_path: Path) -> None:
    field = pa.field("b", pa.binary(), metadata={"rowsieve.fixed_size": "-1"})
    with pytest.raises(SchemaMismatch, match="not a number of bytes or items"):
        rs.create_table(tmp_path / "t", pa.schema([("id", pa.int64()), field]), key=["id"])


def test_files_in_place_must_have_the_size(tmp_path: Path) -> None:
    for name, type_ in (("same", pa.binary(3)), ("any", pa.binary()), ("other", pa.binary(4))):
        (tmp_path / name).mkdir()
        value = b"abcd" if name == "other" else b"abc"
        data = pa.table({"id": pa.array([len(name)]), "b": pa.array([value], type_)})
        pq.write_table(data, tmp_path / name / "1.parquet")
    (tmp_path / "nested").mkdir()
    pq.write_table(rows(ROW).select(["id", "s"]), tmp_path / "nested" / "1.parquet")
    (tmp_path / "hive" / "b=abcd").mkdir(parents=True)
    pq.write_table(rows(ROW).select(["id"]), tmp_path / "hive" / "b=abcd" / "1.parquet")
    catalog = rs.Catalog(tmp_path / "lake")
    for name, own in (("t", ["id", "b"]), ("n", ["id", "s"])):
        catalog.create_table(f"db.{name}", pa.schema([columns().field(each) for each in own]))
    catalog.call(f"CALL system.add_files('db', 't', source => '{tmp_path / 'same'}')")
    for name in ("any", "other"):
        with pytest.raises(SchemaMismatch, match="of the size 3 only, and the file has"):
            catalog.call(f"CALL system.add_files('db', 't', source => '{tmp_path / name}')")
    with pytest.raises(SchemaMismatch, match="'x' inside column 's' takes values of the size"):
        catalog.call(f"CALL system.add_files('db', 'n', source => '{tmp_path / 'nested'}')")
    with pytest.raises(SchemaMismatch, match="takes values of 3 bytes"):
        catalog.call(f"CALL system.add_files('db', 't', source => '{tmp_path / 'hive'}')")


def test_files_of_others_may_have_several_sizes(tmp_path: Path) -> None:
    for size in (2, 3):
        data = pa.table({"b": pa.array([b"x" * size], pa.binary(size))})
        pq.write_table(data, tmp_path / f"{size}.parquet")
    opened = rs.open_parquet(str(tmp_path))
    assert sorted(opened.to_arrow()["b"].to_pylist()) == [b"xx", b"xxx"]
    assert opened.schema.field("b").type == pa.binary()
