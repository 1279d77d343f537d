"""Dates and times as text of a constant format: `format_time(time, '%Y-%m-%d')`.

Every field has a fixed number of digits: `%Y` four, `%j` three, `%m %d %H %M %S` two; all else
stands for itself, `%%` for a percent sign. Years outside 1 to 9999 have no such text, and fail.
Where each field follows the next coarser one, from the year on, texts sort as times do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.predicate.arrays import Computed, filled, null_mask, without
from rowsieve.predicate.functions.days import Days, by_day, first_of_month, months_of
from rowsieve.predicate.functions.row import Argument, Direction, Function, NullRule, Signature
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.days import DAY_US
from rowsieve.types.logical import Date, String, Timestamp

_FIRST, _LAST = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_SECOND = 1_000_000
_PIECE = re.compile(r"%(.)|([^%]+)", re.DOTALL)
_WIDTHS: Mapping[str, int] = {"Y": 4, "m": 2, "d": 2, "j": 3, "H": 2, "M": 2, "S": 2}
_CLOCK: Mapping[str, tuple[int, int]] = {
    "H": (3_600 * _SECOND, 24),
    "M": (60 * _SECOND, 60),
    "S": (_SECOND, 60),
}
_ORDERED = ("YmdHMS", "YjHMS")


def pieces_of(text: str) -> list[tuple[str, str]] | None:
    """Fields and texts in turn, one of each pair empty; None if it is no such format."""
    found = [(match[1] or "", match[2] or "") for match in _PIECE.finditer(text)]
    if sum(len(field) + len(plain) + bool(field) for field, plain in found) != len(text):
        return None
    made = [("", "%") if field == "%" else (field, plain) for field, plain in found]
    return made if all(not field or field in _WIDTHS for field, _ in made) else None


def _resolve(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2 or not isinstance(arguments[1].constant, str):
        return None
    type_, pieces = arguments[0].type, pieces_of(arguments[1].constant)
    if pieces is None or not (isinstance(type_, Date) or type_ == Timestamp()):
        return None
    if isinstance(type_, Date) and any(field in _CLOCK for field, _ in pieces if field):
        return None
    return Signature((type_, String()), String(), arguments[1].constant)


def _format(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    values = arguments[0]
    numbers = filled(values).astype(np.int64)
    dated = isinstance(signature.arguments[0], Date)
    days, clock = (numbers, np.zeros_like(numbers)) if dated else np.divmod(numbers, DAY_US)
    nulls = null_mask(values)
    failed = ((days < _FIRST) | (days > _LAST)) & ~nulls
    days = np.where(failed, 0, days)
    columns: list[npt.NDArray[np.uint8]] = []
    for field, plain in pieces_of(signature.option) or ():
        if field:
            columns.append(_digits(_field(field, days, clock), _WIDTHS[field]))
        else:
            encoded = np.frombuffer(plain.encode(), np.uint8)
            columns.append(np.broadcast_to(encoded, (len(days), len(encoded))))
    text = np.hstack(columns) if columns else np.empty((len(days), 0), np.uint8)
    width = text.shape[1]
    places = np.arange(0, width * len(days) + 1, max(width, 1), dtype=np.int32)
    if not width:
        places = np.zeros(len(days) + 1, np.int32)
    made = pa.Array.from_buffers(
        pa.string(), len(days), [None, pa.py_buffer(places), pa.py_buffer(text.tobytes())]
    )
    return Computed(without(made, nulls | failed), failed if failed.any() else None)


def _field(field: str, days: Days, clock: Days) -> Days:
    if field in _CLOCK:
        length, count = _CLOCK[field]
        return clock // length % count
    return by_day(_OF_DAYS[field], days)


_OF_DAYS: Mapping[str, Callable[[Days], Days]] = {
    "Y": lambda days: months_of(days) // 12 + 1970,
    "m": lambda days: months_of(days) % 12 + 1,
    "d": lambda days: days - first_of_month(months_of(days)) + 1,
    "j": lambda days: days - first_of_month(months_of(days) // 12 * 12) + 1,
}


def _digits(numbers: Days, width: int) -> npt.NDArray[np.uint8]:
    powers = 10 ** np.arange(width - 1, -1, -1)
    digits: npt.NDArray[np.uint8] = (numbers[:, None] // powers % 10 + ord("0")).astype(np.uint8)
    return digits


def _direction(signature: Signature) -> tuple[Direction, ...]:
    fields = "".join(field for field, _ in pieces_of(signature.option) or ())
    rises = any(order.startswith(fields) for order in _ORDERED)
    return (Direction.INCREASING if rises else Direction.NONE, Direction.NONE)


ROWS = (
    Function(
        "format_time",
        "format_time(date or timestamp without a zone, constant format of %Y %m %d %j %H %M %S)",
        _resolve,
        _format,
        direction=_direction,
        nulls=NullRule.STRICT,
    ),
)
