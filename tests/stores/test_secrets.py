"""No repr, plan, explanation, error, log or report shows a value of `storage_options`."""

from __future__ import annotations

import dataclasses
import importlib
import logging
import pkgutil
import traceback
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from datafusion import SessionContext

import rowsieve as rs
from rowsieve.errors import RowsieveError
from rowsieve.foreign.created_in_place import TableInPlace
from rowsieve.procedures.engine import Job
from tests.stores.s3_server import S3

MARK = "S3CR3T"  # in every secret; calls below do not spell it, for tracebacks show their text
SECRETS = {
    "access_key_id": "S3CR3Tid",
    "secret_access_key": "S3CR3Tkey",
    "session_token": "S3CR3Ttoken",
    "default_headers": '{"x-trace": "S3CR3Theader"}',
}


@pytest.fixture
def options(s3: S3) -> dict[str, str]:
    return {**s3.options, **SECRETS}


@pytest.fixture
def uri(s3: S3, options: dict[str, str]) -> str:
    found = s3.fresh_uri()
    rows = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})
    rs.create_table(found, rows, key=["id"], storage_options=options)
    return found


class _Keeping:
    """Keeps the text of all reports."""

    def __init__(self) -> None:
        self.reports: list[object] = []

    def report(self, report: Any) -> None:
        self.reports.append(report)


def texts_of(found: object) -> Iterator[str]:
    yield repr(found)
    yield str(found)
    if hasattr(found, "_repr_html_"):
        yield found._repr_html_()


def shown(table: rs.Table, catalog: rs.Catalog) -> Iterator[object]:
    """What a user may print of a table, a catalog and what they make."""
    scan = table.scan("id > 1")
    plan = scan.plan()
    yield from (table, catalog, table.handle.store, scan, plan, scan.explain(row_groups=True))
    yield from plan.splits_to_bytes()
    yield plan.to_bytes()
    yield from (table.history(), table.files(), table.maintenance_advice(), scan.metrics)
    yield from (table.to_dataset(), table.scan_polars().explain(), table.changes(0))
    with table.lease() as lease:
        yield lease
    context = SessionContext()
    context.register_table("t", table.to_datafusion())
    yield context.sql("EXPLAIN VERBOSE SELECT * FROM t WHERE id > 1").to_pylist()
    yield from (
        catalog.storage_options.keys(),
        catalog.explain("CALL system.rewrite_data_files(table => 'db.t')"),
    )
    yield TableInPlace("x", table.handle.store, (), {}, {}, SECRETS)
    yield Job(None, [], SECRETS, "x")  # type: ignore[arg-type]
    yield catalog.to_datafusion()


def failures(uri: str, options: dict[str, str], table: rs.Table) -> Iterator[BaseException]:
    """Errors of calls with these options."""
    absent = f"{uri}-absent"
    calls: list[Any] = [
        lambda: rs.open_table(absent, storage_options=options),
        lambda: rs.open_table(uri, version=99, storage_options=options),
        lambda: rs.open_table(uri, storage_options={**options, "no_such": MARK}),
        lambda: rs.open_table("elsewhere", storage_options=options),
        lambda: rs.open_table(uri, storage_options={**options, "timeout": f"{MARK}s"}),
        lambda: rs.open_table(uri, storage_options={**options, "session_token": 5}),
        lambda: rs.open_table(
            uri, storage_options={**options, "endpoint": f"http://u:{MARK}@127.0.0.1:9"}
        ),
        lambda: rs.create_table(uri, pa.table({"id": [1]}), storage_options=options),
        lambda: table.scan("no_such_column = 1"),
        lambda: table.upsert(pa.table({"other": [1]})),
    ]
    for call in calls:
        with pytest.raises((RowsieveError, TypeError)) as raised:
            call()
        yield raised.value


def _around(text: str) -> str:
    place = text.index(MARK)
    return text[max(0, place - 200) : place + 50]


def test_nothing_that_is_shown_has_a_secret(
    uri: str, options: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    table = rs.open_table(uri, storage_options=options)
    keeping = _Keeping()
    catalog = rs.Catalog(f"{uri}-catalog", storage_options=options)
    catalog.create_table("db.t", pa.table({"id": [1]}), key=["id"])
    before = rs.configure(rs.Config(reporter=keeping))
    try:
        table.upsert(pa.table({"id": [4], "v": ["d"]}))
        table.scan().to_arrow()
        texts = [text for found in shown(table, catalog) for text in texts_of(found)]
        for error in failures(uri, options, table):
            texts += ["".join(traceback.format_exception(error)), *texts_of(error)]
    finally:
        rs.configure(before)
    assert keeping.reports
    texts += [text for found in keeping.reports for text in texts_of(found)]
    texts += [caplog.text, *(str(record.__dict__) for record in caplog.records)]
    assert len(texts) > 60
    assert not [_around(text) for text in texts if MARK in text]


def test_no_record_shows_its_storage_options() -> None:
    """Dataclasses print all their fields unless they are told not to; msgspec's print all."""
    for module in pkgutil.walk_packages(rs.__path__, "rowsieve."):
        if module.name.endswith("__main__"):
            continue
        for found in vars(importlib.import_module(module.name)).values():
            if not isinstance(found, type) or not found.__module__.startswith("rowsieve"):
                continue
            if dataclasses.is_dataclass(found):
                fields = {field.name: field.repr for field in dataclasses.fields(found)}
            elif issubclass(found, msgspec.Struct):
                fields = dict.fromkeys(found.__struct_fields__, True)
            else:
                continue
            if found.__repr__ is object.__repr__:
                continue
            named = [each for each in ("storage", "storage_options", "secrets") if each in fields]
            assert not [each for each in named if fields[each]], found
