"""Names that Spark's Parquet reader takes for something else keep a file from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.providers.spark import explain
from rowsieve.providers.spark.reads.file_names import is_misread, names_clash

pytestmark = pytest.mark.spark

STRUCT = pa.struct([("row_index", pa.int64())])
MEMBER = pa.struct([("${user.name}", pa.int64())])
TWINS = pa.struct([("a", pa.int64()), ("A", pa.int64())])


def with_column(folder: Path, name: str, values: pa.Array) -> rs.Table:
    columns = {"id": pa.array([1, 2, 3], pa.int64()), name: values}
    return rs.create_table(str(folder / "t"), pa.table(columns), key=["id"])


def numbers(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


@pytest.mark.parametrize(
    ("name", "values", "change"),
    [
        ("_tmp_metadata_row_index", numbers(7, 8, 9), lambda t: t.refresh()),
        ("_Tmp_metadata_row_index", numbers(7, 8, 9), lambda t: t.delete("id = 2")),
        (
            "_tmp_metadata_row_index",
            numbers(7, 8, 9),
            lambda t: (t.drop_column("_tmp_metadata_row_index"), t.delete("id = 2")),
        ),
        ("${user.name}", numbers(7, None, 9), lambda t: t.rename_column("${user.name}", "n")),
        ("s", pa.array([{"${user.name}": 1}] * 3, MEMBER), lambda t: t.refresh()),
        ("s", pa.array([{"a": 1, "A": 2}] * 3, TWINS), lambda t: t.delete("id = 2")),
    ],
)
def test_a_file_with_a_name_that_spark_misreads_goes_through_the_source(
    spark: Any, tmp_path: Path, name: str, values: pa.Array, change: Callable[[rs.Table], object]
) -> None:
    table = with_column(tmp_path, name, values)
    change(table)
    table.refresh()
    found = table.to_spark(spark).toArrow().sort_by("id")
    assert found.to_pylist() == table.to_arrow().sort_by("id").to_pylist()
    assert {part.route for part in explain(spark, table.uri).parts} == {"source"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        "aA",
        "\u03c3\u03c2",  # sigma and final sigma
        "\u00b5\u03bc",  # micro and mu
        "s\u017f",  # long s
        "k\u212a",  # Kelvin
        "i\u0130",
        "I\u0131",
        "\u00df\u1e9e",
        "\u03b8\u03d1",  # theta and its symbol
        ("Straße", "STRASSE"),
    ],
)
def test_names_that_java_finds_equal_but_for_case_clash(one: str, other: str) -> None:
    assert names_clash([one, "x", other])
    assert not names_clash([one, "x"])


def test_a_column_named_like_the_metadata_of_spark_is_read_like_others(
    spark: Any, tmp_path: Path
) -> None:
    values = pa.array([{"row_index": 5}, {"row_index": 0}, {"row_index": 1}], STRUCT)
    table = with_column(tmp_path, "_metadata", values)
    table.delete("id = 2")
    assert {part.route for part in explain(spark, table.uri).parts} == {"bitmap"}
    found = table.to_spark(spark).toArrow().sort_by("id")
    assert found.to_pylist() == table.to_arrow().to_pylist()


def test_tags_are_names_that_spark_reads(spark: Any, tmp_path: Path) -> None:
    columns = pa.table({"id": [1, 2], "${user.name}": [7, 8], "_metadata": ["a", "b"]})
    tagged = rs.create_table(
        str(tmp_path / "t"), columns, key=["id"], properties={"column_names": "tag"}
    )
    tagged.delete("id = 2")
    assert {part.route for part in explain(spark, tagged.uri).parts} == {"bitmap"}
    assert tagged.to_spark(spark).toArrow().to_pylist() == columns.slice(0, 1).to_pylist()


def test_names_inside_lists_and_maps_are_looked_at() -> None:
    twins = pa.list_(pa.map_(pa.string(), TWINS))
    assert is_misread([pa.field("l", twins)])
    assert not is_misread([pa.field("l", pa.list_(STRUCT)), pa.field("m", STRUCT)])
