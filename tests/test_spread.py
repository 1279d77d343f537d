"""Spark's files are given out first, then the most expensive ones."""

from __future__ import annotations

from tests.spread import SPARK, TESTS, USUAL_S, expensive_first, known_seconds, share_of

SPARKS = "tests/providers/spark/test_spark_read.py"


def test_files_of_the_list_exist() -> None:
    assert [file for file in known_seconds() if not (TESTS.parent / file).exists()] == []


def test_spark_is_first_and_then_the_most_expensive_files() -> None:
    others = [file for file in known_seconds() if share_of(file) == file]
    known = sorted(others, key=lambda file: -known_seconds()[file])
    cheap, many = "tests/test_shards.py", "tests/test_varints.py"
    assert {cheap, many}.isdisjoint(known_seconds())
    counts = {cheap: 1, many: 10, known[1]: 1, known[0]: 1, SPARKS: 1}
    assert list(expensive_first(counts)) == [SPARKS, known[0], known[1], many, cheap]
    assert known_seconds()[known[1]] > USUAL_S * 10


def test_files_with_a_test_of_spark_are_one_share_of_few_processes_and_two_of_more() -> None:
    files = (SPARKS, "tests/bridges/test_every_pair.py")
    assert [share_of(file, 3) for file in files] == [SPARK[0], SPARK[0]]
    assert [share_of(file, 4) for file in files] == [*SPARK]
    assert share_of("tests/test_shards.py", 3) == "tests/test_shards.py"
