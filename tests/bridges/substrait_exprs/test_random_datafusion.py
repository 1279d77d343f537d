"""Random conditions as Substrait messages keep the same rows in DataFusion and after reading."""

from __future__ import annotations

import decimal
import math
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

D = decimal.Decimal
ROWS = pa.record_batch(
    {
        "k": pa.array(range(8), pa.int64()),
        "s": pa.array(["ab", "b", "", None, "a%", "é", "AB", "b"]),
        "d": pa.array([0, 19_000, -1, None, 5, 0, 7, -719_162], pa.date32()),
        "ts": pa.array([None] * 8, pa.timestamp("us")),
        "tz": pa.array([None] * 8, pa.timestamp("us", "UTC")),
        "n": pa.array([1, None, -5, 0, 3, 2**40, 1, None], pa.int64()),
        "i": pa.array([3, 1, None, 0, -5, 7, 1, 2**20], pa.int32()),
        "b": pa.array([True, None, False, True, None, False, True, False]),
        "f": pa.array([1.0, None, -2.5, 0.0, math.nan, math.inf, -0.0, 3.5]),
        "m": pa.array(
            [D("1.00"), None, D("-2.50"), D("0.00"), D("3.14"), D("1.00"), D("9" * 8), None],
            pa.decimal128(10, 2),
        ),
    }
)
SCHEMA, _ = schema_of(ROWS.schema)
MEANT = {"datafusion": Semantics.DATAFUSION, "duckdb": Semantics.DUCKDB}
COUNT = 5_000 if profiles.IS_DEEP else 400
OPS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
COLUMNS = {"whole": ("k", "n"), "int": ("i",), "text": ("s",), "date": ("d",), "decimal": ("m",)}
COLUMNS |= {"float": ("f",), "boolean": ("b",)}
CONSTANTS = {
    **dict.fromkeys(("whole", "int"), ("-5", "0", "1", "3", "4")),
    "text": ("'b'", "''", "'a%'", "'AB'", "'é'", "'q'"),
    "date": ("DATE '1970-01-01'", "DATE '1970-01-06'", "DATE '0001-01-01'"),
    "decimal": ("1.00", "-2.50", "3.14", "0.00"),
    "float": ("1.0", "-2.5", "3.5", "2.0"),
    "boolean": ("TRUE", "FALSE"),
}


class Texts:
    """Random conditions over the columns, in the words of a dialect."""

    def __init__(self, chance: random.Random, dialect: str) -> None:
        self._chance, self._dialect = chance, dialect

    def condition(self, depth: int) -> str:
        if depth and self._chance.random() < 0.5:
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            return self._chance.choice(
                (
                    *(f"NOT ({left})", f"({left}) AND ({right})", f"({left}) OR ({right})"),
                    *(f"({left}) IS NULL", self._case(depth, left, right)),
                )
            )
        kind = self._chance.choice([*COLUMNS])
        value, other = self.value(kind, depth), self.value(kind, depth)
        members = self._members(kind)
        found = [f"{value} {self._chance.choice(OPS)} {other}", f"{value} IS NULL"]
        found += [f"{value} IN ({members})", f"{value} NOT IN ({members})"]
        if kind == "boolean":
            found += [value, f"{value} IS NOT TRUE"]
        elif kind == "text":
            pattern = self._chance.choice(("b%", "%b", "%b%", "%", "é%", "b"))
            found += [f"{value} LIKE '{pattern}'", f"starts_with({value}, 'a')"]
        else:
            low, high = self._chance.choices(CONSTANTS[kind], k=2)
            found.append(f"{value} BETWEEN {low} AND {high}")
        return self._chance.choice(found)

    def value(self, kind: str, depth: int) -> str:
        """An operand: a column, a constant, or made of such."""
        if not depth or self._chance.random() < 0.5:
            names = COLUMNS[kind] * 2 + CONSTANTS[kind][:2]
            return self._chance.choice(names)
        one, two = self.value(kind, depth - 1), self.value(kind, depth - 1)
        found = [f"coalesce({one}, {two})", self._case(depth, one, two)]
        if kind == "whole" and self._dialect == "duckdb":  # where overflow is an error
            number = self._chance.choice(CONSTANTS[kind])
            found += [f"({one} {sign} {number})" for sign in "+-*"]
        return self._chance.choice(found)

    def _case(self, depth: int, one: str, two: str) -> str:
        last = self._chance.choice((f" ELSE {two}", ""))
        return f"CASE WHEN {self.condition(depth - 1)} THEN {one}{last} END"

    def _members(self, kind: str) -> str:
        few = 3 if kind == "float" else 6  # DataFusion takes -0.0 for another number in longer ones
        members = self._chance.choices(CONSTANTS[kind], k=self._chance.randrange(1, few + 1))
        return ", ".join([*members, *(["NULL"] if self._chance.random() < 0.1 else [])])


def messages(chance: random.Random) -> Iterator[tuple[str, str, bytes]]:
    """Random conditions, their dialects and messages, without those that are not translated."""
    written = 0
    for _ in range(COUNT):
        dialect = chance.choice([*MEANT])
        text = Texts(chance, dialect).condition(3)
        try:
            made = rs.translate(text, dialect, target="substrait", schema=ROWS.schema)
        except RowsieveError:  # a comparison of types that the dialect has not
            continue
        if made.residual is None and made.expression is not None:
            written += 1
            yield text, dialect, made.exact()
    assert written > COUNT / 2, written


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
    for text, dialect, written in messages(chance):
        meant = MEANT[dialect]
        bound = bind(to_predicate(text, dialect, SCHEMA), SCHEMA, meant)
        wanted = np.flatnonzero(matching(bound, ROWS)).tolist()
        assert by_datafusion(context, written) == wanted, text
        back = rs.translate(written, "substrait", target="rowsieve", schema=ROWS.schema).exact()
        found = bind(back, SCHEMA, meant)
        assert np.flatnonzero(matching(found, ROWS)).tolist() == wanted, text


def test_damaged_messages_are_ours_to_refuse() -> None:
    """Cut, changed, repeated and random bytes: an error of ours, or a reading."""
    chance = random.Random(12)
    for _, _, whole in messages(chance):
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
