"""Large statistics beside the list of parts: read when they are named, unknown when lost."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.sql import parse_predicate
from rowsieve.errors import InvalidInput, StoreError
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.storage.log import create_only
from rowsieve.storage.log.checkpoint import CHECKPOINTS, write_checkpoint
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_entry import LOG
from rowsieve.storage.log.log_head import _seen
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.segments import encode_index, encode_segments
from rowsieve.storage.manifests.side_file import POINTER, large_subjects, with_side_file
from rowsieve.storage.snapshot import Snapshot
from tests.faults.stores import FaultyStore
from tests.faults.vocabulary import Crash, Fault
from tests.small_tables import fresh_uri
from tests.storage.log_fixtures import commit, copy, keep, upsert

SMALL, SHORT, LONG = "stats.2.lower", "stats.3.lower", "stats.4.lower"


def rows(i: int) -> pa.Table:
    texts = {"short": [f"s{i}", f"s{i}x"], "long": [f"{i}" + "l" * 80, f"{i}" + "m" * 80]}
    return pa.table({"id": [2 * i, 2 * i + 1], "n": [i, i], **texts})


def made(commits: int = 3, **properties: str) -> tuple[rs.Table, ObjectStore]:
    """A table of so many parts; `long` has statistics of 200 bytes, of which half may stay."""
    options = {"statistics_inline_bytes": "200", "checkpoint_interval": "99", **properties}
    table = rs.create_table(fresh_uri(), rows(0), key=["id"], properties=options)
    for i in range(1, commits):
        table.upsert(rows(i))
    return table, table.handle.store


def side_files(store: ObjectStore) -> list[str]:
    return [path for path in store.list(LOG) if path.endswith(".stats")]


def latest(store: ObjectStore) -> Snapshot:
    _seen.clear()
    return CommitLog(store).latest()


def kept(snapshot: Snapshot, text: str) -> tuple[int, int]:
    """How many parts a condition leaves, and how many statistics were lost meanwhile."""
    plan = plan_scan(snapshot, "memory:///t", predicate=parse_predicate(text), now_us=0)
    parts = sum(len(piece.parts) for split in plan.splits for piece in split.pieces)
    return parts, plan.statistics_unreadable


def test_large_statistics_in_a_side_file_do_not_change_reads() -> None:
    table, store = made()
    whole, plain = made(statistics_inline_bytes="1000000")
    assert len(side_files(store)) == 3
    assert side_files(plain) == []
    found, expected = latest(store), latest(plain)
    names = [name for name in expected.parts.schema.names if name.startswith("stats.")]
    assert found.parts.read(names).equals(expected.parts.read(names))
    assert found.parts == table.handle.pinned.parts
    for text in ("id = 3", "n = 1", "short = 's1'", "long like '1l%'", "long > '2' and n < 2"):
        assert kept(found, text) == kept(expected, text)
        assert table.scan(text).to_arrow().equals(whole.scan(text).to_arrow())


def test_the_file_is_read_when_a_condition_names_its_column() -> None:
    _, inner = made()
    store = FaultyStore(inner)

    def read() -> list[str]:
        return [path for name, path in store.calls if name == "get_range"]

    found = latest(store)
    assert kept(found, "id = 3 and n = 1") == (1, 0)
    assert read() == []
    assert kept(found, "long like '1l%'") == (1, 0)
    assert sorted(read()) == side_files(inner)
    assert kept(found, "long like '2l%'") == (1, 0)
    assert len(read()) == 3


def test_keys_stay_in_the_list_and_the_largest_go_first() -> None:
    _, store = made(statistics_inline_bytes="1")
    (entry, *_) = [path for path in store.list(LOG) if path.endswith(".arrow")]
    inline, metadata = PartTable.from_ipc_with_metadata(store.get(entry))
    names = {name.rpartition(".")[0] for name in inline.schema.names if "stats" in name}
    assert names == {"stats.1"}
    assert POINTER in metadata
    parts = latest(store).parts
    assert large_subjects(parts, 10**6) == []
    sizes = [len(large_subjects(parts, most)) for most in (600, 400, 250, 100, 1)]
    assert sizes == sorted(sizes)
    assert large_subjects(parts, 200)[0].startswith("stats.4.")


def flipped(data: bytes) -> bytes:
    return bytes(byte ^ 255 for byte in data)


DAMAGE: dict[str, Callable[[ObjectStore, list[str]], ObjectStore]] = {
    "missing": lambda store, paths: copy(store, *paths),
    "flipped": lambda store, paths: copy(
        store, changed={path: flipped(store.get(path)) for path in paths}
    ),
    "cut": lambda store, paths: copy(store, changed={p: store.get(p)[:9] for p in paths}),
    "empty": lambda store, paths: copy(store, changed=dict.fromkeys(paths, b"")),
    "of another commit": lambda store, paths: copy(
        store, changed={paths[0]: store.get(paths[1]), paths[1]: store.get(paths[0])}
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_lost_statistics_are_unknown_and_counted(
    damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    table, store = made(statistics_inline_bytes="1")
    paths = side_files(store)[:2]
    found = latest(DAMAGE[damage](store, paths))
    assert kept(found, "id = 3") == (1, 0)
    with caplog.at_level(logging.WARNING):
        parts, lost = kept(found, "long like '1l%'")
    assert (2 <= parts <= 3, lost) == (True, 2)
    assert "are unknown" in caplog.text
    assert kept(found, "long like '1l%'") == (parts, 2)
    assert kept(found, "id > 100") == (0, 0)
    for text in ("long like '1l%'", "n = 2 or long > '3'"):
        assert kept(found, text)[0] >= kept(table.handle.pinned, text)[0]


def test_a_scan_over_lost_statistics_has_its_rows(tmp_path: Path) -> None:
    options = {"statistics_inline_bytes": "1"}
    table = rs.create_table(str(tmp_path), rows(0), key=["id"], properties=options)
    table.upsert(rows(1))
    for path in side_files(table.handle.store):
        (tmp_path / path).unlink()
    again = rs.open_table(str(tmp_path))
    scan = again.scan("long like '1l%'")
    assert scan.to_arrow().column("id").to_pylist() == [2]
    assert scan.metrics.statistics_unreadable == 2
    assert scan.metrics.parts_pruned == 0
    assert again.scan("id = 0").metrics.statistics_unreadable == 0


def test_a_store_that_fails_costs_statistics_and_no_checkpoint_forgets_them() -> None:
    _, inner = made()

    down = FaultyStore(inner).meet_where(
        Fault.UNAVAILABLE, "get_range", lambda path: path.endswith(".stats")
    )
    snapshot = latest(down)
    assert kept(snapshot, "long like '1l%'") == (3, 3)
    with pytest.raises(StoreError, match="could not be read"):
        write_checkpoint(inner, snapshot)
    assert kept(latest(inner), "long like '1l%'") == (1, 0)


def test_a_checkpoint_holds_them_apart_too() -> None:
    table, store = made(checkpoint_interval="2")
    (path,) = [path for path in store.list(CHECKPOINTS) if not path.endswith(".json")]
    assert path.endswith(".shards")
    found = latest(copy(store, *side_files(store)))
    assert found.parts.unreadable("stats.") == 0
    assert kept(found, "long like '1l%'") == (1, 0)
    assert found.parts == table.handle.pinned.parts


def test_restored_and_removed_parts_keep_their_statistics() -> None:
    table, store = made(4)
    table.delete("id = 2")
    table.restore(2)
    found = latest(store)
    assert kept(found, "long like '1l%'") == (1, 0)
    assert sorted(found.parts.part_ids) == sorted(table.handle.pinned.parts.part_ids)
    table.restore(3)
    assert kept(latest(store), "long like '3l%'") == (1, 0)


@pytest.mark.parametrize("kind", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_crash_at_any_store_call_leaves_before_or_after(
    kind: Fault,
) -> None:
    made_parts = made(2)[0].handle.pinned.parts.take([1])
    added = PartTable(made_parts.table.drop_columns(["commit_ts_min", "commit_ts_max"]))
    empty = made(1)[0].handle.pinned.parts
    fresh = empty.take([]).append(added)
    number, crashed = 0, True
    while crashed:
        _, inner = made(1)
        create_only._proven.clear()
        before = latest(inner)
        store = FaultyStore(inner, kind, number)
        try:
            CommitLog(store).commit(wanted := upsert(added=fresh), before, keep(wanted))
        except Crash:
            crashed = True
        else:
            crashed = False
        found = latest(inner)
        assert found.version in (0, 1)
        assert len(found.parts) == 1 + found.version
        assert kept(found, "long like '1l%'") == (found.version, 0)
        assert commit(CommitLog(inner), found, added=None).version == found.version + 1
        number += 1
    assert any(path.endswith(".stats") for name, path in store.calls if name == "put_new")
    puts = [path.rpartition(".")[2] for name, path in store.calls if name == "put_new"]
    assert [kind for kind in puts if kind in ("stats", "arrow")] == ["stats", "arrow"]
    assert puts[-1] == "json"


def test_a_pointer_that_does_not_fit_is_not_followed() -> None:
    _, store = made(1)
    (path,) = [path for path in store.list(LOG) if path.endswith(".arrow")]
    _, metadata = PartTable.from_ipc_with_metadata(store.get(path))

    inline = PartTable.from_ipc(store.get(path))
    pointer = metadata[POINTER]
    twice = PartTable(pa.concat_tables([inline.table, inline.table]))
    keys = pa.table({"key.9.lower": [1]})
    index = encode_index(keys.schema, encode_segments(keys, np.zeros(1, dtype=np.int64), 1)[1])
    other = {"file": f"{'0' * 32}.stats", "index": base64.b64encode(index).decode()}
    for parts, bad in (
        (inline, json.dumps(other).encode()),
        (inline, b"{"),
        (inline, b"{}"),
        (inline, pointer.replace(b".stats", b".other")),
        (inline, b'{"file": "x", "index": "AAAA"}'),
        (twice, pointer),
        (latest(store).parts, pointer),
    ):
        assert with_side_file(store, LOG, parts, {POINTER: bad}) == parts
    assert LONG in with_side_file(store, LOG, inline, metadata).schema.names


@pytest.mark.parametrize("value", ["0", "-1", "x", ""])
def test_the_threshold_is_a_number(value: str) -> None:
    with pytest.raises(InvalidInput, match="statistics_inline_bytes"):
        made(1, statistics_inline_bytes=value)
