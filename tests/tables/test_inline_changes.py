"""Small changes live in their log entry: no file, no list of parts, and nothing lost later."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.config import current
from rowsieve.errors import CorruptData, InvalidInput, UnsupportedProtocol
from rowsieve.executor.execute import Execution
from rowsieve.storage import snapshot as snapshots
from rowsieve.storage.log import log_entry
from rowsieve.storage.log.inline_parts import MAX_ENTRY_BYTES, decode_inline, encode_inline
from tests.parts_in_memory import count_in_memory
from tests.small_tables import KV, fresh_uri, keyed, kv, pairs

INLINE = {"inline_bytes": 16_384}


def small(uri: str | None = None, **properties: Any) -> Table:
    return rs.create_table(uri or fresh_uri(), KV, key=["k"], properties={**INLINE, **properties})


class Unreachable:
    """A store that answers nothing."""

    overlaps = False

    def __init__(self, uri: str) -> None:
        self.uri = uri


def files(table: Table) -> Counter[str]:
    """The files of a table by folder."""
    store = table.handle.store
    return Counter({folder: len(store.details(folder)) for folder in ("data", "_rowsieve/log")})


def test_a_small_change_is_one_object_and_a_point_read_of_it_needs_no_request() -> None:
    table = small()
    before = files(table)
    table.upsert(kv((1, 10), (2, 20)))
    table.delete(keys={"k": [2]})
    table.delete("v = 99")
    assert files(table) - before == {"_rowsieve/log": 2}
    assert count_in_memory(table) == 2
    assert pairs(table) == [(1, 10)]
    for where in ("k = 1", "v = 10", "k = 2"):
        plan = table.scan(where).plan()
        read = list(Execution(plan, Unreachable(table.uri)).read())  # type: ignore[arg-type]
        assert sum(batch.num_rows for batch in read) == int(where != "k = 2")


def test_the_limit_decides_and_another_process_reads_the_same(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    table = small(uri, inline_bytes=1_600)
    table.upsert(kv(*((k, k) for k in range(100))))
    assert count_in_memory(table) == 1
    table.upsert(kv(*((k, -k) for k in range(50, 151))))
    assert count_in_memory(table) == 1
    assert len(list((tmp_path / "t/data").iterdir())) == 1
    rows = pairs(rs.open_table(uri))
    assert rows == pairs(table)
    assert len(rows) == 151


def test_a_table_without_the_property_has_files_until_it_is_set() -> None:
    table = keyed({"k": [1], "v": [10]}, properties={"inline_bytes": 0})
    assert table.handle.newest.table.reader_version == 1
    assert count_in_memory(table) == 0
    table.set_properties({"inline_bytes": 4096})
    info = table.handle.newest.table
    assert (info.reader_version, info.writer_version) == (7, 7)
    table.upsert(kv((2, 20)))
    assert count_in_memory(table) == 1
    table.set_properties({"inline_bytes": 0})
    table.upsert(kv((3, 30)))
    assert count_in_memory(table) == 1
    assert pairs(table) == [(1, 10), (2, 20), (3, 30)]


@pytest.mark.usefixtures("former_config")
def test_the_configuration_decides_at_each_write_of_a_table_created_under_it() -> None:
    rs.configure(replace(current(), inline_bytes=0))
    before = rs.create_table(fresh_uri(), kv((1, 10)), key=["k"])
    rs.configure(replace(current(), inline_bytes=5_000))
    table = rs.create_table(fresh_uri(), kv((1, 10)), key=["k"])
    assert table.detail()["properties"] == {}
    assert table.detail()["flags"]["inline_bytes"]["value"] == 5_000
    before.upsert(kv((2, 20)))
    assert count_in_memory(before) == 0  # a release that reads it knows no parts in memory
    assert "protocol" in before.detail()["flags"]["inline_bytes"]["detail"]
    rs.configure(replace(current(), inline_bytes=0))
    assert count_in_memory(table) == 1
    table.upsert(kv((1, 11)))
    assert count_in_memory(table) == 1
    table.upsert(kv((1, 10)))
    assert pairs(rs.open_table(table.uri)) == [(1, 10)]
    with pytest.raises(InvalidInput, match="inline_bytes"):
        rs.Config(inline_bytes=-1)


def test_deletes_without_a_key_put_one_entry_and_no_file(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = kv(*((k, k % 50) for k in range(4_000)))
    table = rs.create_table(uri, rows, properties=INLINE)
    before = files(table)
    table.delete("k < 5")
    table.delete("v = 7")
    table.update({"v": "1"}, where="k = 3999")
    assert files(table) - before == {"_rowsieve/log": 3}
    assert table.files().column("kind").to_pylist() == ["data"]
    expected = [(k, 1 if k == 3_999 else v) for k, v in pairs_of(rows) if k >= 5 and v != 7]
    for version in (None, table.version):
        assert pairs(rs.open_table(uri), version=version) == expected
    assert pairs(rs.open_table(uri), version=0) == pairs_of(rows)
    table.set_properties({"inline_total_bytes": "100"})
    table.delete("v = 8")
    vectors = [ref for ref in table.handle.newest.parts.deletion_vectors() if ref is not None]
    assert [ref.in_manifest for ref in vectors] == [False]
    expected = [(k, v) for k, v in expected if v != 8]
    assert pairs(rs.open_table(uri)) == expected
    table.maintain(retain_last=1, grace_s=0)
    assert pairs(rs.open_table(uri)) == expected


def pairs_of(rows: pa.Table) -> list[tuple[int, int]]:
    return [(row["k"], row["v"]) for row in rows.to_pylist()]


def test_a_vector_in_an_entry_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    table = rs.create_table(fresh_uri(), kv(*((k, k) for k in range(3_000))), properties=INLINE)
    table.delete("k = 7")
    ref = table.handle.newest.parts.deletion_vectors()[0]
    assert ref is not None
    assert ref.in_manifest
    for path in ("data:AAAA", "data:AAA"):
        damaged = table.handle.newest.parts.with_deletion_vector(replace(ref, path=path))
        monkeypatch.setattr(
            table.handle, "newest", replace(table.handle.newest, parts=damaged), raising=False
        )
        with pytest.raises(CorruptData, match="deletion vector"):
            table.scan().to_arrow()


def test_older_releases_refuse_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    table = small()
    table.upsert(kv((1, 10)))
    for module in (snapshots, log_entry):
        monkeypatch.setattr(module, "READER_VERSION", 1)
    with pytest.raises(UnsupportedProtocol, match=r"needs reader protocol 7.*upgrade"):
        rs.open_table(table.uri)


@pytest.mark.parametrize("in_shards", [False, True])
def test_expired_entries_lose_no_rows(
    in_shards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:  # invariant 39
    if in_shards:
        monkeypatch.setattr("rowsieve.storage.log.checkpoint.SHARDED_FROM", 2)
    table = small(checkpoint_interval=2)
    for k in range(7):
        table.upsert(kv((k, 10 * k)))
    table.delete(keys={"k": [3]})
    table.vacuum(retain_last=1, grace_s=0)
    rows = [(k, 10 * k) for k in range(7) if k != 3]
    assert files(table)["_rowsieve/log"] < 8
    assert pairs(rs.open_table(table.uri)) == rows
    assert count_in_memory(rs.open_table(table.uri)) == 8
    table.remove_orphans(grace_s=0)
    assert pairs(rs.open_table(table.uri)) == rows


def test_maintain_and_compaction_write_files_with_the_rows_ages() -> None:
    table = small()
    table.upsert(kv((1, 10)))
    assert table.compact().committed
    assert count_in_memory(table) == 0
    table.upsert(kv((2, 20)))
    table.delete(keys={"k": [1]})
    table.maintain(retain_last=100)
    assert count_in_memory(table) == 0
    assert pairs(table) == [(2, 20)]
    assert pairs(table, version=1) == [(1, 10)]
    assert not table.compact().committed


@pytest.mark.parametrize("picker", ["leveled", "tiered"])
def test_the_writer_that_passes_the_limit_writes_one_file(picker: str) -> None:
    table = small(inline_total_bytes=20_000, compaction=picker)
    table.upsert(kv(*((k, 0) for k in range(0, 4_000, 2))))  # a file
    model = dict.fromkeys(range(0, 4000, 2), 0)
    turns = random.Random(1)
    operations = []
    for _ in range(60):
        k = turns.randrange(200)
        if turns.random() < 0.3:
            table.delete(keys={"k": [k]})
            model.pop(k, None)
        else:
            table.upsert(kv((k, table.version)))
            model[k] = table.version - 1
            model[k] = pairs(table, f"k = {k}")[0][1]
        operations.append(table.history(limit=1)[0].operation)
    assert operations.count("compact") >= 1
    assert pairs(table) == sorted(model.items())
    assert count_in_memory(table) < 40
    assert pairs(rs.open_table(table.uri)) == sorted(model.items())
    fed = table.changes(1, table.version)
    state: dict[int, int] = dict.fromkeys(range(0, 4_000, 2), 0)
    for row in pa.table(fed).to_pylist():
        if row["_change_type"] in ("insert", "update_postimage"):
            state[row["k"]] = row["v"]
        elif row["_change_type"] == "delete":
            state.pop(row["k"], None)
    assert state == model


def test_a_failed_fold_leaves_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    table = small(inline_total_bytes=100)

    def fail(*_: Any, **__: Any) -> None:
        raise CorruptData("no")

    monkeypatch.setattr("rowsieve.maintenance.steps.pick_in_memory", fail)
    table.upsert(kv((1, 10)))
    assert pairs(table) == [(1, 10)]
    assert table.version == 1


def test_restore_clone_and_cherry_pick_take_the_rows_along(tmp_path: Path) -> None:
    table = small(str(tmp_path / "a"))
    table.upsert(kv((1, 10), (2, 20)))
    table.upsert(kv((2, 21), (3, 30)))
    table.delete("k = 1")
    table.restore(1)
    assert pairs(table) == [(1, 10), (2, 20)]
    table.cherry_pick(2)
    assert pairs(table) == [(1, 10), (2, 21), (3, 30)]
    copy = table.clone(str(tmp_path / "b"))
    table.upsert(kv((9, 90)))
    assert pairs(copy) == [(1, 10), (2, 21), (3, 30)]
    copy.upsert(kv((4, 40)))
    copy.compact()
    assert pairs(rs.open_table(copy.uri)) == [(1, 10), (2, 21), (3, 30), (4, 40)]


def test_the_parts_of_an_entry_read_back_or_are_an_error() -> None:
    table = small()
    table.upsert(kv((1, 10)))
    parts = table.handle.newest.parts
    content, size = encode_inline(parts)
    assert decode_inline(content, size, None, "here").table.select(["part_id", "data.content"]) == (
        parts.table.select(["part_id", "data.content"])
    )
    for wrong, length in (
        (content[:-5], size),
        (content, MAX_ENTRY_BYTES + 1),
        (content, size - 1),
    ):
        with pytest.raises(CorruptData):
            decode_inline(wrong, length, None, "here")


def test_an_append_table_and_columns_that_change() -> None:
    table = rs.create_table(fresh_uri(), KV, properties=INLINE)
    table.append(kv((1, 10), (1, 10)))
    table.add_column("w", pa.int64(), default=5)
    table.append(pa.table({"k": [2], "v": [None], "w": [6]}))
    table.delete("v = 10")
    assert table.scan().to_arrow().to_pylist() == [{"k": 2, "v": None, "w": 6}]
    table.append(kv((3, 30)))
    assert sorted(table.scan("w = 5").to_arrow()["k"].to_pylist()) == [3]
    table.compact()
    assert count_in_memory(table) == 0
    assert table.scan().count() == 2


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ("l = ARRAY[3]", [3]),
        ("NOT (l = ARRAY[3])", [1, 5]),
        ("l[1] > 2", [3, 5]),
        ("l IS NULL", [4]),
        ("s.a > 1", [3]),
        ("s.a IS NULL", [4, 5]),
        ("b > 'x'", [3]),
        ("k > 3", [4, 5]),
    ],
)
def test_columns_without_an_order_decide_no_row_in_memory(condition: str, keys: list[int]) -> None:
    columns = {"k": [1], "l": [[1]], "s": [{"a": 1}], "b": [b"x"]}
    table = rs.create_table(fresh_uri(), pa.table(columns), key=["k"], properties=INLINE)
    more = {"l": [[3], None, [5, 6]], "s": [{"a": 3}, None, {"a": None}], "b": [b"z", None, b"w"]}
    table.upsert(pa.table({"k": [3, 4, 5], **more}))
    assert sorted(table.scan(condition, ["k"]).to_arrow()["k"].to_pylist()) == keys
