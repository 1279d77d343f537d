"""Tables of the functions that a dialect alone has, or that mean something else there.

Soundness: a function is looked up by dialect and name, never by the name alone. What is not here is
read by the templates of `rowsieve.bridges.functions`, or in the same way in every dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from sqlglot import exp

from rowsieve.bridges.sql.protocols import Reads
from rowsieve.bridges.sql.reading import datafusion_calls, list_calls, postgres_calls
from rowsieve.bridges.sql.reading.dialect_calls import narrow_sign, power
from rowsieve.bridges.sql.spark.read import grammar_nodes
from rowsieve.predicate.ir import Operand

_ByNode: TypeAlias = Mapping[type[Any], Callable[[Reads, Any], Operand]]
_ByName: TypeAlias = Mapping[str, Callable[[Reads, Any], Operand | None]]

NODES: Mapping[str, _ByNode] = {
    "spark": grammar_nodes.NODES,
    "datafusion": datafusion_calls.NODES,
    "postgres": {exp.Pow: power},
    "duckdb": {exp.Sign: narrow_sign, exp.Pow: power},
}
"""Readers of the grammar's nodes; they precede those that dialects share."""

NAMES: Mapping[str, _ByName] = {
    "postgres": {**list_calls.POSTGRES, **postgres_calls.NAMES},
    "spark": grammar_nodes.NAMES,
    "datafusion": {**datafusion_calls.NAMES, **list_calls.DATAFUSION},
    "duckdb": {**list_calls.DUCKDB, "age": postgres_calls.age},
    "trino": list_calls.TRINO,
}
"""Readers of calls that the grammar does not know; None: for other arguments, read on."""
