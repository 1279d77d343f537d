"""The default size of splits."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowsieve.planner.splits import split_bytes_for_cores
from rowsieve.storage.manifests.manifest import PartTable
from tests.storage.test_manifest import file_ref, new_part, table_of

MB = 1024 * 1024


def parts(*sizes_bytes: int) -> PartTable:
    table = table_of(*(new_part(f"p{i}", data=file_ref(f"p{i}")) for i in range(len(sizes_bytes))))
    at = table.table.column_names.index("data.size_bytes")
    sizes = pa.array(sizes_bytes, table.table.schema.field(at).type)
    return PartTable(table.table.set_column(at, table.table.schema.field(at), sizes))


@pytest.mark.parametrize(
    ("stored", "least", "most", "cores", "expected"),
    [
        pytest.param((64 * MB, 64 * MB), MB, None, 4, 16 * MB, id="two splits a core"),
        pytest.param((64 * MB,), MB, None, 1, 32 * MB, id="one core"),
        pytest.param((2 * MB,), MB, None, 64, MB, id="no smaller than the least"),
        pytest.param((900 * MB,), 8 * MB, 64 * MB, 1, 64 * MB, id="no larger than the most"),
        pytest.param((), 8 * MB, 64 * MB, 2, 8 * MB, id="nothing stored"),
        pytest.param((900 * MB,), 8 * MB, 4 * MB, 2, 4 * MB, id="the most wins"),
    ],
)
def test_splits_are_even_within_their_bounds(
    stored: tuple[int, ...], least: int, most: int | None, cores: int, expected: int
) -> None:
    found = split_bytes_for_cores(parts(*stored), least=least, most=most, cores=cores)
    assert found == expected
