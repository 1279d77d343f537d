"""Pages of several files are decoded at once where few are wanted; the rows are those of each."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.errors import CorruptData, EvaluationError
from rowsieve.executor import units
from tests.planner.test_one_form import calls_of
from tests.profiles import examples
from tests.small_tables import appended, fresh_uri, keyed

PARTS, STEP = 5, 64


pytestmark = pytest.mark.usefixtures("tiny_row_groups")


@pytest.fixture(scope="module")
def table(tiny_row_groups: None) -> rs.Table:
    """Five parts with disjoint keys; text with a dictionary, and NULLs in one part."""
    made = rs.create_table(fresh_uri(), rows_of(0), key=["k"])
    for part in range(1, PARTS):
        made.upsert(rows_of(part))
    return made


def rows_of(part: int) -> pa.Table:
    keys = range(part * STEP, (part + 1) * STEP)
    texts = [None if part == 3 and k % 3 == 0 else f"t{k % 4}" for k in keys]
    return pa.table({"k": [*keys], "v": [k * 1.5 for k in keys], "t": texts})


def read(table: rs.Table, where: str, **options: Any) -> tuple[list[Any], int]:
    """The rows in key order, and how often pages were decoded."""
    found: list[pa.Table] = []
    calls = calls_of(lambda: found.append(table.scan(where, **options).to_arrow()))
    return found[0].sort_by("k").to_pylist(), calls["read_pages"]


def test_scattered_keys_are_decoded_by_one_call(table: rs.Table) -> None:
    rows, decoded = read(table, "k IN (3, 70, 101, 133, 193, 260, 300)")
    assert [row["k"] for row in rows] == [3, 70, 101, 133, 193, 260, 300]
    assert [row["t"] for row in rows] == ["t3", "t2", "t1", "t1", "t1", "t0", "t0"]
    assert decoded == 1


def test_rows_that_a_merge_hides_stay_hidden(table: rs.Table) -> None:
    made = rs.create_table(fresh_uri(), rows_of(0), key=["k"])
    for part in range(1, PARTS):
        made.upsert(rows_of(part))
    made.delete("k = 70")
    rows, _ = read(made, "k IN (3, 70, 101, 133, 260)")
    assert rows == read(table, "k IN (3, 101, 133, 260)")[0]


def test_deleted_rows_of_each_page_stay_out() -> None:
    table = appended(*({"k": [*range(i, i + 64)], "v": [i] * 64} for i in (0, 64, 128)))
    table.delete("k IN (2, 67, 130)")
    rows, decoded = read(table, "k IN (2, 3, 66, 67, 130, 131)")
    assert ([row["k"] for row in rows], decoded) == ([3, 66, 131], 1)


def test_tasks_have_a_limit_of_rows(table: rs.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "MAX_ROWS", 4)  # two pages
    rows, decoded = read(table, "k IN (3, 133, 193, 260, 300)")
    assert ([row["k"] for row in rows], decoded) == ([3, 133, 193, 260, 300], 3)


def test_reads_with_a_limit_do_not_wait_for_other_files(table: rs.Table) -> None:
    rows, decoded = read(table, "k IN (3, 133, 193, 260)", limit=1)
    assert (len(rows), decoded) == (1, 1)
    assert read(table, "k IN (3, 133, 193, 260)", limit=3)[1] == 3


@given(
    keys=st.lists(st.integers(-1, PARTS * STEP), min_size=1, max_size=9),
    value=st.integers(0, 500),
    columns=st.sampled_from([None, ["v"], ["t"], ["t", "k"]]),
)
@examples(60)
def test_rows_are_those_without_pruning(
    table: rs.Table, keys: list[int], value: int, columns: list[str] | None
) -> None:
    where = f"k IN ({', '.join(map(str, keys))}) AND (v < {value} OR t = 't1')"
    found, expected = (
        table.scan(where, columns=columns, pruning=pruning).to_arrow() for pruning in ("on", "off")
    )
    order = [(name, "ascending") for name in found.schema.names]
    assert found.schema == expected.schema
    assert found.sort_by(order).to_pylist() == expected.sort_by(order).to_pylist()


def test_files_with_other_columns_are_decoded_apart() -> None:
    table = keyed(*({"k": [*range(i, i + 64)], "v": [i] * 64} for i in (0, 64)))
    table.add_column("w", pa.int64(), default=7)
    table.rename_column("v", "u")
    table.upsert(pa.table({"k": [*range(128, 192)], "u": [1] * 64, "w": [2] * 64}))
    rows, decoded = read(table, "k IN (5, 70, 130)")
    assert rows == [
        {"k": 5, "u": 0, "w": 7},
        {"k": 70, "u": 64, "w": 7},
        {"k": 130, "u": 1, "w": 2},
    ]
    assert decoded == 3  # older files lack a column, so each is read alone
    rows, decoded = read(table, "k IN (5, 70, 130)", columns=["k", "u"])
    assert ([row["u"] for row in rows], decoded) == ([0, 64, 1], 2)


def test_an_error_of_one_file_is_raised(table: rs.Table) -> None:
    with pytest.raises(EvaluationError):
        table.scan("k IN (3, 133, 193, 260) AND 1 / (k - 193) > 5").to_arrow()


def test_damage_names_its_file(tmp_path: Any) -> None:
    table = rs.create_table(str(tmp_path / "t"), rows_of(0), key=["k"])
    table.upsert(rows_of(1))
    table.scan("k IN (3, 101)").to_arrow()  # footers are read
    second = sorted(table.files().column("path").to_pylist())[1]
    path = tmp_path / "t" / second
    data = bytearray(path.read_bytes())
    data[4:-2_000] = bytes(len(data) - 2_004)
    path.write_bytes(data)
    with pytest.raises(CorruptData, match=second):
        table.scan("k IN (3, 101)").to_arrow()
