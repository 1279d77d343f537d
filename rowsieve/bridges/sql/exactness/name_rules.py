"""Rejects names in SQL text that match several columns under the engine's rules for case.

Tables may have columns `a` and `A`. Spark, DuckDB and Trino compare names without case; PostgreSQL
and DataFusion change unquoted names to lower case. Our trees have exact names.
Soundness: text never finds another column than it finds in its engine; at most it is refused.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.errors import UnknownColumn
from rowsieve.types.schema import Schema


def check_names(text: str, schema: Schema, dialect: str) -> None:
    """UnknownColumn for a name that is not one column of the schema in the dialect's engine."""
    if (name := ambiguous_name(text, schema, dialect)) is None:
        return
    alike = ", ".join(repr(column) for column in schema.names if column.lower() == name.lower())
    raise UnknownColumn(
        f'column {name!r} is {name.lower()!r} in {dialect}; the table has {alike}; write "{name}"'
        if dialect_named(dialect).folds_unquoted
        else f"column {name!r} is ambiguous in {dialect}, which compares names without case: "
        f"it matches {alike}; rename one of them",
        name=name,
    )


def ambiguous_name(text: str, schema: Schema, dialect: str) -> str | None:
    """Return the first name that is ambiguous, or another column, in the dialect's engine."""
    folded = Counter(map(str.lower, schema.names))
    if len(folded) == len(schema.fields):
        return None
    tokens = _tokens(text, dialect)
    for place, token in enumerate(tokens):
        kind = token.token_type.name
        is_member = place > 0 and tokens[place - 1].token_type.name == "DOT"
        if is_member or kind == "STRING" or folded[token.text.lower()] < 2:
            continue
        if not dialect_named(dialect).folds_unquoted:
            return str(token.text)
        if kind != "IDENTIFIER" and token.text != token.text.lower():
            return str(token.text)
    return None


def _tokens(text: str, dialect: str) -> list[Any]:
    """Return the tokens of the text; empty for text that the parser will reject."""
    import sqlglot  # noqa: PLC0415 - it takes 0.1 s to import
    from sqlglot.errors import TokenError  # noqa: PLC0415

    try:
        return list(sqlglot.tokenize(text, read=dialect_named(dialect).grammar))
    except TokenError:
        return []
