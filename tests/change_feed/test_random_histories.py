"""Random histories: each commit's changes equal the difference of the rows before and after it.

The rows of a version are those of a scan. A replay of the feed over the rows of any version gives
the rows of every later one, read with the columns of the last.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.change_feed.images import CHANGE_TYPES
from rowsieve.errors import InvalidInput, UnsupportedOperation
from tests.profiles import examples
from tests.small_tables import fresh_uri

Row: TypeAlias = tuple[Any, ...]
FLOATS = [None, float("nan"), 0.0, -0.0, 1.5]
LISTS = [None, [], [1], [None, 2]]
CONDITIONS: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("k2 = 0", lambda row: row["k2"] == 0),
    ("f > 0", lambda row: row["f"] is not None and not row["f"] <= 0),  # a NaN is the greatest
    ("f IS NULL AND k2 = 1", lambda row: row["f"] is None and row["k2"] == 1),
    (
        "_change_type <> 'insert' AND (f = 0 OR k2 = 0)",
        lambda row: row["_change_type"] != "insert" and (row["f"] == 0 or row["k2"] == 0),
    ),
]
KEYS = {
    "integer": (pa.int32(), [*range(12)]),
    "text": (pa.string(), ["", "a", "aa", "b", "é", "z"]),
    "float": (pa.float64(), [float("nan"), 0.0, -0.0, 1.0, math.inf, -1.5]),
}


def shown(value: Any) -> Any:
    """The value, or a float by its text: NaN equals itself then, and 0.0 is not -0.0."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    return tuple(map(shown, value)) if isinstance(value, list) else value


def plain(batch: pa.Table, ids: list[int]) -> list[Row]:
    """The rows, with the columns of these field ids in this order."""
    by_id = {
        int(field.metadata[b"PARQUET:field_id"]): i
        for i, field in enumerate(batch.schema)
        if field.metadata
    }
    columns = [[shown(v) for v in batch.column(by_id[i]).to_pylist()] for i in ids]
    return list(zip(*columns, strict=True)) if batch.num_rows else []


def ids_of(schema: pa.Schema) -> list[int]:
    return [int(field.metadata[b"PARQUET:field_id"]) for field in schema if field.metadata]


