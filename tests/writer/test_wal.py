"""The write-ahead log: what it returns after crashes, damage and a change of its owner."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from rowsieve.errors import (
    CorruptData,
    InvalidInput,
    RowsieveError,
    StoreError,
    UnsupportedProtocol,
    WalLocked,
    WriterFailed,
    WriterFenced,
)
from rowsieve.writer import wal as wal_module
from rowsieve.writer.wal import Recovery, Wal
from rowsieve.writer.wal_frames import FrameKind, encode_frame
from tests.faults.files import FileCalls
from tests.faults.power import Journal
from tests.faults.vocabulary import Crash, Fault

TABLE = "a" * 32


def opened(folder: Path, *, table: str = TABLE, recovery: Recovery = "trim") -> Wal:
    return Wal(folder, table, b"preamble", recovery=recovery)


def payloads(wal: Wal) -> list[bytes]:
    return [bytes(record.payload) for record in wal.recovered]


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("segment-*"))


def grown(folder: Path, count: int) -> None:
    """Append that many records, each synced, and die without a seal."""
    wal = opened(folder)
    for number in range(count):
        wal.append(b"record %d" % number)
        wal.sync()
    wal.abandon()


def test_a_closed_log_returns_its_records_in_order(tmp_path: Path) -> None:
    wal = opened(tmp_path / "wal")
    assert [wal.append(b"one"), wal.append(b"two")] == [1, 2]
    wal.close()
    again = opened(tmp_path / "wal", recovery="strict")
    assert payloads(again) == [b"one", b"two"]
    assert [record.sequence for record in again.recovered] == [1, 2]
    assert {record.preamble for record in again.recovered} == {b"preamble"}
    assert again.append(b"three") == 3
    assert again.wal_id == wal.wal_id
    again.close()


def test_a_log_of_a_writer_that_died_returns_what_was_synced(tmp_path: Path) -> None:
    grown(tmp_path, 3)
    wal = opened(tmp_path, recovery="strict")  # zeros ahead of the frames are no torn record
    assert payloads(wal) == [b"record 0", b"record 1", b"record 2"]
    wal.close()


@pytest.mark.parametrize("cut_bytes", range(1, 52))
def test_a_torn_last_record_is_cut_off_or_refused(tmp_path: Path, cut_bytes: int) -> None:
    grown(tmp_path, 3)
    path = files(tmp_path)[-1]
    data = path.read_bytes().rstrip(b"\0")
    path.write_bytes(data[: len(data) - cut_bytes])
    with pytest.raises(CorruptData, match="incomplete, as after a crash"):
        opened(tmp_path, recovery="strict")
    wal = opened(tmp_path)
    assert payloads(wal) == [b"record 0", b"record 1"]
    assert wal.append(b"again") == 3
    wal.close()
    assert payloads(opened(tmp_path, recovery="strict")) == [b"record 0", b"record 1", b"again"]


def test_a_damaged_record_that_was_durable_is_an_error(tmp_path: Path) -> None:
    grown(tmp_path, 3)
    path = files(tmp_path)[-1]
    data = path.read_bytes()
    place = data.index(b"record 1")
    path.write_bytes(data[:place] + b"R" + data[place + 1 :])
    with pytest.raises(CorruptData, match="durable is invalid"):
        opened(tmp_path)


def test_each_damaged_byte_of_a_closed_file_is_an_error(tmp_path: Path) -> None:
    wal = opened(tmp_path / "wal")
    wal.append(b"one")
    wal.append(b"two")
    wal.close()
    data = files(tmp_path / "wal")[0].read_bytes()
    for place in range(len(data)):
        folder = tmp_path / str(place)
        shutil.copytree(tmp_path / "wal", folder)
        changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        files(folder)[0].write_bytes(changed)
        (folder / f"segment-{2:020d}.wal").write_bytes(b"")  # so the first is not the newest
        with pytest.raises((CorruptData, UnsupportedProtocol)):
            opened(folder)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    wal = opened(tmp_path)
    for number in range(3):
        wal.append(b"%d" % number)
        wal.begin(b"preamble")
    wal.close()
    files(tmp_path)[1].unlink()
    with pytest.raises(CorruptData, match="the file is missing"):
        opened(tmp_path)


def test_a_file_of_an_older_copy_does_not_fit_in(tmp_path: Path) -> None:
    grown(tmp_path / "wal", 1)
    shutil.copytree(tmp_path / "wal", tmp_path / "copy")
    for folder, payload in (("wal", b"ours"), ("copy", b"theirs")):
        wal = opened(tmp_path / folder)
        wal.append(payload)
        wal.begin(b"next")
        wal.append(payload)
        wal.close()
    name = files(tmp_path / "wal")[1].name
    shutil.copy(tmp_path / "copy" / name, tmp_path / "wal" / name)
    with pytest.raises(CorruptData, match="does not follow"):
        opened(tmp_path / "wal")


def test_a_frame_of_a_later_release_is_not_cut_off(tmp_path: Path) -> None:
    grown(tmp_path, 1)
    path = files(tmp_path)[-1]
    data = path.read_bytes().rstrip(b"\0")
    header, _ = encode_frame(FrameKind.RECORD, 2, 1, 0, b"x")
    path.write_bytes(data + header[:4] + b"\x02" + header[5:] + b"x")
    with pytest.raises(UnsupportedProtocol, match="upgrade rowsieve"):
        opened(tmp_path)


def test_a_log_of_another_table_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with pytest.raises(InvalidInput, match=r"belongs to the table a{32}, not to b{32}"):
        opened(tmp_path, table="b" * 32)
    opened(tmp_path).close()  # the refused one left nothing behind


def test_two_writers_on_one_directory(tmp_path: Path) -> None:
    first = opened(tmp_path)
    with pytest.raises(WalLocked, match="holds its lock"):
        opened(tmp_path)
    first.append(b"one")
    first.sync()
    first.close()


def test_a_writer_that_lost_its_lock_is_fenced(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.append(b"one")
    first.sync()
    (tmp_path / "lock").unlink()
    second = opened(tmp_path)
    assert payloads(second) == [b"one"]
    first.append(b"two")
    for _ in range(2):
        with pytest.raises(WriterFenced, match="taken over by another writer"):
            first.sync()
    first.abandon()
    second.append(b"2")
    second.close()
    assert payloads(opened(tmp_path)) == [b"one", b"2"]


def test_a_removed_directory_fences_its_writer(tmp_path: Path) -> None:
    wal = opened(tmp_path / "wal")
    shutil.rmtree(tmp_path / "wal")
    opened(tmp_path / "wal").close()  # the same name, and the same epoch
    wal.append(b"one")
    with pytest.raises(WriterFenced):
        wal.sync()
    wal.abandon()


def test_a_forked_process_does_not_keep_the_lock(tmp_path: Path) -> None:
    wal = opened(tmp_path)
    go, gone = os.pipe()
    ready, begun = os.pipe()
    child = os.fork()
    if not child:
        os.close(gone)
        os.write(begun, b"x")
        os.read(go, 1)  # until the parent closes its end
        os._exit(0)
    os.close(go)
    os.read(ready, 1)
    wal.close()
    opened(tmp_path).close()
    os.close(gone)
    os.waitpid(child, 0)


def test_forgotten_files_are_removed_and_sequences_go_on(tmp_path: Path) -> None:
    wal = opened(tmp_path)
    for number in range(4):
        wal.append(b"%d" % number)
        wal.begin(b"preamble")
    wal.forget(2)
    wal.close()
    again = opened(tmp_path)
    assert (again.first_sequence, payloads(again)) == (3, [b"2", b"3"])
    again.forget(again.last_sequence)
    again.close()
    last = opened(tmp_path)
    assert (payloads(last), last.append(b"4")) == ([], 5)
    last.close()


def test_a_long_log_has_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wal_module, "SEGMENT_BYTES", 300)
    wal = opened(tmp_path)
    for number in range(5):
        wal.append(b"%d" % number * 60)
    wal.close()
    assert len(files(tmp_path)) == 3
    assert payloads(opened(tmp_path)) == [b"%d" % number * 60 for number in range(5)]


def append_records(wal: Wal, acknowledged: list[bytes]) -> None:
    for number in range(9):
        wal.append(b"%d" % number)
        wal.sync()
        acknowledged.append(b"%d" % number)


CALLS = ("fsync", "pwrite", "ftruncate", "link", "unlink", "replace", "mkdir", "write")


@pytest.mark.parametrize("fault", [Fault.NO_SPACE, Fault.IO_ERROR], ids=lambda fault: fault.name)
@pytest.mark.parametrize("fail_at", range(6))
def test_nothing_is_written_after_a_failed_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault, fail_at: int
) -> None:
    wal = opened(tmp_path)
    acknowledged = list[bytes]()
    with monkeypatch.context() as patch:
        FileCalls(patch, fault, fail_at, ("fsync", "pwrite"))
        with pytest.raises(WriterFailed, match=r"could not .* the write-ahead log"):
            append_records(wal, acknowledged)
    for _ in range(2):
        with pytest.raises(WriterFailed):
            wal.append(b"more")
        with pytest.raises(WriterFailed):
            wal.sync()
    wal.close()
    again = opened(tmp_path)
    assert payloads(again)[: len(acknowledged)] == acknowledged
    assert len(payloads(again)) <= len(acknowledged) + 1
    again.close()


def story(folder: Path, note: Callable[[bytes], None]) -> None:
    """Two writers, one after the other; `note` is told of each record once it is acknowledged."""
    for turn in range(2):
        wal = opened(folder)
        for number in range(3):
            payload = b"%d/%d " % (turn, number) * 90
            wal.append(payload)
            wal.sync()
            note(payload)
            if number == 1:
                wal.begin(b"preamble")
        wal.close()


def calls_of_the_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    with monkeypatch.context() as patch:
        calls = FileCalls(patch, names=CALLS)
        story(tmp_path / "whole", lambda _: None)
    return len(calls.log)


def test_a_crash_at_each_call_loses_no_acknowledged_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)  # a crash here keeps descriptors open
    count = calls_of_the_story(tmp_path, monkeypatch)
    assert count > 40
    for fail_at in range(count):
        folder, acknowledged = tmp_path / str(fail_at), list[bytes]()
        with monkeypatch.context() as patch:
            FileCalls(patch, Fault.CRASH_BEFORE, fail_at, CALLS)
            with pytest.raises(Crash):
                story(folder, acknowledged.append)
        again = opened(folder)
        kept = payloads(again)
        assert kept[: len(acknowledged)] == acknowledged, fail_at
        assert len(kept) <= len(acknowledged) + 1
        again.close()


def test_a_power_cut_at_each_call_loses_no_acknowledged_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, acknowledged = tmp_path / "disk", list[tuple[int, bytes]]()
    root.mkdir()
    with monkeypatch.context() as patch:
        journal = Journal(root, patch)
        story(root / "wal", lambda payload: acknowledged.append((len(journal.calls), payload)))
    draws = random.Random(7)
    for cut in range(len(journal.calls) + 1):
        for attempt in range(4):
            survivor = tmp_path / f"{cut}-{attempt}"
            journal.survivor(cut, draws, survivor)
            again = opened(survivor / "wal")
            expected = [payload for place, payload in acknowledged if place <= cut]
            assert payloads(again)[: len(expected)] == expected, (cut, attempt)
            again.append(b"more")
            again.close()
            kept = payloads(opened(survivor / "wal", recovery="strict"))
            assert kept[-1] == b"more"
            shutil.rmtree(survivor)


def test_records_that_were_not_synced_are_lost_from_the_end_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    with monkeypatch.context() as patch:
        journal = Journal(root, patch)
        wal = opened(root / "wal")
        for number in range(6):
            wal.append(b"%d" % number * 900)
            if number == 1:
                wal.sync()
        wal.abandon()
    draws, lost = random.Random(11), set()
    for attempt in range(60):
        survivor = tmp_path / str(attempt)
        journal.survivor(len(journal.calls), draws, survivor)
        again = opened(survivor / "wal")
        kept = payloads(again)
        assert kept == [b"%d" % number * 900 for number in range(len(kept))]
        assert len(kept) >= 2
        lost.add(6 - len(kept))
        again.close()
    assert len(lost) > 2


def test_killed_processes_lose_no_acknowledged_record(tmp_path: Path) -> None:
    draws, expected = random.Random(3), list[bytes]()
    for turn in range(6):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _append_for_ever(tmp_path, turn, writing)
        os.close(writing)
        acknowledged = b""
        while acknowledged.count(b"\n") < draws.randint(1, 60):
            acknowledged += os.read(reading, 64)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while more := os.read(reading, 1 << 16):
            acknowledged += more
        os.close(reading)
        expected += acknowledged.splitlines()
        wal = opened(tmp_path)
        kept = payloads(wal)
        assert kept[: len(expected)] == expected
        assert len(kept) <= len(expected) + 1
        expected = kept
        wal.close()


def _append_for_ever(folder: Path, turn: int, writing: int) -> None:
    try:
        wal = opened(folder)
        for number in range(100_000):
            payload = b"%d/%d" % (turn, number)
            wal.append(payload)
            wal.sync()
            os.write(writing, payload + b"\n")
    except RowsieveError:
        os._exit(1)
    os._exit(0)


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (Fault.NO_SPACE, "free space on this disk, then repeat the call"),
        (Fault.OVER_QUOTA, "free space within this user's quota"),
        (Fault.NOT_PERMITTED, "this process lacks the permission"),
    ],
    ids=lambda each: each.name if isinstance(each, Fault) else "",
)
@pytest.mark.parametrize("call", ["mkdir", "create", "pwrite"])
def test_a_disk_on_which_no_log_begins_says_what_to_do(
    fault: Fault, advice: str, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FileCalls(monkeypatch, names=[call]).meet_where(fault, call)
    with pytest.raises(StoreError, match=rf"cannot open a write-ahead log in .*; {advice}"):
        opened(tmp_path / "wal")
    monkeypatch.undo()
    wal = opened(tmp_path / "wal")
    append_records(wal, [])
    wal.close()


def test_a_log_on_a_full_disk_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wal = opened(tmp_path)
    FileCalls(monkeypatch, names=["pwrite"]).meet_where(Fault.NO_SPACE, "pwrite")
    with pytest.raises(WriterFailed, match="free space on this disk, then open a new writer"):
        append_records(wal, [])
    wal.close()


@pytest.mark.parametrize("name", ["file", "file/wal", "n" * 300])
def test_a_place_that_no_directory_can_have_is_the_callers_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="give wal_dir= another directory"):
        opened(tmp_path / name)


def test_an_owner_whose_claim_is_damaged(tmp_path: Path) -> None:
    opened(tmp_path).close()
    next(tmp_path.glob("owner-*")).write_text("{")
    with pytest.raises(CorruptData, match="does not name the owner"):
        opened(tmp_path)


def test_claims_that_meet_at_the_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a lock that works, the link still has one winner."""
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    second = list[Wal]()
    calls = FileCalls(monkeypatch, names=["link"])
    calls.overtake(lambda: second.append(opened(tmp_path)), "link")
    with pytest.raises(WalLocked, match="has just taken"):
        opened(tmp_path)
    second[0].append(b"one")
    second[0].sync()
    second[0].close()
