"""The text of a constraint that adds it again.

`add_constraint` reads PostgreSQL's SQL unless it is told otherwise. Where a condition has no text
there, its text is of the dialect in which it was added, behind a comment that names it:
`/* spark */ i / 2 > 1`. Soundness: a text is returned only if it is read as this condition.
"""

from __future__ import annotations

import re
from typing import Any, Final

from rowsieve.bridges.sql.dialects import DIALECTS
from rowsieve.bridges.translation import Exactness
from rowsieve.bridges.where import semantics_of, to_predicate
from rowsieve.errors import RowsieveError
from rowsieve.storage.constraints import Constraint, constraint_of, constraints_of
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.schema import Schema

_DEFAULT: Final = "postgres"
_MARK: Final = re.compile(rf"\s*/\* ({'|'.join(DIALECTS)}) \*/\s*")


def unmarked(condition: Any, dialect: str) -> tuple[Any, str]:
    """The condition without the comment that names its dialect, and that dialect, if it has one."""
    if not isinstance(condition, str) or (mark := _MARK.match(condition)) is None:
        return condition, dialect
    return condition[mark.end() :], mark[1]


def constraint_texts(snapshot: Snapshot, dialect: str) -> dict[str, str]:
    """The constraints of a version as text of a dialect; those that have none there are missing."""
    texts = {}
    for each in constraints_of(snapshot.table.properties):
        candidates = [*([each.source] if each.source else []), each.text(snapshot.schema)]
        if (text := _same(each, snapshot.schema, dialect, candidates)) is not None:
            texts[each.name] = text
    return texts


def text_to_add(constraint: Constraint, schema: Schema) -> str:
    """The condition as text that `add_constraint` reads; as text for people if no dialect does."""
    plain, dialect = constraint.text(schema), constraint.semantics.name
    source = [constraint.source] if constraint.source else []
    if (text := _same(constraint, schema, _DEFAULT, [*source, plain])) is not None:
        return text
    if (
        dialect in DIALECTS
        and (text := _same(constraint, schema, dialect, [*source, plain])) is not None
    ):
        return f"/* {dialect} */ {text}"
    return plain


def _same(constraint: Constraint, schema: Schema, dialect: str, texts: list[str]) -> str | None:
    """The first of the texts that a dialect reads as this condition, or one that is written so."""
    written = _written(constraint, schema, dialect)
    for text in [*texts, *([] if written is None else [written])]:
        again = _read(text, constraint, schema, dialect)
        if again is None:
            continue
        if again == constraint or (written and _written(again, schema, dialect) == written):
            return text
    return None


def _read(text: str, like: Constraint, schema: Schema, dialect: str) -> Constraint | None:
    """The constraint that a text adds; None if it cannot be read."""
    try:
        condition = to_predicate(text, dialect, schema)
        return constraint_of(like.name, condition, schema, semantics_of(dialect), like.since)
    except RowsieveError:
        return None


def _written(constraint: Constraint, schema: Schema, dialect: str) -> str | None:
    """The condition as text of a dialect in which it has the same meaning; None if it has none."""
    from rowsieve.bridges.sql.language import to_text  # noqa: PLC0415 - it imports sqlglot

    try:
        written = to_text(constraint.named(schema), schema, constraint.semantics, dialect=dialect)
    except RowsieveError:
        return None
    is_whole = written.exactness is Exactness.EXACT and written.residual is None
    return written.expression if is_whole else None
