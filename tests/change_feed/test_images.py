"""Labels of changed rows: rows that stay are left out wherever they are among the others."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.change_feed.images import CHANGE_TYPES, paired
from rowsieve.types.logical import Field, Int
from rowsieve.types.ordering.keys import KeyOrder
from tests.profiles import examples

ORDER = KeyOrder((Field(1, "k", Int(64), nullable=False),))
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])
SIDES = st.dictionaries(st.integers(0, 9), st.integers(0, 1))


def labelled(
    before: Mapping[int, int], after: Mapping[int, int], *, skip_same: bool
) -> list[tuple[int, int, str]]:
    sides = (
        pa.RecordBatch.from_pylist([{"k": k, "v": side[k]} for k in sorted(side)], SCHEMA)
        for side in (before, after)
    )
    old, new = (iter([side] if side.num_rows else []) for side in sides)
    return [
        (row["k"], row["v"], CHANGE_TYPES[label])
        for rows, labels in paired(old, new, ORDER, skip_same=skip_same)
        for row, label in zip(rows.to_pylist(), labels.tolist(), strict=True)
    ]


def expected(
    before: Mapping[int, int], after: Mapping[int, int], *, skip_same: bool
) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    for k in sorted({*before, *after}):
        if k not in after:
            found.append((k, before[k], "delete"))
        elif k not in before:
            found.append((k, after[k], "insert"))
        elif before[k] != after[k] or not skip_same:
            found += [(k, before[k], "update_preimage"), (k, after[k], "update_postimage")]
    return found


@pytest.mark.parametrize("skip_same", [True, False])
@examples(200)
@given(before=SIDES, after=SIDES)
def test_rows_have_the_labels_of_a_comparison_by_key(
    skip_same: bool, before: dict[int, int], after: dict[int, int]
) -> None:
    found = labelled(before, after, skip_same=skip_same)
    assert found == expected(before, after, skip_same=skip_same)


def test_rows_that_stay_need_not_follow_each_other() -> None:
    before, after = {0: 1, 1: 7, 2: 2, 3: 8, 4: 3}, {0: 1, 2: 2, 4: 9}
    found = labelled(before, after, skip_same=True)
    assert found == expected(before, after, skip_same=True)
    assert [label for _, _, label in found].count("delete") == 2