class History:
    """A table, and the keys that each commit wrote."""

    def __init__(
        self, rng: random.Random, kind: str | None, parts: int, uri: str | None = None
    ) -> None:
        self.rng, self.kind = rng, kind
        type_, self.keys = KEYS[kind or "integer"]
        schema = pa.schema(
            [
                pa.field("k", type_, nullable=False),
                pa.field("k2", pa.int16(), nullable=False),
                pa.field("f", pa.float64()),
                pa.field("t", pa.list_(pa.int64())),
            ]
        )
        key = None if kind is None else ["k", "k2"][:parts]
        self.parts = parts
        self.table = rs.create_table(uri or fresh_uri(), schema, key=key)
        self.added = 0
        self.written: dict[int, Counter[Row]] = {}  # the keys, or whole rows without a key
        self.removed: dict[int, Counter[Row]] = {}

    def note(self, written: pa.Table | None, removed: pa.Table | None, act: Any) -> None:
        """Change the table; the arguments are what the commit will write and remove."""
        before = self.table.version
        act()
        if self.table.version == before + 1:
            self.written[before + 1] = self.keys_in(written)
            self.removed[before + 1] = self.keys_in(removed)

    def keys_in(self, rows: pa.Table | None) -> Counter[Row]:
        if rows is None or not rows.num_rows:
            return Counter()
        names = ["k", "k2"][: self.parts or 2]
        columns = [[shown(v) for v in rows.column(name).to_pylist()] for name in names]
        return Counter(
            tuple("0.0" if v == "-0.0" else v for v in row) for row in zip(*columns, strict=True)
        )

    def rows(self, count: int) -> pa.Table:
        rng = self.rng
        rows: dict[Any, dict[str, Any]] = {}
        for _ in range(count):
            k, k2 = rng.choice(self.keys), rng.randrange(2)
            key = (shown(k) if k != 0 else 0, k2)[: self.parts] if self.kind else len(rows)
            rows[key] = {"k": k, "k2": k2, "f": rng.choice(FLOATS), "t": rng.choice(LISTS)}
        schema = self.table.schema
        known = {"k", "k2", "f", "t"}
        for row in rows.values():
            row.update({name: rng.randrange(3) for name in schema.names if name not in known})
        return pa.Table.from_pylist(list(rows.values()), schema.remove_metadata())

    def where(self) -> str:
        return self.rng.choice(["k2 = 0", "f IS NULL", "f >= 0", "k2 = 1 AND f < 9", "TRUE"])

    def step(self) -> None:
        rng, table = self.rng, self.table
        version = rng.randrange(table.version + 1)
        new = f"c{self.added}"
        extra = [name for name in table.schema.names if name.startswith("c")]
        steps: list[Any] = [
            lambda: self.write(self.rows(rng.randrange(1, 9))),
            lambda: self.write(self.rows(rng.randrange(1, 9))),
            lambda: self.delete(self.where()),
            lambda: self.update(self.where()),
            table.compact,
            table.build_deletion_vectors,
            lambda: self.overwrite(self.rows(3)),
            lambda: self.restore(version),
            lambda: table.add_column(new, pa.int32(), default=rng.choice([None, 7])),
            lambda: table.set_properties({"checkpoint_interval": rng.randrange(2, 9)}),
        ]
        if extra:
            steps += [
                lambda: table.drop_column(extra[0]),
                lambda: table.rename_column(extra[-1], f"{extra[-1]}r"),
                lambda: table.widen_column(extra[-1], pa.int64()),
            ]
        if self.kind is not None:
            steps += [lambda: self.delete_keys(self.some_keys()), self.apply]
        # a type cannot be widened twice, and a version may have other columns
        with contextlib.suppress(InvalidInput, UnsupportedOperation):
            rng.choice(steps)()
        self.added += 1

    def write(self, rows: pa.Table) -> None:
        act = self.table.append if self.kind is None else self.table.upsert
        self.note(rows, None, lambda: act(rows))

    def delete(self, where: str) -> None:
        gone = self.table.to_arrow(where)
        self.note(None, gone, lambda: self.table.delete(where))

    def delete_keys(self, keys: pa.Table) -> None:
        self.note(None, keys, lambda: self.table.delete(keys=keys))

    def update(self, where: str) -> None:
        rows = self.table.to_arrow(where)
        change = {"f": self.rng.choice(["f + 1", "NULL", "f"])}
        self.note(rows, rows, lambda: self.table.update(change, where=where))

    def overwrite(self, rows: pa.Table) -> None:
        before = self.table.to_arrow()
        self.note(rows, before, lambda: self.table.overwrite(rows))

    def restore(self, version: int) -> None:
        self.table.restore(version)

    def some_keys(self) -> pa.Table:
        rows = self.rows(3)
        return rows.select(list(self.table.key))

    def apply(self) -> None:
        rows = self.rows(4)
        actions = [self.rng.choice("ud") for _ in range(rows.num_rows)]
        written = rows.filter(pa.array([action == "u" for action in actions]))
        data = rows.append_column("op", pa.array(actions))
        data = data.append_column("seq", pa.array(range(rows.num_rows)))
        self.note(written, rows, lambda: self.table.apply_changes(data, op="op", sequence="seq"))


def replayed(state: Counter[Row], changes: list[tuple[str, Row]]) -> Counter[Row]:
    """The rows after the changes; no change may remove a row that is not there."""
    state = Counter(state)
    for kind, row in changes:
        if kind in ("delete", "update_preimage"):
            assert state[row] > 0, (kind, row)
            state[row] -= 1
        else:
            state[row] += 1
    return +state


