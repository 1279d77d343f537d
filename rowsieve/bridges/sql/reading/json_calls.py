"""PostgreSQL's operators over keys of JSON: `?`, `?|` and `?&`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from rowsieve.bridges.sql.protocols import Reads
from rowsieve.predicate import ir


def _has_key(reader: Reads, node: Any) -> ir.Operand:
    """Read `json ? 'key'`."""
    reader.only(node, "this", "expression")
    return ir.Call("jsonb_exists", (reader.side(node.this), reader.side(node.expression)))


def _has_keys(
    join: Callable[[tuple[ir.Predicate, ...]], ir.Predicate],
) -> Callable[[Reads, Any], ir.Operand]:
    """Return a reader of `json ?| array['a', 'b']`: one test for each key, which is constant."""

    def read(reader: Reads, node: Any) -> ir.Operand:
        reader.only(node, "this", "expression")
        document, keys = reader.side(node.this), reader.operand(node.expression)
        is_list = isinstance(keys, ir.Call) and keys.function == "make_list"
        items = keys.arguments if is_list and isinstance(keys, ir.Call) else ()
        texts = [item for item in items if isinstance(item, ir.Literal) and item.value is not None]
        if not items or len(texts) < len(items):
            raise reader.source.refusal(node, "the keys are constants, as in array['a', 'b']")
        tests = (ir.BooleanOperand(ir.Call("jsonb_exists", (document, key))) for key in texts)
        return ir.Condition(join(tuple(tests)))

    return read


HANDLERS: Mapping[type[Any], Callable[[Reads, Any], ir.Operand]] = {
    exp.JSONBContainsTopKey: _has_key,
    exp.JSONBContainsAnyTopKeys: _has_keys(ir.disjoin),
    exp.JSONBContainsAllTopKeys: _has_keys(ir.conjoin),
}
