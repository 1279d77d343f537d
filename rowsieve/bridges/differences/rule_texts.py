"""What is said of two engines whose rules differ: the construct, the reason and the way out.

A field of `Semantics` has a row. `meanings` decides which operations depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rowsieve.predicate.semantics import OnFailure, Semantics


@dataclass(frozen=True, slots=True)
class RuleText:
    """`about`: which values of an operation; `differs`: how; `instead`: what to write.

    `{ours}` and `{theirs}` in `differs` are the engines. A field of `OnFailure` needs no `differs`.
    """

    about: str = ""
    differs: str = "differs between {ours} and {theirs}"
    instead: str = ""


_ALONE: Final = "fails in one of {ours} and {theirs} only"
_NULLIF: Final = "write nullif(divisor, 0)"
_WIDER: Final = "cast an operand to a wider type"
_TOO_LARGE: Final = "guard the cast by a condition on the value"
RULE_TEXTS: Final[Mapping[str, RuleText]] = {
    "integer_overflow": RuleText("of whole numbers that overflows", instead=_WIDER),
    "quotient_overflow": RuleText("of the least whole number by -1", instead=_WIDER),
    "integer_division_by_zero": RuleText("of whole numbers by zero", instead=_NULLIF),
    "float_division_by_zero": RuleText(
        "of floats divided by zero or out of range", instead=_NULLIF
    ),
    "float_range": RuleText("of floats out of range"),
    "nan_by_zero": RuleText("of NaN by zero", _ALONE, _NULLIF),
    "decimal_overflow": RuleText(
        "of decimals with too many digits", instead="cast an operand to fewer digits"
    ),
    "failed_cast": RuleText("that fails", instead="compare the value without the cast"),
    "casts_wrap": RuleText("", "wraps around in one of {ours} and {theirs} only", _TOO_LARGE),
    "full_case": RuleText("of letters that become several"),
    "capital_sharp_s": RuleText("of a sharp s"),
    "lowers_patterns": RuleText("of letters of several forms", instead="write LIKE of lower(…)"),
    "fold_version": RuleText("of letters whose pairs are new in Unicode"),
    "float_domain": RuleText("outside of its domain", instead="guard it by a CASE"),
    "negative_roots_fail": RuleText("of a negative number", _ALONE, "guard it by a CASE"),
    "nan_has_sign": RuleText("of NaN"),
    "shifts_wrap": RuleText("that loses bits", _ALONE),
    "remainders_overflow": RuleText("of the least whole number by -1", _ALONE, _WIDER),
    "rounds_half_to_even": RuleText("of halves"),
    "digit_rounding": RuleText(
        "of floats",
        "rounds their digits differently in {ours} and {theirs}",
        "cast the float to a decimal when rows are written",
    ),
    "floors_are_longs": RuleText(
        "of floats",
        "gives 0 for NaN, and fails beyond 64 bits, in one of {ours} and {theirs} only",
    ),
    "lenient_float_casts": RuleText(
        "", "of a value that is too large or not finite " + _ALONE, _TOO_LARGE
    ),
    "infinite_float32": RuleText("", "of a value that is too large " + _ALONE, _TOO_LARGE),
    "nan": RuleText(
        "of floats",
        "orders NaN differently in {ours} and {theirs}",
        "exclude NaN by a condition of its own",
    ),
    "casts_cut_fractions": RuleText(
        "", "treats fractions differently in {ours} and {theirs}", "write floor, ceil or round"
    ),
    "time_zone": RuleText(
        "",
        "depends on the time zone, which differs between {ours} and {theirs}",
        "give session= and target_session= one zone",
    ),
    "first_duplicate_wins": RuleText(
        "of equal keys", "takes another value in {theirs} than in {ours}"
    ),
    "nested_nulls": RuleText("that hold NULL", instead="compare items or fields"),
    "timestamp_text": RuleText(
        "",
        "formats it differently in {ours} and {theirs}",
        "compare the time, or write a format",
    ),
    "nested_zeros_differ": RuleText("that hold -0.0", instead="compare items or fields"),
    "text_reading": RuleText(
        "",
        "accepts other texts in {theirs} than in {ours}",
        "write the constant in the other side's type, or store the value in a column of that type",
    ),
    "nanoseconds": RuleText("of nanoseconds", instead="cast to microseconds"),
}
_OUTCOMES: Final[Mapping[OnFailure, str]] = {
    OnFailure.ERROR: "fails",
    OnFailure.NULL: "is NULL",
    OnFailure.WRAP: "wraps around",
    OnFailure.IEEE: "is infinite or NaN",
}


def disagreement(what: str, field: str, ours: Semantics, theirs: Semantics) -> str:
    """Say how an operation differs between engines that differ in this field."""
    text, engines = RULE_TEXTS[field], _engines(ours, theirs)
    outcome, other = getattr(ours, field), getattr(theirs, field)
    if isinstance(outcome, OnFailure) and isinstance(other, OnFailure):
        differs = f"{_OUTCOMES[outcome]} in {{ours}} and {_OUTCOMES[other]} in {{theirs}}"
    else:
        differs = text.differs
    words = (what, text.about, differs.format_map(engines))
    return " ".join(filter(None, words)) + (f"; {text.instead}" if text.instead else "")


def _engines(ours: Semantics, theirs: Semantics) -> dict[str, str]:
    if ours.name != theirs.name:
        return {"ours": ours.name, "theirs": theirs.name}
    return {"ours": "the session of the condition", "theirs": "the session that runs it"}
