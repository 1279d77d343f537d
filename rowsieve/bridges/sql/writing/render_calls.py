"""Write calls as SQL: operators and functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from rowsieve.bridges.constant_values import text_at, text_of, whole_of
from rowsieve.bridges.functions import TypedCall, spelling_of
from rowsieve.bridges.sql.constructs.bins import bin_text
from rowsieve.bridges.sql.constructs.intervals import interval_text
from rowsieve.bridges.sql.constructs.named_zones import zone_text
from rowsieve.bridges.sql.constructs.nested_access import PLAIN_PATH
from rowsieve.bridges.sql.constructs.pattern_calls import FOUND, in_flavour
from rowsieve.bridges.sql.constructs.regexes import Flavour, from_re2
from rowsieve.bridges.sql.constructs.render_literals import quoted
from rowsieve.bridges.sql.constructs.templates import Templated, fill, written
from rowsieve.bridges.sql.constructs.time_fields import TRUNCATIONS, part_template
from rowsieve.bridges.sql.constructs.time_formats import FORMATTED, in_words
from rowsieve.bridges.sql.protocols import Writes
from rowsieve.bridges.sql.spark.read.calls_by_name import WRITTEN
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import Call, Cast, Literal, Operand
from rowsieve.types.logical import Float

_Handler: TypeAlias = Callable[[Call, Writes], tuple[str, bool] | None]
_OWN_TEMPLATES: Mapping[str, Mapping[str, str]] = {"spark": WRITTEN}  # of calls of a dialect alone
_JSON_PATHS = frozenset({"json_get", "json_get_text", "json_path", "json_path_text"})
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def call_text(call: Call, writer: Writes) -> tuple[str, bool]:
    """Write a call, and return whether it is an infix operator."""
    name, dialect = call.function, writer.dialect
    if isinstance(call, Templated):
        return written(name, call, writer)
    if (template := _OWN_TEMPLATES.get(dialect.name, {}).get(name)) is not None:
        return written(template, call, writer)
    if (in_zone := zone_text(call, writer)) is not None:
        return in_zone
    if name in _JSON_PATHS and dialect.json_operators:
        return _json(call, writer), True
    count = len(call.arguments)
    handler = _HANDLERS.get((name, count)) or _HANDLERS.get((name, None))
    if handler is not None and (spelling := handler(call, writer)) is not None:
        return spelling
    if (part := _part(call, writer)) is not None:
        return part, False
    if (spelt := _by_template(call, writer)) is not None:
        return spelt
    if dialect.writes_our_names:
        name, arguments = _named_part(call)
        if _PLAIN_NAME.fullmatch(name):
            return f"{name}({', '.join(map(writer.text, arguments))})", False
    raise UnsupportedOperation(f"the function {name!r} has no counterpart in {dialect.name} SQL")


def _concatenation(call: Call, writer: Writes) -> tuple[str, bool] | None:
    if not call.arguments[1:]:
        return None
    return " || ".join(writer.atom(item) for item in call.arguments), True


def _quotient(call: Call, writer: Writes) -> None:
    """Only check: `_by_template` writes the quotient."""
    if not writer.dialect.divides_integers and not _divides_floats(call, writer):
        raise UnsupportedOperation(
            f"{writer.dialect.name} SQL divides integers as doubles; cast the dividend to a float"
        )


def _negation(call: Call, writer: Writes) -> tuple[str, bool]:
    (argument,) = call.arguments
    operand = writer.atom(argument)
    return f"-({operand})" if isinstance(argument, Literal) else f"-{operand}", True


def _bin(call: Call, writer: Writes) -> tuple[str, bool]:
    if text := bin_text(call, writer):
        return text, False
    raise UnsupportedOperation(f"{writer.dialect.name} has no bins of this width")


def _truncation(call: Call, writer: Writes) -> tuple[str, bool] | None:
    unit = text_at(call, 0).lower()
    if unit not in TRUNCATIONS:
        return None
    return f"date_trunc({quoted(unit, writer.dialect)}, {writer.text(call.arguments[1])})", False


def _sliced(call: Call, writer: Writes) -> tuple[str, bool] | None:
    text = _slice(call, writer)
    return (text, not writer.dialect.lists.subscripts_nest) if text else None


def _named_part(call: Call) -> tuple[str, tuple[Operand, ...]]:
    """Return name and arguments of a call, `extract('year', x)` as `extract_year(x)`."""
    if call.function == "extract" and len(call.arguments) == 2:
        return f"extract_{text_at(call, 0).lower()}", call.arguments[1:]
    return call.function, call.arguments


def _part(call: Call, writer: Writes) -> str | None:
    """Write a part of a time; None for other calls."""
    name, arguments = _named_part(call)
    if not name.startswith("extract_"):
        return None
    template = part_template(name.removeprefix("extract_"), writer.dialect.name)
    if template is None or len(arguments) != 1:
        return None
    return template.format(writer.text(arguments[0]))


def _by_template(call: Call, writer: Writes) -> tuple[str, bool] | None:
    if call.function in FOUND or call.function in FORMATTED:
        put = in_flavour if call.function in FOUND else in_words
        rendered = put(call, writer.dialect.name)
        return None if rendered is None else fill(rendered, writer)
    spelling = spelling_of(call.function, writer.dialect.name)
    if (
        spelling is not None
        and spelling.reads is not None
        and not spelling.reads.holds(TypedCall(call))
    ):
        return None
    return fill(call, writer)


def _interval(call: Call, writer: Writes) -> str:
    text, dialect = interval_text(call), writer.dialect
    moves, micros = dialect.times.moves, whole_of(call.arguments[-1])
    if text is None or moves is None or call.function != moves.of(micros or 0):
        raise UnsupportedOperation(
            f"{call.function} has no counterpart in {dialect.name} SQL; cast a date to a timestamp "
            "and add a constant interval"
        )
    operand = writer.atom(call.arguments[0])
    if dialect.times.mixed_intervals:
        return f"{operand} + INTERVAL {quoted(text, dialect)}"
    pieces = [f"INTERVAL '{piece}'" for piece in re.findall(r"-?[0-9]+ [a-z]+", text)]
    return " + ".join([operand, *pieces])


def _json(call: Call, writer: Writes) -> str:
    operand, keys = writer.atom(call.arguments[0]), call.arguments[1:]
    values = [key.value for key in keys if isinstance(key, Literal)]
    text = call.function.endswith("_text")
    if len(values) != len(keys):
        raise UnsupportedOperation("a path into JSON is constant in SQL")
    if call.function.startswith("json_path"):
        plain = "{" + ",".join(str(value) for value in values) + "}"
        if not PLAIN_PATH.fullmatch(plain):
            raise UnsupportedOperation(f"the path {plain} needs quotes; use json_get")
        return f"{operand} #>{'>' if text else ''} {quoted(plain, writer.dialect)}"
    steps = [
        str(value) if isinstance(value, int) else quoted(str(value), writer.dialect)
        for value in values
    ]
    arrows = ["->"] * (len(steps) - 1) + ["->>" if text else "->"]
    return operand + "".join(f" {a} {s}" for a, s in zip(arrows, steps, strict=True))


def _regex(call: Call, writer: Writes) -> str | None:
    """Write a match in the dialect's syntax; None if it has no equivalent pattern."""
    try:
        pattern = from_re2(text_of(call.arguments[1]) or "", Flavour(writer.dialect.name))
    except ValueError:
        return None
    operand, text = call.arguments[0], quoted(pattern, writer.dialect)
    template = writer.dialect.texts.regex_match
    match_text = template.format(_inner(template, writer)(operand), text)
    # In parentheses: in Spark and DataFusion `s RLIKE 'a' = TRUE` compares the pattern with TRUE.
    return match_text if _is_call(template) else f"({match_text})"


