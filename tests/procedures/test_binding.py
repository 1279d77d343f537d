"""Arguments bind to parameters; names, types and missing ones are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.errors import InvalidInput, NotFound, UnsupportedOperation
from rowsieve.procedures.engine import LocalEngine
from rowsieve.procedures.parameters import Parameter, ParameterType, Value, bind_arguments
from rowsieve.procedures.procedure import (
    FILTER,
    SCHEMA,
    TABLE_NAME,
    DistributedProcedure,
    Procedure,
)
from rowsieve.procedures.procedure_registry import ProcedureRegistry
from rowsieve.table import Table

PARAMETERS = (
    Parameter("n", ParameterType.WHOLE, default=3),
    SCHEMA,
    TABLE_NAME,
    Parameter("dry_run", ParameterType.FLAG),
    Parameter("options", ParameterType.OPTIONS),
)


class Nothing(Procedure):
    """Does nothing."""

    name = "nothing"
    parameters = PARAMETERS
    columns = pa.schema([])

    def call(self, table: Table, arguments: Mapping[str, Value]) -> pa.Table:
        """Return no rows."""
        del table, arguments
        return self.columns.empty_table()


class Unfinished(DistributedProcedure):
    """Implements none of the steps."""

    name = "unfinished"
    columns = pa.schema([])


def test_positional_and_named_arguments_bind_in_any_position_of_the_table() -> None:
    bound = bind_arguments("f", PARAMETERS, (5,), {"TABLE_NAME": "t", "schema": "db"})
    assert bound == {"n": 5, "schema": "db", "table_name": "t", "dry_run": None, "options": None}


@pytest.mark.parametrize(
    ("positional", "named", "reason"),
    [
        ((1, "db", "t", True, {}, 6), {}, "at most 5 arguments"),
        ((1, "db"), {}, "needs the argument table_name .varchar.*add for example table_name =>"),
        ((1, "db", None), {}, "needs the argument table_name"),
        ((1, "db", "t"), {"N": 2}, "n is given twice"),
        ((1, "db", "t"), {"dry_rum": True}, "no argument 'dry_rum'.*did you mean 'dry_run'"),
        (("x", "db", "t"), {}, "n is bigint, and 'x' is not; give for example n => 5"),
        ((True, "db", "t"), {}, "n is bigint"),
        ((1, "db", 7), {}, "table_name is varchar, and 7 is not"),
        ((1, "db", "t", 1), {}, "dry_run is boolean"),
        ((1, "db", "t"), {"options": "a=b"}, "options is map"),
    ],
)
def test_wrong_argument_is_named_with_its_type(
    positional: Sequence[Value], named: Mapping[str, Value], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        bind_arguments("f", PARAMETERS, positional, named)


def test_registry_adds_resolves_and_removes() -> None:
    registry = ProcedureRegistry([Nothing(), Unfinished()])
    assert [procedure.name for procedure in registry] == ["nothing", "unfinished"]
    assert registry.resolve("NOTHING").name == "nothing"
    assert registry.is_distributed("unfinished")
    assert not registry.is_distributed("nothing")
    assert not registry.is_distributed("none")
    assert registry.resolve_distributed("unfinished").name == "unfinished"
    with pytest.raises(UnsupportedOperation, match="nothing is not a distributed procedure"):
        registry.resolve_distributed("nothing")
    with pytest.raises(NotFound, match="'nothin' does not exist; did you mean 'nothing'"):
        registry.resolve("nothin")
    registry.remove("Nothing")
    with pytest.raises(NotFound, match="there are unfinished"):
        registry.remove("nothing")


def test_registry_rejects_procedures_that_cannot_be_called() -> None:
    registry = ProcedureRegistry([Nothing()])
    with pytest.raises(InvalidInput, match="exists already"):
        registry.add(Nothing())
    for name in ("", "Nothing", "a-b", "1a", "a" * 129):
        odd = Unfinished()
        odd.name = name
        with pytest.raises(InvalidInput, match="name consists of"):
            registry.add(odd)
    for parameters, reason in (
        ((SCHEMA,), "needs a required parameter table_name"),
        ((Parameter("schema", ParameterType.TEXT), TABLE_NAME), "required parameter schema"),
        ((SCHEMA, Parameter("table_name", ParameterType.WHOLE, required=True)), "table_name"),
        ((SCHEMA, TABLE_NAME, Parameter("filter", ParameterType.FLAG)), "filter of unfinished"),
        ((SCHEMA, TABLE_NAME, FILTER, FILTER), "two parameters with one name"),
        ((SCHEMA, TABLE_NAME, "n"), "wrong parameter, 'n'; give such as Parameter"),
        ("schema", "wrong parameter, 'schema'"),
        ((SCHEMA, TABLE_NAME, Parameter(5, ParameterType.TEXT)), "wrong parameter"),  # type: ignore[arg-type]
        ((SCHEMA, TABLE_NAME, Parameter("n", "varchar")), "wrong parameter"),  # type: ignore[arg-type]
    ):
        odd = Unfinished()
        odd.parameters = parameters  # type: ignore[assignment]
        with pytest.raises(InvalidInput, match=reason):
            registry.add(odd)


def test_a_procedure_without_name_table_or_columns_is_refused() -> None:
    registry = ProcedureRegistry()
    nameless, tableless, without_columns = Nothing(), Nothing(), Nothing()
    nameless.name = None  # type: ignore[assignment]
    tableless.parameters = ()  # type: ignore[assignment]  # its call would find no table
    without_columns.columns = None
    for odd, reason in (
        (nameless, "name consists of .*: None"),
        (tableless, "needs a required parameter schema"),
        (without_columns, "nothing has no columns"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            registry.add(odd)
    assert list(registry) == []


@pytest.mark.parametrize("odd", [True, 1.5, "2", 10**30])
@pytest.mark.parametrize("name", ["threads", "processes"])
def test_engine_refuses_counts_that_are_no_whole_numbers(name: str, odd: Any) -> None:
    with pytest.raises(InvalidInput, match=f"LocalEngine: {name} is .* not a whole number"):
        LocalEngine(**{name: odd})


def test_constructors_refuse_what_cannot_be_called_or_listed() -> None:
    with pytest.raises(InvalidInput, match=r"LocalEngine: progress is 5 \(int\)"):
        LocalEngine(progress=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"ProcedureRegistry: procedures\[0\] is 5"):
        ProcedureRegistry([5])  # type: ignore[list-item]
