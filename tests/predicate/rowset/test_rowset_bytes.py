"""Row sets as bytes: what is written comes back, and damaged bytes never do."""

from __future__ import annotations

import struct

import numpy as np
import pyroaring
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import CorruptData, UnsupportedProtocol
from rowsieve.predicate.rowset import RowSet
from rowsieve.predicate.rowset.roaring import _run_containers
from tests.predicate.rowset.rowset_backings import BACKINGS, rowset
from tests.profiles import examples

ROWS = 200_000
RANGES, BITMAP = 1, 2
id_sets = st.frozensets(st.integers(0, ROWS - 1), max_size=30)


def sealed(body: bytes) -> bytes:
    """A body with the checksum that belongs to it."""
    return body + xxhash.xxh3_64_digest(body)[::-1]


def framed(payload: bytes, rows: int, **header: int) -> bytes:
    """A payload with a right checksum, under a header that may say anything."""
    fields = {"version": 1, "backing": RANGES, "zero": 0, "row_count": ROWS} | header
    return sealed(struct.pack("<4sBBHQQ", b"RSRS", *fields.values(), rows) + payload)


def ends(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


@pytest.mark.parametrize("backing", BACKINGS)
@examples(200)
@given(ids=id_sets)
def test_encoded_sets_decode_to_equal_sets(backing: str, ids: frozenset[int]) -> None:
    rows = rowset(ids, ROWS, backing)
    assert RowSet.from_bytes(rows.to_bytes(), ROWS) == rows


@pytest.mark.parametrize("backing", BACKINGS)
@examples(200)
@given(ids=id_sets, data=st.data())
def test_a_changed_bit_is_found(backing: str, ids: frozenset[int], data: st.DataObject) -> None:
    whole = bytearray(rowset(ids, ROWS, backing).to_bytes())
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptData, match="reading a row set"):
        RowSet.from_bytes(bytes(whole), ROWS)


@pytest.mark.parametrize("backing", BACKINGS)
def test_missing_and_added_bytes_are_found(backing: str) -> None:
    whole = rowset({1, 2, 70_000}, ROWS, backing).to_bytes()
    for damaged in [whole[:size] for size in range(len(whole))] + [whole + b"\0", b"\0" + whole]:
        with pytest.raises(CorruptData, match=f"from {len(damaged)} bytes"):
            RowSet.from_bytes(damaged, ROWS)


@examples(200)
@given(st.binary(max_size=80))
def test_other_bytes_are_rejected(data: bytes) -> None:
    with pytest.raises(CorruptData):
        RowSet.from_bytes(data, ROWS)


@examples(200)
@given(st.binary(max_size=80), st.integers(0, 40), st.sampled_from((RANGES, BITMAP)))
def test_bytes_under_a_right_checksum_are_a_set_of_the_source_or_corrupt(
    payload: bytes, rows: int, backing: int
) -> None:
    try:
        found = RowSet.from_bytes(framed(payload, rows, backing=backing), ROWS)
    except CorruptData:
        return
    assert len(found) == rows
    assert all(0 <= row < ROWS for row in found)


@pytest.mark.parametrize("backing", BACKINGS)
def test_t34_bytes_of_another_source_are_refused(backing: str) -> None:
    data = rowset({1}, ROWS, backing).to_bytes()
    with pytest.raises(CorruptData, match="a source of 200000 rows, not 199999"):
        RowSet.from_bytes(data, ROWS - 1)


def test_other_bytes_with_a_valid_checksum_are_rejected() -> None:
    whole = RowSet.full(ROWS).to_bytes()
    with pytest.raises(CorruptData, match="the bytes are not a row set"):
        RowSet.from_bytes(sealed(b"RSRX" + whole[4:-8]), ROWS)


def test_a_newer_format_is_named() -> None:
    with pytest.raises(UnsupportedProtocol, match="format 2 was written by a newer Rowsieve"):
        RowSet.from_bytes(framed(b"anything", 0, version=2), ROWS)


