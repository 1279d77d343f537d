"""Keys of files in place: reading many small files at once decides as reading one by one does."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.errors import CorruptData, KeyViolation, SchemaMismatch
from rowsieve.foreign import many_keys
from tests.foreign import damaged
from tests.profiles import examples

TYPES: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "int64": (pa.int64(), lambda i: i),
    "int32": (pa.int32(), lambda i: i),
    "text": (pa.string(), lambda i: f"k{i:03}" * (1 + i % 3)),
    "large": (pa.large_string(), lambda i: f"é{i:03}"),
    "day": (pa.date32(), lambda i: date.fromordinal(700_000 + i)),
    "decimal": (pa.decimal128(9, 2), lambda i: Decimal(i) / 4),
    "ns": (pa.timestamp("ns"), lambda i: i * 1000),
}


@st.composite
def file_lists(draw: st.DrawFn) -> tuple[str, list[list[int | None]], int, bool]:
    """A type of the key, the keys of each file, the rows of a row group, and dictionaries."""
    count = draw(st.integers(1, 4))
    keys = iter(sorted(draw(st.sets(st.integers(0, 60), min_size=count * 2))))
    rest = list(keys)
    cuts = sorted(draw(st.sets(st.integers(1, len(rest) - 1), max_size=count - 1)))
    files: list[list[int | None]] = [
        list(rest[a:b]) for a, b in zip([0, *cuts], [*cuts, len(rest)], strict=True)
    ]
    files = draw(st.permutations(files))
    if draw(st.booleans()):
        spoilt = draw(st.sampled_from(files))
        place = draw(st.integers(0, len(spoilt) - 1))
        spoilt[place] = draw(st.none() | st.integers(0, 60))
    name = draw(st.sampled_from(sorted(TYPES)))
    return name, files, draw(st.integers(1, 9)), draw(st.booleans())


def imported(folder: Path, name: str) -> str:
    try:
        table = rs.from_parquet(folder / "files", folder / name, key=["k"])
    except (KeyViolation, SchemaMismatch) as error:
        return str(error)
    entries = table.handle.pinned.parts
    bounds = [
        (each.data.path if each.data else "", each.key_lower, each.key_upper)
        for each in entries.entries(range(len(entries)))
    ]
    return repr(bounds)


@given(file_lists())
@examples(60)
def test_files_read_together_are_judged_as_files_read_one_by_one(
    case: tuple[str, list[list[int | None]], int, bool],
) -> None:
    name, files, group_rows, dictionary = case
    type_, value = TYPES[name]
    with tempfile.TemporaryDirectory() as path, pytest.MonkeyPatch.context() as patched:
        folder = Path(path)
        (folder / "files").mkdir()
        for number, keys in enumerate(files):
            values = pa.array([None if key is None else value(key) for key in keys], type_)
            pq.write_table(
                pa.table({"v": range(len(keys)), "k": values}),
                folder / f"files/{number}.parquet",
                row_group_size=group_rows,
                use_dictionary=dictionary,
                data_page_version="2.0" if number % 2 else "1.0",
            )
        together = imported(folder, "a")
        patched.setattr(many_keys, "_READ_TOGETHER_UP_TO_ROWS", -1)
        assert together == imported(folder, "b")


def test_small_files_are_decoded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        pq.write_table(pa.table({"id": [number]}), tmp_path / f"{number}.parquet")
    monkeypatch.setattr("rowsieve.foreign.key_proof._ends_of", None)  # would be called one by one
    assert rs.from_parquet(tmp_path, tmp_path.with_suffix(".t"), key=["id"]).count() == 5


def test_damaged_statistics_and_pages_do_not_stop_the_proof(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for number in range(3):
        pq.write_table(
            pa.table({"id": [number, number + 10]}), tmp_path / f"files/{number}.parquet"
        )
    damaged.set_statistics(tmp_path / "files/1.parquet", 0, {5: b"\x01", 6: b"\x02"})
    with pytest.raises(KeyViolation, match="the files overlap"):
        rs.from_parquet(tmp_path / "files", tmp_path / "t", key=["id"])
    broken = bytearray((tmp_path / "files/2.parquet").read_bytes())
    broken[4:12] = b"\xff" * 8
    (tmp_path / "files/2.parquet").write_bytes(bytes(broken))
    with pytest.raises(CorruptData, match=r"2\.parquet"):
        rs.from_parquet(tmp_path / "files", tmp_path / "t", key=["id"])
