"""Binds the arguments of a call to the parameters of its procedure.

A table is given as `schema` and `table_name`, or by one name: `table => 'db.events'`, or the first
text in the place of one of the two, `CALL system.compact('db.events')`. Its namespace cannot
contain a dot, so a text with a dot there is never a namespace.

A name may begin with a catalog; the catalog of the call is then the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rowsieve.errors import InvalidInput, NotFound
from rowsieve.procedures.parameters import Parameter, bind_arguments
from rowsieve.procedures.procedure import FILTER, SCHEMA, TABLE_NAME, AnyProcedure
from rowsieve.procedures.procedure_registry import ProcedureRegistry
from rowsieve.statements.call_values import Argument, Value
from rowsieve.statements.calls import Call, name_parts

_TABLE: Final = "table"
_NAMES: Final = frozenset({SCHEMA.name, TABLE_NAME.name})


def bound_arguments(procedure: AnyProcedure, call: Call, time_zone: str) -> dict[str, Value]:
    """Return the value of every parameter of the procedure.

    InvalidInput for an argument that is wrong, missing or unknown, and for a table of another
    catalog than that of the call.
    """
    name = procedure.name
    positional, named = _named_target(procedure, call)
    if _TABLE in named:
        parts = _parts(named[_TABLE])
        if not parts:
            raise InvalidInput(
                f"CALL {name}: table is {named[_TABLE]!r}; give the namespace and the name, as in "
                "table => 'db.events'"
            )
        if _NAMES & named.keys():
            raise InvalidInput(f"CALL {name}: give table, or schema and table_name, not both")
        _check_catalog(name, parts, call.catalog)
        del named[_TABLE]
        named[SCHEMA.name], named[TABLE_NAME.name] = parts[-2:]
    if "where" in named:
        if FILTER.name in named:
            raise InvalidInput(f"CALL {name}: where and {FILTER.name} are the same; give one")
        named[FILTER.name] = named.pop("where")
    by_place = _by_place(procedure, call)
    return bind_arguments(name, procedure.parameters, positional, named, time_zone, by_place)


def named_catalog(registry: ProcedureRegistry, call: Call) -> str | None:
    """Return the catalog in front of a call's procedure or of its table; None without one."""
    if call.catalog is not None:
        return call.catalog
    try:
        _, named = _named_target(registry.resolve(call.procedure), call)
    except NotFound:
        return None
    parts = _parts(named.get(_TABLE))
    return parts[0] if len(parts) > 2 else None


def _named_target(
    procedure: AnyProcedure, call: Call
) -> tuple[Sequence[Argument], dict[str, Argument]]:
    """The arguments of a call, with a table that has one name in `table`."""
    positional, named = list(call.positional), dict(call.named)
    place = _place_of_table(procedure.parameters, positional)
    if place is not None and _TABLE not in named:
        named[_TABLE] = positional.pop(place)
    return positional, named


def _place_of_table(parameters: Sequence[Parameter], positional: Sequence[Argument]) -> int | None:
    """The place of the one name of a table among the arguments by position; None without one."""
    for place, (parameter, value) in enumerate(zip(parameters, positional, strict=False)):
        if parameter.name in _NAMES:
            return place if _parts(value) else None
    return None


def _by_place(procedure: AnyProcedure, call: Call) -> Sequence[Parameter] | None:
    """The parameters of the arguments after a table with one name; None for all parameters."""
    parameters = procedure.parameters
    if _place_of_table(parameters, call.positional) is None or _TABLE in call.named:
        return None
    return [parameter for parameter in parameters if parameter.name not in _NAMES]


def _parts(value: Argument) -> Sequence[str]:
    """The namespace and the name of a table, perhaps with its catalog in front; else nothing."""
    parts = name_parts(value) if isinstance(value, str) else ()
    return parts if len(parts) in (2, 3) else ()


def _check_catalog(procedure: str, parts: Sequence[str], catalog: str | None) -> None:
    if catalog is None or len(parts) < 3 or parts[0].lower() == catalog.lower():
        return
    raise InvalidInput(
        f"{procedure}: the table {'.'.join(parts)} is in the catalog {parts[0]}, and the call is "
        f"for {catalog}; call {parts[0]}.system.{procedure}, or correct the name of the table"
    )
