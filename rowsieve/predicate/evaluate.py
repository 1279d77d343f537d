"""The concrete evaluator: computes a bound predicate or operand on a record batch.

On a row, a predicate is TRUE, FALSE, NULL or failed. FALSE decides an AND, and TRUE decides an OR,
whatever the other terms are; below the top, a failure takes precedence over NULL. At the top, each
conjunct is evaluated for itself: a row with a FALSE or NULL conjunct is dropped, and failures of
other conjuncts on it are ignored (invariant 27). A cast of a text of unknown meaning
fails, even as TRY_CAST, with an error of its own.

All pruning is tested against this module. Nothing here runs per row in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import (
    EvaluationError,
    InvalidInput,
    InvalidPredicate,
    SchemaMismatch,
    UnreadText,
    UnsupportedOperation,
)
from rowsieve.predicate import ir
from rowsieve.predicate.arrays import (
    Computed,
    Mask,
    any_of,
    as_mask,
    compare,
    filled,
    null_mask,
    repeated,
    with_nulls,
    without,
)
from rowsieve.predicate.bound import BoundOperand, BoundPredicate, refuse_unbound
from rowsieve.predicate.evaluation.boxes import alternatives
from rowsieve.predicate.evaluation.nested_order import compare_nested, differ_nested
from rowsieve.predicate.evaluation.ordered_members import is_member
from rowsieve.predicate.functions.casting.casts import cast_as_written, gives_null
from rowsieve.predicate.functions.casting.text_casts import trimmed
from rowsieve.predicate.functions.registry import known_of, resolve
from rowsieve.predicate.interpretation.plain_comparisons import plain_sides
from rowsieve.predicate.like import parse_pattern
from rowsieve.predicate.literal_values import scalar
from rowsieve.predicate.semantics import NanOrder, Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Bool, LogicalType, Struct, is_nested, type_name
from rowsieve.types.shown_values import shown_row


@dataclass(frozen=True, slots=True)
class _Unread:
    """The rows on which a cast or a call meets texts whose meaning is unknown to Rowsieve."""

    rows: Mask
    error: UnreadText


@dataclass(frozen=True, slots=True)
class Outcome:
    """(n,) bool masks, at most one set per row; a row with none set is FALSE.

    `unread` names reasons of failed rows; it may also cover rows that have not failed.
    """

    true: Mask
    null: Mask
    failed: Mask
    unread: tuple[_Unread, ...] = ()

    @property
    def false(self) -> Mask:
        """Rows on which the predicate is FALSE, neither NULL nor failed."""
        return ~(self.true | self.null | self.failed)

    def refuse_unread(self, rows: Mask) -> None:
        """Raise `UnreadText` if one of these rows failed because of a text that cannot be read."""
        _refuse_unread(self.unread, self.failed & rows)


def _refuse_unread(unread: Iterable[_Unread], failed: Mask) -> None:
    for reason in unread:
        if (reason.rows & failed).any():
            raise reason.error


def evaluate(predicate: BoundPredicate, batch: pa.RecordBatch) -> Outcome:
    """Compute the outcome on each row. Columns are matched by name and must have storage types."""
    refuse_unbound(predicate, "evaluate")
    evaluator = _Evaluator(batch, predicate.semantics, predicate.remembered)
    outcomes = list(map(evaluator.predicate, ir.root_conjuncts(predicate.root)))
    unread = tuple(evaluator.unread)
    if len(outcomes) == 1:
        return replace(outcomes[0], unread=unread) if unread else outcomes[0]
    row_count = batch.num_rows
    if not outcomes:
        return _constant(row_count, value=True)
    out = np.logical_or.reduce([outcome.false | outcome.null for outcome in outcomes])
    failed = np.logical_or.reduce([outcome.failed for outcome in outcomes]) & ~out
    false = np.logical_or.reduce([outcome.false for outcome in outcomes])
    return Outcome(~(out | failed), out & ~false, failed, unread)


def matching(predicate: BoundPredicate, batch: pa.RecordBatch) -> Mask:
    """Return the rows on which the predicate is TRUE; EvaluationError if a row failed."""
    refuse_unbound(predicate, "matching")
    if not isinstance(batch, pa.RecordBatch | pa.Table):
        raise InvalidInput(
            f"matching takes a RecordBatch or Table of pyarrow, not {type(batch).__name__}; "
            "convert it by pyarrow.table(…)"
        )
    outcome = evaluate(predicate, batch)
    if outcome.failed.any():
        outcome.refuse_unread(outcome.failed)
        raise _failure(predicate, batch, int(np.argmax(outcome.failed)))
    return outcome.true


def compute(operand: BoundOperand, batch: pa.RecordBatch) -> tuple[pa.Array, Mask]:
    """Compute values in the operand's storage type, NULL on failed rows, and the failed mask."""
    refuse_unbound(operand, "compute")
    evaluator = _Evaluator(batch, operand.semantics)
    computed, _ = evaluator.operand(operand.root)
    failed = computed.failed
    if failed is None:
        failed = np.zeros(batch.num_rows, dtype=np.bool_)
    _refuse_unread(evaluator.unread, failed)
    return computed.values, failed


