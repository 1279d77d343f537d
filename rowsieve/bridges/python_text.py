"""Format expressions of engines as Python code: the calls that built them.

A writer gets the modules of its engine from `recorded`. Within `recording` these are wrapped: each
call is executed, and its result carries the text of the call and the imports that it needs.

Soundness: the text consists of the calls that built the object, so it builds an equal one; a value
without an exact text raises UnsupportedOperation for its condition.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import math
import operator
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

import pyarrow as pa

from rowsieve.errors import UnsupportedOperation

Text: TypeAlias = tuple[str, frozenset[str]]
"""A Python expression, and the import statements that it needs."""

_RECORDS: ContextVar[bool] = ContextVar("records", default=False)
_NOTHING: Final[frozenset[str]] = frozenset()
_PYARROW: Final = frozenset({"import pyarrow as pa"})
_PLAIN_TYPES: Final[Mapping[pa.DataType, str]] = {
    pa.bool_(): "bool_",
    pa.float32(): "float32",
    pa.float64(): "float64",
    pa.date32(): "date32",
    pa.month_day_nano_interval(): "month_day_nano_interval",
}


@contextmanager
def recording() -> Iterator[None]:
    """Context in which modules from `recorded` record the calls on them."""
    token = _RECORDS.set(True)
    try:
        yield
    finally:
        _RECORDS.reset(token)


def is_recording() -> bool:
    """Whether calls are being recorded as text."""
    return _RECORDS.get()


def recorded(module: Any, name: str = "", imports: str = "") -> Any:
    """Return the module, wrapped within `recording`; without a name, its members are imported.

    `imports` is the statement that binds `name` to the module.
    """
    return Recorded(module, name, frozenset({imports} - {""})) if _RECORDS.get() else module


def _recording(sign: str, apply: Callable[[Any, Any], Any]) -> Callable[[Recorded, Any], Recorded]:
    """Return the recorded form of an operator."""
    return lambda left, right: left._with(sign, right, apply)


class Recorded:
    """An object and the text that builds it; calls are forwarded to the object and recorded."""

    __slots__ = ("bare", "imports", "is_operation", "text", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        value: Any,
        text: str,
        imports: frozenset[str],
        *,
        is_operation: bool = False,
        bare: str | None = None,
    ) -> None:
        self.value = value
        self.text = text
        self.imports = imports
        self.is_operation = is_operation
        self.bare = bare  # the text of a constant that may replace it as a right operand

    def __getattr__(self, name: str) -> Recorded:
        value = getattr(self.value, name)
        if not self.text:
            return Recorded(value, name, frozenset({f"from {self.value.__name__} import {name}"}))
        return Recorded(value, f"{_grouped(self)}.{name}", self.imports)

    def __call__(self, *arguments: Any, **named: Any) -> Recorded:  # noqa: D102 - the object's
        value = self.value(
            *map(_value, arguments), **{name: _value(each) for name, each in named.items()}
        )
        takes_any = self.text == "pc.scalar"  # pyarrow converts any value to a scalar
        written = [("", (takes_any and natural(each)) or spelled(each)) for each in arguments]
        written += [(f"{name}=", spelled(each)) for name, each in named.items()]
        inner = ", ".join(f"{name}{text}" for name, (text, _) in written)
        imports = self.imports.union(*(modules for _, (_, modules) in written))
        bare = inner if takes_any and not inner.startswith("pa.") else None
        return Recorded(value, f"{self.text}({inner})", imports, bare=bare)

    def __getitem__(self, key: Any) -> Recorded:
        text, imports = spelled(key)
        return Recorded(
            self.value[_value(key)], f"{_grouped(self)}[{text}]", self.imports | imports
        )

    def __invert__(self) -> Recorded:
        return Recorded(~self.value, f"~{_grouped(self)}", self.imports, is_operation=True)

    def __neg__(self) -> Recorded:
        return Recorded(-self.value, f"-{_grouped(self)}", self.imports, is_operation=True)

    __and__ = _recording("&", operator.and_)
    __or__ = _recording("|", operator.or_)
    __add__ = _recording("+", operator.add)
    __sub__ = _recording("-", operator.sub)
    __mul__ = _recording("*", operator.mul)
    __truediv__ = _recording("/", operator.truediv)
    __mod__ = _recording("%", operator.mod)
    __eq__ = _recording("==", operator.eq)  # type: ignore[assignment]
    __ne__ = _recording("!=", operator.ne)  # type: ignore[assignment]
    __lt__ = _recording("<", operator.lt)
    __le__ = _recording("<=", operator.le)
    __gt__ = _recording(">", operator.gt)
    __ge__ = _recording(">=", operator.ge)

    def _with(self, sign: str, other: Any, apply: Callable[[Any, Any], Any]) -> Recorded:
        right, imports = spelled(other)
        if isinstance(other, Recorded):
            bare = other.bare if sign[0] in "=!<>" else None
            right = bare or _grouped(other)
        return Recorded(
            apply(self.value, _value(other)),
            f"{_grouped(self)} {sign} {right}",
            self.imports | imports,
            is_operation=True,
        )


def spelled(value: Any) -> Text:
    """Format a value or a recorded object as Python text; UnsupportedOperation if impossible."""
    match value:
        case Recorded():
            plain = _constant(value.value)
            return (value.text, value.imports) if plain is None else plain
        case pa.DataType():
            return _type(value)
        case pa.Scalar():
            return _scalar(value)
        case pa.Array():
            return _array(value)
        case list() | tuple() | set() | frozenset():
            return _members(value)
    spelling = _constant(value)
    if spelling is None and dataclasses.is_dataclass(value):
        return _dataclass(value)
    if spelling is None:
        raise UnsupportedOperation(f"a {type(value).__name__} has no form in Python text")
    return spelling


def _value(argument: Any) -> Any:
    """Return the object of a recorded one, also inside lists."""
    if isinstance(argument, Recorded):
        return argument.value
    if isinstance(argument, list | tuple):
        return type(argument)(map(_value, argument))
    return argument


def _grouped(recorded_value: Recorded) -> str:
    return f"({recorded_value.text})" if recorded_value.is_operation else recorded_value.text


def _constant(value: Any) -> Text | None:
    """Format a Python constant or a polars type; None for other values."""
    match value:
        case None | bool() | int() | str() | bytes():
            return repr(value), _NOTHING
        case float():
            if math.isnan(value) and math.copysign(1, value) < 0:
                return '-float("nan")', _NOTHING
            return (repr(value) if math.isfinite(value) else f'float("{value}")'), _NOTHING
        case decimal.Decimal():
            return f"decimal.{value!r}", frozenset({"import decimal"})
        case uuid.UUID():
            return f"uuid.{value!r}", frozenset({"import uuid"})
        case datetime.datetime() if value.tzinfo not in (None, datetime.UTC):
            text, imports = repr(value), frozenset({"import datetime", "import zoneinfo"})
            return (text, imports) if "zoneinfo.ZoneInfo(" in text else None
        case datetime.date() | datetime.time() | datetime.timedelta():
            return repr(value), frozenset({"import datetime"})
    if any("polars.datatypes" in kind.__module__ for kind in type(value).__mro__):
        text = re.sub(
            r"(?<![\w'/])(?=[A-Z])(?!None)", "pl.", repr(value)
        )  # not within a zone's name
        return text, frozenset({"import polars as pl"})
    return None


def _members(values: Any) -> Text:
    written = [spelled(each) for each in values]
    inner = ", ".join(text for text, _ in written)
    imports = _NOTHING.union(*(modules for _, modules in written))
    match values:
        case list():
            return f"[{inner}]", imports
        case tuple():
            return (f"({inner},)" if len(written) == 1 else f"({inner})"), imports
        case _:
            return (f"{{{inner}}}" if written else "set()"), imports


def _dataclass(value: Any) -> Text:
    """Format a Spark filter, or another object that is defined by its fields."""
    written = [(f.name, spelled(getattr(value, f.name))) for f in dataclasses.fields(value)]
    kind = type(value)
    inner = ", ".join(f"{name}={text}" for name, (text, _) in written)
    imports = frozenset({f"from {kind.__module__} import {kind.__name__}"})
    return f"{kind.__name__}({inner})", imports.union(*(modules for _, (_, modules) in written))


def _type(type_: pa.DataType) -> Text:
    types = pa.types
    if (name := _PLAIN_TYPES.get(type_)) is not None:
        return f"pa.{name}()", _PYARROW
    if types.is_timestamp(type_):
        zone = "" if type_.tz is None else f", {type_.tz!r}"
        return f"pa.timestamp({type_.unit!r}{zone})", _PYARROW
    if types.is_time64(type_):
        return f"pa.time64({type_.unit!r})", _PYARROW
    if types.is_decimal128(type_) or types.is_decimal256(type_):
        return f"pa.decimal{type_.bit_width}({type_.precision}, {type_.scale})", _PYARROW
    if types.is_fixed_size_binary(type_):
        return f"pa.binary({type_.byte_width})", _PYARROW
    if types.is_integer(type_) or types.is_string(type_) or types.is_binary(type_):
        return f"pa.{type_}()", _PYARROW
    raise UnsupportedOperation(f"the Arrow type {type_} has no form in Python text")


def _scalar(scalar: pa.Scalar) -> Text:
    """Return the bare number or boolean if Arrow infers this type for it."""
    if type(scalar) in _BARE and (alone := natural(scalar)) is not None:
        return alone
    if scalar.type == pa.month_day_nano_interval() and scalar.is_valid:
        return f"pa.scalar({tuple(scalar.as_py())!r}, {_type(scalar.type)[0]})", _PYARROW
    type_, imports = _type(scalar.type)
    try:
        plain = scalar.as_py()
        if pa.scalar(plain, scalar.type).equals(scalar) or pa.types.is_floating(scalar.type):
            text, modules = spelled(plain)
            return f"pa.scalar({text}, {type_})", imports | modules
    except (ValueError, OverflowError, pa.ArrowException):
        pass
    text, imports = _array(pa.array([scalar], scalar.type))
    return f"{text}[0]", imports


def natural(scalar: pa.Scalar) -> Text | None:
    """Return the bare value if Arrow infers this scalar from it."""
    try:
        plain = scalar.as_py()
        again = pa.scalar(plain)
    except (ValueError, OverflowError, pa.ArrowException):
        return None
    same = again.equals(scalar) or (isinstance(plain, float) and again.type == scalar.type)
    return _constant(plain) if same and plain is not None else None


_BARE: Final = (pa.BooleanScalar, pa.Int64Scalar, pa.DoubleScalar)


def _array(values: pa.Array) -> Text:
    """Format an array by its values, or by their integers if Python cannot represent them."""
    text, imports = _type(values.type)
    try:
        members, modules = spelled(values.to_pylist())
        again = pa.array(values.to_pylist(), values.type)
        if again.equals(values) or pa.types.is_floating(values.type):
            return f"pa.array({members}, {text})", imports | modules
    except (ValueError, OverflowError, pa.ArrowException):
        pass
    storage = pa.int32() if pa.types.is_date32(values.type) else pa.int64()
    members, _ = spelled(values.view(storage).to_pylist())
    return f"pa.array({members}, pa.{storage}()).view({text})", imports
