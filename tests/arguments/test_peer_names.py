"""Names of other libraries: the error says which call does the same here, and that call exists."""

from __future__ import annotations

import copy
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.arguments.peer_names import (
    ARGUMENTS,
    CATALOG,
    DATABASE,
    HISTORY,
    MERGING,
    MODULE,
    SCAN,
    TABLE,
)
from rowsieve.errors import InvalidInput
from rowsieve.scan import Scan

OPEN: Any = rs.open_table  # called with wrong arguments, too
CREATE: Any = rs.create_table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> rs.Table:
    rows = pa.table({"id": [1, 2], "s": ["a", None]})
    return rs.create_table(tmp_path_factory.mktemp("peer") / "t", rows, ["id"])


def test_the_error_says_what_to_write(table: rs.Table) -> None:
    with pytest.raises(AttributeError, match=r"'Table' .* 'to_pyarrow_table'; write to_arrow\(\)"):
        _ = table.to_pyarrow_table  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"'Scan' .* 'to_polars'; write polars.DataFrame"):
        _ = table.scan().to_polars  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        _ = table.nonsense  # type: ignore[attr-defined]


def test_no_name_is_one_that_exists_and_each_advice_begins_with_one_that_does(
    table: rs.Table, tmp_path: Path
) -> None:
    owners: list[tuple[Any, Mapping[str, str]]] = [
        (table, TABLE),
        (table.scan(), SCAN),
        (table.history(), HISTORY),
        (table.merge({"id": [1], "s": ["b"]}), MERGING),
        (rs.Catalog(tmp_path), CATALOG),
        (rs.Database(tmp_path), DATABASE),
    ]
    for owner, names in owners:
        for name, advice in names.items():
            assert name not in dir(owner)
            assert not hasattr(owner, name)
            first = re.match(r"[\w.]+", advice)
            assert first is not None
            own = first[0].partition(".")[0]
            known = own in ("duckdb", "name", "polars", "pyarrow", "table")
            assert known or hasattr(owner, own) or hasattr(rs, own), advice


# What no call here does, or what every object of theirs has.
WITHOUT_EQUIVALENT = {
    "DeltaTable": "create generate is_deltatable transaction_version",
    "Table": "from_arrow last_partition_id last_sequence_number location_provider name_mapping "
    "to_bodo to_daft",
    "DataScan": "count partition_filters to_ray update with_case_sensitive",
    "Catalog": "close commit_table identifier_to_database identifier_to_database_and_table "
    "identifier_to_tuple namespace_from namespace_to_string supports_server_side_planning "
    "table_name_from",
}


@pytest.mark.parametrize(
    ("module", "theirs", "ours", "names"),
    [
        ("deltalake", "DeltaTable", rs.Table, TABLE),
        ("pyiceberg.table", "Table", rs.Table, TABLE),
        ("pyiceberg.table", "DataScan", Scan, SCAN),
        ("pyiceberg.catalog", "Catalog", rs.Catalog, CATALOG),
    ],
)
def test_every_method_of_deltalake_and_pyiceberg_is_here_or_has_advice(
    module: str, theirs: str, ours: type, names: Mapping[str, str]
) -> None:
    methods = {
        name for name in dir(getattr(importlib.import_module(module), theirs)) if name[0] != "_"
    }
    assert methods - set(dir(ours)) - set(names) <= set(WITHOUT_EQUIVALENT[theirs].split())


def test_a_name_like_one_of_ours_is_answered_with_it(table: rs.Table) -> None:
    for owner, name, meant in (
        (table, "colums", "columns"),
        (table.scan(), "to_arow", "to_arrow"),
        (rs, "open_tabel", "open_table"),
        (rs.predicate, "prun", "prune"),
    ):
        with pytest.raises(AttributeError, match=f"{name!r}; did you mean {meant!r}"):
            getattr(owner, name)
    with pytest.raises(AttributeError, match=r"'__columns__'$"):
        _ = table.__columns__  # type: ignore[attr-defined]


def test_functions_of_other_packages_are_answered_with_those_of_ours() -> None:
    with pytest.raises(AttributeError, match=r"'DeltaTable'; write open_table\(uri\)"):
        _ = rs.DeltaTable
    for name, advice in MODULE.items():
        assert not hasattr(rs, name)
        first = re.match(r"\w+", advice)
        assert first is not None
        assert first[0] in rs.__all__, advice


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda t: t.delete(predicate="id = 1"), "'predicate'; write where=…"),
        (lambda t: t.merge([], predicate="s.id = t.id"), "'predicate'; write on=…"),
        (lambda t: t.update(updates={"s": "x"}, predicate="id = 1"), "write assignments=…"),
        (lambda t: t.scan(row_filter="id = 1"), "'row_filter'; write where=…"),
        (lambda t: t.to_arrow(version=0), r"'version'; write scan\(version=…\), which has it"),
        (lambda t: t.count(limit=1), r"'limit'; write scan\(limit=…\), which has it"),
        (lambda t: t.overwrite([], overwrite_filter="id = 1"), "write where=…"),
        (lambda t: CREATE("x", t, partition_by=["s"]), "'partition_by'; leave it out: stat"),
        (lambda t: t.vacuum(retention_hours=0), "'retention_hours'; write older_than=…"),
        (lambda t: t.upsert([], on="id"), "'on'; leave it out: rows are matched by the table's"),
        (
            lambda t: OPEN(t.uri, timestamp="2026-01-01"),
            "'timestamp'; write as_of=…",
        ),
        (lambda t: rs.Table(t.uri), r"Table\(\) takes no URI; write open_table\(uri\)"),
    ],
)
def test_arguments_of_others_are_answered_with_those_of_ours(
    table: rs.Table, call: Callable[[Any], object], says: str
) -> None:
    with pytest.raises(TypeError, match=says):
        call(table)


def test_every_argument_that_is_named_is_one_of_ours() -> None:
    calls = [getattr(rs.Table, name) for name in dir(rs.Table) if not name.startswith("_")]
    calls += [getattr(rs, name) for name in ("create_table", "open_table")]
    ours = {name for call in calls if callable(call) for name in inspect.signature(call).parameters}
    assert {each for meant in ARGUMENTS.values() for each in meant} <= ours


def test_packages_list_their_public_names_only() -> None:
    assert dir(rs) == sorted(rs.__all__)
    assert dir(rs.predicate) == sorted(rs.predicate.__all__)


def test_columns_and_shape_are_those_of_a_data_frame(table: rs.Table) -> None:
    assert table.columns == ["id", "s"]
    assert table.shape == (2, 2)


def test_a_copy_without_its_attributes_does_not_recurse(table: rs.Table) -> None:
    assert copy.copy(table).shape == (2, 2)
    with pytest.raises(AttributeError, match="handle"):
        _ = object.__new__(rs.Table).handle


def test_an_error_inside_a_property_keeps_its_cause(
    table: rs.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: object) -> int:
        return None.missing  # type: ignore[attr-defined, no-any-return]

    for owner in (table, table.scan()):
        monkeypatch.setattr(type(owner), "version", property(failing))
        with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'missing'"):
            _ = owner.version


def test_a_lazy_frame_is_to_be_collected(table: rs.Table) -> None:
    with pytest.raises(InvalidInput, match="not LazyFrame; call its method collect first"):
        table.upsert(rs.scan_polars(table))
