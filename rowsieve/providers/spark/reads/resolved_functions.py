"""Reads resolved conditions with functions: writes the SQL text that Spark would resolve to each.

The text is read by the bridge for Spark's SQL, under the rules of the session: its mode, ANSI or
not, and its time zone. Soundness: a class that is not listed is refused; so are a class with other
rules than the session's, as in a view made under other settings, and a class that reads a setting
when it runs. The tree already has all casts, so the bridge has no types to change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import functions

from rowsieve.bridges.spark_columns.classic import Node
from rowsieve.bridges.sql.dialects import SPARK
from rowsieve.bridges.sql.encoded import read_encoded
from rowsieve.bridges.sql.placeholders import StandIns
from rowsieve.bridges.sql.spark import column_words
from rowsieve.bridges.sql.spark.catalyst_classes import FUNCTIONS, OPERATORS, Depends
from rowsieve.bridges.sql.spark.column_words import Form, Names, SparkCall, Words
from rowsieve.bridges.sql.spark.settings import ANSI, TIME_ZONE
from rowsieve.bridges.sql.spark.type_names import type_named
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.spark.plan_times import time_of
from rowsieve.providers.spark.reads.resolved_conditions import (
    Columns,
    constant_of,
    kind_of,
    members_of,
    path_of,
    refusal,
)
from rowsieve.types.logical import Json, String, type_name
from rowsieve.types.schema import Schema

_WORDS: Final = {**OPERATORS, **FUNCTIONS}
_SHIFTS: Final = ("TimestampAddInterval", "TimestampAddYMInterval", "DateAddYMInterval")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a session, and the table's schema."""

    schema: Schema
    semantics: Semantics
    is_ansi: bool
    time_zone: str

    @classmethod
    def of(cls, session: Any, schema: Schema) -> Rules:
        """The rules that the session has now."""
        is_ansi = str(session.conf.get(ANSI)).lower() == "true"
        zone = str(session.conf.get(TIME_ZONE))
        return cls(schema, Semantics.of_spark(ansi=is_ansi, time_zone=zone), is_ansi, zone)


def predicate_by_text(node: Node, columns: Columns, rules: Rules) -> ir.Predicate:
    """The predicate of a condition; UnsupportedOperation if it is not known to mean the same."""
    refusals: list[UnsupportedOperation] = []

    def form_of(each: Node) -> Form:
        try:
            return _form(each, columns, rules)
        except UnsupportedOperation as error:
            refusals.append(error)
            raise

    def spell(condition: Node, stand_ins: StandIns) -> str:
        return Words(
            Names(rules.schema),
            stand_ins,
            form_of,
            functions,
            lambda _: None,  # no class that is listed has a format
            size_of_null=False,
            null_in_empty_list=False,
        ).text(condition)

    _check_names(rules.schema)
    try:
        translation = read_encoded(
            [node],
            spell,
            list,
            rules.schema,
            SPARK,
            semantics=rules.semantics,
            shown=lambda _: "it",
        )
    except (InvalidPredicate, UnknownColumn) as error:
        raise UnsupportedOperation(str(error)) from error
    if translation.expression is None or translation.exactness is not Exactness.EXACT:
        raise refusals[0] if refusals else UnsupportedOperation(" ".join(translation.notes))
    return translation.expression


def _check_names(schema: Schema) -> None:
    if len({name.lower() for name in schema.names}) < len(schema.names):
        raise UnsupportedOperation(
            "two columns differ in the case of their names only, which SQL text does not tell apart"
        )


def _form(node: Node, columns: Columns, rules: Rules) -> Form:
    kind, children = kind_of(node), node.children
    if kind in _WORDS:
        word, depends = _WORDS[kind]
        match depends:
            case Depends.NOTHING:
                return SparkCall(word, _with_documents(kind, children, columns))
            case Depends.ZONE:
                _check_zone(node, rules)
            case Depends.MODE:
                _check_mode(str(node.source().evalMode().toString()), kind, rules)
            case Depends.FAILING:
                _check_mode("ANSI" if node.source().failOnError() else "LEGACY", kind, rules)
        return SparkCall(word, children)
    if (read := _OTHERS.get(kind)) is None:
        raise refusal(kind)
    return read(node, columns, rules)


