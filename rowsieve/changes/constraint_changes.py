"""Add and drop constraints of a table: commits without rows.

A constraint is added only if no visible row violates it. Statistics of the parts prove that where
they can, and other rows are read. The proof is repeated for the head that the commit follows, for
the rows that it had not seen. Nothing else may add rows that nobody checked: see
`rowsieve.storage.constraints`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rowsieve.bridges.sql.constraint_actions import (
    AddConstraint,
    ConstraintChange,
    DropConstraint,
    named_by,
)
from rowsieve.bridges.where import locating_errors, semantics_of, to_predicate
from rowsieve.changes.constraint_texts import unmarked
from rowsieve.errors import (
    ConstraintViolation,
    EvaluationError,
    InvalidInput,
    InvalidPredicate,
    InvalidSchemaChange,
)
from rowsieve.executor.execute import Execution
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan import OutputColumn
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.constraints import (
    Constraint,
    constraint_of,
    constraints_of,
    fails,
    unproven,
    violated,
    with_constraints,
)
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import CONSTRAINTS_WRITER, Snapshot, TableInfo
from rowsieve.types.logical import Int, LogicalType, Struct
from rowsieve.types.schema import Schema

_LONGEST_NAME = 255
_LONGEST_SOURCE = 10_000  # characters of a text that is kept


@dataclass(slots=True)
class Proof:
    """What one call has proved: names of constraints, and the parts whose rows obey them.

    Attempts of one call share it, so that a commit in between costs only the rows that it added.
    """

    proved: dict[str, frozenset[tuple[str, Any, Any]]] = field(default_factory=dict)

    def prove(self, store: ObjectStore, head: Snapshot, constraint: Constraint) -> None:
        """Raise ConstraintViolation if a visible row of the head violates the constraint."""
        now = _identities(head.parts)
        known = self.proved.get(constraint.name, frozenset())
        if known and known <= now:  # nothing was removed that could have hidden a row
            ids = {part_id for part_id, *_ in now - known}
            check_parts(store, head, head.parts.chosen(frozenset(ids)), constraint)
        else:
            check_parts(store, head, head.parts, constraint)
        self.proved[constraint.name] = now


def change_constraints(
    store: ObjectStore, head: Snapshot, changes: Sequence[ConstraintChange], proof: Proof
) -> TableInfo:
    """Return the table information of the head with some constraints added and dropped.

    InvalidInput for a name that is taken or unknown, and for a condition that may change its
    meaning; ConstraintViolation if a visible row violates an added constraint.
    """
    constraints = {each.name: each for each in constraints_of(head.table.properties)}
    named = named_by(changes)
    for change in changes:
        if isinstance(change, AddConstraint):
            added = _constraint(change, head, constraints, named)
            proof.prove(store, head, added)
            constraints[added.name] = added
        elif (known := _known(change.name, constraints)) is not None:
            del constraints[known]
        elif not change.if_exists:
            raise InvalidInput(
                f"drop_constraint: the table has no constraint {change.name!r}; it has "
                f"{', '.join(constraints) or 'none'}"
            )
    properties = with_constraints(head.table.properties, tuple(constraints.values()))
    writer = max(head.table.writer_version, CONSTRAINTS_WRITER)
    return dataclasses.replace(head.table, properties=properties, writer_version=writer)


def changes_constraints(head: Snapshot, changes: Sequence[object]) -> bool:
    """Return whether one of the changes of a table adds or drops a constraint of the head."""
    return any(
        isinstance(each, AddConstraint)
        or drops_constraint(head, each)
        or (isinstance(each, DropConstraint) and not each.if_exists)
        for each in changes
    )


def drops_constraint(head: Snapshot, change: object) -> bool:
    """Return whether a change of a table drops a constraint that the head has."""
    if not isinstance(change, DropConstraint):
        return False
    names = [each.name for each in constraints_of(head.table.properties)]
    return _known(change.name, names) is not None


def _known(name: str, names: Iterable[str]) -> str | None:
    """The name among those of the table that differs from it in case at most."""
    return next((each for each in names if each.lower() == name.lower()), None)


def check_parts(
    store: ObjectStore, head: Snapshot, parts: PartTable, constraint: Constraint
) -> None:
    """Raise ConstraintViolation if a row of the parts that none of them hides is a violation.

    The parts are read with the columns of the head. Reads no rows if their statistics prove it.
    """
    if not len(parts) or not len(unproven(constraint, head.schema, parts)):
        return
    used = {field.name for field in head.schema if field.id in constraint.field_ids}
    key = head.table.key
    names = [name for name in head.schema.names if name in used or name in key]
    plan = plan_scan(
        dataclasses.replace(head, parts=parts),
        store.uri,
        predicate=constraint.violation(head.schema),
        columns=tuple(map(OutputColumn, names)),
        semantics=constraint.semantics,
        now_us=0,
    )
    try:
        for batch in Execution(plan, store).read():
            if batch.num_rows:
                raise violated(constraint, head.schema, key, batch)
    except EvaluationError as error:
        raise fails(constraint, head.schema, error) from error


def check_all(store: ObjectStore, head: Snapshot, parts: PartTable, operation: str) -> None:
    """Raise ConstraintViolation if a visible row of the parts violates a constraint of the head."""
    for constraint in constraints_of(head.table.properties):
        try:
            check_parts(store, head, parts, constraint)
        except ConstraintViolation as error:
            raise ConstraintViolation(f"{operation}: {error}", name=error.name) from error


def check_evolution(before: Schema, after: Schema, info: TableInfo) -> None:
    """Raise InvalidSchemaChange if a constraint's column is dropped, or may change its meaning."""
    now = {field.id: field for field in after}
    for constraint in constraints_of(info.properties):
        for column in before:
            if column.id not in constraint.field_ids:
                continue
            condition = constraint.text(before)
            if column.id not in now:
                raise InvalidSchemaChange(
                    f"the constraint {constraint.name!r}, CHECK ({condition}), uses the column "
                    f"{column.name!r}; drop the constraint first"
                )
            if not all(
                _means_the_same(column.type, now[column.id].type, names)
                for id_, names in _uses(constraint.condition)
                if id_ == column.id
            ):
                raise InvalidSchemaChange(
                    f"the constraint {constraint.name!r}, CHECK ({condition}), uses the column "
                    f"{column.name!r}, and may mean something else for its new type; drop the "
                    "constraint first, and add it again after the change"
                )


