"""Functions as methods of polars' expressions: the row of a function reads and writes its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rowsieve.bridges.functions.arguments import (
    Arguments,
    TypedCall,
    constant_text,
    not_floats,
    of_list,
    of_text,
    one_float,
    one_type,
    place_from_one,
    replaced_not_empty,
)
from rowsieve.predicate.semantics import OnFailure, Semantics
from rowsieve.types.logical import Date, Float, Int, LogicalType, String, Timestamp

_INT32_END = 2**31
_COUNT = Int(32, signed=False)  # polars' type of lengths


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of semantics that polars follows, and the reason to reject calls under other rules."""

    reason: str
    holds: Callable[[Semantics], bool]


@dataclass(frozen=True, slots=True)
class Method:
    """A function of ours as a method of polars, and the arguments for which it gives our values.

    `name`: a method of the first argument, such as `str.head`, or a function of the module.
    `node`: its name in a serialised expression. `options`: the options of the node; `keywords`: the
    same for the method. `plain`: constants are passed as Python values; `aligned`: they take the
    type of the other arguments. `from_zero`: polars counts the second argument from 0. `first`: our
    first argument, and its text if polars takes it last. `instead`: the method that is written
    for it. `rule`: the rule of semantics that it depends on. `result`: the type of its values in
    polars, which decides where arithmetic with them overflows, if ours is another.
    """

    function: str
    name: str
    node: str
    case: Arguments
    rule: Rule | None = None
    plain: bool = False
    of_module: bool = False
    aligned: bool = False
    from_zero: bool = False
    first: Mapping[str, str] = field(default_factory=dict)
    keywords: Mapping[str, object] = field(default_factory=dict)
    options: object = None
    instead: str = ""
    result: LogicalType | None = None

    def has_options(self, options: object) -> bool:
        """Whether a node with these options is a call by this row."""
        wanted = self.options
        if isinstance(wanted, dict) and isinstance(options, dict):
            return wanted.items() <= options.items()
        return wanted is None or wanted == options

    @property
    def text(self) -> str:
        """Return the condition on the arguments, as it follows "only for"."""
        words = ", ".join(filter(None, self.first.values()))
        keywords = ", ".join(f"{name}={value!r}" for name, value in self.keywords.items())
        return "".join(
            (self.case.text, words and f", to one of {words}", keywords and f", with {keywords}")
        )


def _on_text(call: TypedCall) -> bool:
    return isinstance(call.types[0], String)


_given_text = Arguments(
    "text, with an explicit constant",
    lambda call: (
        _on_text(call) and len(call.types) == 2 and all(isinstance(v, str) for v in call.constants)
    ),
)
_constant_count = Arguments(
    "text, with a constant count",
    lambda call: (
        _on_text(call) and all(-_INT32_END <= number < _INT32_END for number in call.numbers)
    ),
)
_constant_start = Arguments(
    "text, with a constant start and length",
    lambda call: _on_text(call) and call.numbers[0] >= 1 and call.numbers[-1] >= 0,
)
_replaced_constant = Arguments(
    "constants, with a non-empty text to replace",
    lambda call: constant_text.holds(call) and replaced_not_empty.holds(call),
)
_signed = Arguments(
    "signed numbers",
    lambda call: (
        isinstance(call.types[0], Float)
        or (isinstance(call.types[0], Int) and call.types[0].signed)
    ),
)
_dated = Arguments(
    "dates and timestamps", lambda call: isinstance(call.types[-1], Date | Timestamp)
)
_timed = Arguments("timestamps", lambda call: isinstance(call.types[-1], Timestamp))

_FLOATS = Rule(
    "floats divided by zero and out of range differ in polars",
    lambda rules: rules.float_division_by_zero is OnFailure.IEEE,
)
_CASES = Rule("polars may convert one letter to several", lambda rules: rules.full_case)
_TO_EVEN = Rule(_FLOATS.reason, lambda rules: _FLOATS.holds(rules) and rules.rounds_half_to_even)
_FROM_ZERO = Rule(
    _FLOATS.reason, lambda rules: _FLOATS.holds(rules) and not rules.rounds_half_to_even
)
_UNITS = dict(
    zip(
        ("second", "minute", "hour", "day", "week", "month", "quarter", "year"),
        ("1s", "1m", "1h", "1d", "1w", "1mo", "1q", "1y"),
        strict=True,
    )
)
_PARTS = (
    ("Year", "year", "year", _dated, 32),
    ("Quarter", "quarter", "quarter", _dated, 8),
    ("Month", "month", "month", _dated, 8),
    ("Week", "week", "week", _dated, 8),
    ("Day", "day", "day", _dated, 8),
    ("OrdinalDay", "ordinal_day", "doy", _dated, 16),
    ("Hour", "hour", "hour", _timed, 8),
    ("Minute", "minute", "minute", _timed, 8),
)