def _with_documents(kind: str, children: Any, columns: Columns) -> list[Any]:
    """The children; the first may be a column of JSON if the function takes one."""
    first, *others = children
    if kind != "GetJsonObject" or first.kind != "AttributeReference":
        return [first, *others]
    parts, type_ = path_of(first, columns)
    if not isinstance(type_, Json | String):
        raise refusal(kind)
    return [column_words.Name(parts), *others]


def _check_zone(node: Node, rules: Rules) -> None:
    if (zone := node.fields.get("timeZoneId")) is not None and zone != rules.time_zone:
        raise UnsupportedOperation(f"{node.kind}: it has the time zone {zone}, not the session's")


def _check_mode(mode: str, kind: str, rules: Rules) -> None:
    if mode != ("ANSI" if rules.is_ansi else "LEGACY"):
        raise UnsupportedOperation(f"{kind}: it has the mode {mode}, not the session's")


def _cast(node: Node, columns: Columns, rules: Rules) -> Form:
    del columns
    spelled = node.fields["dataType"]
    if (target := type_named(spelled)) is None:
        raise UnsupportedOperation(f"a cast to {spelled} has no type in Rowsieve")
    _check_zone(node, rules)
    mode = str(node.source().evalMode().toString())
    if (is_try := mode == "TRY") is False:
        _check_mode(mode, node.kind, rules)
    return column_words.CastTo(node.children[0], target, is_try=is_try)


def _case(node: Node, columns: Columns, rules: Rules) -> Form:
    del columns, rules
    pairs = list(node.children)
    last = pairs.pop() if len(pairs) % 2 else None
    return column_words.Choice(list(zip(pairs[::2], pairs[1::2], strict=True)), last)


def _column(node: Node, columns: Columns, rules: Rules) -> Form:
    del rules
    parts, type_ = path_of(node, columns)
    if isinstance(type_, Json):
        raise UnsupportedOperation(f"{'.'.join(parts)} is {type_name(type_)}, and text in Spark")
    return column_words.Name(parts)


def _literal(node: Node, columns: Columns, rules: Rules) -> Form:
    del columns, rules
    spelled = node.fields["dataType"]
    if isinstance(spelled, str) and spelled.startswith("interval "):  # not the legacy `interval`
        return column_words.constant(int(node.fields["value"]), spelled)
    type_ = type_named(spelled)
    if type_ is None:
        raise UnsupportedOperation(f"a constant of type {spelled} has no type in Rowsieve")
    if node.fields.get("value") is None:
        return column_words.constant(None, spelled)
    return column_words.constant(constant_of(node, type_), spelled)


def _shifted(node: Node, columns: Columns, rules: Rules) -> Form:
    del columns
    _check_zone(node, rules)
    if node.children[1].kind != "Literal":
        raise UnsupportedOperation(f"{node.kind}: only a constant interval is added")
    return SparkCall("+", node.children)


def _time(node: Node, columns: Columns, rules: Rules) -> Form:
    del columns, rules
    if (name := time_of(node.source())) is None:
        raise refusal(node.kind)
    return SparkCall(name, ())


def _like(node: Node, columns: Columns, rules: Rules) -> Form:
    del columns, rules
    if str(node.source().escapeChar()) != "\\":
        raise refusal("Like with ESCAPE")
    return SparkCall("like", node.children)


def _in_set(node: Node, columns: Columns, rules: Rules) -> Form:
    del rules
    operand = node.children[0]
    _, type_ = path_of(operand, columns)
    return column_words.SparkList(operand, members_of(node, type_), typed=True)


_OTHERS: Final[Mapping[str, Callable[[Node, Columns, Rules], Form]]] = {
    "AttributeReference": _column,
    "GetStructField": _column,
    "Literal": _literal,
    "Cast": _cast,
    "CaseWhen": _case,
    "Like": _like,
    "InSet": _in_set,
    **dict.fromkeys(_SHIFTS, _shifted),
    "ScalarSubquery": _time,
}