def _failure(predicate: BoundPredicate, batch: pa.RecordBatch, row: int) -> EvaluationError:
    names = [column.name for column in predicate.columns]
    shown = shown_row(batch.select(names[:8]), row, predicate.columns)
    values = ", ".join(f"{name} = {str(value)[:80]!r}" for name, value in shown.items())
    return EvaluationError(
        "the filter cannot be evaluated on a row: an overflow, a division by zero or a "
        f"value that does not fit a cast, with {values or _no_column(predicate)}; guard the "
        "expression with CASE, NULLIF or TRY_CAST"
    )


def _no_column(predicate: BoundPredicate) -> str:
    """Say what a filter without columns has: Spark reads double quotes as text, not as a name."""
    literals = (node.value for node in ir.walk(predicate.root) if isinstance(node, ir.Literal))
    text = next((value for value in literals if isinstance(value, str)), None)
    if text is None:
        return "no column"
    return f'no column, as {text!r} is a text; Spark writes a column as `{text}`, others "{text}"'


def _rows_with_texts(arguments: Sequence[pa.Array], error: UnreadText) -> tuple[int, Mask]:
    """Find the argument with the texts of the error, and its rows; re-raise if there is none."""
    for place, values in enumerate(arguments):
        if isinstance(error.texts, pa.Array) and error.texts.type == values.type:
            whole = as_mask(pc.is_in(values, value_set=error.texts))
            rows = whole | as_mask(pc.is_in(trimmed(values), value_set=error.texts))
            if rows.any():
                return place, rows
    raise error


def _constant(row_count: int, *, value: bool) -> Outcome:
    none = np.zeros(row_count, dtype=np.bool_)
    return Outcome(np.full(row_count, value), none, none)


def _outcome(truth: pa.Array, failed: Mask | None) -> Outcome:
    """Build the outcome from a boolean array; failed rows do not count as NULL."""
    return _outcome_of(as_mask(truth), null_mask(truth), failed)


def _outcome_of(true: Mask, null: Mask, failed: Mask | None) -> Outcome:
    """Build the outcome from the rows that are TRUE and NULL; failed rows count as neither."""
    if failed is None:
        return Outcome(true, null, np.zeros(len(true), dtype=np.bool_))
    return Outcome(true & ~failed, null & ~failed, failed)