GOOD = ends(1, 5, 3, 5)  # [1, 4) and [5, 6)


def test_the_layout_of_ranges_is_fixed() -> None:
    assert framed(GOOD, 4) == RowSet.from_ranges([(1, 4), (5, 6)], ROWS).to_bytes()


@pytest.mark.parametrize(
    ("payload", "rows", "header"),
    [
        (ends(5, 1, 5, 3), 4, {}),  # descending
        (ends(1, 4, 3, 5), 5, {}),  # touching
        (ends(1, 3, 3, 5), 6, {}),  # overlapping
        (ends(4, 2), 1, {}),  # stops before it starts
        (ends(4, 10, 2, 13), 3, {}),  # the same, and the count of rows fits
        (ends(1, 5, 3), 4, {}),  # odd
        (GOOD + b"\0", 4, {}),
        (GOOD, 5, {}),  # another count of rows
        (ends(ROWS - 1, ROWS), 2, {}),  # past the source
        (ends(7, (1 << 32) - 1), (1 << 32) - 7, {}),
        (GOOD, 4, {"version": 0}),
        (GOOD, 4, {"backing": 0}),
        (GOOD, 4, {"backing": 3}),
        (GOOD, 4, {"zero": 1}),
    ],
)
def test_ranges_that_do_not_hold_are_refused(
    payload: bytes, rows: int, header: dict[str, int]
) -> None:
    with pytest.raises(CorruptData, match="reading a row set"):
        RowSet.from_bytes(framed(payload, rows, **header), ROWS)


def roaring(key: int, declared: int, values: list[int]) -> bytes:
    """One array container in roaring's portable format."""
    head = struct.pack("<IIHHI", 12346, 1, key, declared - 1, 16)
    return head + np.array(values, dtype="<u2").tobytes()


def run_container(key: int, declared: int, *runs: int) -> bytes:
    """One run container: pairs of a first value and a length - 1."""
    head = struct.pack("<IBHHH", 12347, 1, key, declared - 1, len(runs) // 2)
    return head + np.array(runs, dtype="<u2").tobytes()


def test_the_payload_of_a_bitmap_is_portable_roaring() -> None:
    payload = roaring(0, 3, [1, 2, 9])
    assert payload == pyroaring.BitMap([1, 2, 9]).serialize()
    found = RowSet.from_bytes(framed(payload, 3, backing=BITMAP), ROWS)
    assert list(found) == [1, 2, 9]


@pytest.mark.parametrize("containers", [1, 3, 4, 9])
def test_runs_are_laid_out_as_roaring_lays_them_out(containers: int) -> None:
    limit = containers * 65536
    starts = np.array([5, *range(1000, limit, 30_000)])
    stops = np.append(starts[1:] - 100, limit)
    expected = pyroaring.BitMap()
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        expected.add_range(start, stop)
    expected.run_optimize()
    assert _run_containers(starts, stops - 1) == expected.serialize()


@pytest.mark.parametrize(
    ("payload", "rows"),
    [
        (b"", 0),
        (roaring(0, 3, [1, 2, 9]), 4),  # another count of rows
        (roaring(0, 3, [1, 2, 9]) + b"\0", 3),
        (roaring(0, 3, [1, 2]), 3),
        (roaring(0, 3, [9, 2, 1]), 3),
        (roaring(0, 3, [1, 1, 1]), 3),
        (roaring(3, 1, [ROWS - 3 * 65536]), 1),  # past the source
        (roaring(0, 5000, [65535] * 4096), 5000),  # a bitset with another count of bits
        (run_container(0, 7, 1, 2), 3),  # a header with another count
        (run_container(0, 6, 1, 2, 2, 2), 6),  # overlapping runs
        (run_container(0, 2, 65535, 1), 2),  # past the container
    ],
)
def test_bitmaps_that_do_not_hold_are_refused(payload: bytes, rows: int) -> None:
    with pytest.raises(CorruptData, match="reading a row set"):
        RowSet.from_bytes(framed(payload, rows, backing=BITMAP), ROWS)
