"""Keys that follow from the manifest: they are those of the files, and visibility agrees."""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.executor.generated_keys import generated_keys, rows_with
from rowsieve.executor.live_rows import _VISIBLE
from rowsieve.executor.part_sources import PartSource
from rowsieve.planner.part_facts import part_facts
from rowsieve.planner.split import ContiguousKeys
from rowsieve.predicate.rowset import RowSet
from rowsieve.types.logical import Field, Int
from rowsieve.types.schema import Schema
from tests.profiles import examples

TYPES = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()]


class Run(NamedTuple):
    """Keys from `first` on, counted from an end of the type: all of them, or each second one."""

    first: int
    size: int
    step: int
    deletes: bool


RUNS = st.builds(
    Run, st.integers(0, 40), st.integers(1, 30), st.sampled_from([1, 1, 1, 2]), st.booleans()
)


def keys_of(run: Run, type_: pa.DataType, *, from_the_end: bool) -> list[int]:
    limits = np.iinfo(type_.to_pandas_dtype())
    origin = int(limits.max) - 110 if from_the_end else int(limits.min)
    return [origin + key for key in range(run.first, run.first + run.size * run.step, run.step)]


def known_keys(table: rs.Table) -> dict[str, list[int]]:
    """The keys that the manifest proves, by part, which are compared with those of the files."""
    snapshot = table.handle.committed()
    facts = part_facts(snapshot)
    schema = snapshot.schema.select(("id",))
    found = {}
    for part in facts.planned(np.arange(len(snapshot.parts))):
        if part.contiguous is None:
            continue
        files = PartSource(table.handle.store, part, snapshot.schema)
        read = [group.runs(schema) for group in files.row_groups(schema)]
        stored = [key for runs in read for _, run in runs for key in run()["id"].to_pylist()]
        made = [key for _, batch in files.rows(schema) for key in batch["id"].to_pylist()]
        assert made == stored
        found[part.part_id] = made
    return found


@examples(200)
@given(
    runs=st.lists(RUNS, min_size=1, max_size=6),
    number=st.integers(0, 6),
    from_the_end=st.booleans(),
)
def test_generated_keys_are_those_of_the_files(
    runs: list[Run], number: int, from_the_end: bool
) -> None:
    """A part with tombstones, with a gap, or at an end of its type is where this would fail."""
    type_ = TYPES[number]
    schema = pa.schema([("id", type_), ("v", pa.int64())])
    table = rs.create_table(
        f"memory:///{uuid.uuid4().hex}", schema, key=["id"], properties={"inline_bytes": 0}
    )
    model: dict[int, int] = {}
    contiguous = 0
    for version, run in enumerate(runs):
        keys = keys_of(run, type_, from_the_end=from_the_end)
        if run.deletes and version:
            table.delete(keys=pa.table({"id": pa.array(keys, type_)}))
            for key in keys:
                model.pop(key, None)
        else:
            table.upsert(pa.table({"id": keys, "v": [version] * len(keys)}, schema))
            model |= dict.fromkeys(keys, version)
            contiguous += run.step == 1 or run.size == 1
        _VISIBLE.answers.clear()
        assert table.count() == len(model)
        rows = table.to_arrow()
        assert dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True)) == model
    assert len(known_keys(table)) == contiguous
    table.compact()
    _VISIBLE.answers.clear()
    assert table.count() == len(model)
    known_keys(table)


def test_parts_with_gaps_files_of_others_and_other_keys_are_read(tmp_path: Any) -> None:
    rows = pa.table({"id": pa.array(range(9), pa.int64()), "b": pa.array(range(9), pa.int64())})
    files = {"inline_bytes": 0}
    own = rs.create_table(tmp_path / "own", rows, key=["id"], properties=files)
    assert len(known_keys(own)) == 1
    own.merge(
        rows.slice(0, 4)
    ).when_matched_delete("source.id < 2").when_matched_update_all().execute()  # fmt: skip
    assert len(known_keys(own)) == 1
    assert own.count() == 7
    gap = pa.concat_tables([rows.slice(0, 4), rows.slice(5)])
    assert not known_keys(rs.create_table(tmp_path / "gap", gap, key=["id"], properties=files))
    two = rs.create_table(tmp_path / "two", rows, key=["id", "b"], properties=files)
    assert not known_keys(two)
    text = rows.set_column(0, "id", rows["id"].cast(pa.string()))
    assert not known_keys(rs.create_table(tmp_path / "text", text, key=["id"], properties=files))
    import pyarrow.parquet as pq

    pq.write_table(rows, tmp_path / "other.parquet")
    placed = rs.from_parquet(str(tmp_path / "other.parquet"), tmp_path / "placed", key=["id"])
    assert not known_keys(placed)


@pytest.mark.parametrize("first", [-(2**63), -5, 0, 2**63 - 200_000])
def test_rows_are_found_by_keys_across_batches(first: int) -> None:
    count, schema = 150_000, Schema(0, (Field(3, "id", Int()),))
    keys = ContiguousKeys(3, first)
    wanted = RowSet.from_ids(np.array([65_535, 140_000]), count)
    batches = list(generated_keys(keys, schema, count, wanted, 50_000))
    assert [start for start, _ in batches] == [0, 50_000, 131_072]
    assert [len(batch) for _, batch in batches] == [50_000, 15_536, 18_928]
    for start, batch in batches:
        assert batch["id"][0].as_py() == first + start
    inside = [first + 7, first, first + count - 1, first + 7]
    outside = [key for key in (first - 1, first + count) if -(2**63) <= key < 2**63]
    rows = rows_with(keys, count, pa.array([*inside, *outside], pa.int64()))
    assert rows.to_ids().tolist() == [0, 7, count - 1]