@dataclass(frozen=True, slots=True)
class _Evaluator:
    batch: pa.RecordBatch
    semantics: Semantics
    known: dict[Hashable, Any] = field(default_factory=dict)  # of the predicate
    unread: list[_Unread] = field(default_factory=list)

    def predicate(self, node: ir.Predicate) -> Outcome:
        match node:
            case ir.TruePredicate():
                return _constant(self.batch.num_rows, value=True)
            case ir.FalsePredicate():
                return _constant(self.batch.num_rows, value=False)
            case ir.Not(term=term):
                outcome = self.predicate(term)
                return Outcome(outcome.false, outcome.null, outcome.failed)
            case ir.And(terms=terms):
                return self.junction(terms, decided=False)
            case ir.Or(terms=terms):
                return self.junction(terms, decided=True)
            case ir.Comparison():
                return self.comparison(node)
            case ir.InList():
                return self.in_list(node)
            case ir.IsNull(operand=operand):
                computed, _ = self.operand(operand)
                null = null_mask(computed.values)
                if computed.failed is None:
                    return _outcome(pa.array(null), None)
                return Outcome(null & ~computed.failed, np.zeros_like(null), computed.failed)
            case ir.Like():
                return self.like(node)
            case ir.BooleanOperand(operand=ir.Condition(predicate=inner)):
                return self.predicate(inner)
            case ir.BooleanOperand(operand=operand):
                computed, _ = self.operand(operand)
                return _outcome(computed.values, computed.failed)
            case ir.Opaque(description=description, source=source):
                raise UnsupportedOperation(
                    f"the condition {description!r} of {source} can only be evaluated there; leave "
                    "it to that engine, or write it in SQL of a dialect that Rowsieve reads"
                )
            case _:
                assert_never(node)

    def junction(self, terms: tuple[ir.Predicate, ...], *, decided: bool) -> Outcome:
        """Compute AND (decided by FALSE) or OR (decided by TRUE) below the top."""
        row_count = self.batch.num_rows
        decision = np.zeros(row_count, dtype=np.bool_)
        failed, null = decision.copy(), decision.copy()
        if decided and (grouping := alternatives(terms, self.semantics, self.known)) is not None:
            terms = grouping.others
            for group in grouping.groups:
                group_outcome = group.outcome([self.column(axis.column) for axis in group.axes])
                decision |= group_outcome[0]
                null |= group_outcome[1]
        for term in terms:
            outcome = self.predicate(term)
            decision |= outcome.true if decided else outcome.false
            failed |= outcome.failed
            null |= outcome.null
        failed &= ~decision
        null &= ~(decision | failed)
        true = decision if decided else ~(decision | failed | null)
        return Outcome(true, null, failed)

    def comparison(self, node: ir.Comparison) -> Outcome:
        if (plain := plain_sides(node)) is not None:
            values = self.column(plain[0])
            null = null_mask(values)
            true: Mask = node.op.python(filled(values), plain[1])
            return _outcome_of(true & ~null if values.null_count else true, null, None)
        left, left_failed = self.side(node.left)
        right, right_failed = self.side(node.right)
        if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
            left = repeated(left, self.batch.num_rows)
        failed = any_of(left_failed, right_failed)
        if node.op.is_null_safe:
            truth = self.distinct(left, right)
            if node.op is ir.ComparisonOp.NOT_DISTINCT:
                truth = pc.invert(truth)
        elif pa.types.is_nested(left.type):
            truth = compare_nested(node.op, *self.arrays(left, right), self.semantics)
        else:
            truth = compare(node.op, left, right, self.semantics.nan)
        return _outcome(truth, failed)

    def distinct(self, left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> pa.Array:
        sides = self.arrays(left, right)
        if pa.types.is_nested(left.type):
            return pa.array(differ_nested(*sides, self.semantics))
        nulls = [null_mask(side) for side in sides]
        unequal = as_mask(compare(ir.ComparisonOp.NE, sides[0], sides[1], self.semantics.nan))
        return pa.array(unequal | (nulls[0] != nulls[1]))

    def arrays(
        self, left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar
    ) -> tuple[pa.Array, pa.Array]:
        """Return both sides as arrays with one value per row."""
        rows = self.batch.num_rows
        one, other = (repeated(s, rows) if isinstance(s, pa.Scalar) else s for s in (left, right))
        return one, other

    def side(self, node: ir.Operand) -> tuple[pa.Array | pa.Scalar, Mask | None]:
        """Compute one side of a comparison; a literal stays a scalar."""
        if isinstance(node, ir.Literal):
            return scalar(node), None
        computed, _ = self.operand(node)
        return computed.values, computed.failed

    def in_list(self, node: ir.InList) -> Outcome:
        computed, _ = self.operand(node.operand)
        values, members = computed.values, node.values.array
        has_null_member = members.null_count > 0
        members = stored_members = members.drop_null()
        if pa.types.is_floating(values.type):
            bits = self.semantics.compares_bits(len(node.values))
            values = self.canonical(values, zeros_differ=bits)
            members = self.canonical(members, zeros_differ=bits)
            if self.semantics.nan is NanOrder.IEEE:
                members = members.filter(pc.invert(pc.is_nan(members)))
        null = null_mask(values)
        matches = is_member(values, node.values)
        if matches is None:
            matches = as_mask(pc.is_in(values, value_set=members))
        if self.semantics.nan is NanOrder.SIGNED and pa.types.is_floating(values.type):
            matches = _with_signed_nan(matches, computed.values, stored_members)
        matches &= ~null
        if has_null_member:
            null = ~matches
        return _outcome_of(matches, null, computed.failed)

    @staticmethod
    def canonical(values: pa.Array, *, zeros_differ: bool) -> pa.Array:
        """Make the bits of equal floats equal."""
        nulls = null_mask(values)
        numbers = filled(values).copy()
        numbers[np.isnan(numbers)] = np.nan
        if not zeros_differ:
            numbers += 0.0  # -0.0 + 0.0 is 0.0
        return with_nulls(numbers, nulls, values.type)

    def like(self, node: ir.Like) -> Outcome:
        computed, _ = self.operand(node.operand)
        folds = self.semantics.fold_version if node.ignore_case else None
        pattern = parse_pattern(node.pattern, node.escape, folds)
        if pattern.is_exact and not node.ignore_case:
            truth = pc.equal(computed.values, pattern.prefix)
        elif pattern.is_prefix and not node.ignore_case:
            truth = pc.starts_with(computed.values, pattern=pattern.prefix)
        else:
            truth = pc.match_substring_regex(
                computed.values, pattern.regex, ignore_case=node.ignore_case
            )
        return _outcome(truth, computed.failed)

    def operand(self, node: ir.Operand) -> tuple[Computed, LogicalType]:
        match node:
            case ir.BoundColumn(type=type_):
                return Computed(self.column(node)), type_
            case ir.Literal(type=type_):
                assert type_ is not None
                return Computed(repeated(scalar(node), self.batch.num_rows)), type_
            case ir.Call():
                return self.call(node)
            case ir.Cast():
                return self.cast(node), node.type
            case ir.FieldAccess(operand=operand, name=name):
                return self.field_access(operand, name)
            case ir.Case():
                return self.case(node)
            case ir.Condition(predicate=predicate):
                outcome = self.predicate(predicate)
                truth = with_nulls(outcome.true, outcome.null | outcome.failed, pa.bool_())
                return Computed(truth, outcome.failed), Bool()
            case ir.Now():
                raise InvalidPredicate(
                    "now() has no value until a statement sets it; bind the filter with `now_us`"
                )
            case ir.Column(name=name):
                raise InvalidPredicate(f"the column {name!r} is not bound; call `bind` first")
            case _:
                assert_never(node)

    def column(self, node: ir.BoundColumn) -> pa.Array:
        index = self.batch.schema.get_field_index(node.name)
        if index < 0:
            raise SchemaMismatch(
                f"the filter reads the column {node.name!r}, but the batch has only "
                f"({', '.join(self.batch.schema.names)})"
            )
        values = self.batch.column(index)
        if values.type != arrow_type(node.type) and not is_nested(node.type):
            raise SchemaMismatch(
                f"the column {node.name!r} is {values.type} in the batch where the filter expects "
                f"{type_name(node.type)}; conform the batch to the schema first"
            )
        return values

    def call(self, node: ir.Call) -> tuple[Computed, LogicalType]:
        computed, types = [], []
        for argument in node.arguments:
            values, type_ = self.operand(argument)
            computed.append(values)
            types.append(type_)
        row, signature = resolve(node.function, known_of(node.arguments, types))
        if row.lazy:
            return _first_present(computed), signature.result
        readable, unread = self.readable(
            [each.values for each in computed],
            lambda values: row.evaluate(values, signature, self.semantics),
        )
        failed = any_of(readable.failed, unread, *(each.failed for each in computed))
        return Computed(without(readable.values, failed), failed), signature.result

    def readable(
        self, arguments: list[pa.Array], kernel: Callable[[list[pa.Array]], Computed]
    ) -> tuple[Computed, Mask | None]:
        """Run the kernel, and return its result and the rows whose text it cannot read."""
        unread = None
        while True:  # each iteration removes texts; readers raise in a few places
            try:
                return kernel(arguments), unread
            except UnreadText as error:
                place, rows = _rows_with_texts(arguments, error)
                self.unread.append(_Unread(rows, error))
                arguments = [*arguments]
                arguments[place] = without(arguments[place], rows)
                unread = any_of(unread, rows)

    def cast(self, node: ir.Cast) -> Computed:
        computed, source = self.operand(node.operand)
        known, unread = self.readable(
            [computed.values],
            lambda values: cast_as_written(
                values[0], source, node.type, self.semantics, try_=node.try_
            ),
        )
        quiet = gives_null(node.type, self.semantics, try_=node.try_)
        failed = any_of(computed.failed, unread, None if quiet else known.failed)
        return Computed(known.values, failed)

    def field_access(self, operand: ir.Operand, name: str) -> tuple[Computed, LogicalType]:
        computed, type_ = self.operand(operand)
        assert isinstance(type_, Struct)
        member = next(field for field in type_.fields if field.name == name)
        values = pc.struct_field(computed.values, [computed.values.type.get_field_index(name)])
        return Computed(values, computed.failed), member.type

    def case(self, node: ir.Case) -> tuple[Computed, LogicalType]:
        """Evaluate each branch, and its failures, only on the rows that take it."""
        result, type_ = self.operand(node.otherwise)
        values, failed = result.values, result.failed
        for when, then in reversed(node.branches):
            outcome = self.predicate(when)
            chosen, _ = self.operand(then)
            values = pc.if_else(pa.array(outcome.true), chosen.values, values)
            taken = None if chosen.failed is None else chosen.failed & outcome.true
            still_failed = None if failed is None else failed & ~outcome.true
            failed = any_of(taken, still_failed, outcome.failed if outcome.failed.any() else None)
        return Computed(without(values, failed), failed), type_


def _with_signed_nan(matches: Mask, values: pa.Array, members: pa.Array) -> Mask:
    """Restrict matches: NaN is a member only if the list has NaN of the same sign."""
    numbers, member_values = filled(values), filled(members)
    nan = np.isnan(numbers)
    signs = np.signbit(member_values[np.isnan(member_values)])
    corrected: Mask = np.where(nan, np.isin(np.signbit(numbers), signs), matches)
    return corrected


def _first_present(computed: list[Computed]) -> Computed:
    """Return the first non-NULL argument; a failure before it is a failure of the result."""
    values, failed = computed[-1].values, computed[-1].failed
    for earlier in reversed(computed[:-1]):
        present = ~null_mask(earlier.values)
        if earlier.failed is not None:
            present |= earlier.failed
        values = pc.if_else(pa.array(present), earlier.values, values)
        still_failed = None if failed is None else failed & ~present
        failed = any_of(earlier.failed, still_failed)
    return Computed(values, failed)
