"""Substrait's extended expressions as predicates and back, as the bytes of the message.

A message has the columns of its input and one expression over their positions. No Substrait package
is needed.

Soundness: every kind of expression and every function is in `function_table`; where engines differ
(NaN), the message tests it explicitly.
"""

from __future__ import annotations

from rowsieve.bridges.conditions import read_conditions, write_conditions
from rowsieve.bridges.meanings import keep_meaning
from rowsieve.bridges.substrait_exprs import read, write
from rowsieve.bridges.translation import Translation
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

__all__ = ["from_substrait", "is_substrait_message", "to_substrait"]


def is_substrait_message(value: object) -> bool:
    """Whether this is bytes, which no other filter language is; they are checked when read."""
    return isinstance(value, bytes)


def from_substrait(
    message: bytes, schema: Schema, *, strict: bool = False
) -> Translation[Predicate, bytes]:
    """Read a message over columns of the schema, under `Semantics.SUBSTRAIT`.

    If a part cannot be read, the residual is the message itself. With `strict`, such a part is
    `UnsupportedOperation`; bytes that are not a message are `InvalidPredicate`.
    """
    source = read.SubstraitSource(message, schema)
    return read_conditions(
        source.conditions(),
        source.predicate,
        lambda _: message,
        schema,
        Semantics.SUBSTRAIT,
        shown=source.shown,
        strict=strict,
    )


def to_substrait(
    predicate: Predicate,
    schema: Schema,
    semantics: Semantics = Semantics.SUBSTRAIT,
    *,
    strict: bool = False,
) -> Translation[bytes, Predicate]:
    """Write a predicate with the given semantics as a message over the schema."""
    writer = write.SubstraitWriter(schema)
    return write_conditions(
        predicate,
        lambda root: writer.predicate(keep_meaning(root, semantics, Semantics.SUBSTRAIT)),
        writer.message,
        schema,
        semantics,
        strict=strict,
    )
