"""Branches and tags by Spark: options of the reader, names, and VERSION AS OF a tag."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rowsieve
from rowsieve.catalog import Catalog
from rowsieve.errors import VersionNotFound
from rowsieve.providers.spark import sql
from tests.small_tables import kv

pytestmark = pytest.mark.spark


def rows(frame: Any) -> list[tuple[int, int]]:
    return sorted((row["k"], row["v"]) for row in frame.collect())


def test_options_name_a_branch_or_tag(spark: Any, tmp_path: Path) -> None:
    table = rowsieve.create_table(tmp_path / "t", kv((1, 1), (2, 2)), key=["k"])
    table.tag("q3")
    branch = table.branch("audit")
    branch.upsert(kv((2, 20), (3, 30)))
    table.upsert(kv((1, 10)))
    table.vacuum(retain_last=1, grace_s=0)
    reader, place = spark.read.format("rowsieve"), str(tmp_path / "t")
    for option in ("ref", "branch"):
        assert rows(reader.option(option, "audit").load(place)) == [(1, 1), (2, 20), (3, 30)]
    assert rows(spark.read.format("rowsieve").option("tag", "q3").load(place)) == [(1, 1), (2, 2)]
    assert rows(spark.read.format("rowsieve").load(place)) == [(1, 10), (2, 2)]
    assert rows(branch.to_spark(spark, "v >= 20")) == [(2, 20), (3, 30)]
    assert rows(rowsieve.open_table(place, version="q3").to_spark(spark)) == [(1, 1), (2, 2)]
    with pytest.raises(Exception, match="name the same thing"):
        spark.read.format("rowsieve").option("tag", "q3").option("ref", "audit").load(place)


def test_sql_by_name(spark: Any, tmp_path: Path) -> None:
    lake = Catalog(tmp_path / "lake")
    table = lake.create_table("db.t", kv((1, 1), (2, 2)), key=["k"])
    table.tag("q3")
    table.branch("audit").upsert(kv((3, 30)))
    table.upsert(kv((1, 10)))
    assert rows(sql(spark, "SELECT * FROM db.t VERSION AS OF 'q3'", lake)) == [(1, 1), (2, 2)]
    assert rows(sql(spark, "SELECT * FROM db.`t@audit`", lake)) == [(1, 1), (2, 2), (3, 30)]
    with pytest.raises(VersionNotFound, match="no branch or tag 'q4'"):
        sql(spark, "SELECT * FROM db.t VERSION AS OF 'q4'", lake)
