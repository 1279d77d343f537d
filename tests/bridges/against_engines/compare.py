"""One case: a text of `where=` over all pairs of edge values, here and in its engine.

What is read must give the engine's value on each row, and fail on exactly its rows; a text whose
form is unknown here (`UnreadText`) and what is refused count as no comparison.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pyarrow as pa

from rowsieve.bridges.session import Session
from rowsieve.bridges.where import semantics_of, to_predicate
from rowsieve.errors import InvalidInput, InvalidPredicate, UnreadText, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundOperand, bind
from rowsieve.predicate.evaluate import compute, evaluate
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Bool
from rowsieve.types.schema import Schema
from tests.bridges.against_engines.edges import decoded, rows
from tests.bridges.against_engines.engines import ENGINES, Engine
from tests.bridges.against_engines.judges import (
    Judge,
    LackingError,
    ValueFailure,
    alike,
    plain,
    taken,
)

_MOST_DIGITS = 38
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


def compared(case: Case) -> Verdict:
    """Compare one case with its engine."""
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
    judge, verdict = engine.judge(), Verdict()
    try:
        values = _values(root.operand, schema, meant, judge, case.text, table, verdict)
        if type_of(root.operand) == Bool() and values:
            _conditions(case.text, schema, meant, engine, judge, table, verdict)
    except LackingError as error:
        return Verdict(skipped=f"lacking: {str(error)[:200]}")
    return verdict


@cache
def _schema(types: str) -> Schema:
    return schema_of(rows(decoded(types)).schema)[0]


def _values(
    operand: ir.Operand,
    schema: Schema,
    meant: Semantics,
    judge: Judge,
    text: str,
    table: pa.Table,
    verdict: Verdict,
) -> bool:
    """Compare the values of an operand; False if it reads no row."""
    bound = BoundOperand(operand, type_of(operand), schema.id, meant)
    ours, failed, unread = _computed(bound, table)
    good = [row for row in range(table.num_rows) if not failed[row] and not unread[row]]
    shown = table.to_pylist() if good or failed.any() else []
    for row, theirs in _theirs(judge, text, table, good).items():
        if isinstance(theirs, ValueFailure):
            verdict.fails_there.append(
                f"{shown[row]}: here {ours[row]!r}, there {str(theirs)[:300]!r}"
            )
        elif not alike(ours[row], theirs):
            verdict.findings.append(f"{shown[row]}: here {ours[row]!r}, there {theirs!r}")
    bad = [row for row in range(table.num_rows) if failed[row] and not unread[row]]
    for row in bad[:: max(1, len(bad) // 3)]:
        try:
            found = judge.values(text, taken(table, [row]), optimised=False)[0]
        except ValueFailure:
            continue
        if not _is_too_long(found):
            verdict.fails_here.append(f"{shown[row]}: here a failure, there {found!r}")
    verdict.compared += len(good) + len(bad) - len(verdict.fails_there)
    return bool(good)


def _is_too_long(value: object) -> bool:
    """Whether it is a decimal that no type with 38 digits holds: here that is a failure."""
    return isinstance(value, decimal.Decimal) and len(value.as_tuple().digits) >= _MOST_DIGITS


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


def _conditions(
    text: str,
    schema: Schema,
    meant: Semantics,
    engine: Engine,
    judge: Judge,
    table: pa.Table,
    verdict: Verdict,
) -> None:
    """Compare the rows that the text keeps as a condition, and its negation."""
    for condition in (text, engine.negation.format(text)):
        try:
            where = engine.language(condition)
            predicate = to_predicate(where, engine.dialect, schema, meant)
            bound = bind(predicate, schema, meant)
        except _REFUSALS:
            continue
        outcome = evaluate(bound, table.combine_chunks().to_batches()[0])
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
                f"WHERE {condition}: {taken(table, [row]).to_pylist()[0]}: kept {where} alone"
            )
