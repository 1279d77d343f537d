"""`text_instant('zone', text)`: parse an instant by Spark's rules, in a session of that zone.

Binding replaces a cast of text to an instant by it if the session's zone is not UTC. Text without a
zone is a local time of the session: a repeated time is the earlier instant, a skipped one is
shifted. `try_text_instant` is NULL for invalid text. Neither is monotone.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rowsieve.predicate.arrays import Computed
from rowsieve.predicate.functions.casting.spark_times import read_moments
from rowsieve.predicate.functions.row import (
    Argument,
    Function,
    NullRule,
    Signature,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import String, Timestamp
from rowsieve.types.time_zones import zone_name

_INSTANT = Timestamp(utc=True)


def _resolve(arguments: Sequence[Argument]) -> Signature | None:
    if len(arguments) != 2 or not isinstance(arguments[1].type, String | None):
        return None
    name = arguments[0].constant
    if not isinstance(name, str):
        return None
    return Signature((String(), String()), _INSTANT, zone_name(name))


def _evaluate(arguments: Sequence[pa.Array], signature: Signature, _: Semantics) -> Computed:
    return read_moments(arguments[1], _INSTANT, signature.option)


def _try(arguments: Sequence[pa.Array], signature: Signature, semantics: Semantics) -> Computed:
    return Computed(_evaluate(arguments, signature, semantics).values)


# Neither claims that it cannot fail, because some texts raise UnreadText.
ROWS = (
    Function(
        "text_instant('zone', text)",
        _resolve,
        _evaluate,
        nulls=NullRule.STRICT,
    ),
    Function(
        "try_text_instant('zone', text)",
        _resolve,
        _try,
        nulls=NullRule.PARTIAL,
    ),
)
