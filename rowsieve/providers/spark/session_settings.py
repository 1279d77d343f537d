"""Finds the settings of a Spark session that decide the meaning of SQL text, on driver and tasks.

The process that plans a Python data source cannot see the session's settings (Spark 4.1 to 4.3); a
task sees the settings that are set explicitly, as local properties. So `to_spark` reads them on the
driver. Text in `option("where", ...)` is planned with those of its conditions that mean the same in
every session; the tasks then evaluate the whole text with the settings that they find. Soundness:
if a setting is unknown, the read is refused, and the error names the option to give.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import msgspec

from rowsieve.bridges.spark_columns.sessions import uses_formats
from rowsieve.bridges.sql.spark.settings import (
    ANSI,
    IN_TEXT,
    MEANINGS,
    PARSER_POLICY,
    TIME_ZONE,
)
from rowsieve.bridges.where import to_predicate
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.planner.plan import ScanPlan
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.functions.casting.casts import cast_rule
from rowsieve.predicate.functions.registry import known_of, resolve
from rowsieve.predicate.later_now import has_now, only_bounds
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.spark.name_case import OddNames, check_case, odd_names
from rowsieve.types.schema import Schema

_EXECUTION: Final = "spark.sql.execution.id"
_ANSI_MODE: Final = "SPARK_ANSI_SQL_MODE"  # environment variable with the setting's default
_FIXED: Final = Semantics.of_spark(ansi=True, time_zone="UTC")
_OTHERS: Final = (
    Semantics.of_spark(ansi=False, time_zone="UTC"),
    Semantics.of_spark(ansi=True, time_zone="Asia/Kathmandu"),  # never at UTC's offset
)


def semantics_of_session(session: Any, text: str, schema: Schema) -> Semantics:
    """The semantics of SQL text under a session's current settings; classic or Spark Connect."""

    def setting(name: str, plain: str) -> str:
        return str(session.conf.get(name, plain))

    _check_plain(text, setting)
    check_case(odd_names(text, schema), setting)
    ansi = str(session.conf.get(ANSI)).lower() == "true"
    return Semantics.of_spark(ansi=ansi, time_zone=str(session.conf.get(TIME_ZONE)))


def ansi_default() -> bool:
    """The default of `spark.sql.ansi.enabled`; must be called in the planning process."""
    return os.environ.get(_ANSI_MODE, "true").lower() != "false"


def session_independent(text: str, schema: Schema) -> tuple[ir.Predicate, bool]:
    """The conditions of the text that mean the same in every session; and whether these are all.

    Text that is invalid under all semantics is refused.
    """
    readings: list[ir.Predicate] = []
    refusals: list[Exception] = []
    for semantics in (_FIXED, *_OTHERS):
        try:
            readings.append(_read(text, schema, semantics))
        except (InvalidPredicate, UnsupportedOperation) as error:
            refusals.append(error)
    if not readings:
        raise refusals[0]
    if refusals:
        return ir.conjoin(()), False
    conditions = [ir.root_conjuncts(reading) for reading in readings]
    if len({len(each) for each in conditions}) > 1:
        return ir.conjoin(()), False
    pushed = [
        each[0]
        for each in zip(*conditions, strict=True)
        if len(set(each)) == 1 and _is_session_independent(each[0], schema)
    ]
    return ir.conjoin(pushed), len(pushed) == len(conditions[0])


def means_the_same(text: str, schema: Schema, semantics: Semantics) -> bool:
    """Whether text means the same under these semantics as in the zone UTC and in ANSI mode.

    True for text that is invalid in both, which another call reports.
    """
    if semantics == _FIXED:
        return True
    try:
        plain = bind(_read(text, schema, _FIXED), schema, _FIXED, simplified=False).root
    except (InvalidPredicate, UnsupportedOperation):
        return True
    if not _same_in(text, schema, _FIXED, semantics):
        return False
    is_ansi = semantics == Semantics.of_spark(ansi=True, time_zone=str(semantics.time_zone))
    return is_ansi or not _failing(plain)


def check_task(text: str | None, names: OddNames, property_of: Callable[[str], str | None]) -> None:
    """Refuse text that follows the session, if a setting of the task gives it another meaning.

    Also conditions for which `session_independent` is true are read by the plain grammar.
    """

    def setting(name: str, plain: str) -> str:
        return property_of(name) or plain

    check_case(names, setting)
    if text is not None:
        _check_plain(text, setting)


