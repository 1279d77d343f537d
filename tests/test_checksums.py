"""What the log, the manifests and plans write down stays the same text."""

from __future__ import annotations

import numpy as np
import pytest

from rowsieve.checksums import checksum, checksum_of_buffers


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", "xxh3_128:99aa06d3014798d86001c324468d497f", id="nothing"),
        pytest.param(b"rowsieve", "xxh3_128:fafc4e9164ca60bfce7de24fa8f8a447", id="text"),
        pytest.param(bytes(range(256)) * 8, "xxh3_128:df73e0768dd183fadd420471ff96bd00", id="long"),
    ],
)
def test_a_checksum_is_the_one_in_files_that_are_there(data: bytes, expected: str) -> None:
    assert checksum(data) == expected
    assert checksum(memoryview(data)) == expected
    assert checksum(np.frombuffer(data, np.uint8)) == expected
    assert checksum_of_buffers([data[:3], b"", data[3:]]) == expected
