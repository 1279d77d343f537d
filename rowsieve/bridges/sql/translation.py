"""SQL text as one filter language among the others: read and written condition by condition.

Soundness: what is written has passed `exact`, so the engine of the dialect means by it what we do;
what cannot be read is left in its own words, as a whole condition of the AND at the top.
"""

from __future__ import annotations

from rowsieve.bridges.meanings import with_meaning_kept
from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.bridges.sql.exact import said_exactly
from rowsieve.bridges.sql.render import Writer
from rowsieve.bridges.translation import Translation, place, translated
from rowsieve.errors import InvalidInput, InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.ir import Predicate, conjoin, root_conjuncts
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema


def from_text(
    text: str, schema: Schema, *, dialect: str = "postgres", strict: bool = False
) -> Translation[Predicate, str]:
    """Read a condition over columns of the schema; the residual is what is not known here.

    Text that is no condition at all is `InvalidPredicate`.
    """
    from rowsieve.bridges.sql import parse  # noqa: PLC0415 - sqlglot takes 0.1 s to import

    if not isinstance(text, str):
        raise InvalidInput(f"a filter in {dialect} SQL is text, not {type(text).__name__}")
    semantics = dialect_named(dialect).semantics
    pieces = parse.conditions(text, dialect)
    kept: list[Predicate] = []
    left: list[str] = []
    notes: list[str] = []
    for index, (piece, found) in enumerate(pieces):
        try:
            if isinstance(found, InvalidPredicate):
                raise found
            bind(found, schema, semantics, simplified=False)
            kept.append(found)
        except UnknownColumn:
            raise
        except InvalidPredicate as error:
            notes.append(place(index, len(pieces), piece, error))
            left.append(piece)
    whole = conjoin(kept) if kept or not left else None
    residual = " AND ".join(f"({piece})" for piece in left) if len(left) > 1 else "".join(left)
    return translated(whole, residual or None, notes, strict=strict)


def to_text(
    predicate: Predicate,
    schema: Schema,
    semantics: Semantics | None = None,
    *,
    dialect: str = "postgres",
    strict: bool = False,
) -> Translation[str, Predicate]:
    """Write a predicate, meant by the dialect's rules, as text that its engine means alike."""
    known = dialect_named(dialect)
    meant = known.semantics if semantics is None else semantics
    writer = Writer(known)
    kept: list[str] = []
    left: list[Predicate] = []
    notes: list[str] = []
    conditions = root_conjuncts(predicate)
    write = writer.text if len(conditions) == 1 else writer.conjunct
    for index, condition in enumerate(conditions):
        bound = bind(condition, schema, meant, simplified=False)
        try:
            alike = with_meaning_kept(bound.root, meant, known.semantics)
            kept.append(write(said_exactly(alike, known)))
        except UnsupportedOperation as error:
            notes.append(place(index, len(conditions), condition, error))
            left.append(condition)
    text = " AND ".join(kept) if kept else None if left else "TRUE"
    return translated(text, conjoin(left) if left else None, notes, strict=strict)
