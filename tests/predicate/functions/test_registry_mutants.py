"""Each claim of the registry turned into a wrong one: the checks of the claims must notice.

A mutant survives if no row contradicts what is derived from it and nothing less is known than
before. Rows are replaced in memory.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.functions import registry
from rowsieve.predicate.functions.casting import casts
from rowsieve.predicate.functions.casting.casts import CastRule
from rowsieve.predicate.functions.registry import BUILT_IN, FUNCTIONS
from rowsieve.predicate.functions.row import (
    BoundsRule,
    Direction,
    Function,
    NullRule,
    Range,
    Signature,
    never_fails,
)
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.ir import Call, Cast
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Enum, Interval, Json, Numeric, is_ordered
from tests.daily import is_due
from tests.oracle_texts import known_texts
from tests.predicate.functions.claims import precision, violations
from tests.predicate.functions.sample_calls import SAMPLES, Sample, cast_samples, nanosecond_casts
from tests.predicate.functions.test_registry_claims import KNOWN
from tests.strategies import SEMANTICS

UP, DOWN = Direction.INCREASING, Direction.DECREASING
WRONG_DIRECTION = {
    Direction.NONE: UP,
    UP: DOWN,
    DOWN: UP,
    Direction.EITHER: UP,
}
WRONG_NULLS = {
    NullRule.STRICT: (NullRule.NEVER,),
    NullRule.PARTIAL: (NullRule.STRICT, NullRule.NEVER),
    NullRule.NEVER: (NullRule.STRICT,),
    NullRule.ALL: (NullRule.STRICT, NullRule.NEVER),
    NullRule.FIRST: (NullRule.STRICT, NullRule.NEVER),
}


CHOICES = (NullRule.ALL, NullRule.FIRST)


def flipped(row: Function) -> Function:
    """Every direction the other way."""
    own = row.direction
    return replace(
        row, direction=lambda signature: tuple(WRONG_DIRECTION[each] for each in own(signature))
    )


def with_bounds(row: Function, change: Callable[[Range], Range]) -> Function:
    own = row.bounds
    assert own is not None

    def bounds(
        arguments: Sequence[AbstractValue], signature: Signature, semantics: Semantics
    ) -> Range | None:
        found = own(arguments, signature, semantics)
        return None if found is None else change(found)

    changed: BoundsRule = bounds
    return replace(row, bounds=changed)


def mutants(row: Function) -> Iterator[tuple[str, Function]]:
    for nulls in WRONG_NULLS.get(row.nulls, ()):
        mutant = replace(row, nulls=nulls)
        if row.nulls is NullRule.PARTIAL:  # what may fail may be NULL there, whatever `nulls` says
            mutant = replace(mutant, can_fail=never_fails)
        yield f"nulls {nulls.value}", mutant
    if may_fail(row):
        yield "never fails", replace(row, can_fail=lambda _: False)
    if row.bounds is None and row.nulls not in CHOICES and takes_ordered(SAMPLES[row.name][0]):
        yield "directions", flipped(row)
    if row.bounds is not None:
        yield "no rule", replace(row, bounds=None)
        yield "ends", with_bounds(row, lambda found: replace(found, upper=found.lower))
        yield "other ends", with_bounds(row, lambda found: replace(found, lower=found.upper))
        if may_fail(row):
            yield (
                "always safe",
                with_bounds(row, lambda it: replace(it, safe=np.ones(len(it.lower), np.bool_))),
            )


def takes_ordered(sample: Sample) -> bool:
    """Whether an argument is a column of ordered values, not a list of it, and so is the result."""
    operand = sample.operand
    without_bounds = isinstance(operand, Call) and operand.function in _WITHOUT_BOUNDS
    return (
        is_ordered(sample.x)
        and not without_bounds
        and not (isinstance(operand, Call) and isinstance(operand.arguments[0], Call))
    )


_WITHOUT_BOUNDS = frozenset({"age", "rounded_quotient"})
"""Functions that give intervals, or numbers of any length, whose results have no bounds."""


def may_fail(row: Function) -> bool:
    """Whether a sample fails under some semantics: `can_fail` may be wide."""
    return row.name in FALLIBLE


FALLIBLE = frozenset(
    {"add", "subtract", "multiply", "divide", "modulo", "negate", "abs", "round", "substr"}
    | {"add_interval", "shift", "shift_timestamp", "sqrt", "shift_left"}
    | {"timestamp_seconds", "make_date", "floor", "ceil"}
)


def contradicted(samples: Sequence[Sample], seed: str) -> bool:
    for index, sample in enumerate(samples):
        for semantics in SEMANTICS:
            number = zlib.crc32(f"{seed} {index}".encode())
            # A wrong direction reads the ends of ranges; engines lack some casts of nanoseconds.
            with known_texts(), contextlib.suppress(InvalidPredicate):
                if violations(sample, semantics, number, part_count=150):
                    return True
    return False


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_wrong_claim_of_a_function_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_due(sorted(BUILT_IN).index(name), 4):
        pytest.skip("has its turn on another day")
    survivors = []
    for what, mutant in mutants(FUNCTIONS[name]):
        with monkeypatch.context() as patch:
            rows = {**FUNCTIONS, name: mutant}
            patch.setattr(registry, "FUNCTIONS", MappingProxyType(rows))
            less = any(now < then for now, then in zip(known(name), KNOWN[name], strict=True))
            if not less and not contradicted(SAMPLES[name], name):
                survivors.append(what)
    assert survivors == []


def known(name: str) -> list[int]:
    return precision(SAMPLES[name])


UNORDERED = {
    Json,
    Interval,
    Numeric,
    Enum,
}  # no range of them is known, so no claim of a direction is used
CASTS = sorted((pair for pair in casts._RULES if UNORDERED.isdisjoint(pair)), key=str)


@pytest.mark.parametrize("pair", CASTS, ids=str)
def test_a_wrong_claim_of_a_cast_is_noticed(
    pair: tuple[type, type], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_due(CASTS.index(pair), 4):
        pytest.skip("has its turn on another day")
    own = casts._RULES[pair]
    samples = [
        sample
        for sample in (*cast_samples(), *nanosecond_casts())
        if isinstance(sample.x, pair[0]) and isinstance(target_of(sample), pair[1])
    ]
    before = precision(samples)
    survivors = []
    for what, mutant in cast_mutants(own):
        with monkeypatch.context() as patch:
            patch.setitem(casts._RULES, pair, mutant)
            less = any(now < then for now, then in zip(precision(samples), before, strict=True))
            if not less and not contradicted(samples, str(pair)):
                survivors.append(what)
    assert survivors == []


def target_of(sample: Sample) -> object:
    assert isinstance(sample.operand, Cast)
    return sample.operand.type


def cast_mutants(rule: CastRule) -> Iterator[tuple[str, CastRule]]:
    yield "increasing", replace(rule, increasing=not rule.increasing)
    if rule.rises_at is not None:
        yield "rises everywhere", replace(rule, rises_at=None)
    if rule.can_fail:
        yield "never fails", replace(rule, can_fail=False)
