"""Convert the argument `where=`, or an expression, to our tree and its semantics.

Bridges are imported only for text and for other engines' expressions, because they are large and
import sqlglot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rowsieve.bridges.session import Session, in_session
from rowsieve.bridges.sql import SHORT, parse_expression, parse_predicate
from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.bridges.sql.exactness.name_rules import check_names
from rowsieve.bridges.text_with_values import TextWithValues
from rowsieve.errors import InvalidInput, InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.binding.enum_labels import with_text
from rowsieve.predicate.ir import (
    TRUE,
    Call,
    Case,
    Cast,
    Comparison,
    Literal,
    Operand,
    Predicate,
    walk,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.predicate.text_cache import cached_by_text
from rowsieve.types.logical import Float, is_nested
from rowsieve.types.schema import Schema

if TYPE_CHECKING:
    from rowsieve.bridges.languages import Bridge


def to_predicate(
    where: Any,
    dialect: str = "postgres",
    schema: Schema | None = None,
    semantics: Semantics | None = None,
    session: Session | None = None,
    *,
    names_checked: bool = False,
) -> Predicate:
    """Convert SQL text, a predicate, or an expression of another engine; None is TRUE.

    Expressions are read for the columns of a schema, wholly or not at all. So is text for which
    DuckDB or DataFusion would compare numbers of two types, or trim, differently. `semantics` are
    those of the text's session, by default the dialect's; `session` has the settings of a Spark
    column's session. `names_checked`: the caller has applied its session's rule for names.
    """
    if where is None:
        return TRUE
    if isinstance(where, Predicate):
        return where
    if isinstance(where, TextWithValues):
        return _with_values(where, dialect, schema, semantics)
    with locating_errors(where, dialect, schema, semantics):
        return _read(where, dialect, schema, semantics, session, names_checked=names_checked)


def _with_values(
    where: TextWithValues, dialect: str, schema: Schema | None, semantics: Semantics | None
) -> Predicate:
    """Read text with the values of its parameters."""
    from rowsieve.bridges.sql.text_parameters import read_with_values  # noqa: PLC0415 - on first use

    if schema is None:
        raise InvalidInput("params: values are bound to a condition over the columns of a table")
    semantics = dialect_named(dialect).semantics if semantics is None else semantics
    seen = schema if semantics.orders_enums else with_text(schema)
    return read_with_values(where, seen, dialect, semantics)


def _read(
    where: Any,
    dialect: str,
    schema: Schema | None,
    semantics: Semantics | None,
    session: Session | None,
    *,
    names_checked: bool,
) -> Predicate:
    """Read text or another engine's expression."""
    if isinstance(where, str):
        read_plain = _known_plain_condition if len(where) <= SHORT else _plain_condition
        if (plain := read_plain(where, dialect, schema, names_checked)) is not None:
            return plain
    from rowsieve.bridges.languages import BRIDGES, bridge_named  # noqa: PLC0415 - on first use
    from rowsieve.bridges.sql.language import where_text  # noqa: PLC0415 - on first use

    if isinstance(where, str):
        rules = dialect_named(dialect)
        if rules.listed_only and schema is not None:
            return bridge_named(dialect).read(where, schema).exact()
        if schema is not None:
            semantics = rules.semantics if semantics is None else semantics
            seen = schema if semantics.orders_enums else with_text(schema)
            return where_text(where, seen, dialect, semantics)
    if schema is not None and (bridge := _bridge_of(where)) is not None:
        if session is not None and bridge.takes_session:
            return bridge.read(where, schema, session=session).exact()
        return bridge.read(where, schema).exact()
    known = ", ".join(dict.fromkeys(bridge.shown for bridge in BRIDGES if not bridge.is_text))
    raise InvalidInput(f"where= takes SQL text, {known}; not {type(where).__name__}")


