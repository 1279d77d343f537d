"""Write calls as polars' expressions, by the rows of `functions.polars`.

Integers that must not wrap around are computed in 128 bits and cast back.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rowsieve.bridges.constant_values import text_of
from rowsieve.bridges.functions import Use, polars
from rowsieve.bridges.polars_exprs import zones
from rowsieve.bridges.polars_exprs.write import Writer
from rowsieve.bridges.sql.constructs.regexes import Flavour, from_re2
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


class CallWriter(Writer):
    """Writes trees, calls included."""

    def call(self, node: Call) -> Expr:
        """Write a function call; `UnsupportedOperation` with the reason if impossible."""
        name, arguments = node.function, node.arguments
        types = [type_of(argument) for argument in arguments]
        if name in _ARITHMETIC:
            return self._arithmetic(name, arguments, types)
        if name in _MOVES:
            return self._moved(node, types[0])
        if name in ("local_time", "instant", "try_instant"):
            in_zone: Expr = zones.written(node, self.operand(arguments[1]))
            return in_zone
        made = self._known(node, types)
        result = resolve(name, known_of(arguments, types))[1].result
        cast: Expr = made if result in (types[0], Bool()) else made.cast(self.dtype(result))
        return cast

    def _known(self, node: Call, types: Sequence[LogicalType]) -> Any:
        name, arguments = node.function, node.arguments
        if name == "nullif":
            return self._nullif(arguments, types)
        if name == "regex_matches":
            return self._matched(arguments)
        if name in _TRIMS and len(arguments) == 1:
            arguments, types = (*arguments, Literal(" ", String())), (*types, String())
        if name == "length" and not isinstance(types[0], String):
            name = "list_length"
        use = Use(Call(name, arguments), types, types[0])
        rows = polars.BY_FUNCTION.get(name)
        if rows is None:
            raise UnsupportedOperation(f"the function {name!r} has no counterpart in polars")
        fitting = [
            row for row in rows if use.field in (row.first or (use.field,)) and row.case.holds(use)
        ]
        if not fitting:
            texts = " or ".join(dict.fromkeys(row.text for row in rows))
            raise UnsupportedOperation(f"{name} means the same there only for {texts}")
        for row in fitting:
            if row.rule is None or row.rule.holds(self.semantics):
                return self._method(row, arguments)
        raise UnsupportedOperation(fitting[0].rule.reason if fitting[0].rule else "")

    def _method(self, row: polars.Method, arguments: Sequence[Operand]) -> Any:
        """Write a call by its row."""
        given = arguments[1:] if row.first else arguments
        written: list[Any] = [
            item.value if row.plain and place and isinstance(item, Literal) else self.operand(item)
            for place, item in enumerate(given)
        ]
        if row.from_zero:
            written[1] -= 1
        if row.first and (word := row.first[Use(Call(row.function, tuple(arguments))).field]):
            written.append(word)
        if row.of_module:
            return getattr(self.polars, row.name)(*written, **row.keywords)
        return attrgetter(row.name)(written[0])(*written[1:], **row.keywords)

    def _nullif(self, arguments: Sequence[Operand], types: Sequence[LogicalType]) -> Expr:
        if types[0] != types[1] or isinstance(types[0], Float):
            raise UnsupportedOperation("polars has nullif of one type only, and not of floats")
        left, right = map(self.operand, arguments)
        return self.choose(left == right, self.constant(Literal(None, types[0])), left)

    def _matched(self, arguments: Sequence[Operand]) -> Any:
        """Write a regular expression in Rust's syntax."""
        pattern = text_of(arguments[1])
        if len(arguments) > 2 or pattern is None:
            raise UnsupportedOperation("a regular expression that is not one constant")
        try:
            rust = from_re2(pattern, Flavour.RUST)
        except ValueError as error:
            raise UnsupportedOperation(f"a regular expression: {error}") from error
        text: Any = self.operand(arguments[0])
        return text.str.contains(rust)

    def _moved(self, node: Call, source: LogicalType) -> Expr:
        parts = [item.value for item in node.arguments[1:] if isinstance(item, Literal)]
        known = len(parts) == 3 and all(type(part) is int and abs(part) < 2**53 for part in parts)
        keeps = node.function != "add_interval" and not (isinstance(source, Date) and parts[-1])
        if not known or not (keeps or isinstance(source, Timestamp)):
            raise UnsupportedOperation("only a constant interval can be added in polars")
        made: Any = self.operand(node.arguments[0])
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
            raise UnsupportedOperation(f"{name} of {shown} may give other values in polars")
        if isinstance(type_, Float):
            if self.semantics.float_division_by_zero is not OnFailure.IEEE:
                raise UnsupportedOperation("float division by zero and overflow differ in polars")
            if name == "modulo":
                raise UnsupportedOperation("modulo of floats differs in polars")
            sides = [self.operand(item) for item in arguments]
            floats: Expr = self._computed(name, sides, whole=False)
            return floats
        values: list[Any] = [self.operand(item) for item in arguments]
        semantics = self.semantics
        if name in ("divide", "modulo"):
            divisor = arguments[1].value if isinstance(arguments[1], Literal) else 0
            fails = semantics.integer_division_by_zero is not OnFailure.NULL
            if fails and not divisor:
                raise UnsupportedOperation("division by zero is NULL in polars")
        if name == "negate":  # which Int128 does not have
            values, name = [self.constant(Literal(0, type_)), *values], "subtract"
        if semantics.integer_overflow is OnFailure.WRAP:
            wrapped: Expr = self._computed(name, values, whole=True)
            return wrapped
        if name == "multiply" and not type_.signed and type_.bits == 64:
            raise UnsupportedOperation("products of uint64 have more than 128 bits")
        wide = [value.cast(self.polars.Int128) for value in values]
        strict = semantics.integer_overflow is OnFailure.ERROR
        made = self._computed(name, wide, whole=True)
        checked: Expr = made.cast(self.dtype(type_), strict=strict)
        return checked

    @staticmethod
    def _computed(name: str, values: Sequence[Any], *, whole: bool) -> Any:
        """Write the operation; integer division is `truncdiv`, which truncates."""
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
