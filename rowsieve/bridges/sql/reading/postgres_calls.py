"""Functions of PostgreSQL: `age`, and those without a value here, refused with what to write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rowsieve.bridges.sql.protocols import Reads
from rowsieve.predicate.ir import Call, Operand

_RANGES: Final = ("int4", "int8", "num", "ts", "tstz", "date")
_REASONS: Mapping[str, str] = {
    **dict.fromkeys(
        (f"{kind}multirange" for kind in _RANGES),
        "columns cannot hold multiranges; write one condition for each range, joined by OR",
    ),
    **dict.fromkeys(
        (
            *("to_json", "to_jsonb", "row_to_json", "array_to_json"),
            *(
                f"{json}_build_{whole}"
                for json in ("json", "jsonb")
                for whole in ("object", "array")
            ),
        ),
        "a filter builds no JSON; compare the value itself, or take it from JSON by ->>",
    ),
}


def age(reader: Reads, node: Any) -> Operand:
    """Read `age(later, earlier)`."""
    if len(node.expressions) != 2:
        raise reader.source.refusal(
            node, "age of one time counts from today; write age(later, earlier) of two timestamps"
        )
    return Call("age", tuple(reader.operand(each) for each in node.expressions))


def _refused(reason: str) -> Callable[[Reads, Any], Operand | None]:
    def read(reader: Reads, node: Any) -> Operand | None:
        raise reader.source.refusal(node, reason)

    return read


NAMES: Mapping[str, Callable[[Reads, Any], Operand | None]] = {
    "age": age,
    **{name: _refused(reason) for name, reason in _REASONS.items()},
}
