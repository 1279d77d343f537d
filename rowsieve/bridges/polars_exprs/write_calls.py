"""Calls of our functions as polars' expressions, by the rows of `table.FUNCTIONS`.

Whole numbers are computed in 128 bits and cast back where the semantics do not let them wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rowsieve.bridges.functions import Use, polars
from rowsieve.bridges.polars_exprs import table, zones
from rowsieve.bridges.polars_exprs.operands import check_divisor
from rowsieve.bridges.polars_exprs.write import Writer
from rowsieve.bridges.sql.regexes import Flavour, from_re2
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.functions.registry import known_of, resolve
from rowsieve.predicate.ir import Call, Literal, Operand
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import OnFailure
from rowsieve.types.logical import Bool, Date, Float, Int, LogicalType, String, Timestamp, type_name

if TYPE_CHECKING:
    from polars import Expr

_ARITHMETIC = ("add", "subtract", "multiply", "divide", "modulo", "negate")
_TRIMS = ("trim", "ltrim", "rtrim")
_MOVES = ("add_interval", "shift", "shift_timestamp")


def written(writer: Writer, node: Call) -> Expr:
    """The call, or `UnsupportedOperation` with the reason."""
    return _CallWriter(writer).write(node)


class _CallWriter:
    """Writes the calls of one writer's trees."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def write(self, node: Call) -> Expr:
        """The call, or `UnsupportedOperation` with the reason."""
        name, arguments = node.function, node.arguments
        types = [type_of(argument) for argument in arguments]
        if name in _ARITHMETIC:
            return self._arithmetic(name, arguments, types)
        if name in _MOVES:
            return self._moved(node, types[0])
        if name in ("local_time", "instant", "try_instant"):
            in_zone: Expr = zones.written(node, self._writer.operand(arguments[1]))
            return in_zone
        made = self._known(name, arguments, types)
        if made is None:
            raise UnsupportedOperation(f"the function {name!r} has no counterpart there")
        result = resolve(name, known_of(arguments, types))[1].result
        cast: Expr = made if result in (types[0], Bool()) else made.cast(self._writer.dtype(result))
        return cast

    def _known(self, name: str, arguments: Sequence[Operand], types: Sequence[LogicalType]) -> Any:
        value: Any = self._writer.operand
        texts = all(isinstance(type_, String) for type_ in types)
        constants = [item.value if isinstance(item, Literal) else None for item in arguments]
        if name in ("lower", "upper") and not self._writer.semantics.full_case:
            raise UnsupportedOperation("a letter may become several in the other case there")
        if name in ("floor", "ceil", "abs"):
            self._check_floats()
        if name in _TRIMS and len(arguments) == 1:
            arguments, types = [*arguments, Literal(" ", String())], [*types, String()]
        if name == "length" and not texts:
            name = "list_length"
        if (method := polars.BY_FUNCTION.get(name)) is not None:
            return self._method(method, arguments, types)
        match name:
            case "round":
                self._check(isinstance(types[0], Float) and len(types) == 1, "of floats")
                self._check_floats()
                even = self._writer.semantics.rounds_half_to_even
                mode = "half_to_even" if even else "half_away_from_zero"
                return value(arguments[0]).round(0, mode=mode)
            case "nullif":
                self._same(name, types)
                self._check(not isinstance(types[0], Float), "not of floats")
                left, right = map(value, arguments)
                null = self._writer.constant(Literal(None, types[0]))
                return self._writer.choose(left == right, null, left)
            case "regex_matches":
                return self._matched(arguments, constants)
            case "concat" | "concat_strict":
                self._check(texts, "of text")
                parts = list(map(value, arguments))
                return self._writer.polars.concat_str(parts, ignore_nulls=name == "concat")
            case "list_element":
                place = constants[1]
                self._check(type(place) is int and 1 <= place < 2**31, "of a constant place from 1")
                assert isinstance(place, int)
                return value(arguments[0]).list.get(place - 1, null_on_oob=True)
            case "date_trunc" | "extract":
                return self._temporal(name, str(constants[0]).lower(), arguments[1], types[1])
        return self._text(name, arguments, constants) if texts or name == "substr" else None

    def _method(
        self, method: polars.Method, arguments: Sequence[Operand], types: Sequence[LogicalType]
    ) -> Any:
        """A call by its row of the table."""
        holds = method.case.holds(Use(Call(method.function, tuple(arguments)), types, types[0]))
        self._check(holds, f"for {method.case.text}")
        written = [
            item.value
            if method.plain and place and isinstance(item, Literal)
            else self._writer.operand(item)
            for place, item in enumerate(arguments)
        ]
        if method.of_module:
            return getattr(self._writer.polars, method.name)(*written)
        return attrgetter(method.name)(written[0])(*written[1:])

    def _matched(self, arguments: Sequence[Operand], constants: Sequence[Any]) -> Any:
        """A regular expression in Rust's flavour."""
        self._check(len(arguments) == 2 and isinstance(constants[1], str), "of constant patterns")
        try:
            pattern = from_re2(constants[1], Flavour.RUST)
        except ValueError as error:
            raise UnsupportedOperation(f"a regular expression: {error}") from error
        value: Any = self._writer.operand(arguments[0])
        return value.str.contains(pattern)

    def _text(self, name: str, arguments: Sequence[Operand], constants: Sequence[Any]) -> Any:
        value: Any = self._writer.operand
        text = value(arguments[0]).str
        rest = constants[1:]
        if name == "contains":
            return text.contains(value(arguments[1]), literal=True)
        if name == "replace":
            self._check(bool(rest[0]) and isinstance(rest[1], str), "of constant text")
            return text.replace_all(*rest, literal=True)
        if name == "substr":
            whole = all(type(number) is int for number in rest)
            self._check(whole and rest[0] >= 1 and rest[-1] >= 0, "of constants from 1 and 0")
            return text.slice(rest[0] - 1, *rest[1:])
        return None

    def _temporal(self, name: str, unit: str, moment: Operand, type_: LogicalType) -> Any:
        value: Any = self._writer.operand(moment)
        if name == "extract":
            self._check(unit in table.PARTS, f"of {', '.join(table.PARTS)}")
            self._check(
                isinstance(type_, Timestamp) or unit not in ("hour", "minute"), "of timestamps"
            )
            return getattr(value.dt, table.PARTS[unit])()
        self._check(unit in table.UNITS, f"to {', '.join(table.UNITS)}")
        self._check(isinstance(type_, Timestamp), "of timestamps")
        return value.dt.truncate(table.UNITS[unit])

    def _moved(self, node: Call, source: LogicalType) -> Expr:
        parts = [item.value for item in node.arguments[1:] if isinstance(item, Literal)]
        known = len(parts) == 3 and all(type(part) is int and abs(part) < 2**53 for part in parts)
        keeps = node.function != "add_interval" and not (isinstance(source, Date) and parts[-1])
        if not known or not (keeps or isinstance(source, Timestamp)):
            raise UnsupportedOperation("only a constant interval can be added there")
        made: Any = self._writer.operand(node.arguments[0])
        for part, unit in zip(parts, ("mo", "d", "us"), strict=True):
            if part:
                made = made.dt.offset_by(f"{part!r}{unit}")
        expression: Expr = made
        return expression

    # Arithmetic

    def _arithmetic(
        self, name: str, arguments: Sequence[Operand], types: Sequence[LogicalType]
    ) -> Expr:
        type_ = types[0]
        if any(other != type_ for other in types) or not isinstance(type_, Int | Float):
            shown = ", ".join(map(type_name, types))
            raise UnsupportedOperation(f"{name} of {shown} may give other values there")
        if isinstance(type_, Float):
            self._check_floats()
            self._check(name != "modulo", "not of floats")
            if name == "divide":
                check_divisor(arguments[1], type_)
            sides = [self._writer.operand(item) for item in arguments]
            floats: Expr = self._computed(name, sides, whole=False)
            return floats
        values: list[Any] = [self._writer.operand(item) for item in arguments]
        semantics = self._writer.semantics
        if name in ("divide", "modulo"):
            divisor = arguments[1].value if isinstance(arguments[1], Literal) else 0
            fails = semantics.integer_division_by_zero is not OnFailure.NULL
            if fails and not divisor:
                raise UnsupportedOperation("what is divided by zero is NULL there")
        if name == "negate":  # which Int128 does not have
            values, name = [self._writer.constant(Literal(0, type_)), *values], "subtract"
        if semantics.integer_overflow is OnFailure.WRAP:
            wrapped: Expr = self._computed(name, values, whole=True)
            return wrapped
        if name == "multiply" and not type_.signed and type_.bits == 64:
            raise UnsupportedOperation("products of uint64 have more than 128 bits")
        wide = [value.cast(self._writer.polars.Int128) for value in values]
        strict = semantics.integer_overflow is OnFailure.ERROR
        made = self._computed(name, wide, whole=True)
        checked: Expr = made.cast(self._writer.dtype(type_), strict=strict)
        return checked

    @staticmethod
    def _computed(name: str, values: Sequence[Any], *, whole: bool) -> Any:
        """The operation; of whole numbers division is towards zero, which is truncdiv there."""
        match name:
            case "divide" if whole:
                return values[0].truncdiv(values[1])
            case "modulo":
                return values[0] - values[0].truncdiv(values[1]) * values[1]
            case "add":
                return values[0] + values[1]
            case "subtract":
                return values[0] - values[1]
            case "multiply":
                return values[0] * values[1]
            case "divide":
                return values[0] / values[1]
            case _:
                return -values[0]

    # Checks

    def _check_floats(self) -> None:
        if self._writer.semantics.float_division_by_zero is not OnFailure.IEEE:
            raise UnsupportedOperation("floats divided by zero and out of range differ there")

    def _same(self, name: str, types: Sequence[LogicalType]) -> None:
        if any(type_ != types[0] for type_ in types):
            shown = ", ".join(map(type_name, types))
            raise UnsupportedOperation(f"{name} of {shown}: cast all to one type")

    @staticmethod
    def _check(holds: object, note: str) -> None:
        if not holds:
            raise UnsupportedOperation(f"it means the same there only {note}")
