"""Constraints of a table: conditions that are FALSE on none of its visible rows.

They are kept as a property of the table, with columns by their field ids, so that a rename changes
none. As in SQL, a row passes whose condition is NULL. A condition that fails on a row is violated.

Soundness: `since` is the first version whose writers check the constraint. A part that was based on
an earlier version was not checked when it was written, and is committed only if its statistics
prove that it cannot violate the constraint (`check_new_parts`). Hidden rows may violate constraints
that were added after they were hidden: a constraint says nothing about them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from rowsieve.byte_cache import ByteCache
from rowsieve.errors import CommitConflict, ConstraintViolation, CorruptData, EvaluationError
from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundPredicate, bind
from rowsieve.predicate.codec import (
    predicate_from_json,
    predicate_to_json,
    semantics_from_json,
    semantics_to_json,
)
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.properties import CONSTRAINTS
from rowsieve.stats.columnar import PartStatistics
from rowsieve.stats.row_bounds import RowBounds
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Field
from rowsieve.types.schema import Schema
from rowsieve.types.shown_values import shown_row

_SIZE_OF_TEXT: Final = 20  # bytes in memory for each character of a text
_KNOWN: Final[ByteCache[str, tuple[Constraint, ...]]] = ByteCache(4 * 1024 * 1024, "constraints")


@dataclass(frozen=True, slots=True)
class Constraint:
    """A named condition; its columns are bound columns, of which only the field id counts.

    `source` is the text it was read from, if it was text; columns may have other names since.
    """

    name: str
    condition: ir.Predicate
    semantics: Semantics
    since: int
    source: str = field(default="", compare=False)

    @property
    def field_ids(self) -> frozenset[int]:
        """The ids of the columns that the condition reads."""
        nodes = ir.walk(self.condition)
        return frozenset(node.field_id for node in nodes if isinstance(node, ir.BoundColumn))

    def named(self, schema: Schema) -> ir.Predicate:
        """The condition with the names that its columns have in a schema."""
        names = {each.id: each.name for each in schema}
        return _with_columns(self.condition, lambda column: _named(column, names))

    def text(self, schema: Schema) -> str:
        """The condition as text for people."""
        return str(self.named(schema))

    def violation(self, schema: Schema) -> ir.Predicate:
        """The condition that is TRUE on the rows that violate the constraint, in normal form."""
        return normalize(ir.Not(self.named(schema)), self.semantics)

    def bound_violation(self, schema: Schema) -> BoundPredicate:
        """`violation`, bound to a schema."""
        return bind(self.violation(schema), schema, self.semantics)

    def bound_violations(self, schema: Schema) -> tuple[BoundPredicate, ...]:
        """Conditions of which none is TRUE on a row that obeys: one for each conjunct."""
        terms = ir.conjuncts(normalize(self.named(schema), self.semantics))
        violations = (normalize(ir.Not(term), self.semantics) for term in terms)
        return tuple(bind(each, schema, self.semantics) for each in violations)


def constraint_of(
    name: str,
    condition: ir.Predicate,
    schema: Schema,
    semantics: Semantics,
    since: int,
    source: str = "",
) -> Constraint:
    """Make a constraint of a condition on the columns of a schema."""

    def by_id(column: ir.Operand) -> ir.Operand:
        assert isinstance(column, ir.Column | ir.BoundColumn)
        field = schema.field(column.name)
        return ir.BoundColumn(field.id, field.name, field.type)

    return Constraint(name, _with_columns(condition, by_id), semantics, since, source)


def constraints_of(properties: Mapping[str, str]) -> tuple[Constraint, ...]:
    """Read the constraints of a table; CorruptData if the property is damaged."""
    text = properties.get(CONSTRAINTS)
    return () if text is None else _decoded(text)


def with_constraints(
    properties: Mapping[str, str], constraints: Sequence[Constraint]
) -> dict[str, str]:
    """Return the properties with these constraints instead of those that they have."""
    others = {name: value for name, value in properties.items() if name != CONSTRAINTS}
    if not constraints:
        return others
    document = [
        {
            "name": each.name,
            "since": each.since,
            "semantics": semantics_to_json(each.semantics),
            "condition": predicate_to_json(each.condition),
            **({"source": each.source} if each.source else {}),
        }
        for each in constraints
    ]
    return {**others, CONSTRAINTS: msgspec.json.encode(document).decode()}


def with_constraints_of(base: Snapshot, head: Snapshot) -> Snapshot:
    """Return `base` for a write that counts as based on `head`, and obeys its constraints."""
    constraints = constraints_of(head.table.properties)
    properties = with_constraints(base.table.properties, constraints)
    info = dataclasses.replace(base.table, properties=properties)
    return dataclasses.replace(base, version=head.version, table=info)


class RowChecks:
    """Checks rows before they are written, by all constraints of a table."""

    def __init__(self, properties: Mapping[str, str], schema: Schema, key: Sequence[Field]) -> None:
        self._schema = schema
        self._key = tuple(field.name for field in key)
        self._checks = [(each, each.bound_violation(schema)) for each in constraints_of(properties)]

    def check(self, rows: pa.Table) -> None:
        """Raise ConstraintViolation for rows, in storage types, one of which violates a constraint.

        The bounds of the columns are tried first.
        """
        for constraint, violation in self._checks:
            if interpret(violation, RowBounds(rows))[0] == Verdict.NONE:
                continue
            for batch in rows.to_batches():
                self._check_batch(constraint, violation, batch)

    def _check_batch(
        self, constraint: Constraint, violation: BoundPredicate, batch: pa.RecordBatch
    ) -> None:
        try:
            wrong = np.flatnonzero(matching(violation, batch))
        except EvaluationError as error:
            raise fails(constraint, self._schema, error) from error
        if len(wrong):
            raise violated(constraint, self._schema, self._key, batch.slice(int(wrong[0]), 1))


def violated(
    constraint: Constraint, schema: Schema, key: Sequence[str], row: pa.RecordBatch
) -> ConstraintViolation:
    """The error for a row; it names the constraint, the row's key and its values."""
    used = [field.name for field in schema if field.id in constraint.field_ids]
    values = shown_row(row.select([name for name in used if name not in key]), 0, schema)
    of_key = f" with the key {shown_row(row.select(list(key)), 0, schema)}" if key else ""
    has = f" has {values}" if values else ""
    return ConstraintViolation(
        f"the constraint {constraint.name!r}, CHECK ({constraint.text(schema)}), is violated: a row"
        f"{of_key}{has}; nothing was committed. Correct the row, or drop the constraint",
        name=constraint.name,
    )


