"""With `column_names` "tag", nothing but the log has the names of columns and fields."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput
from rowsieve.types.encodings import arrow_schema, schema_of
from rowsieve.types.stored_names import tagged, tagged_rows

DEEP = pa.struct([("priv_deep", pa.int32())])
SCHEMA = pa.schema(
    [
        pa.field("priv_id", pa.int64(), nullable=False),
        ("priv_name", pa.string()),
        ("priv_float", pa.float64()),
        (
            "priv_struct",
            pa.struct(
                [
                    ("priv_city", pa.string()),
                    ("priv_nan", pa.float64()),
                    ("priv_tags", pa.list_(pa.field("priv_tag", pa.int64()))),
                ]
            ),
        ),
        (
            "priv_map",
            pa.map_(
                pa.field("priv_key", pa.string(), nullable=False), pa.field("priv_value", DEEP)
            ),
        ),
        ("priv_list", pa.list_(pa.field("priv_item", DEEP))),
        ("priv_json", pa.json_()),
    ]
)
NAME = b"priv"


def row(i: int) -> dict[str, Any]:
    struct = {"priv_city": f"c{i}", "priv_nan": float("nan") if i % 9 == 0 else i, "priv_tags": [i]}
    return {
        "priv_id": i,
        "priv_name": f"name {i}",
        "priv_float": None if i % 3 else i / 4,
        "priv_struct": None if i % 5 == 0 else struct,
        "priv_map": [("k", {"priv_deep": i})],
        "priv_list": [{"priv_deep": i}, None] if i % 4 else None,
        "priv_json": f'{{"n": {i}}}',
    }


def rows_of(*ids: int) -> pa.Table:
    return pa.Table.from_pylist([row(i) for i in ids], schema=SCHEMA)


def shown(rows: pa.Table) -> list[str]:
    """The rows as text, in which NaN is equal to itself."""
    return sorted(map(repr, rows.to_pylist()))


def expected(*ids: int) -> list[str]:
    return shown(rows_of(*ids))


def texts_of(path: Path) -> list[bytes]:
    """What a file tells: its bytes, its name, and its metadata that is base64 text."""
    found = [path.read_bytes(), str(path.name).encode()]
    if path.suffix == ".parquet":
        pairs = pq.read_metadata(path).metadata or {}
        found.append(base64.b64decode(pairs[b"ARROW:schema"]))
        assert any(b"rowsieve" in key for key in pairs)
    return found


def files_with_names(folder: Path) -> set[str]:
    return {
        path.suffix
        for path in folder.rglob("*")
        if path.is_file() and any(NAME in text for text in texts_of(path))
    }


def changed(folder: Path, names: str, key: list[str] | None) -> rs.Table:
    """A table with parts, tombstones or deletion vectors, side files, checkpoints, a compaction."""
    table = rs.create_table(
        folder,
        rows_of(*range(60)),
        key=key,
        properties={
            "column_names": names,
            "checkpoint_interval": "1",
            "statistics_inline_bytes": "1",
            "critical_columns": "priv_name, priv_struct.priv_city",
        },
    )
    write = table.upsert if key else table.append
    write(rows_of(100, 101))
    table.delete("priv_id = 7")
    table.compact()
    write(rows_of(102))
    table.delete("priv_struct.priv_city = 'c8'")
    return table


KEPT = (*(i for i in range(60) if i not in (7, 8)), 100, 101, 102)


@pytest.mark.parametrize("key", [None, ["priv_id"]])
def test_no_file_but_the_log_has_a_name(key: list[str] | None, tmp_path: Path) -> None:
    changed(tmp_path / "tag", "tag", key)
    assert files_with_names(tmp_path / "tag") == {".json"}  # the schema lines of the log
    stored = {path.suffix for path in (tmp_path / "tag").rglob("*") if path.is_file()}
    assert {".parquet", ".arrow", ".stats", ".json"} <= stored
    changed(tmp_path / "user", "user", key)
    assert ".parquet" in files_with_names(tmp_path / "user")


@pytest.mark.parametrize("key", [None, ["priv_id"]])
def test_every_reader_gives_the_names_back(key: list[str] | None, tmp_path: Path) -> None:
    table = changed(tmp_path / "t", "tag", key)
    assert shown(table.to_arrow()) == expected(*KEPT)
    scan = table.scan("priv_struct.priv_city = 'c12' OR priv_float = 3.75", ["priv_list"])
    assert shown(scan.to_arrow()) == shown(rows_of(12, 15).select(["priv_list"]))
    for found in (table.to_arrow(), table.to_dataset().to_table(), scan.to_arrow()):
        for column in found.columns:  # a list's type hides the names that it is not compared by
            assert "f1" not in str(column.type)
            assert "priv" in str(column.type) or not pa.types.is_nested(column.type)
    context = datafusion.SessionContext()
    context.register_table("t", table)
    some = ["priv_id", "priv_struct", "priv_list"]  # DataFusion itself renames fields of maps
    query = f"SELECT {', '.join(some)} FROM t WHERE priv_struct['priv_nan'] > 20 OR priv_id < 4"
    found = pa.table(context.sql(query).to_arrow_table())
    model = [i for i in KEPT if (i % 5 and (i > 20 or i % 9 == 0)) or i < 4]
    assert shown(found) == shown(rows_of(*model).select(some))  # NaN is the greatest number
    memory = duckdb.connect()
    memory.register("d", table.to_dataset())
    total = memory.sql("SELECT sum(priv_map['k'].priv_deep), count(*) FROM d").fetchall()
    assert total == [(sum(KEPT), len(KEPT))]
    assert table.compact().committed
    assert shown(rs.open_table(tmp_path / "t").to_arrow()) == expected(*KEPT)


def test_conditions_prune_parts_row_groups_and_blooms_as_they_do_by_name(tmp_path: Path) -> None:
    for where in (
        "priv_name = 'name 12'",
        "priv_struct.priv_city = 'c12'",
        "priv_id = 12",
        "priv_id = 1000",
        "priv_float > 1e9",
        "priv_struct.priv_nan < -5",
    ):
        counted = []
        for names in ("tag", "user"):
            folder = tmp_path / f"{names}{len(where)}{where[7]}"
            table = rs.create_table(
                folder, rows_of(*range(40)), key=["priv_id"], properties={"column_names": names}
            )
            scan = table.scan(where)
            found = shown(scan.to_arrow())
            metrics = scan.metrics
            counted.append((found, metrics.parts_pruned, metrics.row_groups_pruned))
        assert counted[0] == counted[1], where


def test_a_column_added_again_under_its_name_is_another_one(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "b": [5, 6]})
    table = rs.create_table(tmp_path / "t", rows, key=["id"], properties={"column_names": "tag"})
    table.drop_column("b")
    table.add_column("b", "int64", default=50)
    assert table.delete("b = 5").rows_deleted == 0
    table.upsert(pa.table({"id": [3], "b": [5]}))
    table.rename_column("id", "k")
    assert shown(table.to_arrow()) == shown(pa.table({"k": [1, 2, 3], "b": [50, 50, 5]}))
    files = (tmp_path / "t/data").glob("*.parquet")
    assert sorted(pq.read_schema(path).names for path in files) == [["f1", "f2"], ["f1", "f3"]]


def test_the_names_in_files_are_chosen_when_the_table_is_created(tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    tags = rs.create_table(tmp_path / "a", rows, properties={"column_names": "tag"})
    user = rs.create_table(tmp_path / "b", rows)
    assert not tags.set_properties({"column_names": "tag"}).committed
    assert user.set_properties({"column_names": "user"}).version == 1
    fixed = r"'column_names' is '(tag|user)' since the table"
    with pytest.raises(InvalidInput, match=fixed):
        tags.set_properties({"column_names": "user"})
    with pytest.raises(InvalidInput, match=fixed):
        tags.unset_properties(["column_names"])
    with pytest.raises(InvalidInput, match=fixed):
        user.set_properties({"column_names": "tag", "pruning": "off"})
    assert (tags.version, user.version) == (0, 1)
    with pytest.raises(InvalidInput, match="must be user or tag, not 'id'"):
        rs.create_table(tmp_path / "c", rows, properties={"column_names": "id"})
    files = tmp_path / "b/data"
    with pytest.raises(InvalidInput, match="the files keep their names"):
        rs.from_parquet(files, tmp_path / "d", properties={"column_names": "tag"})
    assert not (tmp_path / "d").exists()


def test_older_versions_refuse_a_table_with_tags(tmp_path: Path) -> None:
    for names, features in (("tag", ["column_tags"]), ("user", [])):
        rs.create_table(tmp_path / names, SCHEMA, properties={"column_names": names})
        entry = tmp_path / names / "_rowsieve/log" / f"{0:020}.json"
        lines = [json.loads(line) for line in entry.read_text().splitlines()]
        assert (
            next(each for each in lines if "protocol" in each)["protocol"]["features"] == features
        )


def test_rows_of_another_layout_are_converted_before_they_are_relabelled() -> None:
    schema, _ = schema_of(pa.schema([("a", pa.int32()), ("b", pa.list_(pa.int64()))]))
    plain = pa.table({"b": [[1], None], "a": pa.array([1, 2], pa.int64())})
    found = tagged_rows(plain, schema)
    found.validate(full=True)
    assert found.schema == arrow_schema(tagged(schema))
    assert found.to_pylist() == [{"f1": 1, "f2": [1]}, {"f1": 2, "f2": None}]
