"""Spark changes the case of each letter as `Semantics.SPARK` says, on any Java."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.predicate.functions.texts.young_letters import are_young
from rowsieve.predicate.semantics import Semantics
from tests.predicate.functions.test_young_letters import all_letters, here

pytestmark = pytest.mark.spark

FUNCTIONS = ("upper", "lower")
SMALL, CAPITAL = "\ua7cf", "\ua7ce"  # a pair since Unicode 17


def test_the_release_of_letters_is_that_of_sparks_icu(spark: Any) -> None:
    release = spark._jvm.com.ibm.icu.lang.UCharacter.getUnicodeVersion().getMajor()
    assert release == Semantics.SPARK.case_version


def test_each_letter_has_the_case_of_spark(spark: Any) -> None:
    every = all_letters()["s"].combine_chunks()
    letters = [
        letter
        for letter, is_young in zip(every.to_pylist(), are_young(every).tolist(), strict=True)
        if is_young or letter.upper() != letter or letter.lower() != letter
    ]
    neighbours = [one + two + three for one in "Σaß" for two in letters[-60:] for three in "Σb "]
    rows = pa.table({"s": [*letters, *neighbours]})
    found = spark.createDataFrame(rows).selectExpr(*(f"{name}(s) {name}" for name in FUNCTIONS))
    theirs = found.toArrow()
    for function in FUNCTIONS:
        ours = here(rows, function, Semantics.SPARK)
        pairs = zip(rows["s"].to_pylist(), ours, theirs[function].to_pylist(), strict=True)
        assert [pair for pair in pairs if pair[1] != pair[2]] == []


def test_a_row_with_a_young_letter_is_found(spark: Any, tmp_path: Path) -> None:
    rows = pa.table({"k": [1, 2, 3], "s": [SMALL + "a", CAPITAL + "A", "plain"]})
    table = rs.create_table(str(tmp_path / "t"), rows.schema, key=["k"])
    for place in range(3):
        table.upsert(rows.slice(place, 1))
    rows_of_spark = spark.createDataFrame(rows)
    for where in (f"upper(s) = '{CAPITAL}A'", f"lower(s) <> '{SMALL}a'"):
        wanted = sorted(row.k for row in rows_of_spark.where(where).collect())
        assert sorted(table.scan(where, dialect="spark").to_arrow()["k"].to_pylist()) == wanted
        assert sorted(row.k for row in table.to_spark(spark, where=where).collect()) == wanted
