"""The seven invariants, each by its smallest story."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import CorruptData, InvalidInput, KeyViolation
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_entry import log_path
from tests.faults.stores import FaultyStore
from tests.faults.vocabulary import Fault
from tests.oracle_table import merge_by_row
from tests.small_tables import (
    appended,
    apply,
    files,
    fresh_uri,
    keyed,
    kv,
    meddled,
    pairs,
)


def commits_of(table: Table) -> list[int]:
    table.refresh()
    parts = table.handle.pinned.parts
    return sorted(parts.entry(i).commit_ts_max or 0 for i in range(len(parts)))


def test_i1_the_commit_ts_is_the_version_that_the_commit_got() -> None:
    table = keyed()
    other = rowsieve.open_table(table.uri)

    def meddle(attempt: int) -> None:
        if attempt == 0:
            other.upsert(kv((1, 100)))

    late = meddled(table, meddle).upsert(kv((1, 200)))
    assert late.version == 2
    assert commits_of(table) == [1, 2]
    assert pairs(table) == [(1, 200)]  # the later commit wins, not the earlier write
    assert pairs(table, version=1) == [(1, 100)]


def test_i1_no_fresh_file_says_when_it_was_committed() -> None:
    table = keyed({"k": [1, 2], "v": [1, 2]})
    apply(table, ("d", 1, None), ("u", 3, 3))
    for path in table.handle.store.list("data"):
        read = pq.ParquetFile(pa.BufferReader(table.handle.store.get(path)))
        assert set(read.schema_arrow.names) <= {"k", "v"}
        assert b"commit" not in b"".join(read.schema_arrow.metadata or {})
    assert commits_of(table) == [1, 2]


def test_i2_a_version_is_its_files_and_later_ones_change_nothing_in_it() -> None:
    table = keyed({"k": [1, 2], "v": [1, 1]})
    table.upsert(kv((1, 2)))
    table.delete("k = 2")
    table.compact()
    assert [pairs(table, version=v) for v in range(5)] == [
        [],
        [(1, 1), (2, 1)],
        [(1, 2), (2, 1)],
        [(1, 2)],
        [(1, 2)],
    ]
    for version in range(5):
        merge_by_row(rowsieve.open_table(table.uri, version=version))  # one version per key each


def test_i3_with_a_key_deletes_are_tombstones_without_one_vectors() -> None:
    with_key = keyed({"k": [1, 2], "v": [1, 2]})
    with_key.delete("k = 1")
    without = appended({"k": [1, 2], "v": [1, 2]})
    without.delete("k = 1")
    assert pairs(with_key) == pairs(without) == [(2, 2)]
    kinds = [
        {name.rsplit(".", 1)[1] for name in t.handle.store.list("data")}
        for t in (with_key, without)
    ]
    assert kinds == [{"parquet"}, {"parquet", "dv"}]
    assert with_key.detail()["tombstones"] == 1
    assert without.detail()["tombstones"] == 0


def test_i4_each_version_uses_the_vector_that_it_names() -> None:
    table = appended({"k": [1, 2, 3], "v": [1, 2, 3]})
    table.delete("k = 1")
    table.delete("k = 2")
    assert pairs(table, version=1) == [(1, 1), (2, 2), (3, 3)]
    assert pairs(table, version=2) == [(2, 2), (3, 3)]
    assert pairs(table, version=3) == [(3, 3)]
    table.restore(2)
    assert pairs(table) == [(2, 2), (3, 3)]
    table.delete("k = 3")
    assert pairs(table) == [(2, 2)]


def test_i4_a_vector_that_changed_is_refused(tmp_path: Any) -> None:
    table = rowsieve.create_table(str(tmp_path / "t"), kv((1, 1), (2, 2), (3, 3)))
    table.delete("k = 1")
    (vector,) = (tmp_path / "t" / "data").glob("*.dv")
    data = bytearray(vector.read_bytes())
    data[-2] ^= 1
    vector.chmod(0o644)
    vector.write_bytes(bytes(data))
    with pytest.raises(CorruptData, match="does not match its checksum"):
        table.scan().to_arrow()


ODD_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_1234))[0]
DOUBLE_KEY = pa.schema([pa.field("k", pa.float64(), nullable=False), pa.field("v", pa.int64())])


def test_i5_key_values_are_canonical() -> None:
    table = keyed({"k": [-0.0, math.nan], "v": [1, 1]}, schema=DOUBLE_KEY)
    table.upsert(pa.table({"k": [0.0, ODD_NAN], "v": [2, 2]}, schema=DOUBLE_KEY))
    stored = table.scan(order_by_key=True).to_arrow()
    assert stored["v"].to_pylist() == [2, 2]
    assert stored["k"].combine_chunks().view(pa.uint64()).to_pylist() == [0, 0x7FF8 << 48]
    table.delete(keys=pa.table({"k": [-0.0, -ODD_NAN]}))
    assert table.scan().count() == 0


def test_i5_the_first_to_write_a_key_stores_it_canonical_too() -> None:
    table = keyed({"k": [-0.0, -ODD_NAN], "v": [1, 1]}, schema=DOUBLE_KEY)
    stored = table.scan(order_by_key=True).to_arrow()["k"].combine_chunks()
    assert stored.view(pa.uint64()).to_pylist() == [0, 0x7FF8 << 48]
    apply_key = pa.table({"k": [-0.0], "v": [2], "op": ["u"], "lsn": [1]})
    table.apply_changes(apply_key, op="op", sequence="lsn")
    table.update({"v": "v + 1"}, where="k = 0")
    stored = table.scan(order_by_key=True).to_arrow()["k"].combine_chunks()
    assert stored.view(pa.uint64()).to_pylist() == [0, 0x7FF8 << 48]


@pytest.mark.parametrize("twins", [[0.0, -0.0], [math.nan, ODD_NAN], [-math.nan, math.nan]])
def test_i5_values_that_become_one_key_are_a_duplicate(twins: list[float]) -> None:
    table = keyed(schema=DOUBLE_KEY)
    with pytest.raises(KeyViolation, match="1 rows repeat the key"):
        table.upsert(pa.table({"k": twins, "v": [1, 2]}, schema=DOUBLE_KEY))
    assert table.version == 0


@pytest.mark.parametrize(
    "type_",
    [
        pa.list_(pa.int64()),
        pa.struct({"a": pa.int64()}),
        pa.map_(pa.string(), pa.int64()),
        pa.json_(),
    ],
    ids=str,
)
def test_i5_types_without_a_canonical_form_are_rejected_as_keys(type_: pa.DataType) -> None:
    uri = fresh_uri()
    with pytest.raises(InvalidInput, match="cannot be part of a key"):
        rowsieve.create_table(uri, pa.schema([pa.field("k", type_)]), key=["k"])


def test_i5_keys_of_one_byte_more_or_less_are_different_keys() -> None:
    schema = pa.schema([pa.field("k", pa.string(), nullable=False), pa.field("v", pa.int64())])
    table = keyed({"k": ["a", "a ", "A", "\u00e1", "a\u0301"], "v": range(5)}, schema=schema)
    table.upsert(pa.table({"k": ["a"], "v": [9]}, schema=schema))
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [1, 2, 3, 4, 9]


def test_i6_a_commit_whose_answer_is_lost_is_ours_once_it_stands() -> None:
    table = keyed()
    store = FaultyStore(table.handle.store)
    store.meet_where(Fault.LOST_ANSWER, "put_new", lambda path: path == log_path(1))
    log = CommitLog(store)
    handle = Table(Handle(store, log, log.latest()))
    commit = handle.upsert(kv((1, 1)))
    assert store.failed == ("put_new", log_path(1))
    assert commit.version == 1
    assert [c.commit_id for c in table.history(1)] == [commit.commit_id]
    assert pairs(table) == [(1, 1)]


def test_i6_entries_of_another_table_are_refused(tmp_path: Any) -> None:
    one = rowsieve.create_table(str(tmp_path / "one"), kv((1, 1)), key=["k"])
    two = rowsieve.create_table(str(tmp_path / "two"), kv((1, 1)), key=["k"])
    two.upsert(kv((1, 2)))
    entry = "_rowsieve/log/00000000000000000001.json"
    one.handle.store.put_new(entry, two.handle.store.get(entry))
    with pytest.raises(CorruptData, match="belongs to table"):
        rowsieve.open_table(one.uri)


def test_i7_a_delete_by_predicate_is_computed_again_when_its_rows_changed() -> None:
    table = keyed({"k": [1, 2], "v": [1, 1]})
    other = rowsieve.open_table(table.uri)

    def meddle(attempt: int) -> None:
        if attempt == 0:
            other.upsert(kv((1, 2)))

    meddled(table, meddle).delete("v = 1")
    assert pairs(table) == [(1, 2)]
    assert not [name for name in files(table) if "wal" in name]
