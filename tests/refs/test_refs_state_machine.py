"""A table with branches and tags against a dictionary of rows for each of them."""

from __future__ import annotations

import uuid
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
)

import rowsieve
from rowsieve import Table
from rowsieve.errors import CommitConflict, UnsupportedOperation
from tests.duckdb_sessions import duckdb_session
from tests.profiles import examples
from tests.small_tables import KV, kv, pairs

KEYS = st.integers(0, 9)
ROWS = st.dictionaries(KEYS, st.integers(0, 99), min_size=1, max_size=4)
Rows = dict[int, int]
PROPERTIES: list[dict[str, str]] = [
    {},
    {"visibility": "eager"},
    {"inline_bytes": "16384"},
    {"compaction": "tiered", "checkpoint_interval": "2"},
]


class Line:
    """A branch or the table itself: its rows, and those of the last version that both had."""

    def __init__(self, table: Table, rows: Rows, moves: int = 0) -> None:
        self.table = table
        self.rows = rows
        self.base = dict(rows)
        self.moves = moves  # commits of the table that changed rows, when they were the same


class Refs(RuleBasedStateMachine):
    """Reads of every line and tag agree with the model after each step."""

    branches = Bundle("branches")
    tags = Bundle("tags")

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, Line] = {}
        self.tagged: dict[str, Rows] = {}
        self.moves_of: dict[str, int | None] = {}
        self.moves = 0
        self.count = 0

    @initialize(rows=ROWS, properties=st.sampled_from(PROPERTIES))
    def create(self, rows: Rows, properties: dict[str, str]) -> None:
        table = rowsieve.create_table(
            f"memory:///{uuid.uuid4().hex}", KV, key=["k"], properties=properties
        )
        table.upsert(kv(*rows.items()))
        self.lines["main"] = Line(table, dict(rows))

    def line(self, name: str) -> Line:
        return self.lines.get(name, self.lines["main"])

    def wrote(self, line: Line) -> None:
        self.moves += line is self.lines["main"]

    @rule(name=branches | st.just("main"), rows=ROWS)
    def upsert(self, name: str, rows: Rows) -> None:
        line = self.line(name)
        line.table.upsert(kv(*rows.items()))
        line.rows |= rows
        self.wrote(line)

    @rule(name=branches | st.just("main"), key=KEYS)
    def delete(self, name: str, key: int) -> None:
        line = self.line(name)
        if line.table.delete(f"k <= {key} AND k > {key - 3}").committed:
            line.rows = {k: v for k, v in line.rows.items() if not key - 3 < k <= key}
            self.wrote(line)

    @rule(name=branches | st.just("main"), rows=ROWS)
    def overwrite(self, name: str, rows: Rows) -> None:
        line = self.line(name)
        line.table.overwrite(kv(*rows.items()))
        line.rows = dict(rows)
        self.wrote(line)

    @rule(name=branches | st.just("main"))
    def compact(self, name: str) -> None:
        self.line(name).table.compact()

    @rule(name=branches | st.just("main"))
    def store_vectors(self, name: str) -> None:
        self.line(name).table.build_deletion_vectors()

    @rule(name=branches | st.just("main"), kept=st.integers(1, 3))
    def vacuum(self, name: str, kept: int) -> None:
        self.line(name).table.vacuum(retain_last=kept, grace_s=0)

    @rule(target=tags, name=branches | st.just("main"))
    def tag(self, name: str) -> str:
        self.count += 1
        line, tag = self.line(name), f"tag{self.count}"
        line.table.tag(tag)
        self.tagged[tag] = dict(line.rows)
        self.moves_of[tag] = self.moves if line is self.lines["main"] else None
        return tag

    @rule(target=branches)
    def branch(self) -> str:
        self.count += 1
        main, name = self.lines["main"], f"branch{self.count}"
        self.lines[name] = Line(main.table.branch(name), dict(main.rows), self.moves)
        return name

    @rule(target=branches, parent=branches)
    def branch_of_a_branch(self, parent: str) -> str:
        self.count += 1
        line, name = self.lines[parent], f"branch{self.count}"
        self.lines[name] = child = Line(line.table.branch(name), dict(line.rows), line.moves)
        child.base = dict(line.base)
        return name

    @rule(target=branches, tag=tags)
    def branch_of_a_tag(self, tag: str) -> str:
        self.count += 1
        name, moves = f"branch{self.count}", self.moves_of[tag]
        table = self.lines["main"].table.branch(name, version=tag)
        self.lines[name] = Line(table, dict(self.tagged[tag]), -1 if moves is None else moves)
        return name

    @rule(name=branches)
    def fast_forward(self, name: str) -> None:
        main, branch = self.lines["main"], self.lines[name]
        if branch.moves < 0:
            with pytest.raises(UnsupportedOperation, match="a version of another branch"):
                main.table.fast_forward(name)
            return
        try:
            commit = main.table.fast_forward(name)
        except CommitConflict:
            assert branch.moves != self.moves
            return
        if not commit.committed:
            assert branch.rows == branch.base
            return
        assert main.rows == branch.base  # whatever happened meanwhile, nothing is lost
        changes = main.table.changes(commit.version).read_all().to_pylist()
        assert applied(main.rows, changes) == branch.rows
        main.rows, branch.base = dict(branch.rows), dict(branch.rows)
        self.moves += 1
        branch.moves = self.moves

    @rule(name=consumes(branches))
    def drop_branch(self, name: str) -> None:
        self.lines["main"].table.drop_branch(name)
        del self.lines[name]

    @rule(tag=consumes(tags))
    def drop_tag(self, tag: str) -> None:
        self.lines["main"].table.drop_tag(tag)
        del self.tagged[tag]

    @invariant()
    def everything_reads_as_the_model_says(self) -> None:
        if not self.lines:
            return
        main = self.lines["main"].table
        for name, line in self.lines.items():
            expected = sorted(line.rows.items())
            assert pairs(line.table) == expected
            ref = None if name == "main" else name
            again = rowsieve.open_table(main.uri, ref=ref)
            assert pairs(again, "k > 2") == [row for row in expected if row[0] > 2]
            judge = duckdb_session()
            judge.register("t", again.to_dataset())
            assert judge.sql("SELECT k, v FROM t ORDER BY k").fetchall() == expected
        for tag, rows in self.tagged.items():
            assert pairs(main, version=tag) == sorted(rows.items())
        assert set(main.refs().column("name").to_pylist()) == {*self.lines, *self.tagged} - {"main"}


def applied(rows: Rows, changes: list[dict[str, Any]]) -> Rows:
    """The rows after changes of the feed; each must fit the rows before."""
    result = dict(rows)
    for change in changes:
        key, value = change["k"], change["v"]
        match change["_change_type"]:
            case "insert" | "update_postimage":
                assert key not in result
                result[key] = value
            case _:
                assert result.pop(key) == value
    return result


TestRefs = Refs.TestCase
TestRefs.settings = settings(cast("settings", examples(64)), stateful_step_count=20)
