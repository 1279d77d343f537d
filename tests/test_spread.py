"""Spark's files are given out first, then the most expensive ones."""

from __future__ import annotations

from tests.spread import (
    SPARK,
    TESTS,
    USUAL_S,
    expensive_first,
    known_seconds,
    share_of,
    spark_functions,
)

SPARKS = "tests/providers/spark/test_spark_read.py"


def test_files_of_the_list_exist() -> None:
    assert [file for file in known_seconds() if not (TESTS.parent / file).exists()] == []


def test_spark_is_first_and_then_the_most_expensive_files() -> None:
    others = [file for file in known_seconds() if share_of(file) == file]
    known = sorted(others, key=lambda file: -known_seconds()[file])
    cheap, many = "tests/test_shards.py", "tests/test_varints.py"
    assert {cheap, many}.isdisjoint(known_seconds())
    nodeids = [f"{each}::test" for each in (cheap, *[many] * 10, known[1], known[0], SPARKS)]
    assert expensive_first(nodeids) == [4, *[3] * 10, 2, 1, 0]
    assert known_seconds()[known[1]] > USUAL_S * 10


def test_tests_of_spark_are_one_share_of_few_processes_and_two_of_more() -> None:
    tests = (f"{SPARKS}::test_x", "tests/bridges/spark_columns/test_read.py::test_x[a::b]")
    assert [share_of(test, 3) for test in tests] == [SPARK[0], SPARK[0]]
    assert [share_of(test, 4) for test in tests] == [*SPARK]
    assert share_of("tests/test_shards.py::test_x", 3) == "tests/test_shards.py"


def test_tests_beside_those_of_spark_stay_with_their_file() -> None:
    file = "tests/bridges/test_ten_thousand_terms.py"
    (marked,) = spark_functions(file) or {""}
    assert share_of(f"{file}::{marked}[1]") == SPARK[0]
    assert share_of(f"{file}::test_x[1]") == file
