"""The bridge of SQL text, which reads and writes condition by condition.

Soundness: written text has passed `exact`, so the dialect's engine gives it our meaning. Text that
cannot be read is left unchanged, as a whole condition of the top-level AND.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rowsieve.bridges.conditions import read_conditions, write_conditions
from rowsieve.bridges.differences import Direction, check
from rowsieve.bridges.differences.merged_lists import merged_at_top
from rowsieve.bridges.meanings import keep_meaning
from rowsieve.bridges.session import Session, in_session
from rowsieve.bridges.sql import parse_predicate
from rowsieve.bridges.sql.constructs.declared_zones import check_zones, with_local_times
from rowsieve.bridges.sql.dialects import Dialect, dialect_named
from rowsieve.bridges.sql.exactness.coercion import as_compared, as_computed, check_coercion
from rowsieve.bridges.sql.exactness.exact import Exact
from rowsieve.bridges.sql.exactness.integer_widths import with_widths
from rowsieve.bridges.sql.exactness.name_rules import check_names
from rowsieve.bridges.sql.exactness.same_values import check_answers
from rowsieve.bridges.sql.exactness.unbound_types import UnboundTyper
from rowsieve.bridges.sql.exactness.unknown_texts import check_order, check_texts, orders_text
from rowsieve.bridges.sql.exactness.years_before_christ import written_without_year_zero
from rowsieve.bridges.sql.spark.types.typer import spark_typed, with_spark_types
from rowsieve.bridges.sql.spark.write.exact_conditions import SparkExact, with_rewritten_rules
from rowsieve.bridges.sql.writing.render import SqlWriter
from rowsieve.bridges.translation import Translation
from rowsieve.errors import InvalidInput, InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.bound import BoundPredicate
from rowsieve.predicate.interpretation.nan_signs import check_nan_signs
from rowsieve.predicate.ir import IsNull, Operand, Predicate, root_conjuncts
from rowsieve.predicate.semantics import NanOrder, Semantics
from rowsieve.types.schema import Schema


def from_text(
    text: str,
    schema: Schema,
    *,
    dialect: str = "postgres",
    session: Session | None = None,
    strict: bool = False,
) -> Translation[Predicate, str]:
    """Read a condition over columns of the schema; the residual is the unsupported part.

    `session`: the settings of the text's session, by default those of the dialect. Text that is not
    a condition is `InvalidPredicate`.
    """
    from rowsieve.bridges.sql.reading import parse  # noqa: PLC0415 - sqlglot takes 0.1 s to import

    if not isinstance(text, str):
        raise InvalidInput(f"a filter in {dialect} SQL is text, not {type(text).__name__}")
    known = dialect_named(dialect)
    semantics = in_session(known.semantics, session)
    check_names(text, schema, dialect)
    conditions = parse.conditions(text, dialect)
    merged: frozenset[Predicate] = frozenset()
    if known.lists.merges:
        merged = merged_at_top([each for _, each in conditions if isinstance(each, Predicate)])

    return read_conditions(
        conditions,
        partial(_condition, schema=schema, known=known, semantics=semantics, merged=merged),
        _left,
        schema,
        semantics,
        accept=partial(_accept, schema=schema, known=known),
        shown=lambda condition: condition[0],
        strict=strict,
    )


def _condition(
    condition: tuple[str, Predicate | InvalidPredicate],
    *,
    schema: Schema,
    known: Dialect,
    semantics: Semantics,
    merged: frozenset[Predicate],
) -> Predicate:
    """Type one condition of the top-level AND; `merged`: those that the optimiser merges."""
    reading = condition[1]
    if isinstance(reading, InvalidPredicate):
        raise reading
    if reading in merged:
        raise UnsupportedOperation(
            f"lists about one value, one of them with columns: {known.name}'s optimiser merges "
            "them and loses the columns"
        )
    return with_engine_types(reading, schema, known, semantics)


def _accept(
    condition: tuple[str, object], bound: BoundPredicate, *, schema: Schema, known: Dialect
) -> None:
    """Raise for a condition with another meaning in the engine, its collation included."""
    from rowsieve.bridges.sql.reading import parse  # noqa: PLC0415 - sqlglot takes 0.1 s to import

    check_translated(bound, schema, known)
    if known.texts.orders_by_collation and orders_text(bound.root):
        for part in parse.uncollated(condition[0], known.name):
            check_order(bind(part, schema, bound.semantics, simplified=False).root, known.name)


def accepted_as_engine(
    predicate: Predicate, schema: Schema, known: Dialect, semantics: Semantics
) -> BoundPredicate:
    """Bind a condition, typed as in the engine; raise if it cannot be translated exactly."""
    typed = with_engine_types(predicate, schema, known, semantics)
    bound = bind(typed, schema, semantics, simplified=False)
    check_translated(bound, schema, known)
    return bound


def check_translated(bound: BoundPredicate, schema: Schema, known: Dialect) -> None:
    """Raise for a condition of the engine that cannot be translated exactly."""
    _check_typed(bound, schema, known)
    root = bound.root
    if known.translates_listed:
        Exact(known).predicate(root)
        if not known.listed_only:  # `where=` is evaluated here; no engine evaluates the rest
            check_texts(root, bound.semantics)
    if known.semantics.nan is NanOrder.SIGNED:
        check_nan_signs(root)


def where_text(
    text: str, schema: Schema, dialect: str, semantics: Semantics | None = None
) -> Predicate:
    """Read a condition as a whole, for evaluation here.

    UnsupportedOperation for numbers of two types, or spaces, that the engine treats differently.
    """
    known = dialect_named(dialect)
    semantics = known.semantics if semantics is None else semantics
    return typed_as_engine(parse_predicate(text, dialect), schema, known, semantics).source


def value_text(operand: Operand, schema: Schema, known: Dialect, semantics: Semantics) -> Operand:
    """Type a value of text as the engine does; raise if the engine computes another.

    It passes the checks of a condition: a value is computed for rows that are written.
    """
    if known.gives_types:
        typed = spark_typed(operand, schema, ansi=semantics.is_ansi)
    else:
        test = with_engine_types(IsNull(operand), schema, known, semantics)
        assert isinstance(test, IsNull)
        typed = as_computed(test.operand, UnboundTyper(schema, semantics))
    try:
        bound = bind(IsNull(typed), schema, semantics, simplified=False)
    except InvalidPredicate:  # its type comes from the column that it is assigned to
        return typed
    _check_typed(bound, schema, known)
    return typed


def _check_read(predicate: Predicate, root: Predicate, known: Dialect, typer: UnboundTyper) -> None:
    """Raise for what the engine computes differently: the check of every text that is read."""
    check(root, known.name, Direction.ANSWERS)
    if known.translates_listed and not known.listed_only:
        check_answers(predicate, root, typer)


def typed_as_engine(
    predicate: Predicate, schema: Schema, known: Dialect, semantics: Semantics
) -> BoundPredicate:
    """Bind a condition, typed and compared as in the engine; its `source` is the typed tree."""
    bound = bind(
        with_engine_types(predicate, schema, known, semantics), schema, semantics, simplified=False
    )
    _check_typed(bound, schema, known)
    return bound


def with_engine_types(
    predicate: Predicate, schema: Schema, known: Dialect, semantics: Semantics
) -> Predicate:
    """Add the casts, widths and formulas with which the engine computes a condition.

    The rules that take the tree before it is bound say why in `unbound_types`.
    """
    if known.gives_types:
        predicate = with_spark_types(predicate, schema, ansi=semantics.is_ansi)
    predicate = with_widths(predicate, schema, known)
    if known.times.declared_zones:
        predicate = with_local_times(predicate, schema)
    return as_compared(predicate, UnboundTyper(schema, semantics))


def _check_typed(bound: BoundPredicate, schema: Schema, known: Dialect) -> None:
    """Raise for a condition of text that the engine compares or computes differently."""
    typer = UnboundTyper(schema, bound.semantics)
    check_coercion(bound.source, bound.root, typer)
    _check_read(bound.source, bound.root, known, typer)
    if known.times.declared_zones:
        check_zones(bound.source, schema)


def _left(conditions: list[tuple[str, Predicate | InvalidPredicate]]) -> str:
    texts = [text for text, _ in conditions]
    return texts[0] if len(texts) == 1 else " AND ".join(f"({text})" for text in texts)


def to_text(
    predicate: Predicate,
    schema: Schema,
    semantics: Semantics | None = None,
    *,
    dialect: str = "postgres",
    session: Session | None = None,
    strict: bool = False,
) -> Translation[str, Predicate]:
    """Write a predicate, under the dialect's rules, as text with the same meaning in its engine.

    `session`: the settings of the session that runs it, by default those of the dialect.
    """
    known = dialect_named(dialect)
    theirs = in_session(known.semantics, session)
    semantics = theirs if semantics is None else semantics
    writer = SqlWriter(replace(known, writes_our_names=False))  # the engine lacks our functions
    text = writer.text if len(root_conjuncts(predicate)) == 1 else writer.conjunct
    zone = None if session is None else session.time_zone

    def write(root: Predicate) -> str:
        return text(as_dialect_tree(known, root, schema, semantics, theirs, zone))

    return write_conditions(predicate, write, _joined, schema, semantics, strict=strict)


def as_dialect_tree(
    known: Dialect,
    root: Predicate,
    schema: Schema,
    semantics: Semantics,
    theirs: Semantics | None = None,
    zone: str | None = None,
) -> Predicate:
    """Rewrite a bound condition so that its text has the same meaning in the dialect's engine.

    `semantics`: the rules of the condition; `theirs`: the rules of the engine's session; `zone`:
    the time zone of a Spark session, None if unknown.
    """
    theirs = known.semantics if theirs is None else theirs
    if known.gives_types:
        rewritten = keep_meaning(root, with_rewritten_rules(semantics, theirs), theirs)
        check(rewritten, known.name, Direction.WRITES)
        return SparkExact(known, semantics, theirs.is_ansi, zone).predicate(rewritten)
    rewritten = keep_meaning(root, semantics, theirs)
    if known.times.declared_zones:
        check_zones(rewritten, schema)
    check(rewritten, known.name, Direction.WRITES)
    if not known.times.has_year_zero:
        rewritten = written_without_year_zero(rewritten)
    return Exact(known).predicate(rewritten)


def _joined(texts: list[str]) -> str:
    return " AND ".join(texts) or "TRUE"
