"""Spellings of the functions that choose among their arguments."""

from __future__ import annotations

from rowsieve.bridges.functions.arguments import not_floats, not_floats_or_text, one_type
from rowsieve.bridges.functions.row import Absent, function

_NULLS = Absent("its result is NULL where an argument is NULL")

ROWS = (
    function("coalesce", "coalesce({0}, {rest})", one_type),
    function("nullif", "nullif({0}, {1})", not_floats),
    *(
        function(
            name,
            f"{name}({{0}}, {{rest}})",
            not_floats,
            postgres=not_floats_or_text,
            trino=_NULLS,
        )
        for name in ("greatest", "least")
    ),
)