def check(history: History) -> None:
    table = history.table
    newest = table.version
    ids = ids_of(table.schema)
    feed = table.changes(0).read_all()
    rows = plain(feed, ids)
    found: dict[int, list[tuple[str, Row]]] = {version: [] for version in range(newest + 1)}
    labels = feed["_change_type"].to_pylist()
    for row, label, version in zip(rows, labels, feed["_commit_version"].to_pylist(), strict=True):
        found[version].append((label, row))
    state: Counter[Row] = Counter()
    for version in range(newest + 1):
        before, state = state, replayed(state, found[version])
        check_labels(history, found[version], before, version, ids)
        scanned = table.scan(version=version).to_arrow()
        common = [i for i in ids_of(scanned.schema) if i in ids]
        places = [ids.index(i) for i in common]
        seen: Counter[Row] = Counter()
        for row, count in state.items():
            seen[tuple(row[i] for i in places)] += count
        assert seen == Counter(plain(scanned, common)), version
    start = history.rng.randrange(newest + 1)
    every_row = table.changes(start, newest).read_all()
    again = plain(every_row, ids)
    assert again == [row for version in range(start, newest + 1) for _, row in found[version]]
    for where, matches in CONDITIONS:
        asked = table.changes(start, newest, where=where, columns=["k", "k2", "f"]).read_all()
        all_rows = every_row.select(asked.schema.names)
        expected = all_rows.filter(pa.array(map(matches, all_rows.to_pylist()), pa.bool_()))
        assert shown_rows(asked) == shown_rows(expected), where


def shown_rows(rows: pa.Table) -> list[Row]:
    return [tuple(map(shown, row.values())) for row in rows.to_pylist()]


def check_labels(
    history: History,
    changes: list[tuple[str, Row]],
    before: Counter[Row],
    version: int,
    ids: list[int],
) -> None:
    """The changes of a commit are those of the keys that it wrote and removed, and no others."""
    if version not in history.written:
        operation = history.table.history()[history.table.version - version].operation
        assert operation == "restore" or changes == []
        check_difference(history, changes)
        return
    places = key_places(history, ids)
    kinds: dict[str, Counter[Row]] = {kind: Counter() for kind in CHANGE_TYPES}
    for kind, row in changes:
        kinds[kind][key_of(row, places)] += 1
    written, removed = history.written[version], history.removed[version]
    if not history.table.key:
        operation = history.table.history()[history.table.version - version].operation
        names = (
            ("update_preimage", "update_postimage")
            if operation == "update"
            else ("delete", "insert")
        )
        assert (kinds[names[0]], kinds[names[1]]) == (removed, written)
        assert len(changes) == removed.total() + written.total()
        return
    known = Counter(key_of(row, places) for row in before)
    assert kinds["insert"] == written - known
    assert kinds["update_preimage"] == kinds["update_postimage"] == written & known
    assert kinds["delete"] == (removed & known) - written
    check_images(changes, places)


def check_difference(history: History, changes: list[tuple[str, Row]]) -> None:
    """A restore names no row that both versions have."""
    if history.table.key:
        gone = Counter(row for kind, row in changes if kind in ("delete", "update_preimage"))
        come = Counter(row for kind, row in changes if kind in ("insert", "update_postimage"))
        assert not gone & come


def check_images(changes: list[tuple[str, Row]], places: list[int]) -> None:
    """The two images of a key follow each other."""
    for (kind, row), (following, after) in pairwise([*changes, ("end", ())]):
        assert (kind == "update_preimage") == (following == "update_postimage")
        assert kind != "update_preimage" or key_of(row, places) == key_of(after, places)


def key_places(history: History, ids: list[int]) -> list[int]:
    names = ["k", "k2"][: history.parts or 2]
    schema = history.table.schema
    return [ids.index(int(schema.field(name).metadata[b"PARQUET:field_id"])) for name in names]


def key_of(row: Row, places: list[int]) -> Row:
    return tuple("0.0" if row[i] == "-0.0" else row[i] for i in places)


@pytest.mark.parametrize(("kind", "parts"), [("integer", 1), ("text", 2), ("float", 2), (None, 0)])
@examples(12)
@given(seed=st.integers(0, 2**32))
def test_a_replay_of_the_feed_gives_the_rows_of_every_version(
    kind: str | None, parts: int, seed: int
) -> None:
    history = History(random.Random(seed), kind, parts)
    for _ in range(14):
        history.step()
    check(history)
