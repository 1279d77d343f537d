"""Substrait's extended expressions as predicates and back, as the bytes of the message.

A message names the columns of its input and holds one expression over their places. Soundness:
every kind of expression and every function is in `table`; where engines differ (NaN) the message
says what is meant. No package of Substrait's is needed.
"""

from __future__ import annotations

from rowsieve.bridges.conditions import read_conditions, write_conditions
from rowsieve.bridges.meanings import with_meaning_kept
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
    """Read a message over columns of the schema, meant under `Semantics.SUBSTRAIT`.

    The residual is the message itself where a part of it cannot be read. With `strict`, such a part
    is `UnsupportedOperation`; other bytes are `InvalidPredicate`.
    """
    source = read.Source(message, schema)
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
    """Write a predicate, meant under the semantics given, as a message over the whole schema."""
    writer = write.Writer(schema)
    return write_conditions(
        predicate,
        lambda root: writer.predicate(with_meaning_kept(root, semantics, Semantics.SUBSTRAIT)),
        writer.message,
        schema,
        semantics,
        strict=strict,
    )
