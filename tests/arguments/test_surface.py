"""The whole public surface refuses wrong arguments with errors of ours, whatever they are."""

from __future__ import annotations

import inspect
import math
import traceback
import types
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.arguments import checking
from rowsieve.arguments.checking import kinds_of
from rowsieve.changes.column_methods import Alteration
from rowsieve.errors import InvalidInput, RowsieveError
from rowsieve.predicate.semantics import Semantics
from rowsieve.procedures.engine import LocalEngine
from rowsieve.procedures.procedure_registry import ProcedureRegistry
from rowsieve.providers.datafusion import SessionContext
from tests.profiles import IS_DEEP, examples

# Some of the odd names are good ones, so that the call registers a function.
pytestmark = pytest.mark.usefixtures("own_registry_of_the_file")

ROWS = pa.table({"id": [1, 2], "x": [1.5, None], "s": ["a", "b"]})


def same(value: Any) -> Any:
    return value


CHECKED_CLASSES = (
    *(rs.Table, rs.Scan, rs.ScanPlan, rs.Catalog, rs.Database, Alteration, ProcedureRegistry),
)

MOMENTS = (
    datetime(2024, 1, 1, tzinfo=UTC),
    datetime(2024, 1, 1),
    datetime.max.replace(tzinfo=UTC),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=9))),
    date(2024, 1, 1),
    timedelta(1),
)
NUMBERS = (
    *(None, True, False, 0, 1, -1, 2**63, 10**400, 1.5, -0.0, math.nan, math.inf, 1j, Decimal(1)),
)
TEXTS = (
    *("", " ", "x", "id", "id = 1", "zz = 1", "TRUE", "(", "\0", "a\ud800", "x" * 300, "\n"),
    *("on", "append", "postgres", "spark", "2024-01-01", "2024-01-01T00:00:00Z", "100%"),
    *("memory:///", "file:///a?b", "x://y", b"", b"x", bytearray(b"x"), memoryview(b"x")),
)
COLLECTIONS: tuple[Any, ...] = (
    *((), (1,), ("a", 1), ("a", True), ("a", 1.5), set(), {"id"}, frozenset({"id"}), range(3)),
    *([], [5], ["id"], ["id", "id"], ["\0"], ["a\ud800"], [None], [[]], [{"id": 1}], [{"id": "a"}]),
    *({}, {"a": 1}, {5: "a"}, {"x": "1"}, {"id": "id + 1"}, {"x": "s"}, {"a": "\ud800"}),
    *({"id": [1]}, {"x": None}, {"id": 5}, {"audit_percent": "x"}),
)
FOREIGN = (
    *(np.int64(1), np.float32("nan"), np.array([1, 2]), np.array(["id"]), Path("x"), object()),
    *(pa.schema([]), pa.schema({"id": pa.int64()}), pa.table({}), pa.table({"id": [1]}), ROWS),
    *(pa.table({"id": ["a"]}), pa.array([1]), pa.scalar(1), pa.int64(), pa.field("a", pa.int8())),
    *(pl.DataFrame({"id": [1]}), pl.Series([1]), pl.col("id") > 0, pl.col("zz"), pc.field("id")),
    *(pc.field("zz") == 1, Semantics.POSTGRES, ValueError("x"), NotImplemented, len, int, ...),
)
ONCE: tuple[Callable[[], Any], ...] = (
    lambda: iter(()),
    lambda: (i for i in range(2)),
    lambda: pa.RecordBatchReader.from_batches(ROWS.schema, []),
    lambda: 10**5_000,  # Python fails to write it, and hypothesis would
)
ODD = tuple(
    [partial(same, value) for value in (*MOMENTS, *NUMBERS, *TEXTS)]
    + [partial(copy, value) for value in COLLECTIONS]
    + [partial(same, value) for value in FOREIGN]
    + [*ONCE]
)
"""Makers of values, most of them wrong wherever they are given."""


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods of a class, inherited ones too."""
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        if not name.startswith("_") and isinstance(
            found, types.FunctionType | classmethod | staticmethod
        ):
            yield name, getattr(found, "__func__", found)


def functions() -> Iterator[tuple[str, Any]]:
    for name in rs.__all__:
        if isinstance(found := getattr(rs, name), types.FunctionType):
            yield name, found
    for cls in CHECKED_CLASSES:
        yield from ((f"{cls.__name__}.{name}", found) for name, found in members(cls))


@pytest.mark.parametrize("function", [pytest.param(each, id=name) for name, each in functions()])
def test_every_public_call_is_checked_and_every_annotation_has_a_rule(function: Any) -> None:
    assert function.__rowsieve_checked__
    kinds_of(function.__wrapped__)


SPLIT = b"no split"
SPREAD = 12  # in the small profile, each argument is given one in so many of the values
GOOD: Mapping[str, Callable[[], dict[str, Any]]] = {
    "create_table": lambda: {
        "uri": f"memory:///{uuid.uuid4().hex}", "schema_or_data": ROWS, "key": ["id"]
    },
    "open_table": lambda: {"uri": "memory:///surface-fuzz"},
    "translate": lambda: {
        "expression": "id = 1", "source": "postgres", "target": "spark", "schema": ROWS
    },
    "register_function": lambda: {
        "name": "lower", "types": [pa.int64()], "evaluator": len, "returns": pa.int64()
    },
    "read_split": lambda: {"split": SPLIT},
    "Table.upsert": lambda: {"data": ROWS},
    "Table.append": lambda: {"data": ROWS},
    "Table.apply_changes": lambda: {
        "data": ROWS.append_column("op", pa.array(["u", "d"])), "op": "op", "sequence": "id"
    },
    "Table.apply_events": lambda: {
        "data": ['{"op":"c","after":{"id":3,"x":1.5,"s":"a"}}'], "format": "debezium"
    },
    "Table.delete": lambda: {"where": "id = 1"},
    "Table.update": lambda: {"assignments": {"x": "1"}},
    "Table.overwrite": lambda: {"data": ROWS},
    "Table.restore": lambda: {"version": 0},
    "Table.collect_with": lambda: {"column": "x", "make": None},
    "Table.require_pruning": lambda: {"where": "id = 1"},
    "Catalog.create_table": lambda: {"name": "db.u", "schema_or_data": ROWS, "key": ["id"]},
    "Catalog.open_table": lambda: {"name": "db.t"},
    "Catalog.drop_table": lambda: {"name": "db.t"},
    "Catalog.rename_table": lambda: {"name": "db.t", "new_name": "db.u"},
    "Catalog.set_properties": lambda: {"properties": {"pruning": "soft"}},
    "Catalog.call": lambda: {"statement": "CALL system.analyze('db', 't')"},
    "Catalog.apply_events": lambda: {
        "data": ['{"op":"c","after":{"id":3,"x":1.5,"s":"a"},"source":{"table":"t"}}'],
        "format": "debezium",
        "table": "db.{}".format,
    },
    "Catalog.explain": lambda: {"statement": "CALL system.rewrite_data_files('db', 't')"},
    "Catalog.sql": lambda: {"statement": "SELECT * FROM db.t"},
    "Table.changes": lambda: {"from_version": 0},
    "Table.set_properties": lambda: {"properties": {"pruning": "soft"}},
    "Table.add_column": lambda: {"name": "n", "type": "int64"},
    "Alteration.add_column": lambda: {"name": "n", "type": "int64"},
    "ScanPlan.only": lambda: {"split": 0},
    "ScanPlan.project": lambda: {"columns": ["id"]},
    "ScanPlan.from_bytes": lambda: {"data": SPLIT},
}  # fmt: skip
GOOD = {**GOOD, **{f"Database.{name[8:]}": GOOD[name] for name in GOOD if name[:8] == "Catalog."}}
SURFACE = dict(functions())
UNCHANGED: list[str] = []  # the table that the calls before, most of them refused, left as it was


def owner(name: str, spark_table: rs.Table) -> Any:
    """An object to call a method of; None for a function."""
    match name.partition("."):
        case ("Table", ".", method):
            return _fresh(spark_table, method)
        case ("Scan", ".", _):
            return spark_table.scan("id = 1")
        case ("ScanPlan", ".", _):
            return spark_table.scan().plan()
        case ("Catalog", ".", _):
            return _fresh_catalog()
        case ("Database", ".", _):
            database = rs.Database(f"memory:///{uuid.uuid4().hex}")
            database.create_table("db.t", ROWS, ["id"])
            return database
        case ("ProcedureRegistry", ".", _):
            return _fresh_catalog().procedures
        case ("Alteration", ".", _):
            return _fresh(spark_table, "alter").alter()
    return None


@pytest.fixture(scope="module")
def spark_table(tmp_path_factory: pytest.TempPathFactory) -> rs.Table:
    """A table that Spark could reach, were it asked."""
    return rs.create_table(tmp_path_factory.mktemp("surface") / "t", ROWS, key=["id"])


def _fresh(spark_table: rs.Table, method: str) -> rs.Table:
    """A table of its own, which no call before has changed; in memory, if Spark is not meant."""
    if "spark" in method:
        return rs.open_table(spark_table.uri)
    if not UNCHANGED or rs.open_table(UNCHANGED[0]).version:
        UNCHANGED[:] = [f"memory:///{uuid.uuid4().hex}"]
        return rs.create_table(UNCHANGED[0], ROWS, key=["id"])
    return rs.open_table(UNCHANGED[0])


def _fresh_catalog() -> rs.Catalog:
    catalog = rs.Catalog(f"memory:///{uuid.uuid4().hex}")
    catalog.create_table("db.t", ROWS, ["id"])
    return catalog


def call(name: str, arguments: dict[str, Any], spark_table: rs.Table) -> None:
    """Call with the arguments, and use what comes back; wrong ones are errors of ours."""
    of = owner(name, spark_table)
    function = SURFACE[name] if of is None else getattr(of, name.partition(".")[2])
    try:
        result = function(**arguments)
        if isinstance(result, rs.Scan):
            result.plan().to_bytes()
            result.count()
        elif isinstance(result, Iterator):
            list(result)
    except RowsieveError as error:
        str(error).encode()
    except TypeError as error:
        innermost = traceback.extract_tb(error.__traceback__)[-1]
        if innermost.filename != checking.__file__:  # there, a required argument is missing
            raise


@examples(320, promised=2_000)
@given(data=st.data())
def test_wrong_arguments_of_any_call_raise_errors_of_ours_alone(
    data: st.DataObject, spark_table: rs.Table, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name = data.draw(st.sampled_from(sorted(SURFACE)))
    names = [each for each in kinds_of(SURFACE[name].__wrapped__)[1] if each not in ("self", "cls")]
    arguments = dict(GOOD[name]()) if name in GOOD else {}
    for each in data.draw(st.lists(st.sampled_from(names), max_size=3)) if names else ():
        arguments[each] = data.draw(st.sampled_from(ODD))()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.getbasetemp())  # relative names are folders there
        call(name, arguments, spark_table)


@pytest.mark.parametrize("name", sorted(SURFACE))
def test_every_argument_of_every_call_withstands_odd_values(
    name: str, spark_table: rs.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [each for each in kinds_of(SURFACE[name].__wrapped__)[1] if each not in ("self", "cls")]
    for place, each in enumerate(names):
        for odd in ODD if IS_DEEP else ODD[place % SPREAD :: SPREAD]:
            arguments = dict(GOOD[name]()) if name in GOOD else {}
            call(name, {**arguments, each: odd()}, spark_table)


WRONG: Mapping[str, Any] = {"dialect": "", "retry_timeout_s": -1.0, "progress": lambda: None}


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        (name, argument)
        for name, function in SURFACE.items()
        for argument in WRONG
        if argument in kinds_of(function.__wrapped__)[1] and "spark" not in name
    ],
)
def test_an_argument_is_checked_where_the_call_does_not_use_it_too(
    name: str, argument: str, spark_table: rs.Table
) -> None:
    """A dialect without text, a time for retries of a change that nothing delays."""
    function = getattr(owner(name, spark_table), name.partition(".")[2], None) or SURFACE[name]
    others = kinds_of(SURFACE[name].__wrapped__)[2] - {"self", "cls", argument}
    with pytest.raises(InvalidInput, match=f"{argument} is|SQL dialect '' is not known"):
        function(**{argument: WRONG[argument]}, **dict.fromkeys(others))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("Catalog", rs.Catalog),
        ("Catalog", lambda odd: rs.Catalog("memory:///c", storage_options=odd)),
        ("registry", rs.Catalog("memory:///c").procedures.resolve),
        ("registry", rs.Catalog("memory:///c").procedures.remove),
        ("registry", rs.Catalog("memory:///c").procedures.is_distributed),
        ("LocalEngine", LocalEngine),
        ("LocalEngine", lambda odd: LocalEngine(processes=odd)),
        ("LocalEngine", lambda odd: LocalEngine(progress=odd)),
        ("registry", ProcedureRegistry),
        ("registry", lambda odd: ProcedureRegistry([odd])),
        ("registry", lambda odd: ProcedureRegistry(group=odd)),
        ("RowSet", rs.RowSet.empty),
        ("RowSet", lambda odd: rs.RowSet.from_ids(odd, 3)),
        ("RowSet", lambda odd: rs.RowSet.from_ranges(odd, 3)),
        ("RowSet", rs.RowSet.from_mask),
        ("RowSet", lambda odd: rs.RowSet.from_bitmap(odd, 3)),
        ("RowSet", lambda odd: rs.RowSet.from_bytes(odd, 3)),
        ("RowSet", lambda odd: rs.RowSet.from_row_groups(odd, 1, 2)),
        ("RowSet", lambda odd: rs.RowSet.from_row_groups(np.array([True]), odd, 2)),
        ("RowSet", lambda odd: rs.RowSet.full(3).union(odd)),
        ("RowSet", lambda odd: rs.RowSet.full(3).intersect(odd)),
        ("RowSet", lambda odd: rs.RowSet.full(3).difference(odd)),
        ("RowSet", lambda odd: rs.RowSet.full(3).complement(odd)),
        ("RowSet", lambda odd: rs.RowSet.full(3).contains(odd)),
        ("RowSet", lambda odd: rs.RowSet.full(3).slice(0, odd)),
        ("RowSet", lambda odd: rs.RowSet.full(3).slice(odd, 3)),
        ("RowSet", lambda odd: rs.RowSet.full(3).shift(odd, 3)),
        ("RowSet", lambda odd: rs.RowSet.full(3).shift(0, odd)),
        ("SessionContext", SessionContext),
        ("SessionContext", lambda odd: SessionContext(None, odd)),
        ("SessionContext", lambda odd: SessionContext(pruning=odd)),
        ("SessionContext", lambda odd: SessionContext().register_table(odd, None)),
        ("SessionContext", lambda odd: SessionContext().deregister_table(odd)),
        ("SessionContext", lambda odd: SessionContext().register_udf(odd)),
        ("SessionContext", lambda odd: SessionContext().register_catalog_provider(odd, None)),
        ("SessionContext", lambda odd: SessionContext().sql("SELECT 1", param_values=odd)),
        ("SessionContext", lambda odd: SessionContext().sql("SELECT 1", odd)),
    ],
)  # fmt: skip
def test_constructors_row_sets_and_sessions_refuse_odd_values(
    name: str, make: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for odd in ODD:
        value = odd()
        if name == "SessionContext" and isinstance(value, str | dict):
            continue  # a name or values of parameters, which DataFusion judges
        with suppress(RowsieveError):
            make(value)


def test_a_session_refuses_what_is_not_text_in_the_place_of_a_statement_or_name() -> None:
    context = SessionContext()
    for call in (context.sql, context.table, context.deregister_table):
        with pytest.raises(InvalidInput, match="not text"):
            call(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["scanner", "to_table", "to_batches", "count_rows", "take"])
def test_a_dataset_refuses_odd_columns_filters_and_sizes(
    method: str, spark_table: rs.Table
) -> None:
    dataset = spark_table.to_dataset()
    names = {"take": ("indices",), "count_rows": ("filter",)}.get(
        method, ("columns", "filter", "batch_size")
    )
    for name in names:
        for odd in ODD:
            value = odd()
            if isinstance(value, list | dict) and name == "columns":
                continue  # pyarrow's own errors name the column
            with suppress(RowsieveError, pa.ArrowException):
                getattr(dataset, method)(**{name: value})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda table: table.upsert([{"id": 10**5_000, "x": 1.0, "s": "a"}]),
        lambda table: table.upsert({"id": [1], "x": [1.0], "s": [[10**5_000]]}),
        lambda table: table.add_column("n", "int64", default=10**5_000),
        lambda table: table.scan([("id", "=", 10**5_000)]),
        lambda table: table.scan("id < 1e99999999999999999999"),
        lambda table: table.scan("x > -0e99999999999999999999"),
        lambda table: rs.Config(memory_bytes=-(10**5_000)),
        lambda table: rs.Config(audit_percent=10**5_000),
    ],
)
def test_numbers_that_python_does_not_write_or_read_are_refused(
    wrong: Callable[[rs.Table], object], spark_table: rs.Table
) -> None:
    with pytest.raises(RowsieveError):
        wrong(_fresh(spark_table, ""))


def test_a_default_of_any_length_fits_an_unbounded_number(spark_table: rs.Table) -> None:
    table = _fresh(spark_table, "")
    table.add_column("n", "numeric", default=10**5_000)
    assert table.scan("n > 1", columns=["id"]).count() == 2
