"""The rows of a keyed table at every version, by every kind of read, against a dictionary.

Histories of upserts, deletions by key and by value, mixed change streams, re-insertions and
compactions, over every type that a key can have and over composite keys. Parts are tiny and so are
their row groups, so that windows, row groups and splits are many. The model knows nothing but: a
commit gives each of its keys one row or takes it away, and a version is what all commits up to it
leave.
"""

from __future__ import annotations

import decimal
import math
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.executor import stored_vectors
from rowsieve.executor.execute import Execution
from rowsieve.executor.merging import merge_memory
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate import ir
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
    type_name,
)
from rowsieve.types.schema import Schema
from tests import random_tables
from tests.oracle_table import frozen, to_arrow, to_rows
from tests.profiles import IS_DEEP, examples
from tests.small_tables import fresh_uri, keyed, pairs
from tests.table_strategies import TableShape, shape_of

Key: TypeAlias = tuple[Any, ...]
State: TypeAlias = Mapping[Any, tuple[Key, int | None]]

DAY = 86_400_000_000
PREFIX = "a common prefix that is longer than one word, or two" * 2
NAN, NEGATIVE_NAN = (
    struct.unpack("<d", bits)[0] for bits in (b"\0" * 6 + b"\xf8\x7f", b"\xff" * 8)
)


def whole_numbers(bits: int, *, signed: bool) -> tuple[int, ...]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    near = {*range(-4, 9), 126, 127, 128, 255, 256, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63}
    return tuple(sorted(n for n in near | {low, low + 1, high - 1, high} if low <= n <= high))


