"""Abstract values of casts that are sound under every `Semantics`."""

from __future__ import annotations

from dataclasses import replace

from rowsieve.predicate.arrays import Mask, without
from rowsieve.predicate.interpretation.abstract import AbstractValue
from rowsieve.predicate.interpretation.abstract_calls import cast_value
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Float, LogicalType


def cast_soundly(value: AbstractValue, target: LogicalType) -> AbstractValue:
    """Cast a value; where the cast may fail, the result may be an error or NULL."""
    result = cast_value(value, target, Semantics.SQL, quiet=False)
    return replace(result, null=result.null | result.fails)


def widen_elsewhere(value: AbstractValue, where: Mask) -> AbstractValue:
    """Keep the value where `where` is True; elsewhere allow any value, NULL or an error."""
    elsewhere = ~where
    unknown = value.present & elsewhere
    nan = value.nan | unknown if isinstance(value.type, Float) else value.nan
    return replace(
        value,
        lower=without(value.lower, elsewhere),
        upper=without(value.upper, elsewhere),
        null=value.null | unknown,
        fails=value.fails | unknown,
        nan=nan,
    )
