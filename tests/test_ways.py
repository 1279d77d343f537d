"""The functions that a call passes are counted."""

from __future__ import annotations

from rowsieve import varints
from tests.ways import passed, ways


def test_functions_and_files_of_the_second_call_are_counted() -> None:
    assert passed(lambda: None) == (0, 0, 0)
    assert passed(lambda: varints.encode_varint(300))[:2] == (1, 1)


def test_every_way_is_counted() -> None:
    for way in ways().values():
        assert way.functions > 100
        assert 10 < way.files < way.functions
