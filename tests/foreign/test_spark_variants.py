"""Variants that Spark writes: plain, shredded, inside other columns; JSON as its VARIANT."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import rowsieve as rs

pytestmark = pytest.mark.spark

DOCUMENTS = [
    '{"a":1,"b":[1,2,"x",null,true],"d":1.50,"big":123456789012345678901234567890,"é":"a\\"\\n"}',
    '{"a":"text","b":{"a":{"b":{"c":7}}},"z":1e300}',
    '{"a":2,"b":[3],"d":0.1}',
    *("[]", "{}", "null", '"s"', "-1", '{"a":null,"b":[]}'),
]
_ANNOTATED = "spark.sql.parquet.variant.annotateLogicalType.enabled"


def _read(text: str | None) -> Any:
    return None if text is None else json.loads(text, parse_float=Decimal, parse_int=Decimal)


def _write(spark: Any, path: Path, **settings: str) -> None:
    rows = [*enumerate(DOCUMENTS), (99, None)]
    frame = spark.createDataFrame(rows, "id bigint, t string").coalesce(1)
    frame = frame.selectExpr(
        "id",
        "parse_json(t) v",
        "array(parse_json(t), NULL) l",
        "named_struct('v', parse_json(t)) s",
        "map('k', parse_json(t)) m",
    )
    before = {key: spark.conf.get(key) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        frame.write.mode("overwrite").parquet(str(path))
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


@pytest.mark.parametrize("shredded", ["false", "true"])
def test_files_of_spark_have_its_documents(spark: Any, tmp_path: Path, shredded: str) -> None:
    _write(
        spark,
        tmp_path / "v",
        **{
            "spark.sql.variant.writeShredding.enabled": shredded,
            "spark.sql.variant.inferShreddingSchema": shredded,
        },
    )
    table = rs.open_parquet(tmp_path / "v")
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    wanted = spark.read.parquet(str(tmp_path / "v")).selectExpr("id", "to_json(v) t").orderBy("id")
    texts = [row.t for row in wanted.collect()]
    assert [_read(row["v"]) for row in found] == list(map(_read, texts))
    for row, text in zip(found, texts, strict=True):
        assert [_read(each) for each in row["l"]] == [_read(text), None]
        assert _read(row["s"]["v"]) == _read(text)
        assert [(key, _read(each)) for key, each in row["m"]] == [("k", _read(text))]
    where = "v->>'a' = '2' AND (s).v->'b'->>0 = '3' AND l[1]->>'d' = '0.1'"
    assert table.scan(where=where).to_arrow()["id"].to_pylist() == [2]


def test_a_file_without_the_logical_type_is_known_by_sparks_schema(
    spark: Any, tmp_path: Path
) -> None:
    _write(spark, tmp_path / "v", **{_ANNOTATED: "false"})
    found = rs.open_parquet(tmp_path / "v").scan(columns=["id", "v"]).to_arrow().sort_by("id")
    assert list(map(_read, found["v"].to_pylist()[:-1])) == list(map(_read, DOCUMENTS))


def test_an_imported_table_is_read_by_spark_as_text_and_parsed(spark: Any, tmp_path: Path) -> None:
    _write(spark, tmp_path / "v")
    table = rs.from_parquet(tmp_path / "v", str(tmp_path / "t"), key=["id"])
    frame = table.to_spark(spark, columns=["id", "v"])
    assert frame.schema["v"].dataType.simpleString() == "string"
    parsed = frame.selectExpr("id", "variant_get(parse_json(v), '$.b[0]', 'int') n")
    assert {row.id: row.n for row in parsed.where("n IS NOT NULL").collect()} == {0: 1, 2: 3}


def test_spark_writes_its_variants_to_json_columns(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([*enumerate(DOCUMENTS), (99, None)], "id bigint, t string")
    frame = frame.selectExpr("id", "parse_json(t) v")
    table = rs.create_table(str(tmp_path / "t"), frame.limit(0).toArrow(), key=["id"])
    assert table.schema.field("v").metadata[b"ARROW:extension:name"] == b"rowsieve.json.1"
    table.write_spark(frame, "upsert")
    found = table.scan().to_arrow().sort_by("id")["v"].to_pylist()
    assert list(map(_read, found)) == [*map(_read, DOCUMENTS), None]
    table.upsert(frame.where("id = 1").toArrow())
    assert table.scan(where="v->'b'->'a'->'b'->>'c' = '7'").to_arrow()["id"].to_pylist() == [1]