def plan_in_task(
    split: ScanPlan, text: str, property_of: Callable[[str], str | None], *, ansi: bool
) -> ScanPlan:
    """Return the split with the whole text as the residual, under the semantics of the task.

    `property_of` returns a local property of the task; `ansi` is the mode if none is set.
    """
    predicate, semantics = condition_in_task(text, split.schema, property_of, ansi=ansi)
    predicate = normalize(predicate, semantics)
    splits = tuple(
        msgspec.structs.replace(
            each,
            pieces=tuple(
                msgspec.structs.replace(
                    piece,
                    residual=True,
                    reads=tuple(
                        msgspec.structs.replace(read, residual=True) for read in piece.reads
                    ),
                )
                for piece in each.pieces
            ),
        )
        for each in split.splits
    )
    return msgspec.structs.replace(split, splits=splits).with_predicate(predicate, semantics)


def condition_in_task(
    text: str, schema: Schema, property_of: Callable[[str], str | None], *, ansi: bool
) -> tuple[ir.Predicate, Semantics]:
    """The condition of the text and its semantics under the settings of the task."""
    semantics = _semantics_of_task(text, schema, property_of, ansi=ansi)
    return _read(text, schema, semantics), semantics


def _semantics_of_task(
    text: str, schema: Schema, property_of: Callable[[str], str | None], *, ansi: bool
) -> Semantics:
    if property_of(_EXECUTION) is None:
        raise UnsupportedOperation(
            f"option where: the meaning of {text[:80]!r} depends on the session's settings, which "
            "this job does not have (it runs outside of Spark SQL, as df.rdd does); "
            "give the options time_zone and ansi, or use Table.to_spark"
        )
    mode = property_of(ANSI)
    is_ansi = ansi if mode is None else mode.lower() == "true"
    if (zone := property_of(TIME_ZONE)) is not None:
        return Semantics.of_spark(ansi=is_ansi, time_zone=zone)
    fixed, other = (
        Semantics.of_spark(ansi=is_ansi, time_zone=zone) for zone in ("UTC", "Asia/Kathmandu")
    )
    if not _same_in(text, schema, fixed, other):
        raise UnsupportedOperation(
            f"option where: {text[:80]!r} depends on the time zone of the session, which is not "
            f"set; set {TIME_ZONE}, or give the options time_zone and ansi"
        )
    return fixed


def _read(text: str, schema: Schema, semantics: Semantics) -> ir.Predicate:
    return to_predicate(text, "spark", schema, semantics, names_checked=True)


def _same_in(text: str, schema: Schema, one: Semantics, other: Semantics) -> bool:
    try:
        roots = [
            bind(_read(text, schema, each), schema, each, simplified=False).root
            for each in (one, other)
        ]
    except (InvalidPredicate, UnsupportedOperation):
        return False
    return roots[0] == roots[1]


def _is_session_independent(condition: ir.Predicate, schema: Schema) -> bool:
    """Return whether all sessions give the same result: it cannot fail and needs no zone."""
    try:
        roots = [
            bind(condition, schema, semantics, simplified=False).root
            for semantics in (_FIXED, *_OTHERS)
        ]
    except InvalidPredicate:
        return False
    return all(root == roots[0] for root in roots[1:]) and not _failing(roots[0])


def is_total(condition: ir.Predicate, schema: Schema, semantics: Semantics) -> bool:
    """Return whether the condition fails at no time; `now()` is in bounds of other times only."""
    failing = may_fail_at(condition, schema, semantics)
    return failing is not None and not failing


def may_fail_at(
    condition: ir.Predicate, schema: Schema, semantics: Semantics
) -> list[ir.Operand] | None:
    """The bound calls and casts that may fail on a row; None if `now()` is not just in bounds."""
    if not only_bounds(condition):
        return None
    try:
        failing = _failing(bind(condition, schema, semantics, simplified=False).root)
    except InvalidPredicate:
        return None
    return [node for node in failing if not has_now(node)]


def _failing(root: Any) -> list[ir.Operand]:
    operands: list[ir.Operand] = []
    for node in ir.walk(root):
        if isinstance(node, ir.Call):
            types = [type_of(argument) for argument in node.arguments]
            row, signature = resolve(node.function, known_of(node.arguments, types))
            if row.can_fail(signature):
                operands.append(node)
        elif isinstance(node, ir.Cast):
            rule = cast_rule(type_of(node.operand), node.type)
            if rule is None or rule.can_fail:
                operands.append(node)
    return operands


def _check_plain(text: str, setting: Callable[[str, str], str]) -> None:
    of_formats = [PARSER_POLICY] if uses_formats(text) else []
    for name, plain in (*MEANINGS.items(), *IN_TEXT.items(), *of_formats):
        if (current := setting(name, plain)).lower() != plain.lower():
            raise UnsupportedOperation(
                f"{name} is {current} in this session, which changes the meaning of SQL text; set "
                f"it to {plain}, or pass a Column"
            )