def fails(constraint: Constraint, schema: Schema, error: Exception) -> ConstraintViolation:
    """The error for a constraint whose condition fails on a row."""
    return ConstraintViolation(
        f"the constraint {constraint.name!r}, CHECK ({constraint.text(schema)}), cannot be "
        f"evaluated on a row: {error}; nothing was committed. Correct the row, or drop the "
        "constraint",
        name=constraint.name,
    )


def unproven(constraint: Constraint, schema: Schema, parts: PartTable) -> PartTable:
    """The parts with rows whose statistics do not prove that no row violates the constraint."""
    refuted = interpret(constraint.bound_violation(schema), PartStatistics(parts, schema))
    wanted = (refuted != Verdict.NONE) & (parts.data_rows() > 0)
    return parts.take(np.flatnonzero(wanted))


def check_new_parts(operation: str, parts: PartTable, head: Snapshot) -> None:
    """Raise CommitConflict if new parts were written before a constraint of the head was added.

    Parts pass whose statistics prove that they obey it.
    """
    for constraint in constraints_of(head.table.properties):
        older = np.asarray(parts.numbers("base_version")) < constraint.since
        if not older.any():
            continue
        unchecked = parts.take(np.flatnonzero(older))
        if len(unproven(constraint, head.schema, unchecked)):
            raise CommitConflict(
                f"{operation}: another commit added the constraint {constraint.name!r}, CHECK "
                f"({constraint.text(head.schema)}), after these rows were written; nothing was "
                "committed. Do it again, so that the rows are checked"
            )


def _with_columns(
    condition: ir.Predicate, change: Callable[[ir.Operand], ir.Operand]
) -> ir.Predicate:
    """The tree with each column replaced by what `change` returns for it."""

    def predicate(node: ir.Predicate) -> ir.Predicate:
        return ir.map_children(node, predicate, operand)

    def operand(node: ir.Operand) -> ir.Operand:
        if isinstance(node, ir.Column | ir.BoundColumn):
            return change(node)
        return ir.map_children(node, predicate, operand)

    return predicate(condition)


def _named(column: ir.Operand, names: Mapping[int, str]) -> ir.Operand:
    assert isinstance(column, ir.BoundColumn)
    if column.field_id not in names:
        raise CommitConflict(
            f"a constraint uses the column {column.name!r}, which the rows were written without; "
            "refresh the table and do it again"
        )
    return ir.Column(names[column.field_id])


def _decoded(text: str) -> tuple[Constraint, ...]:
    if (known := _KNOWN.get(text)) is None:
        known = _read(text)
        _KNOWN.put(text, known, _SIZE_OF_TEXT * len(text))
    return known


def _read(text: str) -> tuple[Constraint, ...]:
    try:
        entries = msgspec.json.decode(text)
        return tuple(
            Constraint(
                str(entry["name"]),
                predicate_from_json(entry["condition"]),
                semantics_from_json(entry["semantics"]),
                int(entry["since"]),
                str(entry.get("source", "")),
            )
            for entry in entries
        )
    except (msgspec.MsgspecError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise CorruptData(
            f"table property {CONSTRAINTS} is damaged: {error!r}; restore the log from a copy"
        ) from error
