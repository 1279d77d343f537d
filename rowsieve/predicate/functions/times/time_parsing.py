"""Parse dates and timestamps by a constant format: `parse_timestamp(text, '%Y-%m-%d %H:%M:%S')`.

Every field has a fixed number of digits: `%Y` four, `%f` six, `%g` three, the others two; other
characters are literal. Soundness: engines also parse shorter numbers, spaces and more, each by its
own rules, so text with digits in another form raises `UnreadText`, as do DuckDB's named times. Text
of this form with an impossible day or time of day fails, as does any other text without a digit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, as_mask, null_mask
from rowsieve.predicate.functions.casting import casts, text_casts
from rowsieve.predicate.functions.casting.formats_of_times import NANOSECONDS
from rowsieve.predicate.functions.casting.text_shapes import matches, refuse
from rowsieve.predicate.functions.row import Argument, Evaluator, Function, NullRule, Signature
from rowsieve.predicate.functions.times.time_texts import format_tokens
from rowsieve.predicate.semantics import Semantics, TextReading
from rowsieve.types.logical import Date, LogicalType, String, Timestamp

FIELDS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "f": 6, "g": 3}
_NAMES = {"Y": "year", "m": "month", "d": "day", "H": "hour", "M": "minute", "S": "second"}
# DuckDB 2.0 parses these as 1900-01-01, whatever the format.
_DUCKDB_NAMES = r"(?i)^[ \t\n\v\f\r]*(-?infinity|epoch)[ \t\n\v\f\r]*$"
_COMPLETE = frozenset(map(frozenset, ("Ymd", "YmdHM", "YmdHMS", "YmdHMSf", "YmdHMSg")))


def _pattern(form: str) -> str | None:
    """Return the regular expression of a format; None if its fields do not determine a time."""
    tokens = format_tokens(form, FIELDS)
    if tokens is None:
        return None
    fields = [field for field, _ in tokens if field]
    if len(set(fields)) != len(fields) or frozenset(fields) not in _COMPLETE:
        return None
    patterns = [
        f"(?P<{_NAMES.get(field, 'fraction')}>[0-9]{{{FIELDS[field]}}})"
        if field
        else re.escape(plain)
        for field, plain in tokens
    ]
    return f"^{''.join(patterns)}$"


def _resolver(
    result: LogicalType, *, bare: bool = False
) -> Callable[[Sequence[Argument]], Signature | None]:
    """Resolve text and a constant format; `bare`: also text alone, which is parsed like a cast."""

    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        if not arguments or arguments[0].type not in (None, String()):
            return None
        if bare and len(arguments) == 1:
            return Signature((String(),), result)
        form = arguments[1].constant if len(arguments) == 2 else None
        if not isinstance(form, str) or _pattern(form) is None:
            return None
        return Signature((String(), String()), result, form)

    return resolve


def _parse(arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics) -> Computed:
    values, target = arguments[0], signature.result
    if not signature.option:
        return casts.cast(values, String(), target, semantics)
    pattern = _pattern(signature.option)
    assert pattern is not None
    names = [*_NAMES.values(), "fraction"]
    parts = text_casts.with_parts(pc.extract_regex(values, pattern=pattern), names)
    micros, good = text_casts.local_micros(parts)
    odd = null_mask(parts) & matches(values, "[0-9]")
    odd |= as_mask(pc.equal(parts.field("second"), "60"))
    odd |= as_mask(pc.equal(parts.field("year"), "0000"))
    if semantics.text_reading is TextReading.POSTGRES:
        odd |= as_mask(pc.equal(values, ""))
    if semantics.text_reading is TextReading.DUCKDB:
        odd |= matches(values, _DUCKDB_NAMES)
    if semantics.text_reading is TextReading.DATAFUSION and isinstance(target, Timestamp):
        odd |= good & (abs(micros) > NANOSECONDS)
    if semantics.text_reading is not TextReading.STRICT:  # this engine parses only this form
        refuse(values, odd, target, semantics.text_reading, form=signature.option)
    if isinstance(target, Date):
        return text_casts.days_of(micros, good, values, target)
    if isinstance(target, Timestamp) and target.utc:
        micros, good = text_casts.in_session(micros, good, good, semantics)
    return text_casts.moments(micros, good, values, target)


def _failures_as_null(evaluate: Evaluator) -> Evaluator:
    return lambda arguments, signature, semantics: replace(
        evaluate(arguments, signature, semantics), failed=None
    )


_USAGE = "(text, constant format of %Y %m %d, perhaps %H %M %S and %f or %g)"

ROWS = (
    Function(
        f"parse_timestamp{_USAGE}",
        _resolver(Timestamp(), bare=True),
        _parse,
        nulls=NullRule.STRICT,
    ),
    Function(
        f"try_parse_timestamp{_USAGE}",
        _resolver(Timestamp()),
        _failures_as_null(_parse),
        nulls=NullRule.PARTIAL,
    ),
    Function(
        f"parse_date{_USAGE}",
        _resolver(Date(), bare=True),
        _parse,
        nulls=NullRule.STRICT,
    ),
    Function(
        f"parse_instant{_USAGE}",
        _resolver(Timestamp(utc=True)),
        _parse,
        nulls=NullRule.STRICT,
    ),
)
