"""The settings of a Spark session that decide what SQL text means, on the driver and in a task.

The process that plans a Python data source sees no setting of the session (Spark 4.1 to 4.3); a
task sees those that are set, as local properties. So `to_spark` reads them on the driver, and text
in `option("where", ...)` is planned by the conditions that mean the same in every session, and
evaluated in the tasks by the settings found there. Soundness: a setting that cannot be known is
refused, with the option that names it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from rowsieve.bridges.where import to_predicate
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.planner.plan import ScanPlan
from rowsieve.predicate.bind import bind
from rowsieve.predicate.functions.casts import cast_rule
from rowsieve.predicate.functions.registry import known_of, resolve
from rowsieve.predicate.ir import Call, Cast, Predicate, conjoin, root_conjuncts, walk
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

ANSI: Final = "spark.sql.ansi.enabled"
TIME_ZONE: Final = "spark.sql.session.timeZone"
_EXECUTION: Final = "spark.sql.execution.id"
_ANSI_MODE: Final = "SPARK_ANSI_SQL_MODE"  # the environment's default of the setting
# Settings under which text has a grammar or types that are not read here, and what they must be.
_PLAIN: Final[Mapping[str, str]] = {
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.interval.enabled": "false",
    "spark.sql.legacy.sizeOfNull": "true",
}
_FIXED: Final = Semantics.of_spark(ansi=True, time_zone="UTC")
_OTHERS: Final = (
    Semantics.of_spark(ansi=False, time_zone="UTC"),
    Semantics.of_spark(ansi=True, time_zone="Asia/Kathmandu"),  # at no time UTC's
)


def semantics_of_session(session: Any) -> Semantics:
    """What text means in a session, classic or of a Connect client, by its settings now."""
    _check_plain(lambda name, plain: str(session.conf.get(name, plain)))
    ansi = str(session.conf.get(ANSI)).lower() == "true"
    return Semantics.of_spark(ansi=ansi, time_zone=str(session.conf.get(TIME_ZONE)))


def ansi_default() -> bool:
    """What `spark.sql.ansi.enabled` is where nobody sets it; asked beside the driver."""
    return os.environ.get(_ANSI_MODE, "true").lower() != "false"


def settled_conditions(text: str, schema: Schema) -> tuple[Predicate, bool]:
    """The conditions of the text that mean the same in every session, and whether these are all.

    Text that is refused in every mode is refused.
    """
    readings: list[Predicate] = []
    refusals: list[Exception] = []
    for semantics in (_FIXED, *_OTHERS):
        try:
            readings.append(to_predicate(text, "spark", schema, semantics))
        except (InvalidPredicate, UnsupportedOperation) as error:
            refusals.append(error)
    if not readings:
        raise refusals[0]
    if refusals:
        return conjoin(()), False
    conditions = [root_conjuncts(reading) for reading in readings]
    if len({len(each) for each in conditions}) > 1:
        return conjoin(()), False
    kept = [
        each[0]
        for each in zip(*conditions, strict=True)
        if len(set(each)) == 1 and _is_settled(each[0], schema)
    ]
    return conjoin(kept), len(kept) == len(conditions[0])


def plan_in_task(
    split: ScanPlan, text: str, property_of: Callable[[str], str | None], *, ansi: bool
) -> ScanPlan:
    """The split with the whole text, meant by the task's session, asked of every row.

    `property_of` gives a local property of the task; `ansi` is the mode where none is set.
    """
    semantics = _semantics_of_task(text, split.schema, property_of, ansi=ansi)
    predicate = normalize(to_predicate(text, "spark", split.schema, semantics), semantics)
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
    return msgspec.structs.replace(split, splits=splits).asking(predicate, semantics)


def _semantics_of_task(
    text: str, schema: Schema, property_of: Callable[[str], str | None], *, ansi: bool
) -> Semantics:
    if property_of(_EXECUTION) is None:
        raise UnsupportedOperation(
            f"option where: {text[:80]!r} means another thing in another session, and this job "
            "does not say which settings it has (it runs outside of Spark SQL, as df.rdd does); "
            "give the options time_zone and ansi, or use Table.to_spark"
        )
    _check_plain(lambda name, plain: property_of(name) or plain)
    mode = property_of(ANSI)
    is_ansi = ansi if mode is None else mode.lower() == "true"
    if (zone := property_of(TIME_ZONE)) is not None:
        return Semantics.of_spark(ansi=is_ansi, time_zone=zone)
    fixed, other = (
        Semantics.of_spark(ansi=is_ansi, time_zone=zone) for zone in ("UTC", "Asia/Kathmandu")
    )
    if not _same_in(text, schema, fixed, other):
        raise UnsupportedOperation(
            f"option where: {text[:80]!r} depends on the time zone of the session, which nobody "
            f"has set; set {TIME_ZONE}, or give the options time_zone and ansi"
        )
    return fixed


def _same_in(text: str, schema: Schema, one: Semantics, other: Semantics) -> bool:
    try:
        roots = [
            bind(to_predicate(text, "spark", schema, each), schema, each, simplified=False).root
            for each in (one, other)
        ]
    except (InvalidPredicate, UnsupportedOperation):
        return False
    return roots[0] == roots[1]


def _is_settled(condition: Predicate, schema: Schema) -> bool:
    """Whether it gives the same in every session: nothing in it fails or asks for a zone."""
    try:
        roots = [
            bind(condition, schema, semantics, simplified=False).root
            for semantics in (_FIXED, *_OTHERS)
        ]
    except InvalidPredicate:
        return False
    if any(root != roots[0] for root in roots[1:]):
        return False
    for node in walk(roots[0]):
        if isinstance(node, Call):
            types = [type_of(argument) for argument in node.arguments]
            row, signature = resolve(node.function, known_of(node.arguments, types))
            if row.can_fail(signature):
                return False
        elif isinstance(node, Cast):
            rule = cast_rule(type_of(node.operand), node.type)
            if rule is None or rule.can_fail:
                return False
    return True


def _check_plain(setting: Callable[[str, str], str]) -> None:
    for name, plain in _PLAIN.items():
        if (found := setting(name, plain)).lower() != plain.lower():
            raise UnsupportedOperation(
                f"{name} is {found} in this session, under which SQL text has another meaning; "
                f"set it to {plain}, or give a Column"
            )
