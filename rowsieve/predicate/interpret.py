"""The abstract interpreter: which parts can hold rows on which a predicate is TRUE, or fails.

One walk over the tree computes, for all parts at once, whether the predicate may be TRUE, FALSE,
NULL or failed on some row.

Soundness: a part is refuted (`NONE`) only if none of its rows can be kept and none can raise. It is
certain (`ALL`) only if every row is TRUE. Every other part is `SOME`. At the top, as in the
evaluator, a conjunct that is never TRUE and never fails makes the others irrelevant.

Modelled on the interpreter of Materialize (`src/expr/src/interpret.rs`), over arrays of parts.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Final, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.predicate import ir
from rowsieve.predicate.alike_terms import grouped
from rowsieve.predicate.arrays import Mask, repeated, with_nulls
from rowsieve.predicate.binding.coerce import compare_operands
from rowsieve.predicate.bound import BoundOperand, BoundPredicate, refuse_unbound
from rowsieve.predicate.evaluation.ordered_members import are_members, members_within
from rowsieve.predicate.functions.registry import known_of, resolve
from rowsieve.predicate.functions.texts.patterns import literal_prefix
from rowsieve.predicate.interpretation import abstract_calls
from rowsieve.predicate.interpretation.abstract import (
    AbstractColumns,
    AbstractValue,
    KnownExpressions,
    Truth,
    anything,
    constant,
    everywhere,
    from_column,
    is_point,
    join,
    known,
    limited,
    meet,
    nan_alone,
    nan_as_upper,
    nowhere,
    over_alternatives,
    spans_of,
    unbounded_below,
)
from rowsieve.predicate.interpretation.abstract_comparisons import (
    compare_values,
    distinct,
    reflexive,
)
from rowsieve.predicate.interpretation.abstract_patterns import pattern_truth, prefix_truth
from rowsieve.predicate.interpretation.alike_truths import Matrices, truths_of_any
from rowsieve.predicate.interpretation.facts import Facts, facts_against, facts_of
from rowsieve.predicate.interpretation.nan_signs import may_be_negative_nan
from rowsieve.predicate.interpretation.narrow import combined_facts, narrowed
from rowsieve.predicate.interpretation.nested_facts import (
    implied_by_equality,
    implied_by_order,
)
from rowsieve.predicate.interpretation.plain_comparisons import (
    plain_truth,
    plain_truths,
    plain_verdicts,
)
from rowsieve.predicate.like import parse_pattern
from rowsieve.predicate.literal_values import scalar
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import NanOrder, NestedNulls, Semantics
from rowsieve.types.logical import Bool, Float, Int, Struct, Timestamp, is_nested

_MAX_AT_ONCE: Final = 1_000_000  # parts times constants in one batch
_END_OF_TIME = 253_402_300_799_999_999  # the year 9999: no statement runs later


class Verdict(IntEnum):
    """Which rows of a part the predicate keeps."""

    NONE = 0
    SOME = 1
    ALL = 2


def interpret(
    predicate: BoundPredicate, columns: AbstractColumns, *, now_us: int | None = None
) -> npt.NDArray[np.int8]:
    """Return one `Verdict` per part, (n,) int8. Sound, not complete.

    `now_us`: the earliest time that a `Now` in the predicate may have (invariant 30).
    """
    refuse_unbound(predicate, "interpret")
    if (plain := plain_verdicts(predicate, columns)) is not None:
        return plain
    part_count = columns.part_count
    remembered = predicate.remembered
    interpreter = _Interpreter(columns, predicate.semantics, part_count, now_us, remembered)
    refuted, certain = nowhere(part_count), everywhere(part_count)
    terms = ir.root_conjuncts(predicate.root)
    for term in terms:
        truth = interpreter.predicate(term)
        refuted |= ~(truth.true | truth.fails)
        certain &= ~(truth.false | truth.null | truth.fails)
    if len(terms) > 1:
        refuted |= _refuted_together(predicate, terms, interpreter)
    verdicts = np.where(certain, Verdict.ALL, Verdict.SOME).astype(np.int8)
    verdicts[refuted] = Verdict.NONE
    return verdicts


def _refuted_together(
    predicate: BoundPredicate, terms: Sequence[ir.Predicate], interpreter: _Interpreter
) -> Mask:
    """Refute parts by the conjuncts that cannot fail, combined, and the others within them."""
    facts, others = combined_facts(predicate, terms)
    if not facts.columns:
        return nowhere(interpreter.part_count)
    within = narrowed(interpreter.columns, facts)
    refuted = within.refuted
    inside = replace(interpreter, columns=within)
    for term in others:
        truth = inside.predicate(term)
        refuted = refuted | ~(truth.true | truth.fails)
    return refuted


def interpret_operand(
    operand: BoundOperand, columns: AbstractColumns, *, now_us: int | None = None
) -> AbstractValue:
    """Compute the possible values of the operand in each part."""
    interpreter = _Interpreter(columns, operand.semantics, columns.part_count, now_us)
    return interpreter.operand(operand.root)


@dataclass(frozen=True, slots=True)
class _Interpreter:
    columns: AbstractColumns
    semantics: Semantics
    part_count: int
    now_us: int | None
    remembered: dict[Hashable, Any] = field(default_factory=dict)  # of the predicate

    def predicate(self, node: ir.Predicate) -> Truth:
        count = self.part_count
        match node:
            case ir.TruePredicate():
                return Truth(everywhere(count), nowhere(count), nowhere(count), nowhere(count))
            case ir.FalsePredicate():
                return Truth(nowhere(count), everywhere(count), nowhere(count), nowhere(count))
            case ir.Not(term=term):
                truth = self.predicate(term)
                return Truth(truth.false, truth.true, truth.null, truth.fails)
            case ir.And(terms=terms):
                return _conjunction([self.predicate(term) for term in terms], everywhere(count))
            case ir.Or(terms=terms):
                groups = grouped(terms, self.remembered)
                listed = [term for group in groups.alike if group.has_lists for term in group.terms]
                others = (*groups.others, *listed)  # a list may say more than its values
                truths = [self.predicate(term) for term in others]
                step = max(1, _MAX_AT_ONCE // max(1, count))
                for alike in groups.alike:
                    if not alike.has_lists:
                        truths += truths_of_any(alike, step, self.compared_at_once)
                refuted = [_negated(truth) for truth in truths]
                return _negated(_conjunction(refuted, everywhere(count)))
            case ir.Comparison():
                return self.comparison(node)
            case ir.InList():
                return self.in_list(node)
            case ir.IsNull(operand=operand):
                value = self.operand(operand)
                return Truth(value.null, value.present, nowhere(count), value.fails)
            case ir.Like():
                return self.like(node)
            case ir.BooleanOperand(operand=operand):
                return self.boolean(operand)
            case ir.Opaque():
                return Truth(*[everywhere(count)] * 4)
            case _:
                assert_never(node)

    def compared_at_once(
        self, column: ir.BoundColumn, op: ir.ComparisonOp, constants: pa.Array
    ) -> Matrices:
        """Compute `comparison` with each constant; no constant is NULL or NaN."""
        if (plain := plain_truths(column, op, constants, self.columns)) is not None:
            return plain
        count, each = len(constants), self.part_count
        value = self.operand(column)
        again = pa.array(np.tile(np.arange(each), count))
        left = AbstractValue(
            value.type,
            value.lower.take(again),
            value.upper.take(again),
            np.tile(value.present, count),
            np.tile(value.null, count),
            np.tile(value.fails, count),
            np.tile(value.nan, count),
        )
        bounds = constants.take(pa.array(np.repeat(np.arange(count), each)))
        none, all_ = nowhere(count * each), everywhere(count * each)
        right = AbstractValue(value.type, bounds, bounds, all_, none, none, none)
        is_ieee = self.semantics.nan is NanOrder.IEEE
        truth = compare_values(op, left, right, left.nan & left.present if is_ieee else None)
        true, false, null, fails = (
            mask.reshape(count, each) for mask in (truth.true, truth.false, truth.null, truth.fails)
        )
        return true, false, null, fails

    def comparison(self, node: ir.Comparison) -> Truth:
        if (plain := plain_truth(node, self.columns)) is not None:
            return plain
        left, right = self.operand(node.left), self.operand(node.right)
        if is_nested(left.type):
            return self.nested_comparison(node, left, right)
        unordered = None
        if self.semantics.nan is NanOrder.IEEE:
            unordered = (left.nan | right.nan) & left.present & right.present
        if node.left == node.right and (unordered is None or not unordered.any()):
            return reflexive(node.op, left)
        return compare_values(node.op, left, right, unordered)

    def nested_comparison(
        self, node: ir.Comparison, left: AbstractValue, right: AbstractValue
    ) -> Truth:
        """Compare lists or structs by implied conditions, because they have no bounds."""
        if isinstance(node.left, ir.Literal) and not isinstance(node.right, ir.Literal):
            node = ir.Comparison(node.op.mirrored, node.right, node.left)
            left, right = right, left
        both = left.present & right.present
        same = both
        constant = node.right if isinstance(node.right, ir.Literal) else ir.Literal(None)
        for term in implied_by_equality(node.left, left.type, constant, self.semantics):
            same = same & self.predicate(term).true
        if node.op.is_null_safe:
            return distinct(node.op, left, right, (same, both))
        true = same if node.op is ir.ComparisonOp.EQ else both
        false = same if node.op is ir.ComparisonOp.NE else both
        if node.op.is_order and self.semantics.nested_nulls is not NestedNulls.UNKNOWN:
            sides = node.left, left.type, constant, self.semantics
            true, false = (
                both & self.predicate(implied_by_order(op, *sides)).true
                for op in (node.op, node.op.negated)
            )
        null = (left.null & (right.null | right.present)) | (right.null & left.present)
        if self.semantics.nested_nulls is NestedNulls.UNKNOWN:
            null = null | both
        return Truth(true, false, null, left.fails | right.fails)

    def in_list(self, node: ir.InList) -> Truth:
        value = self.operand(node.operand)
        members = node.values.array
        matched, unmatched = nowhere(self.part_count), nowhere(self.part_count)
        for span in spans_of(value):
            inside, certain = self.membership(span, node)
            matched, unmatched = matched | inside, unmatched | (span.present & ~certain)
        if members.null_count:
            null, false = value.null | unmatched, nowhere(self.part_count)
        else:
            null, false = value.null, unmatched
        return Truth(matched, false, null, value.fails)

    def membership(self, value: AbstractValue, node: ir.InList) -> tuple[Mask, Mask]:
        """Whether a value without holes may be a member, and whether it certainly is."""
        members = node.values.array
        possible, certain = members_within(value.lower, value.upper, node.values)
        is_float = isinstance(value.type, Float)
        bitwise = self.semantics.compares_bits(len(members))
        point = is_point(value)
        if is_float and self.semantics.nan is NanOrder.GREATEST and not bitwise:
            point |= known(ir.ComparisonOp.EQ, value.lower, nan_as_upper(value))
        certain &= point
        if isinstance(value.type, Int):
            certain |= are_members(value.lower, value.upper, node.values)
        if is_float:
            if bitwise:
                certain &= ~known(
                    ir.ComparisonOp.EQ,
                    value.lower,
                    repeated(pa.scalar(0.0, members.type), len(possible)),
                )
            if self.semantics.nan is NanOrder.IEEE:
                certain &= ~value.nan
        return value.present & possible, certain

    def like(self, node: ir.Like) -> Truth:
        value = self.operand(node.operand)
        pattern = parse_pattern(node.pattern, node.escape)
        outcomes = [
            pattern_truth(span, pattern, ignore_case=node.ignore_case) for span in spans_of(value)
        ]
        true, false = (np.logical_or.reduce(masks) for masks in zip(*outcomes, strict=True))
        return Truth(true, false, value.null, value.fails)

    def boolean(self, operand: ir.Operand) -> Truth:
        if isinstance(operand, ir.Condition):
            return self.predicate(operand.predicate)
        if isinstance(operand, ir.Call) and operand.function == "starts_with":
            text, prefix = operand.arguments
            if isinstance(prefix, ir.Literal) and isinstance(prefix.value, str):
                value = self.operand(text)
                return Truth(*prefix_truth(value, prefix.value), value.null, value.fails)
        value = self.operand(operand)
        yes = repeated(pa.scalar(True), self.part_count)  # noqa: FBT003
        no = repeated(pa.scalar(False), self.part_count)  # noqa: FBT003
        return Truth(
            value.present & ~known(ir.ComparisonOp.EQ, value.upper, no) & self.may_hold(operand),
            value.present & ~known(ir.ComparisonOp.EQ, value.lower, yes),
            value.null,
            value.fails,
        )

    def may_hold(self, operand: ir.Operand) -> Mask:
        """Where the conditions that a boolean call implies for its arguments may hold."""
        match operand:
            case ir.Call(function="regex_matches", arguments=(text, ir.Literal() as pattern, *_)):
                prefix = literal_prefix(str(pattern.value))
                return prefix_truth(self.operand(text), prefix)[0]
            case ir.Call(
                function="list_contains" | "equals_any",
                arguments=(ir.BoundColumn() | ir.FieldAccess() as values, sought),
            ):
                item = ir.Call("list_element", (values, ir.Literal(1, Int(64))))  # any item
                types = type_of(item), type_of(sought)
                if any(map(is_nested, types)):
                    return everywhere(self.part_count)
                equal = compare_operands(
                    ir.ComparisonOp.EQ, item, types[0], sought, types[1], self.semantics
                )
                return self.predicate(equal).true
            case _:
                return everywhere(self.part_count)

    def operand(self, node: ir.Operand) -> AbstractValue:
        value = self.derived(node)
        if isinstance(node, ir.Call | ir.Cast | ir.FieldAccess) and isinstance(
            self.columns, KnownExpressions
        ):
            known_value = self.columns.expression(node)
            value = value if known_value is None else meet(value, known_value)
        signed = self.semantics.nan is NanOrder.SIGNED and bool(value.nan.any())
        if signed and may_be_negative_nan(node):  # such a NaN sorts below every number
            return unbounded_below(value)
        return value

    def derived(self, node: ir.Operand) -> AbstractValue:
        """Derive the value from the arguments."""
        match node:
            case ir.BoundColumn():
                column = self.columns.column(node)
                value = from_column(node, column, self.part_count)
                return value if self.semantics.nan is NanOrder.IEEE else nan_alone(value, column)
            case ir.Literal():
                return constant(node, self.part_count, self.semantics.nan)
            case ir.Call():
                values = [self.operand(argument) for argument in node.arguments]
                types = [value.type for value in values]
                row, signature = resolve(node.function, known_of(node.arguments, types))
                return over_alternatives(
                    values,
                    lambda spans: abstract_calls.call(node, row, signature, spans, self.semantics),
                )
            case ir.Cast(operand=operand, type=type_, try_=try_):
                return over_alternatives(
                    [self.operand(operand)],
                    lambda spans: abstract_calls.cast_value(
                        spans[0], type_, self.semantics, quiet=try_
                    ),
                )
            case ir.FieldAccess(operand=operand, name=name):
                value = self.operand(operand)
                assert isinstance(value.type, Struct)
                member = next(field for field in value.type.fields if field.name == name)
                all_ = everywhere(self.part_count)
                return anything(member.type, value.present, all_, value.fails)
            case ir.Case():
                return self.case(node)
            case ir.Condition(predicate=predicate):
                return _as_value(self.predicate(predicate))
            case ir.Now():
                return self.now()
            case ir.Column(name=name):
                raise AssertionError(f"the column {name!r} is not bound")
            case _:
                assert_never(node)

    def now(self) -> AbstractValue:
        none = nowhere(self.part_count)
        instant = anything(Timestamp(utc=True), everywhere(self.part_count), none, none)
        if self.now_us is None:
            return instant
        ends = [scalar(ir.Literal(end, instant.type)) for end in (self.now_us, _END_OF_TIME)]
        lower, upper = (repeated(end, self.part_count) for end in ends)
        return replace(instant, lower=lower, upper=upper)

    def case(self, node: ir.Case) -> AbstractValue:
        """Return the union of the branches that can be taken, with failures of reached conditions.

        A branch is evaluated on rows where its condition is TRUE and no earlier condition is.
        """
        reached = everywhere(self.part_count)
        fails = nowhere(self.part_count)
        result: AbstractValue | None = None
        here = self
        for when, then in node.branches:
            truth = here.predicate(when)
            fails = fails | (truth.fails & reached)
            inside, excluded = here.within(facts_of(ir.root_conjuncts(when)))
            value = limited(inside.operand(then), reached & truth.true & ~excluded)
            result = value if result is None else join(result, value)
            reached = reached & (truth.false | truth.null)
            here, excluded = here.within(facts_against(when))
            reached = reached & ~excluded
        last = limited(here.operand(node.otherwise), reached)
        result = last if result is None else join(result, last)
        return replace(result, fails=result.fails | fails)

    def within(self, facts: Facts) -> tuple[_Interpreter, Mask]:
        """Return the interpreter of the rows with these facts, and the parts without such rows."""
        if not facts.columns:
            return self, nowhere(self.part_count)
        inner = narrowed(self.columns, facts)
        return replace(self, columns=inner), inner.refuted


def _conjunction(terms: list[Truth], all_: Mask) -> Truth:
    """Compute AND below the top; a part in which a term has no possible outcome has no rows."""
    true, false = all_.copy(), ~all_
    never_false, null, fails = all_.copy(), ~all_, ~all_
    for term in terms:
        true &= term.true
        false |= term.false
        null |= term.null
        fails |= term.fails
        never_false &= term.true | term.null | term.fails
    return Truth(true, false, null & never_false, fails & never_false)


def _negated(truth: Truth) -> Truth:
    return Truth(truth.false, truth.true, truth.null, truth.fails)


def _as_value(truth: Truth) -> AbstractValue:
    """Convert a predicate's outcome to a boolean value."""
    none = nowhere(len(truth.true))
    lower = with_nulls(~truth.false, none, pa.bool_())
    upper = with_nulls(truth.true, none, pa.bool_())
    return AbstractValue(
        Bool(), lower, upper, truth.true | truth.false, truth.null, truth.fails, none
    )
