"""Random conditions as Substrait messages keep the same rows in DataFusion and after reading."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import datafusion
import numpy as np
import pyarrow as pa
import pytest
from datafusion import substrait

import rowsieve as rs
from rowsieve.bridges.substrait_exprs import wire
from rowsieve.bridges.where import to_predicate
from rowsieve.errors import RowsieveError
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests import profiles
from tests.bridges.substrait_exprs.test_datafusion import plan_of

ROWS = pa.record_batch(
    {
        "k": pa.array(range(8), pa.int64()),
        "s": pa.array(["ab", "b", "", None, "a%", "é", "AB", "b"]),
        "d": pa.array([0, 19_000, -1, None, 5, 0, 7, -719_162], pa.date32()),
        "ts": pa.array([None] * 8, pa.timestamp("us")),
        "tz": pa.array([None] * 8, pa.timestamp("us", "UTC")),
        "n": pa.array([1, None, -5, 0, 3, 2**40, 1, None], pa.int64()),
        "b": pa.array([True, None, False, True, None, False, True, False]),
    }
)
SCHEMA, _ = schema_of(ROWS.schema)
MEANT = Semantics.DATAFUSION
COUNT = 5_000 if profiles.IS_DEEP else 300
OPS = ("=", "<>", "<", "<=", ">", ">=")


def condition(chance: random.Random, depth: int) -> str:
    """Text of a random condition over the columns."""
    if depth and chance.random() < 0.6:
        word = chance.choice(("AND", "OR", "NOT"))
        left = condition(chance, depth - 1)
        if word == "NOT":
            return f"NOT ({left})"
        return f"({left}) {word} ({condition(chance, depth - 1)})"
    op, number = chance.choice(OPS), chance.randrange(-2, 6)
    return chance.choice(
        (
            *(f"k {op} {number}", f"n {op} {number}", f"n {op} k", f"{number} {op} n"),
            *(f"s {op} 'b'", f"d {op} DATE '1970-01-06'", "n IS NULL", "s IS NOT NULL", "b"),
            *(f"k IN ({number}, 1, 3)", f"n NOT IN ({number}, 0)"),
        )
    )


def messages(chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """Random conditions, written; without those that DataFusion's optimiser takes otherwise."""
    for _ in range(COUNT):
        text = condition(chance, 3)
        made = rs.translate(text, "datafusion", target="substrait", schema=ROWS.schema)
        if made.residual is None and made.expression is not None:
            yield text, made.exact()
        else:
            assert "no member in common" in made.notes[0], text


def by_datafusion(context: Any, message: bytes) -> list[int]:
    """The rows that DataFusion keeps."""
    plan = substrait.Serde.deserialize_bytes(plan_of(message, ROWS.schema.names))
    logical = substrait.Consumer.from_substrait_plan(context, plan)
    batches = context.create_dataframe_from_logical_plan(logical).collect()
    return sorted(k for batch in batches for k in batch.column("k").to_pylist())


def test_random_conditions_keep_the_same_rows_in_datafusion() -> None:
    chance = random.Random(11 if not profiles.IS_DEEP else None)
    context = datafusion.SessionContext()
    context.register_record_batches("t", [[ROWS]])
    for text, written in messages(chance):
        bound = bind(to_predicate(text, "datafusion", SCHEMA), SCHEMA, MEANT)
        wanted = np.flatnonzero(matching(bound, ROWS)).tolist()
        assert by_datafusion(context, written) == wanted, text
        back = rs.translate(written, "substrait", target="rowsieve", schema=ROWS.schema).exact()
        found = bind(back, SCHEMA, MEANT)
        assert np.flatnonzero(matching(found, ROWS)).tolist() == wanted, text


def test_damaged_messages_are_ours_to_refuse() -> None:
    """Cut, changed, repeated and random bytes: an error of ours, or a reading."""
    chance = random.Random(12)
    for _, whole in messages(chance):
        bad = bytearray(whole)
        match chance.randrange(4):
            case 0:
                del bad[chance.randrange(len(bad)) :]
            case 1:
                for _ in range(chance.randrange(1, 5)):
                    bad[chance.randrange(len(bad))] = chance.randrange(256)
            case 2:
                at = chance.randrange(len(bad))
                bad[at:at] = bad[chance.randrange(len(bad)) :]
            case _:
                bad = bytearray(chance.randbytes(chance.randrange(200)))
        try:
            rs.translate(bytes(bad), "substrait", target="postgres", schema=ROWS.schema)
        except RowsieveError:
            continue


def test_a_message_nested_too_deep_is_refused() -> None:
    message = b"x"
    for _ in range(20_000):
        message = wire.part(3, message)
    with pytest.raises(RowsieveError):
        rs.translate(message, "substrait", target="postgres", schema=ROWS.schema)