def decimals(digits: int, scale: int) -> tuple[decimal.Decimal, ...]:
    points = (
        0,
        1,
        -1,
        9,
        10,
        -10,
        99,
        100,
        101,
        10**digits - 1,
        1 - 10**digits,
        10 ** (digits // 2),
    )
    with decimal.localcontext(prec=60):
        return tuple(sorted(decimal.Decimal(point).scaleb(-scale) for point in points))


FLOATS = (-math.inf, -1e30, -1.5, -1e-40, 0.0, 1e-40, 0.5, 1.0, 1.5, 2.0, 1e30, math.inf, NAN)
TEXTS = (
    *("", "\0", "\0\0", "a", "a\0", "a\0b", "a\x01", "ab", "abc", "b", "B", "z", "zz"),
    *("e\u0301", "\u00e9", "\u00ff", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"),
    *(PREFIX, PREFIX + "\0", PREFIX + "1", PREFIX + "2", PREFIX + "\u00e9", PREFIX[:-1]),
)
MOMENTS = (
    -(2**55),
    -DAY - 1,
    -DAY,
    -1,
    0,
    1,
    999,
    1000,
    DAY - 1,
    DAY,
    1_360_324_800_000_000,
    2**55,
)
POOLS: Mapping[LogicalType, tuple[Any, ...]] = {
    **{
        Int(bits, signed=signed): whole_numbers(bits, signed=signed)
        for bits in (8, 16, 32, 64)
        for signed in (True, False)
    },
    Bool(): (False, True),
    Date(): (-719162, -365, -1, 0, 1, 2, 3, 59, 60, 15744, 15745, 2932896),
    Time(): (0, 1, 2, 999, 1000, 3_600_000_000, 43_200_000_000, DAY - 1),
    Timestamp(): MOMENTS,
    Timestamp(utc=True): MOMENTS,
    Decimal(5, 2): decimals(5, 2),
    Decimal(18, 4): decimals(18, 4),
    Decimal(38, 10): decimals(38, 10),
    Float(32): tuple(struct.unpack("<f", struct.pack("<f", x))[0] for x in FLOATS),
    Float(64): FLOATS,
    String(): TEXTS,
    Binary(): tuple(sorted({t.encode() for t in TEXTS} | {b"\xff", b"\xff\xff", b"\x7f", b"\x80"})),
    Uuid(): tuple(
        bytes.fromhex(text * 4)
        for text in ("00000000", "00000001", "7fffffff", "80000000", "deadbeef", "ffffffff")
    ),
}
COMPOSITES: tuple[tuple[LogicalType, ...], ...] = (
    (Int(32), Int(32)),
    (Bool(), Int(64, signed=False)),
    (String(), Int(16)),
    (Float(64), String()),
    (Date(), Timestamp(utc=True), Int(8)),
    (Binary(), String(), Bool()),
    (Uuid(), Decimal(38, 10)),
    (Time(), Float(32), Decimal(5, 2)),
)


@pytest.fixture(autouse=True, scope="module")
def tiny_row_groups() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            merge_memory, "MIN_ROWS", 2
        )  # with little memory, row groups come in two pieces
        yield from random_tables.tiny_row_groups(3)


@dataclass(frozen=True)
class Commit:
    """What one commit does to the keys whose bit is set; `salt` varies their values."""

    kind: str
    keys: int
    salt: int

    def value(self, place: int) -> int | None:
        found = (place * (1 + self.salt % 3) + self.salt) % 5
        return None if found == 4 else found

    def places(self, count: int) -> list[int]:
        return [place for place in range(count) if self.keys >> place & 1]


@dataclass(frozen=True)
class History:
    """A table's key columns, the keys that its commits speak of, in key order, and the commits."""

    types: tuple[LogicalType, ...]
    keys: tuple[Key, ...]
    commits: tuple[Commit, ...]

    @property
    def shape(self) -> TableShape:
        names = tuple(f"k{i}" for i in range(len(self.types)))
        return shape_of({**dict(zip(names, self.types, strict=True)), "v": Int(64)}, names)


KINDS = (
    *("upsert", "upsert", "delete", "delete", "apply", "delete where", "compact"),
    *("upsert", "store vectors"),
)


@st.composite
def histories(draw: st.DrawFn, types: tuple[LogicalType, ...]) -> History:
    parts = [st.sampled_from(POOLS[type_]) for type_ in types]
    found = draw(st.sets(st.tuples(*parts).map(Ranked), min_size=1, max_size=24))
    keys = tuple(ranked.key for ranked in sorted(found))
    some = st.integers(1, 2 ** len(keys) - 1)
    first = st.builds(Commit, st.just("upsert"), some, st.integers(0, 14))
    later = st.builds(Commit, st.sampled_from(KINDS), some, st.integers(0, 14))
    return History(types, keys, (draw(first), *draw(st.lists(later, min_size=1, max_size=5))))


class Ranked:
    """A key as it is ordered and told apart: numbers by value, NaN last, text by code points."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.rank = tuple(
            (math.isnan(x), 0.0 if math.isnan(x) else x + 0.0) if isinstance(x, float) else x
            for x in key
        )

    def __lt__(self, other: Ranked) -> bool:
        return bool(self.rank < other.rank)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranked) and self.rank == other.rank

    def __hash__(self) -> int:
        return hash(self.rank)


def play(history: History) -> tuple[rs.Table, list[State]]:
    """The table, and by version what it should show."""
    shape = history.shape
    table = rs.create_table(fresh_uri(), shape.arrow, key=list(shape.key))
    versions: list[State] = [{}]
    for number, commit in enumerate(history.commits):
        state = dict(versions[-1])
        PLAYERS[commit.kind](table, history, commit, number, state)
        while len(versions) <= table.version:
            versions.append(state)
    return table, versions


def upsert(
    table: rs.Table, history: History, commit: Commit, number: int, state: dict[Any, Any]
) -> None:
    places = commit.places(len(history.keys))
    table.upsert(data(history, places, commit, number))
    state.update({place: (history.keys[place], commit.value(place)) for place in places})


def delete(
    table: rs.Table, history: History, commit: Commit, number: int, state: dict[Any, Any]
) -> None:
    places = commit.places(len(history.keys))
    table.delete(keys=data(history, places, commit, number).drop_columns(["v"]))
    for place in places:
        state.pop(place, None)


def apply(
    table: rs.Table, history: History, commit: Commit, number: int, state: dict[Any, Any]
) -> None:
    """Each key up to three times, shuffled; the action of the highest sequence counts."""
    actions = [
        (place, (place * 7 + step * 5 + commit.salt) % 3 > 0, step)
        for step in range(3)
        for place in commit.places(len(history.keys))
        if step == 0 or (place + step + commit.salt) % 2
    ]
    for place, writes, _ in actions:
        if writes:
            state[place] = (history.keys[place], commit.value(place))
        else:
            state.pop(place, None)
    shuffled = sorted(actions, key=lambda action: (action[0] * 11 + action[2] * 3) % 7)
    stream = data(history, [place for place, _, _ in shuffled], commit, number)
    stream = stream.append_column("op", [["u" if writes else "d" for _, writes, _ in shuffled]])
    stream = stream.append_column("seq", [[step for _, _, step in shuffled]])
    table.apply_changes(stream, op="op", sequence="seq")


def delete_where(
    table: rs.Table, _history: History, commit: Commit, _number: int, state: dict[Any, Any]
) -> None:
    wanted = commit.salt % 4
    table.delete(f"v = {wanted}")
    for place in [place for place, (_, value) in state.items() if value == wanted]:
        del state[place]


def compact(
    table: rs.Table, _history: History, _commit: Commit, _number: int, _state: dict[Any, Any]
) -> None:
    table.compact()


def store_vectors(
    table: rs.Table, _history: History, _commit: Commit, _number: int, _state: dict[Any, Any]
) -> None:
    table.build_deletion_vectors()


PLAYERS: Mapping[str, Callable[[rs.Table, History, Commit, int, dict[Any, Any]], None]] = {
    "upsert": upsert,
    "delete": delete,
    "apply": apply,
    "delete where": delete_where,
    "compact": compact,
    "store vectors": store_vectors,
}


def data(history: History, places: Sequence[int], commit: Commit, number: int) -> pa.Table:
    """Rows of these keys; zeros and NaN are spelt in two ways."""
    shape = history.shape
    rows = [
        {
            **dict(zip(shape.key, (spelt(x, number) for x in history.keys[place]), strict=True)),
            "v": commit.value(place),
        }
        for place in places
    ]
    return to_arrow(rows, shape.schema)


def spelt(value: Any, number: int) -> Any:
    if isinstance(value, float) and number % 2:
        return NEGATIVE_NAN if math.isnan(value) else -0.0 if value == 0 else value
    return value


def listed(found: pa.Table, schema: Schema) -> list[Any]:
    return [frozen(row) for row in to_rows(found, schema)]


def expected(state: State, shape: TableShape, matches: Callable[[int, Any], bool]) -> list[Any]:
    """In key order, which is the order of places."""
    return [
        frozen({**dict(zip(shape.key, key, strict=True)), "v": value})
        for place, (key, value) in sorted(state.items())
        if matches(place, value)
    ]


Question: TypeAlias = tuple[Any, Callable[[int, Any], bool]]


def questions(history: History, turn: int) -> list[Question]:
    """Everything; by value; by one key; by its first column and value: other ones each turn."""
    wanted = turn % 5
    place = turn % len(history.keys)
    key = history.keys[place]
    by_column = [
        ir.Comparison(ir.ComparisonOp.EQ, ir.Column(name), ir.Literal(value, type_))
        for name, value, type_ in zip(history.shape.key, key, history.types, strict=True)
    ]
    at_least = ir.Comparison(
        ir.ComparisonOp.GE, ir.Column("k0"), ir.Literal(key[0], history.types[0])
    )
    start = Ranked(key[:1])
    return [
        (None, lambda _place, _value: True),
        (f"v = {wanted}", lambda _place, value: value == wanted),
        ("v IS NULL OR v > 1", lambda _place, value: value is None or value > 1),
        (ir.And(tuple(by_column)) if len(by_column) > 1 else by_column[0], lambda p, _: p == place),
        (
            ir.Or((at_least, ir.IsNull(ir.Column("v")))),
            lambda p, value: value is None or not Ranked(history.keys[p][:1]) < start,
        ),
    ]


def check(history: History, shift: int) -> None:
    """Ask questions at every version, each in a few of the ways to read; `shift` says which."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_vectors, "LOOKED_UP_TO_SHARE", 4.0 if shift % 2 else 0.0)
        ask(history, shift)


def ask(history: History, shift: int) -> None:
    table, versions = play(history)
    shape = history.shape
    assert table.version == len(versions) - 1
    for version, state in enumerate(versions):
        asking = questions(history, version)
        for turn in range(
            min(QUESTIONS, len(asking))
        ):  # what was asked first is remembered, so others go first
            where, matches = asking[(turn + version + shift) % len(asking)]
            asked = Asked(table, version, where, expected(state, shape, matches), shape.schema)
            for place in range((version + turn + shift) % SHARE, len(WAYS), SHARE):
                WAYS[place](asked)


@dataclass(frozen=True)
class Asked:
    """A question at a version, and the rows that answer it, in key order."""

    table: rs.Table
    version: int
    where: Any
    wanted: list[Any]
    schema: Schema

    def scan(self, **options: Any) -> rs.Scan:
        return self.table.scan(self.where, version=self.version, **options)

    def rows(self, **options: Any) -> list[Any]:
        return listed(self.scan(**options).to_arrow(), self.schema)

    def same(self, found: Sequence[Any]) -> None:
        assert Counter(found) == Counter(self.wanted)

    def in_order(self, **options: Any) -> None:
        assert self.rows(order_by_key=True, **options) == self.wanted

    def counted(self, **options: Any) -> None:
        assert self.scan(**options).count() == len(self.wanted)

    def limited(self, **options: Any) -> None:
        limit = 1 + self.version % 4
        some = self.rows(limit=limit, **options)
        count = self.scan(limit=limit, **options).count()
        assert len(some) == count == min(limit, len(self.wanted))
        assert not Counter(some) - Counter(self.wanted)
        assert self.rows(limit=limit, order_by_key=True, **options) == self.wanted[:limit]

    def in_splits(self, *, in_process: bool) -> None:
        """The smallest splits, all read at the same time."""
        scan = self.scan()
        plan = plan_scan(
            scan._snapshot,
            self.table.uri,
            predicate=scan.plan().predicate,
            now_us=0,
            split_bytes=1,
            in_process=in_process,
        )

        def read(number: int) -> list[pa.RecordBatch]:
            sent = ScanPlan.from_bytes(plan.only(number).to_bytes())
            return list(Execution(sent, self.table.handle.store, threads=False).read())

        with ThreadPoolExecutor(4) as pool:
            batches = [
                batch for found in pool.map(read, range(len(plan.splits))) for batch in found
            ]
        self.same(listed(pa.Table.from_batches(batches, schema=scan.schema), self.schema))


KV_SHAPE = shape_of({"k": Int(64), "v": Int(64)}, ("k",))
# `make test` examines a share of the histories, and briefly; the deep run at least 50, and wholly.
HISTORIES = 10 if IS_DEEP else 25  # per key type
QUESTIONS = 5 if IS_DEEP else 1  # asked at each version
SHARE = 6 if IS_DEEP else 14  # of the ways, one in so many each time
SHIFTS = st.integers(0, 5 * 14 - 1)
WAYS: tuple[Callable[[Asked], None], ...] = (
    lambda asked: asked.same(asked.rows()),
    Asked.in_order,
    Asked.counted,
    lambda asked: asked.in_splits(in_process=True),
    lambda asked: asked.in_splits(in_process=False),
    lambda asked: asked.same(asked.rows(pruning="soft")),
    lambda asked: asked.same(asked.rows(pruning="off")),
    lambda asked: asked.in_order(pruning="off"),
    lambda asked: asked.counted(audit=50),
    lambda asked: asked.counted(pruning="off"),
    Asked.limited,
    lambda asked: asked.limited(pruning="off"),
    lambda asked: asked.same(asked.rows(memory_bytes=1)),
    lambda asked: asked.in_order(memory_bytes=1),
)


@pytest.mark.parametrize("type_", POOLS, ids=type_name)
@examples(HISTORIES, promised=50)
@given(st.data())
def test_every_version_equals_the_model(type_: LogicalType, data: st.DataObject) -> None:
    check(data.draw(histories((type_,))), data.draw(SHIFTS))


@pytest.mark.parametrize("types", COMPOSITES, ids=lambda types: "+".join(map(type_name, types)))
@examples(HISTORIES, promised=50)
@given(st.data())
def test_every_version_equals_the_model_with_composite_keys(
    types: tuple[LogicalType, ...], data: st.DataObject
) -> None:
    check(data.draw(histories(types)), data.draw(SHIFTS))


def test_visibility_of_few_keys_is_not_used_for_all_keys() -> None:
    """A question for one key resolves little; whoever asks next must not get that for an answer."""
    table = keyed({"k": list(range(30)), "v": [0] * 30}, {"k": [0, 14, 29], "v": [1] * 3})
    for key, v in [(14, 1), (15, 0), (28, 0)]:
        assert pairs(table, f"k = {key}") == [(key, v)]
    values = [1 if key in (0, 14, 29) else 0 for key in range(30)]
    assert table.scan(order_by_key=True).to_arrow()["v"].to_pylist() == values
    assert pairs(table) == list(enumerate(values))


def test_splits_of_unread_parts_share_no_row() -> None:
    table = keyed({"k": list(range(30)), "v": [0] * 30}, {"k": [0, 14, 29], "v": [1] * 3})
    rows = [frozen({"k": key, "v": int(key in (0, 14, 29))}) for key in range(30)]
    Asked(table, table.version, None, rows, KV_SHAPE.schema).in_splits(in_process=True)
