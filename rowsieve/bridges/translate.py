"""`translate`: translate a condition of one filter language to another.

The condition is read into our tree, rewritten for the target's rules (`meanings`), and written.

Soundness: the expression is TRUE on every row on which the original is; with the residual, on no
other row. Each step omits only whole conditions of the top-level AND, and the residual contains
them. If the original cannot be split, the residual is the original itself, which
is always correct.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from rowsieve.arguments import checked
from rowsieve.bridges.arrow_units import check_units, cut_columns
from rowsieve.bridges.condition_notes import note_on
from rowsieve.bridges.differences import Direction, check
from rowsieve.bridges.languages import Bridge, bridge_named, bridge_of
from rowsieve.bridges.meanings import keep_meaning, unsigned
from rowsieve.bridges.session import Session, in_session
from rowsieve.bridges.sql.syntax import in_syntax
from rowsieve.bridges.translation import Exactness, Note, Translation, translated
from rowsieve.bridges.translation_picture import translation_picture
from rowsieve.errors import InvalidInput, UnknownColumn, UnsupportedOperation
from rowsieve.pictures.translated import TranslatedTable
from rowsieve.predicate.bind import bind
from rowsieve.predicate.ir import And, Predicate, conjoin, root_conjuncts
from rowsieve.predicate.semantics import NanOrder, Semantics
from rowsieve.types.encodings import refuse_unsupported, schema_of_arrow
from rowsieve.types.schema import Schema


@checked
def translate(
    expression: Any,
    source: str | None = None,
    *,
    target: str,
    schema: Any = None,
    semantics: Semantics | None = None,
    session: Session | None = None,
    target_session: Session | None = None,
    strict: bool = False,
    syntax_only: bool = False,
) -> Translation[Any, Any]:
    """Translate a condition to the language `target`, for rows with the columns of `schema`.

    `source` is derived from the type of the expression; text needs the name of its dialect.
    `schema` is an Arrow schema, or an object with one as its `schema`. `semantics` are the rules of
    the expression, by default those of the source. `session` has the settings of the expression's
    session, `target_session` those of the session that runs the result; by default, a Spark column
    uses the running session, and any other engine its defaults in UTC. With `strict`, an
    unsupported condition is `UnsupportedOperation`, which names it, its position and the reason.

    `syntax_only`: translate text to any dialect that sqlglot supports, without a schema. The result
    may keep other rows: its exactness is UNSUPPORTED, and the residual is the original.
    """
    if syntax_only:
        if strict or source is None:
            raise InvalidInput("syntax_only=True takes the dialect as source=, and is never strict")
        return in_syntax(expression, source, target)
    origin, aim = _origin(expression, source), bridge_named(target)
    columns = _columns(schema)
    semantics = origin.semantics_for(expression, session) if semantics is None else semantics
    running = None if aim.running is None else aim.running()
    theirs = in_session(aim.semantics, target_session or running)
    try:
        with_session = session is not None and origin.takes_session
        reads = partial(origin.read, session=session) if with_session else origin.read
        read = reads(expression, columns)
    except UnknownColumn as error:
        refuse_unsupported(error.name, schema)
        raise
    translation: Translation[Any, Any] = Translation(
        None, Exactness.UNSUPPORTED, expression, read.notes
    )
    writes = aim.writes
    if target_session is not None and aim.takes_session:
        writes = partial(writes, session=target_session)
    write = partial(
        _written,
        expression,
        origin=origin,
        aim=aim,
        semantics=semantics,
        theirs=theirs,
        writes=writes,
        cut=cut_columns(schema, origin.cut_units | aim.cut_units),
    )
    if read.expression is not None:
        translation = write(read, schema=columns)
    if strict:
        translation.exact()
    draw = partial(_picture, origin.name, aim.name, read, write, columns, semantics)
    return replace(translation, draw=draw)


def _picture(
    source: str,
    target: str,
    read: Translation[Predicate, Any],
    write: Callable[..., Translation[Any, Any]],
    schema: Schema,
    semantics: Semantics,
    whole: Translation[Any, Any],
) -> TranslatedTable:
    """Draw a translation, with each of its conditions translated alone."""

    def alone(condition: Predicate) -> Translation[Any, Any]:
        bound = bind(condition, schema, semantics, simplified=False)
        return write(Translation(condition, Exactness.EXACT, bound=(bound,)), schema=schema)

    return translation_picture(source, target, read, alone, whole)


def _origin(expression: Any, source: str | None) -> Bridge:
    if source is not None:
        named = bridge_named(source)
        if named.is_text and isinstance(expression, str):
            return named
        if (other := bridge_of(expression)) is not None and other.dialect == named.name:
            return other
        forms = (list, bytes, *named.named_forms)  # recognised by their content
        seen = named.is_text or isinstance(expression, forms)
        if not seen and not named.recognises(expression):
            raise InvalidInput(
                f"source={source!r} takes {named.shown}, not {type(expression).__name__}"
            )
        return named
    if (bridge := bridge_of(expression)) is not None:
        return bridge
    if isinstance(expression, str):
        raise InvalidInput("text needs the name of its SQL dialect, as in source='spark'")
    raise InvalidInput(
        f"{type(expression).__name__} is not an expression of a known filter language; name "
        "the language by source="
    )


def _columns(schema: Any) -> Schema:
    columns = schema if isinstance(schema, Schema | pa.Schema) else getattr(schema, "schema", None)
    if isinstance(columns, Schema):
        return columns
    if isinstance(columns, pa.Schema):
        return schema_of_arrow(columns)
    raise InvalidInput(
        "schema= takes an Arrow schema, or what has one as its schema, such as a table, not "
        f"{type(schema).__name__}: engines decide by the types of columns what a condition means"
    )


def _written(
    original: Any,
    read: Translation[Predicate, Any],
    origin: Bridge,
    aim: Bridge,
    schema: Schema,
    semantics: Semantics,
    theirs: Semantics,
    writes: Callable[..., Translation[Any, Predicate]],
    cut: Mapping[str, str],
) -> Translation[Any, Any]:
    assert read.expression is not None
    conditions = root_conjuncts(read.expression)
    notes = list(read.notes)
    writable = _with_meanings_kept(
        conditions, _roots(read, schema, semantics), semantics, theirs, cut, notes
    )
    left = [each for index, each in enumerate(conditions) if index not in writable]
    if left and aim.has_guards and not cut:
        direct = writes(read.expression, schema, semantics)
        if direct.exactness is Exactness.EXACT:
            return translated(direct.expression, read.residual, read.notes, strict=False)
    rules = theirs if semantics.nan is NanOrder.SIGNED else unsigned(theirs)
    written = writes(And(tuple(writable.values())), schema, rules)
    for index, condition in writable.items() if written.residual is not None else ():
        alone = writes(condition, schema, rules)
        if alone.residual is not None:
            left.append(conditions[index])
            notes += [
                note.at(index, len(conditions)) if isinstance(note, Note) else note
                for note in alone.notes
            ]
    if written.expression is None and not left:  # TRUE, for which the target has no words
        return translated(None, original, [*notes, *map(str, written.notes)], strict=False)
    expression = None if left and not writable else written.expression
    residual = _residual(original, read, left, origin, schema, semantics)
    return translated(expression, residual, notes, strict=False)


def _roots(
    read: Translation[Predicate, Any], schema: Schema, semantics: Semantics
) -> Mapping[Predicate, Predicate]:
    """Return the bound form of each condition; it is bound again only under given semantics."""
    bound = read.bound
    if read.expression is not None and bound and bound[0].semantics != semantics:
        bound = (bind(read.expression, schema, semantics, simplified=False),)
    roots: dict[Predicate, Predicate] = {}
    for each in bound:
        roots.update(each.conjuncts)
    return roots


def _with_meanings_kept(
    conditions: Sequence[Predicate],
    roots: Mapping[Predicate, Predicate],
    semantics: Semantics,
    theirs: Semantics,
    cut: Mapping[str, str],
    notes: list[str],
) -> dict[int, Predicate]:
    """Rewrite the conditions for the target's rules, by position; failures go to `notes`."""
    writable: dict[int, Predicate] = {}
    for index, condition in enumerate(conditions):
        try:
            if cut:
                check_units(roots[condition], cut)
            rewritten = keep_meaning(roots[condition], semantics, theirs)
            if semantics.name != theirs.name:
                check(rewritten, theirs.name, Direction.TRANSLATES)
            writable[index] = rewritten
        except UnsupportedOperation as error:
            notes.append(note_on(index, len(conditions), condition, error))
    return writable


def _residual(
    original: Any,
    read: Translation[Predicate, Any],
    left: list[Predicate],
    origin: Bridge,
    schema: Schema,
    semantics: Semantics,
) -> Any:
    """Return the residual in the original's language; the whole original if not smaller."""
    if not left:
        return read.residual
    if read.residual is None and semantics == origin.semantics:
        back = origin.writes(conjoin(left), schema, semantics)
        if back.exactness is Exactness.EXACT:
            return back.expression
    return original
