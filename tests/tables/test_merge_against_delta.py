"""`Table.merge` against deltalake's merge: the same clauses over the same rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

import rowsieve as rs
from rowsieve.errors import KeyViolation
from tests.profiles import some

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("s", pa.string())])
CONDITIONS = (None, "source.n > target.n", "target.s = source.s", "source.n IS NULL", "NULL")
OF_TARGET = (None, "target.n > 1", "target.s = 'a'", "NULL")
OF_SOURCE = (None, "source.n > 1", "source.s IS NOT NULL", "NULL")
UPDATES = ({"n": "source.n"}, {"s": "source.s", "n": "target.n + source.n"}, {"s": "NULL"})
INSERTS = ({"id": "source.id", "s": "'new'"}, {"id": "source.id", "n": "7", "s": "source.s"})
CLAUSES: tuple[tuple[str, tuple[Any, ...], tuple[str | None, ...]], ...] = (
    ("when_matched_update_all", (), CONDITIONS),
    ("when_matched_update", UPDATES, CONDITIONS),
    ("when_matched_delete", (), CONDITIONS),
    ("when_not_matched_insert_all", (), OF_SOURCE),
    ("when_not_matched_insert", INSERTS, OF_SOURCE),
    ("when_not_matched_by_source_update", ({"s": "'gone'"}, {"n": "target.n - 1"}), OF_TARGET),
    ("when_not_matched_by_source_delete", (), OF_TARGET),
)
Rows = list[tuple[Any, ...]]


def _rows(chance: random.Random, count: int, *, unique: bool) -> pa.Table:
    ids = [None, 1, 2, 3, 4]
    chosen = chance.sample(ids, min(count, len(ids))) if unique else chance.choices(ids, k=count)
    numbers = [chance.choice([None, 1, 2, 3]) for _ in chosen]
    texts = [chance.choice([None, "a", "b"]) for _ in chosen]
    return pa.table({"id": chosen, "n": numbers, "s": texts}, SCHEMA)


def _clauses(chance: random.Random) -> list[tuple[str, tuple[Any, ...]]]:
    clauses = []
    for name, values, conditions in chance.sample(CLAUSES, chance.randint(1, 4)):
        given = (chance.choice(values),) if values else ()
        condition = chance.choice(conditions)
        clauses.append((name, given if condition is None else (*given, condition)))
    return clauses


def _sorted(rows: pa.Table) -> Rows:
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)


def _outcome(
    merge: Any, clauses: list[tuple[str, tuple[Any, ...]]], rows: Callable[[], pa.Table]
) -> Rows | None:
    """The rows after the merge; None if it was refused because it has several results."""
    for name, arguments in clauses:
        merge = getattr(merge, name)(*arguments)
    try:
        merge.execute()
    except KeyViolation:
        return None
    except DeltaError as error:
        if "multiple source rows" in str(error):
            return None
        raise
    return _sorted(rows())


@pytest.mark.parametrize("seed", some(range(240), 20))
def test_the_same_clauses_give_the_same_rows(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    target = _rows(chance, chance.randint(0, 5), unique=False)
    source = _rows(chance, chance.randint(1, 4), unique=chance.random() < 0.7)
    clauses = _clauses(chance)
    write_deltalake(tmp_path / "delta", target)
    theirs = DeltaTable(tmp_path / "delta")
    ours = rs.create_table(tmp_path / "ours", target)
    merging = theirs.merge(
        source, "target.id = source.id", source_alias="source", target_alias="target"
    )
    expected = _outcome(merging, clauses, theirs.to_pyarrow_table)
    assert _outcome(ours.merge(source, on="id"), clauses, ours.to_arrow) == expected, clauses