def _plain_condition(
    text: str, dialect: str, schema: Schema | None, names_checked: bool
) -> Predicate | None:
    """Read text that needs the rules of no engine; None for other text.

    UnknownColumn for a name that is not one column in the dialect's engine.
    """
    if schema is not None and not names_checked:
        check_names(text, schema, dialect)
    rules = dialect_named(dialect)
    depends = rules.listed_only or rules.translates_listed or rules.gives_types
    if depends and (schema is not None or rules.listed_only):
        return None
    predicate = parse_predicate(text, dialect)
    return predicate if schema is None or _is_plain(predicate, schema) else None


_known_plain_condition = cached_by_text(_plain_condition)


def _is_plain(predicate: Predicate, schema: Schema) -> bool:
    """Whether a condition only compares values that every engine compares alike."""
    for node in walk(predicate):
        match node:
            case Call() | Case() | Cast():
                return False
            case Comparison(left=Literal(), right=Literal()):
                return False  # in a list, whose other members may give them their type
    return not any(field.type == Float(32) or is_nested(field.type) for field in schema.fields)


def to_operand(
    expression: Any,
    dialect: str = "postgres",
    schema: Schema | None = None,
    semantics: Semantics | None = None,
) -> Operand:
    """Convert SQL text or one of our operands; Spark text has Spark's types, given a schema.

    `semantics` are those of the text's session, by default the dialect's.
    """
    with locating_errors(expression, dialect, schema, semantics, is_value=True):
        return _read_value(expression, dialect, schema, semantics)


def _read_value(
    expression: Any, dialect: str, schema: Schema | None, semantics: Semantics | None
) -> Operand:
    if isinstance(expression, str):
        if dialect_named(dialect).listed_only:
            raise InvalidInput(f"expressions are not read in {dialect} SQL, only conditions")
        operand = parse_expression(expression, dialect)
        if schema is not None:
            check_names(expression, schema, dialect)
        if schema is None:
            return operand
        semantics = dialect_named(dialect).semantics if semantics is None else semantics
        from rowsieve.bridges.sql.language import value_text  # noqa: PLC0415 - on first use

        return value_text(operand, schema, dialect_named(dialect), semantics)
    if isinstance(expression, Operand):
        return expression
    raise InvalidInput(
        f"an expression is SQL text or a rowsieve operand, not {type(expression).__name__}"
    )


@contextmanager
def locating_errors(
    text: Any,
    dialect: str,
    schema: Schema | None,
    semantics: Semantics | None = None,
    *,
    is_value: bool = False,
) -> Iterator[None]:
    """Add the offset, the rejected text and its columns' types to an error about SQL text.

    `is_value`: the text is an expression, not a condition. Without a schema, and for other values,
    the error is unchanged.
    """
    try:
        yield
    except (InvalidPredicate, UnsupportedOperation) as error:
        if schema is None or not isinstance(text, str) or error.position is not None:
            raise
        from rowsieve.bridges.sql.error_places import placed  # noqa: PLC0415 - it imports sqlglot

        semantics = dialect_named(dialect).semantics if semantics is None else semantics
        rejection = placed(error, text, dialect, schema, semantics, is_value=is_value)
        if rejection is error:
            raise
        raise rejection from error


def semantics_of(dialect: str, where: Any = None, session: Session | None = None) -> Semantics:
    """Return the rules of a dialect of SQL text, or of another engine's expression.

    `session`: its settings; rejected if the engine has none.
    """
    bridge = None if isinstance(where, str) else _bridge_of(where)
    if bridge is not None and bridge.name != "rowsieve":
        return bridge.semantics_for(where, session)
    rules = dialect_named(dialect).semantics
    return rules if session is None else in_session(rules, session)


def _bridge_of(where: Any) -> Bridge | None:
    """Return the bridge of another engine's expression; None for text or other values."""
    if where is None or isinstance(where, str | Predicate):
        return None
    from rowsieve.bridges.languages import bridge_of  # noqa: PLC0415 - on first use

    return bridge_of(where)
