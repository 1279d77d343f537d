"""Statements with parameters: `$name` or `:name`, and the values that DataFusion binds to them.

Soundness: a value is never text. DataFusion gets a placeholder in the place of each parameter, and
one for each member of a list, and binds Arrow scalars to them after it has parsed the statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from rowsieve.bridges.sql.dialects import DATAFUSION
from rowsieve.bridges.sql.text_parameters import with_names
from rowsieve.bridges.text_with_values import statement_with_values
from rowsieve.errors import InvalidInput
from rowsieve.predicate.ir import Literal, ValueSet
from rowsieve.predicate.literal_values import scalar
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Interval, Numeric, type_name

_NO_MEMBERS: Final = "(SELECT NULL WHERE FALSE)"  # DataFusion does not parse `IN ()`
_UINT64: Final = range(2**63, 2**64)
_DIGITS: Final = 76  # of the widest decimal


def bound_statement(
    statement: str, params: Mapping[str, Any] | None
) -> tuple[str, dict[str, pa.Scalar] | None]:
    """Return a statement with placeholders, and their values, for DataFusion's `param_values`.

    Without `params` it stays as it is. InvalidInput if a name is missing or unused, or a value has
    no type of a column.
    """
    if (valued := statement_with_values(statement, params, "sql")) is None:
        return statement, None
    bound: dict[str, pa.Scalar] = {}

    def constant(name: str, value: Literal) -> str:
        bound[name] = _scalar(name, value)
        return f"${name}"

    def members(name: str, values: ValueSet) -> str:
        prefix = f"{name}_"
        while any(each.startswith(prefix) for each in (*valued.values, *bound)):
            prefix += "_"
        names = [f"{prefix}{number}" for number in range(len(values))]
        bound.update(zip(names, map(_plain, values.array), strict=True))
        return f"({', '.join(f'${each}' for each in names)})" if names else _NO_MEMBERS

    return with_names(valued, DATAFUSION, constant, members), bound


def refuse_values(params: Any, verb: str) -> None:
    """Raise InvalidInput for parameters of a statement that DataFusion does not run."""
    if params:
        raise InvalidInput(
            f"sql: params= are values of queries and of changes of rows, and {verb} takes none; "
            "write the values into the statement"
        )


def _scalar(name: str, constant: Literal) -> pa.Scalar:
    """The constant with a type that DataFusion has, too."""
    value, type_ = constant.value, constant.type
    if isinstance(type_, Interval | Numeric):
        raise InvalidInput(
            f"params: {name!r} is {type_name(type_)}, which DataFusion has no values of; write it "
            "into the statement"
        )
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        if not -(10**_DIGITS) < value < 10**_DIGITS:
            raise InvalidInput(
                f"params: {name!r} has more than {_DIGITS} digits, the most of a number"
            )
        return pa.scalar(value, pa.uint64() if value in _UINT64 else pa.decimal256(_DIGITS, 0))
    if type_ is None:
        return pa.scalar(value)
    return _plain(pa.scalar(None, arrow_type(type_)) if value is None else scalar(constant))


def _plain(value: pa.Scalar) -> pa.Scalar:
    """The value as it is stored: DataFusion knows no extension types."""
    if not isinstance(value, pa.ExtensionScalar):
        return value
    stored = value.value
    return pa.scalar(None, value.type.storage_type) if stored is None else stored