def _rounded(mode: str, node_mode: str, rule: Rule) -> Method:
    keywords = {"decimals": 0, "mode": mode}
    options = {"decimals": 0, "mode": node_mode}
    return Method("round", "round", "Round", one_float, rule, keywords=keywords, options=options)


def _joined(function: str, *, ignore_nulls: bool) -> Method:
    keywords = {"ignore_nulls": ignore_nulls}
    return Method(
        *(function, "concat_str", "StringExpr.ConcatHorizontal", of_text),
        of_module=True,
        keywords=keywords,
        options=keywords | {"delimiter": ""},
    )


ROWS: tuple[Method, ...] = (
    *(Method(name, name, name.title(), one_float, _FLOATS) for name in ("abs", "floor", "ceil")),
    _rounded("half_to_even", "HalfToEven", _TO_EVEN),
    _rounded("half_away_from_zero", "HalfAwayFromZero", _FROM_ZERO),
    Method("negate", "neg", "Negate", _signed),
    Method("coalesce", "coalesce", "Coalesce", one_type, of_module=True, aligned=True),
    Method("coalesce", "fill_null", "FillNull", one_type, aligned=True, instead="coalesce"),
    Method("greatest", "max_horizontal", "MaxHorizontal", not_floats, of_module=True, aligned=True),
    Method("least", "min_horizontal", "MinHorizontal", not_floats, of_module=True, aligned=True),
    Method("starts_with", "str.starts_with", "StringExpr.StartsWith", of_text),
    Method("ends_with", "str.ends_with", "StringExpr.EndsWith", of_text),
    Method(
        *("contains", "str.contains", "StringExpr.Contains", of_text),
        keywords={"literal": True},
        options={"literal": True},
    ),
    Method("lower", "str.to_lowercase", "StringExpr.Lowercase", of_text, _CASES),
    Method("upper", "str.to_uppercase", "StringExpr.Uppercase", of_text, _CASES),
    Method("length", "str.len_chars", "StringExpr.LenChars", of_text, result=_COUNT),
    Method("left", "str.head", "StringExpr.Head", _constant_count, plain=True),
    Method("right", "str.tail", "StringExpr.Tail", _constant_count, plain=True),
    Method(
        *("substr", "str.slice", "StringExpr.Slice", _constant_start), plain=True, from_zero=True
    ),
    Method("trim", "str.strip_chars", "StringExpr.StripChars", _given_text, plain=True),
    Method("ltrim", "str.strip_chars_start", "StringExpr.StripCharsStart", _given_text, plain=True),
    Method("rtrim", "str.strip_chars_end", "StringExpr.StripCharsEnd", _given_text, plain=True),
    Method(
        *("replace", "str.replace_all", "StringExpr.Replace", _replaced_constant),
        plain=True,
        keywords={"literal": True},
        options={"n": -1, "literal": True},
    ),
    _joined("concat", ignore_nulls=True),
    _joined("concat_strict", ignore_nulls=False),
    Method("list_length", "list.len", "ListExpr.Length", of_list, result=_COUNT),
    Method(
        *("list_element", "list.get", "ListExpr.Get", place_from_one),
        plain=True,
        from_zero=True,
        keywords={"null_on_oob": True},
        options=True,
    ),
    Method("date_trunc", "dt.truncate", "TemporalExpr.Truncate", _timed, first=_UNITS),
    *(
        Method(
            *("extract", f"dt.{part}", f"TemporalExpr.{node}", case),
            first={ours: ""},
            result=Int(bits),
        )
        for node, part, ours, case, bits in _PARTS
    ),
)


def _grouped(name_of: Callable[[Method], str]) -> Mapping[str, tuple[Method, ...]]:
    methods: dict[str, tuple[Method, ...]] = {}
    for row in ROWS:
        methods[name_of(row)] = (*methods.get(name_of(row), ()), row)
    return methods


BY_FUNCTION = _grouped(lambda row: "" if row.instead else row.function)
BY_NODE = _grouped(lambda row: row.node)
# Nodes whose argument is the local time where it is an instant in a zone.
OF_LOCAL_TIME = {row.node for row in BY_FUNCTION["extract"]} | {"TemporalExpr.Date"}
