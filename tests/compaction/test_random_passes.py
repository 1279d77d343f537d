"""Passes of every picker at any moment, against a dictionary per version."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve import Table
from rowsieve.compaction import pick, rewrite_passes, slices
from rowsieve.compaction.rewrite_passes import Compaction
from tests.profiles import examples
from tests.random_tables import tiny_row_groups
from tests.small_tables import fresh_uri

Action = tuple[int, int | None]
Step = list[Action] | str
"""Rows to write by key, None to delete it; or what to do between changes."""

HISTORY = st.lists(
    st.sampled_from(("pass", "pass", "store vectors"))
    | st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(0, 99)), max_size=6),
    min_size=6,
    max_size=24,
)


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """A few commits are many, and row groups have two rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "MAX_COMMITS", 3)
        patch.setattr(slices, "MIN_COMMITS", 2)
        patch.setattr(slices, "STREAMS_AT_ONCE", 2)
        patch.setattr(pick, "TIERS", 2)
        patch.setattr(pick, "MIN_OLD_PARTS", 2)
        yield from tiny_row_groups(2)


def one_pass(table: Table) -> None:
    """Commit the next pass of a compaction alone."""
    table.handle.commit_mutation(
        table.handle.change("compact", None, None),
        lambda snapshot: Compaction(table.handle.store, {}).plan_pass(
            snapshot, pick.pick(snapshot)
        ),
        any_columns=True,
    )


@given(
    history=HISTORY,
    part_bytes=st.sampled_from((1, 4_000, 100_000)),
    slice_bytes=st.sampled_from((-1, 5_000, 100_000)),
    picker=st.sampled_from(("leveled", "tiered")),
    cut_ratio=st.sampled_from((0, 8)),
    text=st.booleans(),
)
@examples(90)
def test_passes_at_any_moment_change_no_version(
    history: list[Step],
    part_bytes: int,
    slice_bytes: int,
    cut_ratio: int,
    picker: str,
    text: bool,
) -> None:
    type_ = pa.string() if text else pa.int64()
    schema = pa.schema([pa.field("k", type_, nullable=False), pa.field("v", pa.int64())])
    table = rs.create_table(
        fresh_uri(),
        schema,
        key=["k"],
        properties={"target_part_bytes": part_bytes, "compaction": picker},
    )
    versions: list[dict[object, int]] = [{}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewrite_passes, "SLICE_BYTES", slice_bytes)  # -1: every slice is streamed
        patch.setattr(slices, "SLICE_BYTES", abs(slice_bytes))
        patch.setattr(pick, "CUT_RATIO", cut_ratio)  # 0: parts of any size are cut
        for step in history:
            if isinstance(step, str):
                table.build_deletion_vectors() if step == "store vectors" else one_pass(table)
                changed: dict[object, int | None] = {}
            else:
                changed = {f"key {k}" if text else k: v for k, v in step}
                _apply(table, changed, type_)
            head = {**versions[-1], **changed}
            left = {k: v for k, v in head.items() if v is not None}
            if table.refresh() == len(versions):
                versions.append(left)
            assert left == versions[-1]
        table.compact()
        amplification = table.maintenance_advice().read_amplification
    versions += [versions[-1]] * (table.refresh() + 1 - len(versions))
    for version, rows in enumerate(versions):
        found = table.scan(version=version).to_arrow().to_pylist()
        assert {row["k"]: row["v"] for row in found} == rows
        assert len(found) == len(rows)
    if picker == "leveled":
        assert amplification <= 1.2
    assert not table.compact().committed


def _apply(table: Table, changed: dict[object, int | None], type_: pa.DataType) -> None:
    table.apply_changes(
        pa.table(
            {
                "k": pa.array(list(changed), type_),
                "v": pa.array(list(changed.values()), pa.int64()),
                "op": ["d" if v is None else "u" for v in changed.values()],
                "lsn": np.arange(len(changed)),
            }
        ),
        op="op",
        sequence="lsn",
    )