def _is_call(template: str) -> bool:
    return template.endswith(")")


def _inner(template: str, writer: Writes) -> Callable[[Operand], str]:
    """Return the writer of a template's arguments, atomic unless it is a call."""
    return writer.text if _is_call(template) else writer.atom


def _element(call: Call, writer: Writes) -> str | None:
    place = whole_of(call.arguments[1])
    if place is None or not 1 <= place < 2**31:
        return None
    template = writer.dialect.lists.element
    values = _inner(template, writer)(call.arguments[0])
    return template.format(list=values, place=place, index=place - 1)


def _slice(call: Call, writer: Writes) -> str | None:
    """Write a slice by its first and last place; None in a dialect that has another form."""
    start, count = map(whole_of, call.arguments[1:])
    if not writer.dialect.lists.slices or start is None or count is None:
        return None
    return f"{writer.atom(call.arguments[0])}[{start}:{start + count - 1}]"


def _divides_floats(call: Call, writer: Writes) -> bool:
    sides = call.arguments[:1] if writer.dialect.float_dividends else call.arguments
    return any(isinstance(side, Cast) and isinstance(side.type, Float) for side in sides)


def _not_infix(write: Callable[[Call, Writes], str | None]) -> _Handler:
    """Make a handler from a writer of text that needs no parentheses."""

    def handler(call: Call, writer: Writes) -> tuple[str, bool] | None:
        text = write(call, writer)
        return (text, False) if text else None

    return handler


def _shift(call: Call, writer: Writes) -> tuple[str, bool]:
    return _interval(call, writer), True


# By name and count of arguments; None: any count. A handler returns None for the general forms.
_HANDLERS: Mapping[tuple[str, int | None], _Handler] = {
    ("concat_strict", None): _concatenation,
    ("divide", None): _quotient,
    ("negate", 1): _negation,
    ("date_bin", 4): _bin,
    **dict.fromkeys(
        ((name, None) for name in ("add_interval", "shift", "shift_timestamp")), _shift
    ),
    ("list_element", 2): _not_infix(_element),
    ("slice", 3): _sliced,
    ("regex_matches", 2): _not_infix(_regex),
    ("date_trunc", 2): _truncation,
}