def _uses(condition: ir.Predicate) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the id of each column that is read, and the names of the field of it that is read."""
    nodes: list[ir.Node] = [condition]
    while nodes:
        node = inner = nodes.pop()
        names: list[str] = []
        while isinstance(inner, ir.FieldAccess):
            names.append(inner.name)
            inner = inner.operand
        if isinstance(inner, ir.BoundColumn):
            yield inner.field_id, tuple(reversed(names))
        else:
            nodes.extend(ir.children(node))


def _means_the_same(before: LogicalType, after: LogicalType, names: Sequence[str]) -> bool:
    """Return whether a column of both types has the same field at `names`, at most a wider integer.

    Other fields of its structs may come, go and change.
    """
    for name in names:
        if not (isinstance(before, Struct) and isinstance(after, Struct)):
            return False
        old, new = (
            next((field for field in each.fields if field.name == name), None)
            for each in (before, after)
        )
        if old is None or new is None or old.id != new.id:
            return False
        before, after = old.type, new.type
    return before == after or (isinstance(before, Int) and isinstance(after, Int))


def _constraint(
    change: AddConstraint, head: Snapshot, constraints: dict[str, Constraint], named: set[str]
) -> Constraint:
    name = change.name if change.is_named else _free_name(change.name, (*constraints, *named))
    if not 0 < len(name) <= _LONGEST_NAME:
        raise InvalidInput(
            f"add_constraint: the name has {len(name)} characters; give 1 to {_LONGEST_NAME}"
        )
    if (taken := _known(name, constraints)) is not None:
        raise InvalidInput(
            f"add_constraint: the table has a constraint {taken!r} already; drop it first, or give "
            "another name"
        )
    text, dialect = unmarked(change.condition, change.dialect)
    semantics = semantics_of(dialect, text, None)
    with locating_errors(text, dialect, head.schema, semantics):
        condition = to_predicate(text, dialect, head.schema, semantics)
        _check_condition(name, condition, head.schema, semantics)
    source = text if isinstance(text, str) and len(text) <= _LONGEST_SOURCE else ""
    return constraint_of(name, condition, head.schema, semantics, head.version + 1, source)


def _free_name(stem: str, taken: Sequence[str]) -> str:
    """A name for a constraint that was given none."""
    name, number = stem, 2
    while _known(name, taken) is not None:
        name, number = f"{stem}_{number}", number + 1
    return name


def _check_condition(
    name: str, condition: ir.Predicate, schema: Schema, semantics: Semantics
) -> None:
    """Refuse conditions that do not depend on the row alone."""
    nodes = list(ir.walk(condition))
    why = None
    if any(isinstance(node, ir.Now) for node in nodes):
        why = "depends on the time of its evaluation"
    elif any(isinstance(node, ir.Opaque) for node in nodes):
        why = "has a part that only another engine can evaluate"
    elif not any(isinstance(node, ir.Column | ir.BoundColumn) for node in nodes):
        why = "uses no column"
    elif semantics.has_session_zone and semantics != Semantics.named(semantics.name):
        why = "depends on the settings of a session"
    if why is not None:
        raise InvalidPredicate(
            f"add_constraint: the condition of {name!r} {why}; write a condition on the columns of "
            "one row"
        )
    bind(condition, schema, semantics)


def _identities(parts: PartTable) -> frozenset[tuple[str, Any, Any]]:
    vectors = parts.column("dv.path").to_pylist()
    return frozenset(zip(parts.part_ids, vectors, parts.vectors(), strict=True))
