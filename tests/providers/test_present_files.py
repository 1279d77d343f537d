"""Files that an engine reads by itself are checked by few requests, whatever else is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from obstore.store import MemoryStore

from rowsieve.errors import CorruptData, RowsieveError
from rowsieve.objects import RemoteStore
from rowsieve.objects.store import Details
from rowsieve.providers.native_files.present_files import check_files
from rowsieve.storage.manifests.manifest import FileRef


class Counting(RemoteStore):
    """A store across a network that is none; counts objects listed and sizes asked for."""

    def __init__(self, objects: int) -> None:
        super().__init__(MemoryStore(), "memory:///counting", overlaps=True)
        self.listed = self.asked = 0
        for number in range(objects):
            self.put_new(f"data/{number:05}.parquet", b"abc")

    def details(self, prefix: str, most: int | None = None) -> Details:
        details = super().details(prefix, most)
        self.listed += len(details)
        return details

    def size(self, path: str) -> int:
        self.asked += 1
        return super().size(path)


@dataclass
class File:
    """What is asked of a file."""

    path: str
    size_bytes: int = 3
    checksum: str = field(default="")


def files(*numbers: int, size_bytes: int = 3) -> list[FileRef]:
    return [cast("Any", File(f"data/{number:05}.parquet", size_bytes)) for number in numbers]


@pytest.fixture(scope="module")
def filled() -> Counting:
    return Counting(4_500)


@pytest.mark.parametrize(
    ("count", "listed", "asked"),
    [(7, 0, 7), (8, 1_000, 6), (17, 2_000, 9), (900, 4_500, 0)],
)
def test_as_many_pages_are_listed_as_pay(
    filled: Counting, count: int, listed: int, asked: int
) -> None:
    filled.listed = filled.asked = 0
    check_files(filled, 0, files(*range(0, 4_500, 4_500 // count)[:count]))
    assert (filled.listed, filled.asked) == (listed, asked)


@pytest.mark.parametrize("count", [3, 20])
def test_a_file_that_is_gone_or_has_another_size_is_an_error(filled: Counting, count: int) -> None:
    with pytest.raises(CorruptData, match="3 bytes, and the manifest says 4"):
        check_files(filled, 0, files(*range(count), size_bytes=4))
    with pytest.raises(RowsieveError, match=r"09999\.parquet"):
        check_files(filled, 0, files(*range(count), 9_999))
