"""The shares of the suite: together they are the whole, and no file is in two."""

from __future__ import annotations

import pytest

from tests.shards import files_of, parse_shard

FILES = {f"tests/test_{number}.py" for number in range(11)}


@pytest.mark.parametrize("count", [1, 2, 3, 4, 11, 20])
def test_every_file_is_in_exactly_one_shard(count: int) -> None:
    shards = [files_of((number, count), FILES) for number in range(1, count + 1)]
    assert sorted(file for shard in shards for file in shard) == sorted(FILES)


@pytest.mark.parametrize("text", ["", "2", "0/4", "5/4", "1/0", "a/4", "1/4/2", "-1/4", "1 of 4"])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="expected NUMBER/COUNT"):
        parse_shard(text)


def test_a_shard_is_its_number_and_their_count() -> None:
    assert parse_shard("2/4") == (2, 4)
