"""Random transactions with savepoints, compared with a dictionary of rows."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve import Table, Transaction
from tests.profiles import examples
from tests.small_tables import appended, keyed, kv, pairs

KEYS = range(12)
Rows = dict[int, int]


class Machine:
    """A table, a transaction of it, and what both should have."""

    def __init__(self, make: Any, draws: random.Random) -> None:
        self.draws = draws
        self.rows: Rows = {k: draws.randrange(20) for k in draws.sample(KEYS, 5)}
        self.table: Table = make({"k": list(self.rows), "v": list(self.rows.values())})
        self.table.upsert(kv((0, 1))) if self.table.key else None
        if self.table.key:
            self.rows[0] = 1
        self.fresh = 100

    def run(self) -> None:
        """Make transactions, each of which ends in one of both ways."""
        for _ in range(self.draws.randint(1, 3)):
            tx, rows = self.table.transaction(), dict(self.rows)
            rows = self.changed(tx, rows)
            if self.draws.random() < 0.3:
                tx.rollback()
            else:
                before = self.table.refresh()
                commit = tx.commit()
                self.rows = rows
                assert commit is not None
                assert self.table.version == before + commit.committed
            assert pairs(self.table) == sorted(self.rows.items())

    def changed(self, tx: Transaction, rows: Rows) -> Rows:
        """Change and read; return the rows that the transaction should have."""
        marks: list[tuple[str, Rows]] = []
        for _ in range(self.draws.randint(1, 9)):
            match self.draws.randrange(7):
                case 0 | 1:
                    rows = self.written(tx, rows)
                case 2:
                    rows = self.removed(tx, rows)
                case 3:
                    limit = self.draws.randrange(20)
                    tx.update({"v": "v + 1"}, where=f"v < {limit}")
                    rows = {k: v + 1 if v < limit else v for k, v in rows.items()}
                case 4:
                    name = self.draws.choice("abc")
                    tx.savepoint(name)
                    marks.append((name, rows))
                case 5 if marks:
                    name = self.draws.choice(marks)[0]
                    place = max(i for i, mark in enumerate(marks) if mark[0] == name)
                    if self.draws.random() < 0.6:
                        tx.rollback_to(name)
                        rows = marks[place][1]
                        del marks[place + 1 :]
                    else:
                        tx.release(name)
                        del marks[place:]
                case _:
                    assert pairs(tx, "v >= 7") == sorted((k, v) for k, v in rows.items() if v >= 7)
        assert pairs(tx) == sorted(rows.items())
        return rows

    def written(self, tx: Transaction, rows: Rows) -> Rows:
        """Write rows, of known keys only if the table has a key."""
        count = self.draws.randint(1, 3)
        if tx.key:
            new = {k: self.draws.randrange(20) for k in self.draws.sample(KEYS, count)}
            tx.upsert(kv(*new.items()))
        else:
            new = {self.fresh + i: self.draws.randrange(20) for i in range(count)}
            self.fresh += count
            tx.append(kv(*new.items()))
        return {**rows, **new}

    def removed(self, tx: Transaction, rows: Rows) -> Rows:
        """Delete by key or by condition."""
        if tx.key and self.draws.random() < 0.5:
            gone = self.draws.sample(KEYS, 2)
            tx.delete(keys=pa.table({"k": gone}))
            return {k: v for k, v in rows.items() if k not in gone}
        limit = self.draws.randrange(20)
        tx.delete(f"v >= {limit}")
        return {k: v for k, v in rows.items() if v < limit}


@pytest.mark.parametrize("make", [keyed, appended])
@examples(200)
@given(seed=st.integers(0, 2**32))
def test_a_transaction_is_a_dictionary(make: Any, seed: int) -> None:
    Machine(make, random.Random(seed)).run()
