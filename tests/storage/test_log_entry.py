"""Log entries: the frozen form, and every way of not being one."""

from __future__ import annotations

import msgspec
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.checksums import checksum
from rowsieve.errors import CorruptData, UnsupportedProtocol
from rowsieve.objects import ObjectStore
from rowsieve.storage.log.commit_log import CommitLog
from rowsieve.storage.log.log_entry import (
    AddedFile,
    LogEntry,
    decode_entry,
    encode_entry,
    log_path,
    version_of,
)
from rowsieve.storage.log.sealed_lines import seal, unseal
from rowsieve.storage.snapshot import TableInfo
from rowsieve.types.logical import Field, Int, String
from rowsieve.types.schema import Schema
from tests.profiles import examples
from tests.storage.log_fixtures import commit, copy, create, memory_store

ENTRY = LogEntry(
    version=7,
    commit_id="c" * 32,
    predecessor="b" * 32,
    table_uuid="a" * 32,
    timestamp_us=1_700_000_000_000_000,
    operation="upsert",
    rows_written=5,
    rows_deleted=2,
    token=("app", 3),
    metadata={"who": "me"},
    info=TableInfo("a" * 32, ("id",), "upsert", {"x": "y"}),
    schema=Schema(1, (Field(1, "id", Int(64), nullable=False), Field(2, "v", String()))),
    next_field_id=3,
    removed=("p1", "p2"),
    file=AddedFile("c" * 32 + ".arrow", 100, "xxh3_128:00", 1, 5),
)
BODY = b"""\
{"commit":{"version":7,"commit_id":"cccccccccccccccccccccccccccccccc",\
"predecessor":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","table":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",\
"timestamp_us":1700000000000000,"operation":"upsert","rows_written":5,"rows_deleted":2,\
"token":["app",3],"metadata":{"who":"me"}}}
{"protocol":{"reader":1,"writer":2,"features":[]}}
{"table":{"uuid":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","key":["id"],"mode":"upsert",\
"properties":{"x":"y"}}}
{"schema":{"id":1,"fields":[{"id":1,"name":"id","type":"int64","nullable":false},\
{"id":2,"name":"v","type":"string","nullable":true}]},"next_field_id":3}
{"remove":{"parts":["p1","p2"]}}
{"add":{"file":"cccccccccccccccccccccccccccccccc.arrow","size":100,"checksum":"xxh3_128:00",\
"parts":1,"rows":5}}
"""


VECTORS = (
    '{"schema":{"id":1,"fields":[{"id":1,"name":"a","type":"vector","nullable":true}]},'
    '"next_field_id":3}'
)


def sealed(body: bytes) -> bytes:
    """Seal any text, as someone with another program could."""
    return body + b'{"checksum":"xxh3_128:%s"}\n' % xxhash.xxh3_128_hexdigest(body).encode()


def decode(data: bytes) -> LogEntry:
    return decode_entry(data, 7, "seven.json")


def with_line(kind: str, line: str) -> bytes:
    """The golden entry with one line replaced."""
    lines = BODY.splitlines(keepends=True)
    start = f'{{"{kind}"'.encode()
    assert any(old.startswith(start) for old in lines)
    new = line.encode() + b"\n" if line else b""
    return sealed(b"".join(new if old.startswith(start) else old for old in lines))


def test_the_form_is_frozen() -> None:
    assert encode_entry(ENTRY) == sealed(BODY)
    assert decode(sealed(BODY)) == ENTRY


def test_names_hold_versions_in_twenty_digits() -> None:
    assert log_path(7) == "_rowsieve/log/00000000000000000007.json"
    assert version_of(log_path(12)) == 12
    for other in ("_rowsieve/log/7.json", log_path(7) + ".tmp", f"x/{log_path(7)}", "a.arrow"):
        assert version_of(other) is None


@examples(200)
@given(data=st.data())
def test_any_changed_byte_is_corrupt(data: st.DataObject) -> None:
    whole = sealed(BODY)
    position = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != whole[position]))
    with pytest.raises(CorruptData, match=r"seven\.json"):
        decode(whole[:position] + bytes([byte]) + whole[position + 1 :])


@examples(50)
@given(length=st.integers(0, len(sealed(BODY)) - 1))
def test_any_shorter_entry_is_corrupt(length: int) -> None:
    with pytest.raises(CorruptData, match=r"seven\.json"):
        decode(sealed(BODY)[:length])


@examples(100)
@given(junk=st.binary(max_size=200))
def test_junk_is_corrupt_whether_sealed_or_not(junk: bytes) -> None:
    for data in (junk, sealed(junk), sealed(junk + b"\n")):
        with pytest.raises((CorruptData, UnsupportedProtocol)):
            decode(data)


@pytest.mark.parametrize(
    ("kind", "line", "message"),
    [
        ("commit", "", "no commit line"),
        ("commit", '{"commit":{"version":7}}', "missing required field"),
        ("commit", '{"commit":7}', "Expected `object`"),
        ("remove", '{"remove":{"parts":[1]}}', "Expected `str`"),
        ("remove", '{"remove":{"parts":[]},"more":1}', "unknown fields in its 'remove' line"),
        ("remove", '{"remove":{"parts":[],"more":1}}', "unknown field `more`"),
        ("remove", '{"vanish":{"parts":[]}}', "line of unknown kind 'vanish'"),
        ("remove", '{"add":{}}', "more than one 'add' line"),
        ("remove", "[1]", "a line that is not a JSON object"),
        ("remove", "{}", "a line that is not a JSON object"),
        ("remove", "nonsense", "is not JSON lines"),
        ("table", "", "only one of the lines"),
        ("schema", '{"schema":{"id":1,"fields":[{}]},"next_field_id":3}', "malformed"),
        ("schema", '{"schema":{"id":1,"fields":[]}}', "unknown fields in its 'schema' line"),
        (
            "add",
            '{"add":{"file":"../x.arrow","size":1,"checksum":"","parts":1,"rows":1}}',
            "x.arrow",
        ),
    ],
)
def test_a_sealed_entry_of_another_form_is_corrupt(kind: str, line: str, message: str) -> None:
    with pytest.raises(CorruptData, match=message):
        decode(with_line(kind, line))


