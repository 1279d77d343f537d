"""One case: a text of `where=` over all pairs of edge values, here and in its engine.

What is read must give the engine's value on each row, and fail on exactly its rows; a text whose
form is unknown here (`UnreadText`) and what is refused count as no comparison.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pyarrow as pa

from rowsieve.bridges.session import Session
from rowsieve.bridges.where import semantics_of, to_predicate
from rowsieve.errors import InvalidInput, InvalidPredicate, UnreadText, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundOperand, bind
from rowsieve.predicate.evaluate import Outcome, compute, evaluate
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Bool
from rowsieve.types.schema import Schema
from rowsieve.types.shown_values import shown_row
from tests.bridges.against_engines.edges import decoded, rows
from tests.bridges.against_engines.engines import ENGINES, Engine
from tests.bridges.against_engines.judges import (
    Judge,
    LackingError,
    Spark,
    ValueFailure,
    alike,
    plain,
    taken,
)

_MAX_DIGITS = 38
_ASKED_TOGETHER = 60  # texts in one question to an engine
_REFUSALS = (InvalidPredicate, UnsupportedOperation, InvalidInput)


@dataclass(frozen=True)
class Case:
    """A text of an engine over columns of these types; its name replays it."""

    engine: str
    types: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.engine}|{self.types}|{self.text}"

    @classmethod
    def named(cls, name: str) -> Case:
        return cls(*name.split("|", 2))


@dataclass
class Verdict:
    """How many values were compared, what differs, and why nothing was compared.

    `fails_here`: rows of which the engine has values; `fails_there`: rows on which it fails, and
    which are compared with nothing.
    """

    compared: int = 0
    findings: list[str] = field(default_factory=list)
    fails_here: list[str] = field(default_factory=list)
    fails_there: list[str] = field(default_factory=list)
    skipped: str = ""


@dataclass(frozen=True)
class Reading:
    """What we make of a case: values by row, and the rows that it keeps as a condition."""

    case: Case
    table: pa.Table
    values: list[object]
    failed: np.ndarray
    unread: np.ndarray
    conditions: tuple[tuple[str, Outcome], ...]

    @property
    def good(self) -> list[int]:
        """The rows of which we have values."""
        return np.flatnonzero(~self.failed & ~self.unread).tolist()

    @property
    def asked(self) -> tuple[list[str], list[str]]:
        """Texts and conditions that the engine is asked for over all rows."""
        whole = [text for text, outcome in self.conditions if not outcome.failed.any()]
        return [self.case.text] if len(self.good) == self.table.num_rows else [], whole


def compared(case: Case) -> Verdict:
    """Compare one case with its engine."""
    ((_, verdict),) = compared_all([case])
    return verdict


def compared_all(cases: Sequence[Case]) -> Iterator[tuple[Case, Verdict]]:
    """Compare cases of one engine with it; those over the same columns are asked together."""
    by_types: dict[str, list[Case]] = {}
    for case in cases:
        by_types.setdefault(case.types, []).append(case)
    for same in by_types.values():
        for start in range(0, len(same), _ASKED_TOGETHER):
            yield from _compared_together(same[start : start + _ASKED_TOGETHER])


def _compared_together(cases: Sequence[Case]) -> Iterator[tuple[Case, Verdict]]:
    judge = ENGINES[cases[0].engine].judge()
    readings = [(case, reading_of(case)) for case in cases]
    asked = [reading.asked for _, reading in readings if isinstance(reading, Reading)]
    if len(asked) > 1 and isinstance(judge, Spark):
        texts = [text for values, _ in asked for text in values]
        conditions = [text for _, kept in asked for text in kept]
        judge.prepare(texts, conditions, rows(decoded(cases[0].types)))
    for case, reading in readings:
        if isinstance(reading, Verdict):
            yield case, reading
            continue
        verdict = Verdict()
        try:
            _compare_values(reading, judge, verdict)
            _compare_conditions(reading, judge, verdict)
        except LackingError as error:
            verdict = Verdict(skipped=f"lacking: {str(error)[:200]}")
        yield case, verdict


def reading_of(case: Case) -> Reading | Verdict:
    """Read and evaluate a case; a verdict where nothing is to be compared."""
    engine = ENGINES[case.engine]
    table = rows(decoded(case.types))
    schema = _schema(case.types)
    session = None if engine.zone is None else Session(time_zone=engine.zone)
    try:
        test = engine.language(engine.null_test.format(case.text))
    except Exception as error:  # whatever an engine's API raises
        return Verdict(skipped=f"lacking: {str(error)[:200]}")
    meant = semantics_of(engine.dialect, test, session=session)
    try:
        tested = to_predicate(test, engine.dialect, schema, meant, session=session)
        root = bind(tested, schema, meant, simplified=False).root
    except _REFUSALS as error:
        return Verdict(skipped=f"refused: {error}")
    if not isinstance(root, ir.IsNull):
        return Verdict(skipped="not a value")
    bound = BoundOperand(root.operand, type_of(root.operand), schema.id, meant)
    ours, failed, unread = _computed(bound, table)
    conditions: tuple[tuple[str, Outcome], ...] = ()
    if bound.type == Bool() and not (failed | unread).all():
        texts = (case.text, engine.negation.format(case.text))
        outcomes = ((text, _outcome(text, engine, schema, meant, table)) for text in texts)
        conditions = tuple((text, each) for text, each in outcomes if each is not None)
    return Reading(case, table, ours, failed, unread, conditions)


@cache
def _schema(types: str) -> Schema:
    return schema_of(rows(decoded(types)).schema)[0]


def _outcome(
    text: str, engine: Engine, schema: Schema, meant: Semantics, table: pa.Table
) -> Outcome | None:
    """Evaluate a text as a condition; None if it is refused."""
    try:
        predicate = to_predicate(engine.language(text), engine.dialect, schema, meant)
        bound = bind(predicate, schema, meant)
    except _REFUSALS:
        return None
    return evaluate(bound, table.combine_chunks().to_batches()[0])


def _compare_values(reading: Reading, judge: Judge, verdict: Verdict) -> None:
    text, table, ours, good = reading.case.text, reading.table, reading.values, reading.good
    for row, theirs in _theirs(judge, text, table, good).items():
        if isinstance(theirs, ValueFailure):
            verdict.fails_there.append(
                f"{shown_row(table, row)}: here {ours[row]!r}, there {str(theirs)[:300]!r}"
            )
        elif not alike(ours[row], theirs):
            verdict.findings.append(
                f"{shown_row(table, row)}: here {ours[row]!r}, there {theirs!r}"
            )
    bad = np.flatnonzero(reading.failed & ~reading.unread).tolist()
    for row in bad[:: max(1, len(bad) // 3)]:
        try:
            found = judge.values(text, taken(table, [row]), optimised=False)[0]
        except ValueFailure:
            continue
        if not _is_too_long(found):
            verdict.fails_here.append(f"{shown_row(table, row)}: here a failure, there {found!r}")
    verdict.compared += len(good) + len(bad) - len(verdict.fails_there)


def _is_too_long(value: object) -> bool:
    """Whether it is a decimal that no type with 38 digits holds: here that is a failure."""
    return isinstance(value, decimal.Decimal) and len(value.as_tuple().digits) >= _MAX_DIGITS


def _computed(bound: BoundOperand, table: pa.Table) -> tuple[list[object], np.ndarray, np.ndarray]:
    """Compute values, which rows failed, and which hold a text that is not known to be read."""
    batch = table.combine_chunks().to_batches()[0]
    unread = np.zeros(table.num_rows, dtype=np.bool_)
    try:
        values, failed = compute(bound, batch)
        return plain(values), failed, unread
    except UnreadText:
        pass
    found: list[object] = [None] * table.num_rows
    failed = np.zeros(table.num_rows, dtype=np.bool_)
    for row in range(table.num_rows):
        try:
            values, bad = compute(bound, batch.slice(row, 1))
            found[row], failed[row] = plain(values)[0], bad[0]
        except UnreadText:
            unread[row] = True
    return found, failed, unread


def _theirs(judge: Judge, text: str, table: pa.Table, kept: list[int]) -> dict[int, object]:
    """Ask for the values of some rows; a row on which the engine fails has its failure."""
    if not kept:
        return {}
    try:
        return dict(zip(kept, judge.values(text, taken(table, kept)), strict=True))
    except ValueFailure as error:
        if len(kept) == 1:
            return {kept[0]: error}
    half = len(kept) // 2
    return {
        **_theirs(judge, text, table, kept[:half]),
        **_theirs(judge, text, table, kept[half:]),
    }


def _compare_conditions(reading: Reading, judge: Judge, verdict: Verdict) -> None:
    """Compare the rows that the text keeps as a condition, and its negation."""
    table = reading.table
    for condition, outcome in reading.conditions:
        good = [row for row in range(table.num_rows) if not outcome.failed[row]]
        ours = [row for place, row in enumerate(good) if outcome.true[row]]
        try:
            kept = judge.kept(condition, taken(table, good)) if good else []
        except ValueFailure as error:
            verdict.fails_there.append(f"WHERE {condition}: fails there: {str(error)[:300]!r}")
            continue
        theirs = [good[place] for place in kept]
        verdict.compared += len(good)
        for row in sorted(set(ours) ^ set(theirs))[:5]:
            where = "here" if row in ours else "there"
            verdict.findings.append(
                f"WHERE {condition}: {shown_row(table, row)}: kept {where} alone"
            )
