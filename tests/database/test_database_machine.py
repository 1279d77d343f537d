"""A database against a dictionary: tables by name, versions of all of them, tags and branches."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import rowsieve as rs
from rowsieve.errors import CommitConflict, TableExists, UnsupportedOperation
from rowsieve.objects.shared import shared_tables
from tests.profiles import examples
from tests.small_tables import fresh_uri, kv, pairs

NAMES = st.sampled_from(["a", "b", "shop.c", "shop.d"])
REFS = st.sampled_from(["x", "y"])
ROWS = st.dictionaries(st.integers(0, 5), st.integers(0, 99), min_size=1, max_size=3)
Rows = dict[int, int]


@dataclass
class Line:
    """The rows of a branch, and how often the table had changed when both were the same."""

    rows: Rows
    moves: int
    is_changed: bool = False


@dataclass
class Model:
    """One table: its rows, the number of its changes, its tags and branches."""

    rows: Rows
    moves: int = 0
    tags: dict[str, Rows] = field(default_factory=dict)
    branches: dict[str, Line] = field(default_factory=dict)

    @property
    def refs(self) -> set[str]:
        return {*self.tags, *self.branches}

    def change(self, rows: Rows) -> None:
        if rows != self.rows:
            self.moves += 1
        self.rows = rows


class Databases(RuleBasedStateMachine):
    """What every name, version, tag and branch shows agrees with the model after each step."""

    def __init__(self) -> None:
        super().__init__()
        self.models: dict[str, Model] = {}
        self.versions: dict[int, dict[str, Rows]] = {}

    @initialize(inline=st.booleans())
    def begin(self, inline: bool) -> None:
        self.database = rs.Database(fresh_uri())
        self.properties = {"inline_bytes": 16_384 if inline else 0, "checkpoint_interval": 3}
        self.create("a", {1: 10})

    def note(self) -> None:
        """Remember the newest version; each change that was committed calls it."""
        self.versions[self.database.version] = {
            name: dict(model.rows) for name, model in self.models.items()
        }

    @rule(name=NAMES, rows=ROWS)
    def create(self, name: str, rows: Rows) -> None:
        if name in self.models:
            with pytest.raises(TableExists):
                self.database.create_table(name, kv(*rows.items()), ["k"])
            return
        self.database.create_table(name, kv(*rows.items()), ["k"], properties=self.properties)
        self.models[name] = Model(dict(rows))
        self.note()

    @rule(name=NAMES)
    def drop(self, name: str) -> None:
        if name not in self.models:
            self.database.drop_table(name, if_absent="ignore")
        elif self.models[name].refs:
            with pytest.raises(UnsupportedOperation, match="branches or tags"):
                self.database.drop_table(name)
        else:
            self.database.drop_table(name)
            del self.models[name]
            self.note()

    @rule(name=NAMES, new_name=NAMES)
    def rename(self, name: str, new_name: str) -> None:
        if name not in self.models or name == new_name:
            return
        if new_name in self.models:
            with pytest.raises(TableExists):
                self.database.rename_table(name, new_name)
            return
        self.database.rename_table(name, new_name)
        self.models[new_name] = self.models.pop(name)
        self.note()

    @rule(name=NAMES, rows=ROWS, ref=st.none() | REFS)
    def upsert(self, name: str, rows: Rows, ref: str | None) -> None:
        if name not in self.models:
            return
        model = self.models[name]
        if ref is None:
            self.database.open_table(name).upsert(kv(*rows.items()))
            model.rows, model.moves = {**model.rows, **rows}, model.moves + 1
            self.note()
        elif ref in model.branches:
            self.database.open_table(name, ref=ref).upsert(kv(*rows.items()))
            line = model.branches[ref]
            line.rows, line.is_changed = {**line.rows, **rows}, True

    @rule(rows=ROWS, new=NAMES, commits=st.booleans())
    def transact(self, rows: Rows, new: str, commits: bool) -> None:
        after = copy.deepcopy(self.models)
        tx = self.database.transaction()
        for name, model in after.items():
            tx.sql(f"DELETE FROM {name} WHERE k > 3")
            tx.table(name).upsert(kv(*rows.items()))
            model.change({**{k: v for k, v in model.rows.items() if k <= 3}, **rows})
            model.moves = self.models[name].moves + 1
        if new not in after:
            tx.create_table(new, kv(*rows.items()), ["k"], properties=self.properties)
            after[new] = Model(dict(rows))
        if commits:
            tx.commit()
            self.models = after
            self.note()
        else:
            tx.rollback()

    @rule(ref=REFS, is_tag=st.booleans())
    def create_ref(self, ref: str, is_tag: bool) -> None:
        if not self.models or any(ref in model.refs for model in self.models.values()):
            return
        (self.database.tag if is_tag else self.database.branch)(ref)
        for model in self.models.values():
            if is_tag:
                model.tags[ref] = dict(model.rows)
            else:
                model.branches[ref] = Line(dict(model.rows), model.moves)
        self.note()

    @rule(ref=REFS)
    def publish(self, ref: str) -> None:
        models = [model for model in self.models.values() if ref in model.branches]
        if not models:
            return
        changed = [model for model in models if model.branches[ref].is_changed]
        if any(model.moves != model.branches[ref].moves for model in changed):
            with pytest.raises(CommitConflict, match="has moved since"):
                self.database.fast_forward(ref)
            return
        assert len(self.database.fast_forward(ref)) == len(changed)
        for model in changed:
            line = model.branches[ref]
            model.rows, model.moves = dict(line.rows), model.moves + 1
            line.moves, line.is_changed = model.moves, False
        self.note()

    @rule(ref=REFS)
    def drop_ref(self, ref: str) -> None:
        models = [model for model in self.models.values() if ref in model.refs]
        if models:
            assert len(self.database.drop_ref(ref)) == len(models)
            for model in models:
                model.tags.pop(ref, None)
                model.branches.pop(ref, None)
            self.note()

    @rule(expires=st.booleans())
    def maintain(self, expires: bool) -> None:
        for name in self.models:
            table = self.database.open_table(name)
            if expires:
                table.maintain(retain_last=1, grace_s=0)
            else:
                table.compact()
        if expires:
            self.database.vacuum(retain_s=0)
            self.versions.clear()
        self.note()

    @rule()
    def open_again(self) -> None:
        """As another process: nothing of it is in memory."""
        shared_tables._open.clear()
        self.database = rs.Database(self.database.uri)

    @invariant()
    def agrees(self) -> None:
        if not self.versions:
            return
        assert self.database.tables() == sorted(self.models)
        for name, model in self.models.items():
            assert pairs(self.database.open_table(name)) == sorted(model.rows.items())
            for ref, rows in model.tags.items():
                assert pairs(self.database.open_table(name, ref=ref)) == sorted(rows.items())
            for ref, line in model.branches.items():
                assert pairs(self.database.open_table(name, ref=ref)) == sorted(line.rows.items())
        version = min(self.versions)
        assert self.database.tables(version=version) == sorted(self.versions[version])
        for name, rows in self.versions[version].items():
            assert pairs(self.database.open_table(name, version=version)) == sorted(rows.items())


TestDatabases = Databases.TestCase
TestDatabases.settings = settings(cast("settings", examples(48)), stateful_step_count=14)
