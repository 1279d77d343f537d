"""The sequences of a MERGE into a table with an event order: those of the source's rows.

Where the source has the sequence columns, by name, a matched row is updated or deleted at the
sequence of the row of the source, as if that were upserted or its key deleted. A clause that
assigns the sequence itself says it. Without the columns in the source, a clause changes what it
finds, at the sequence of the row of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rowsieve.errors import InvalidInput, SchemaMismatch
from rowsieve.statements.merge_statement import Action, MergeClause, When


def sequences_of_source(
    clauses: Sequence[MergeClause], order: Sequence[str], columns: Sequence[str]
) -> dict[str, str]:
    """The columns of the source with the sequences of matched rows, by those of the table.

    Empty if the source has none, or no clause needs them; SchemaMismatch if it has only some.
    """
    takers = [clause for clause in clauses if _takes_sequence(clause, order)]
    if not takers:
        return {}
    present = {name: near for name in order if (near := _named(name, columns)) is not None}
    if present and len(present) < len(order):
        raise SchemaMismatch(
            f"merge: {takers[0].name}: the source has the sequence columns ({', '.join(present)}) "
            f"and lacks others of ({', '.join(order)}), by which the table orders changes; give "
            "all of them, or none"
        )
    return present


def in_order(
    clause: MergeClause, sequences: Mapping[str, str], value_of: Callable[[str], Any]
) -> MergeClause:
    """The clause with the sequence of the source, if it updates matched rows and assigns none.

    `value_of` is the value of a column of the source. InvalidInput if it assigns a part of it.
    """
    if clause.action is not Action.UPDATE or not _takes_sequence(clause, tuple(sequences)):
        return clause
    assert isinstance(clause.values, Mapping)
    if assigned := _assigned(clause, tuple(sequences)):
        raise InvalidInput(
            f"merge: {clause.name} assigns ({', '.join(assigned)}) of the sequence columns "
            f"({', '.join(sequences)}), by which the table orders changes; assign all of them, or "
            "none to take those of the source"
        )
    values = {name: value_of(theirs) for name, theirs in sequences.items()}
    return replace(clause, values={**clause.values, **values})


def _takes_sequence(clause: MergeClause, order: Sequence[str]) -> bool:
    """Return whether a clause changes matched rows and does not say at which sequence."""
    if clause.when is not When.MATCHED or clause.takes_source or not order:
        return False
    return clause.action is Action.DELETE or len(_assigned(clause, order)) < len(order)


def _assigned(clause: MergeClause, order: Sequence[str]) -> list[str]:
    names = {name.lower() for name in clause.values} if isinstance(clause.values, Mapping) else ()
    return [name for name in order if name.lower() in names]


def _named(name: str, columns: Sequence[str]) -> str | None:
    """The column of this name, in any case; SchemaMismatch if several have it, and none exactly."""
    near = [each for each in columns if each.lower() == name.lower()]
    if name in near:
        return name
    if len(near) > 1:
        raise SchemaMismatch(
            f"merge: the source has the columns {', '.join(near)} for the sequence column "
            f"{name!r}, by which the table orders changes; give one of them"
        )
    return near[0] if near else None
