"""Arguments bind to parameters; names, types and missing ones are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput, NotFound, UnsupportedOperation
from rowsieve.procedures.engine import LocalEngine
from rowsieve.procedures.parameters import Parameter, ParameterType, bind_arguments
from rowsieve.procedures.procedure import (
    FILTER,
    SCHEMA,
    TABLE_NAME,
    DistributedProcedure,
    Procedure,
)
from rowsieve.procedures.procedure_registry import ProcedureRegistry
from rowsieve.statements.call_values import Argument, TimeLiteral, Value
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


def test_a_distributed_procedure_is_a_procedure_that_only_an_engine_runs(tmp_path: Path) -> None:
    assert issubclass(DistributedProcedure, Procedure)
    table = rs.create_table(tmp_path / "t", pa.schema([("id", pa.int64())]))
    with pytest.raises(UnsupportedOperation, match="unfinished runs in tasks on an engine"):
        Unfinished().call(table, {})


def test_procedures_of_a_connector_are_added_and_removed_at_once() -> None:
    registry = ProcedureRegistry([Nothing()])
    first, second = Unfinished(), Unfinished()
    second.name = "second"
    with pytest.raises(InvalidInput, match="a procedure nothing exists already"):
        registry.add_procedures("lake", [first, Nothing()])
    with pytest.raises(InvalidInput, match="a procedure unfinished exists already"):
        registry.add_procedures("lake", [first, second, first])
    assert [each.name for each in registry] == ["nothing"]  # all or none
    registry.add_procedures("lake", [first, second])
    assert registry.resolve_distributed("second") is second
    with pytest.raises(InvalidInput, match="the connector 'lake' has added procedures already"):
        registry.add_procedures("lake", [])
    registry.remove("second")
    third = Unfinished()
    third.name = "second"
    registry.add(third)  # another one of this name, which is not the connector's
    registry.remove_procedures("lake")
    assert [each.name for each in registry] == ["nothing", "second"]
    with pytest.raises(NotFound, match="'lake' has added no procedures; others have: none"):
        registry.remove_procedures("lake")


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


AT = Parameter("at", ParameterType.INSTANT)


@pytest.mark.parametrize(
    ("value", "zone", "wanted"),
    [
        (TimeLiteral("2021-06-30 00:00:00.000"), "UTC", "2021-06-30T00:00:00"),
        (TimeLiteral("2021-06-30 00:00:00.000"), "America/New_York", "2021-06-30T04:00:00"),
        (TimeLiteral("2021-06-30"), "+05:30", "2021-06-29T18:30:00"),
        (TimeLiteral("2021-06-30T00:00:00.5+01:00"), "Asia/Tokyo", "2021-06-29T23:00:00.500000"),
        (TimeLiteral("2021-06-30 00:00 Europe/Paris"), "Asia/Tokyo", "2021-06-29T22:00:00"),
        (TimeLiteral("2021-06-30 00:00:00 UTC"), "Asia/Tokyo", "2021-06-30T00:00:00"),
        (TimeLiteral("2021-11-07 01:30:00"), "America/New_York", "2021-11-07T05:30:00"),  # twice
        ("2021-06-30T00:00:00-04:00", "Asia/Tokyo", "2021-06-30T04:00:00"),
    ],
)
def test_a_time_without_a_zone_is_in_that_of_the_session(
    value: Argument, zone: str, wanted: str
) -> None:
    bound = bind_arguments("f", (AT,), (), {"at": value}, zone)["at"]
    assert bound == datetime.fromisoformat(wanted).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2021-06-30 00:00:00",  # only a literal has the zone of the session
        "yesterday",
        TimeLiteral("yesterday"),
        TimeLiteral("2021-06-30 00:00:00 Mars/Olympus"),
        TimeLiteral("2021-02-30"),
        TimeLiteral("0001-01-01 00:00:00+01:00"),
        5,
        True,
    ],
)
def test_what_is_no_time_is_refused(value: Argument) -> None:
    with pytest.raises(InvalidInput, match="f: the argument at is timestamp with time zone, and"):
        bind_arguments("f", (AT,), (value,), {})


def test_a_time_is_text_where_a_text_is_wanted() -> None:
    text = Parameter("note", ParameterType.TEXT)
    assert bind_arguments("f", (text,), (TimeLiteral("2021-06-30"),), {}) == {"note": "2021-06-30"}


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
