"""Values that are cast to `jsonb` in PostgreSQL's text, which shows them by its own rules.

`j::jsonb` is `j`: values compare as those of `jsonb` here. Its texts differ from the stored ones.
"""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from rowsieve.bridges.sql.dialects import POSTGRES
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.bridges.sql.typenames import logical_type
from rowsieve.predicate import ir
from rowsieve.types.logical import (
    Date,
    Decimal,
    Float,
    Numeric,
    Time,
    Timestamp,
    Uuid,
)

# Types whose values do not depend on how a number is written.
_SAME_VALUE = (Float, Decimal, Numeric, Date, Time, Timestamp, Uuid)
_NUMBER_OR_LIST = re.compile(r"\s*[-0-9\[{]")


def value_at(node: Any) -> Any:
    """Return the node of the JSON value whose text another one is: `->` for `->>`."""
    kind = exp.JSONExtract if isinstance(node, exp.JSONExtractScalar) else exp.JSONBExtract
    return kind(this=node.this.copy(), expression=node.expression.copy())


def jsonb_as_text(reader: Reads, node: Any) -> ir.Operand | None:
    """Read `j::jsonb::text`; None for other casts to text."""
    if not reader.dialect.json_operators or not is_jsonb(node.this):
        return None
    return ir.Call("jsonb_document", (reader.operand(node.this),))


def text_is_equal(node: Any) -> bool:
    """Whether the stored text of a JSON value does for that of `jsonb`.

    They differ for numbers, lists and objects. So it does in a cast to a type whose values do not
    depend on how a number is written, and beside constant text that is none of these. The stored
    text has statistics.
    """
    parent = node.parent
    while isinstance(parent, exp.Paren):
        node, parent = parent, parent.parent
    if isinstance(parent, exp.Cast):
        try:
            return isinstance(logical_type(parent.to, POSTGRES), _SAME_VALUE)
        except ValueError:
            return False
    if isinstance(parent, exp.Is):
        return isinstance(parent.expression, exp.Null)
    if not isinstance(parent, exp.EQ | exp.NEQ | exp.In):
        return False
    among = parent.expressions if isinstance(parent, exp.In) else [parent.expression]
    others = [parent.this, *among]
    return all(
        each is node
        or (
            isinstance(each, exp.Literal)
            and each.is_string
            and not _NUMBER_OR_LIST.match(each.name)
        )
        for each in others
    )


def is_jsonb(node: Any) -> bool:
    """Whether a value is cast to jsonb, or is part of one that is."""
    while isinstance(node, (exp.Paren, exp.JSONExtract, exp.JSONBExtract)):
        node = node.this
    return isinstance(node, exp.Cast) and node.to.this is exp.DataType.Type.JSONB