@pytest.mark.parametrize(
    ("kind", "line", "message"),
    [
        ("protocol", '{"protocol":{"reader":99,"writer":1,"features":[]}}', "reader protocol 99"),
        (
            "protocol",
            '{"protocol":{"reader":1,"writer":1,"features":["zstd2","abc"]}}',
            "features unknown to this version of rowsieve: abc, zstd2",
        ),
        ("table", '{"table":{"uuid":"a","key":[],"mode":"ring","properties":{}}}', "mode 'ring'"),
        ("schema", VECTORS, "type 'vector'"),
    ],
)
def test_newer_features_are_unsupported_and_named(kind: str, line: str, message: str) -> None:
    with pytest.raises(UnsupportedProtocol, match=message):
        decode(with_line(kind, line))


def test_a_newer_protocol_explains_unknown_lines() -> None:
    body = BODY.replace(b'"reader":1', b'"reader":99') + b'{"quantum":{}}\n'
    with pytest.raises(UnsupportedProtocol, match="reader protocol 99"):
        decode(sealed(body))
    with pytest.raises(CorruptData, match="unknown kind 'quantum'"):
        decode(sealed(BODY + b'{"quantum":{}}\n'))


def test_an_entry_under_another_number_is_corrupt() -> None:
    with pytest.raises(CorruptData, match="holds version 7: it was renamed or copied"):
        decode_entry(sealed(BODY), 8, "eight.json")


def test_deep_json_is_corrupt_not_a_crash() -> None:
    deep = b'{"commit":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    with pytest.raises(CorruptData):
        decode(sealed(deep))


@examples(100)
@given(
    st.lists(
        st.dictionaries(
            st.text(min_size=1).filter(lambda key: key != "checksum"),
            st.recursive(
                st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
                max_leaves=5,
            ),
            min_size=1,
        )
    )
)
def test_sealed_lines_read_back(lines: list[dict[str, object]]) -> None:
    data = seal(lines)
    assert unseal(data, "x") == [(next(iter(line)), line) for line in lines]
    assert msgspec.json.decode(data.splitlines()[-1])["checksum"] == checksum(
        data[: data.rstrip(b"\n").rfind(b"\n") + 1]
    )


# In a table.


def damaged(store: ObjectStore, path: str, data: bytes) -> CommitLog:
    return CommitLog(copy(store, changed={path: data}))


def test_a_damaged_entry_is_named_and_nothing_is_read() -> None:
    log, head = create(memory_store(), 3)
    for version in range(4):
        path = log_path(version)
        whole = log._store.get(path)
        bad = damaged(log._store, path, whole[:50] + b"?" + whole[51:])
        with pytest.raises(CorruptData, match=rf"{version:020d}\.json in memory:"):
            bad.latest()
        with pytest.raises(CorruptData, match=rf"{version:020d}\.json in memory:"):
            bad.history()
    assert log.latest() == head


def test_a_damaged_manifest_is_named() -> None:
    log, head = create(memory_store(), 2)
    path = f"_rowsieve/log/{head.commit_id}.arrow"
    whole = log._store.get(path)
    for data in (whole[:-1], whole[:100] + b"??" + whole[102:], b""):
        with pytest.raises(CorruptData, match=rf"{head.commit_id}\.arrow .* checksum"):
            damaged(log._store, path, data).latest()


def test_a_table_of_a_newer_protocol_is_not_read() -> None:
    log, snapshot = create(memory_store())
    commit(log, snapshot)
    body = log._store.get(log_path(0)).rpartition(b'{"checksum"')[0]
    newer = damaged(log._store, log_path(0), sealed(body.replace(b'"reader":1', b'"reader":99')))
    for read in (newer.latest, newer.history, lambda: newer.at(0)):
        with pytest.raises(UnsupportedProtocol, match=r"reader protocol 99; .* upgrade rowsieve"):
            read()


def test_a_part_added_twice_is_corrupt() -> None:
    log, s1 = create(memory_store(), 1)
    s2 = commit(log, s1)
    first = log.entry(1)
    second = log.entry(2)
    assert first is not None
    assert second is not None
    entry = msgspec.structs.replace(first.file, file=first.file.file) if first.file else None
    again = encode_entry(
        LogEntry(
            version=2,
            commit_id=second.commit_id,
            predecessor=second.predecessor,
            table_uuid=second.table_uuid,
            timestamp_us=second.timestamp_us,
            operation="append",
            file=entry,
        )
    )
    doubled = damaged(log._store, log_path(s2.version), again)
    for known in (None, s1):
        with pytest.raises(CorruptData, match="a part that the table already has"):
            doubled.latest(known)


def test_a_removal_of_no_part_is_corrupt() -> None:
    log, s1 = create(memory_store(), 1)
    s2 = commit(log, s1, removed=s1.parts.part_ids)
    data = log._store.get(log_path(2)).replace(s1.parts.part_ids[0].encode(), b"0" * 32)
    body = data.rpartition(b'{"checksum"')[0]
    with pytest.raises(CorruptData, match="removes parts that its predecessor does not have"):
        damaged(log._store, log_path(s2.version), sealed(body)).latest()
