"""Read an engine's trees by the rules of its SQL dialect.

A bridge formats each condition of the top-level AND as text of the dialect, node by node, with
names for its constants, its lists and deeply nested conditions (`stand_ins`). Reading then applies
all rules of that dialect.

Soundness: the engine must parse the text to that tree. A condition that a bridge cannot format is
refused, and stays in the engine's own form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from rowsieve.bridges.conditions import read_conditions
from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.bridges.sql.language import check_translated, typed_as_engine, with_engine_types
from rowsieve.bridges.sql.placeholders import StandIns
from rowsieve.bridges.translation import Translation
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.bound import BoundPredicate
from rowsieve.predicate.ir import InList, Predicate, walk
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import type_name
from rowsieve.types.schema import Schema

E = TypeVar("E")
R = TypeVar("R")


def read_encoded(
    conditions: Sequence[E],
    spell: Callable[[E, StandIns], str],
    join: Callable[[list[E]], R],
    schema: Schema,
    dialect: Dialect,
    *,
    semantics: Semantics | None = None,
    elsewhere: Semantics | None = None,
    shown: Callable[[E], object] = str,
    strict: bool = False,
) -> Translation[Predicate, R]:
    """Read each condition as the text that `spell` returns; the residual has the refused ones.

    `spell` raises `UnsupportedOperation` for a node without text. `semantics`: the rules of the
    session, by default those of the dialect. `elsewhere`: the same rules in another time zone,
    given if that of the session is unknown: a condition that depends on it is refused.
    """
    from rowsieve.bridges.sql.reading import parse  # noqa: PLC0415 - sqlglot takes 0.1 s to import

    rules = dialect.semantics if semantics is None else semantics

    def read(condition: E) -> Predicate:
        stand_ins = StandIns(schema, dialect)
        try:
            predicate = stand_ins.read_whole(
                spell(condition, stand_ins),
                lambda text: parse.encoded(text, stand_ins, dialect),
            )
        except RecursionError:
            raise UnsupportedOperation("its values nest too deeply to be read") from None
        _check_types(predicate, stand_ins, schema, rules)
        if elsewhere is not None:
            _check_zone(predicate, schema, dialect, rules, elsewhere)
        return with_engine_types(predicate, schema, dialect, rules)

    def accept(_condition: E, bound: BoundPredicate) -> None:
        check_translated(bound, schema, dialect)

    return read_conditions(
        conditions, read, join, schema, rules, accept=accept, shown=shown, strict=strict
    )


def _check_types(
    predicate: Predicate, stand_ins: StandIns, schema: Schema, semantics: Semantics
) -> None:
    for node in walk(predicate) if stand_ins.of_one_type else ():
        if isinstance(node, InList) and any(node.values is each for each in stand_ins.of_one_type):
            type_ = bind_operand(node.operand, schema, semantics).type
            if type_ != node.values.type:
                raise UnsupportedOperation(
                    f"{type_name(type_)} is sought in a list of another type; cast it to that"
                )


def _check_zone(
    predicate: Predicate, schema: Schema, dialect: Dialect, rules: Semantics, elsewhere: Semantics
) -> None:
    here, there = (
        typed_as_engine(predicate, schema, dialect, each).root for each in (rules, elsewhere)
    )
    if here != there:
        raise UnsupportedOperation(
            "the session's time zone is not known, and UTC is not assumed; give time_zone="
        )
