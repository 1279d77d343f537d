"""Files of Iceberg tables that have no field ids: the rows are those that were written.

pyiceberg cannot judge: its scan of such files has an empty list or map where the file has NULL.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    DoubleType,
    FloatType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

import rowsieve as rs
from rowsieve.errors import SchemaMismatch, UnsupportedOperation
from tests.foreign.iceberg_tables import create

POINT = StructType(NestedField(6, "x", LongType()), NestedField(7, "label", StringType()))
OF_KEY = StructType(NestedField(10, "x", LongType()), NestedField(11, "label", StringType()))
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "name", StringType()),
    NestedField(3, "points", ListType(5, POINT, element_required=False)),
    NestedField(4, "by", MapType(8, StringType(), 9, OF_KEY, value_required=False)),
)
ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "name": "a",
        "points": [{"x": 1, "label": "p"}],
        "by": [("k", {"x": 2, "label": None})],
    },
    {"id": 2, "name": None, "points": None, "by": []},
    {"id": 3, "name": "é", "points": [None, {"x": None, "label": "q"}], "by": None},
]
OF_FILE = pa.struct([("x", pa.int64()), ("label", pa.string())])
ARROW = pa.schema(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "points": pa.list_(OF_FILE),
        "by": pa.map_(pa.string(), OF_FILE),
    }
)


def table_of(folder: Path, schema: Schema = SCHEMA, **options: Any) -> Any:
    return create(folder / "ice", schema, **options)


def check_same(iceberg: Any, folder: Path, rows: list[dict[str, Any]]) -> rs.Table:
    expected = sorted(map(repr, rows))
    opened = rs.from_iceberg(iceberg)
    assert sorted(map(repr, opened.to_arrow().to_pylist())) == expected
    imported = rs.import_iceberg(iceberg, folder / "own")
    assert sorted(map(repr, imported.to_arrow().to_pylist())) == expected
    imported.compact()
    assert sorted(map(repr, imported.to_arrow().to_pylist())) == expected
    return opened


def test_files_without_ids_are_read_by_the_name_mapping(tmp_path: Path) -> None:
    iceberg = table_of(tmp_path)
    pq.write_table(pa.Table.from_pylist(ROWS, ARROW), tmp_path / "a.parquet")
    iceberg.add_files([str(tmp_path / "a.parquet")])
    iceberg.append(pa.Table.from_pylist(ROWS[:1], ARROW))
    table = check_same(iceberg, tmp_path, ROWS + ROWS[:1])
    assert table.scan("name = 'é'").to_arrow()["id"].to_pylist() == [3]


def test_the_mapping_keeps_names_of_columns_that_were_renamed(tmp_path: Path) -> None:
    iceberg = table_of(tmp_path)
    shuffled = ["by", "points", "name", "id"]
    rows = pa.Table.from_pylist(ROWS, ARROW).select(shuffled)
    pq.write_table(rows, tmp_path / "a.parquet")
    iceberg.add_files([str(tmp_path / "a.parquet")])
    with iceberg.update_schema() as change:
        change.rename_column("name", "title")
        change.rename_column("points.element.label", "tag")
        change.add_column("new", LongType())
        change.delete_column("by")
    rows = [
        {
            "id": row["id"],
            "title": row["name"],
            "points": row["points"] and [each and renamed(each) for each in row["points"]],
            "new": None,
        }
        for row in ROWS
    ]
    table = check_same(iceberg, tmp_path, rows)
    assert table.count("title = 'a' AND new IS NULL") == 1


def renamed(point: dict[str, Any]) -> dict[str, Any]:
    return {"x": point["x"], "tag": point["label"]}


def test_a_mapping_without_a_field_leaves_it_null(tmp_path: Path) -> None:
    iceberg = table_of(tmp_path)
    pq.write_table(pa.Table.from_pylist(ROWS, ARROW), tmp_path / "a.parquet")
    iceberg.add_files([str(tmp_path / "a.parquet")])
    names = [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["other", "name"]}]
    with iceberg.transaction() as change:
        change.set_properties({"schema.name-mapping.default": json.dumps(names)})
    found = rs.from_iceberg(iceberg).to_arrow()
    assert found["name"].to_pylist() == ["a", None, "é"]
    assert found["points"].to_pylist() == found["by"].to_pylist() == [None] * 3


def test_a_mapping_to_two_columns_of_a_file_is_refused(tmp_path: Path) -> None:
    iceberg = table_of(tmp_path, Schema(NestedField(1, "id", LongType())))
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    iceberg.add_files([str(tmp_path / "a.parquet")])
    pq.write_table(pa.table({"id": [1], "key": [2]}), tmp_path / "a.parquet")
    names = [{"field-id": 1, "names": ["id", "key"]}]
    with iceberg.transaction() as change:
        change.set_properties({"schema.name-mapping.default": json.dumps(names)})
    with pytest.raises(SchemaMismatch, match="'id' and 'key', which are both 'id'"):
        rs.from_iceberg(iceberg)


def test_without_a_mapping_the_advice_helps(tmp_path: Path) -> None:
    iceberg = table_of(tmp_path, Schema(NestedField(1, "id", LongType())))
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    iceberg.add_files([str(tmp_path / "a.parquet")])
    names = iceberg.properties["schema.name-mapping.default"]
    with iceberg.transaction() as change:
        change.remove_properties("schema.name-mapping.default")
    with pytest.raises(UnsupportedOperation, match="set the property schema"):
        rs.from_iceberg(iceberg)
    with iceberg.transaction() as change:
        change.set_properties({"schema.name-mapping.default": names})
    assert rs.from_iceberg(iceberg).to_arrow()["id"].to_pylist() == [1]


def test_a_table_migrated_from_hive_is_read(tmp_path: Path) -> None:
    """Directories as partitions, INT96, text without its annotation, and no field ids."""
    schema = Schema(
        NestedField(1, "at", TimestamptzType()),
        NestedField(2, "name", StringType()),
        NestedField(3, "day", StringType()),
    )
    spec = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "day"))
    iceberg = table_of(tmp_path, schema, spec=spec)
    moment = datetime(2024, 1, 1, 12, tzinfo=UTC)
    path = tmp_path / "day=x" / "a.parquet"
    path.parent.mkdir()
    full = {"at": [moment, None], "name": ["a", "b"], "day": ["x", "x"]}
    pq.write_table(pa.table(full), path)  # with statistics, which add_files reads
    iceberg.add_files([str(path)])
    stored = pa.table({"at": pa.array(full["at"], pa.timestamp("us")), "name": [b"a", b"b"]})
    pq.write_table(stored, path, use_deprecated_int96_timestamps=True, store_schema=False)
    table = rs.from_iceberg(iceberg)
    assert table.to_arrow().to_pylist() == pa.table(full).to_pylist()
    assert table.count("name = 'b' AND day = 'x'") == 1
    imported = rs.import_iceberg(iceberg, tmp_path / "own")
    assert imported.to_arrow().to_pylist() == pa.table(full).to_pylist()


@pytest.mark.parametrize(
    ("type_", "default", "value"),
    [
        pytest.param(FloatType(), 1.1, 1.100000023841858, id="nearest"),
        pytest.param(FloatType(), 16_777_217, 16_777_216.0, id="integer"),
        pytest.param(FloatType(), 1e-46, 0.0, id="tiny"),
        pytest.param(FloatType(), -3.4028235e38, -3.4028234663852886e38, id="largest"),
        pytest.param(DoubleType(), 1.1, 1.1, id="double"),
    ],
)
def test_initial_defaults_of_floats_are_the_nearest_number(
    type_: Any, default: float, value: float, tmp_path: Path
) -> None:
    iceberg = table_of(tmp_path, Schema(NestedField(1, "id", LongType())))
    iceberg.append(pa.table({"id": [1]}))
    table = rs.from_iceberg(with_default(iceberg, type_, default, tmp_path))
    assert table.to_arrow()["f"].to_pylist() == [value]
    name = "real" if type_ == FloatType() else "double precision"
    assert table.count(f"f = CAST('{value!r}' AS {name})") == 1


def test_an_initial_default_beyond_float_is_refused(tmp_path: Path) -> None:
    iceberg = table_of(tmp_path, Schema(NestedField(1, "id", LongType())))
    iceberg.append(pa.table({"id": [1]}))
    with pytest.raises(UnsupportedOperation, match="it is beyond float"):
        rs.from_iceberg(with_default(iceberg, FloatType(), 1e39, tmp_path))


def with_default(iceberg: Any, type_: Any, default: float, folder: Path) -> Any:
    """The table with a column `f` of this initial default, which pyiceberg does not write."""
    from pyiceberg.table import StaticTable

    metadata = json.loads(iceberg.metadata.model_dump_json())
    fields = Schema(NestedField(1, "id", LongType()), NestedField(2, "f", type_))
    schema = json.loads(fields.model_dump_json()) | {"schema-id": 1}
    schema["fields"][1]["initial-default"] = default
    metadata |= {"format-version": 3, "next-row-id": 0, "current-schema-id": 1, "last-column-id": 2}
    metadata["schemas"].append(schema)
    path = folder / "v3.metadata.json"
    path.write_text(json.dumps(metadata))
    return StaticTable.from_metadata(str(path))
