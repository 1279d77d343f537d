"""The traps of statistics: T17 to T19, T30 to T33. Each by its smallest story."""

from __future__ import annotations

import dataclasses
import math
import os
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.errors import UnsoundPruning
from rowsieve.planner.cache import PLANS
from rowsieve.storage.manifests.manifest import PartTable
from tests.executor.planted import lie
from tests.small_tables import appended, keyed

DOCUMENTS = pa.schema([("k", pa.int64()), ("doc", pa.json_())])


def documents(*parts: list[str], paths: str = "doc.a") -> Table:
    """A part for each list of documents."""
    batches, first = [], 0
    for part in parts:
        texts = pa.array(part, pa.string())
        batches.append(
            {
                "k": [*range(first, first + len(part))],
                "doc": pa.ExtensionArray.from_storage(pa.json_(), texts),
            }
        )
        first += len(part)
    return appended(*batches, schema=DOCUMENTS, properties={"json_statistics": paths})


def keys(table: Table, where: str) -> list[int]:
    """The rows that match, found with pruning and without."""
    found = sorted(table.scan(where).to_arrow()["k"].to_pylist())
    assert found == sorted(table.scan(where, pruning="off").to_arrow()["k"].to_pylist())
    return found


def test_t17_objects_at_a_path_are_distinguished() -> None:
    table = documents(
        ['{"a": null}'],
        ["{}"],
        ['{"a": 5}'],
        ['{"a": "5"}'],
        ['{"a": 1, "a": 9}'],
        ['{"a": [5]}'],
        ['{"a": 99999999999999999999}'],
    )
    assert keys(table, "doc->>'a' IS NULL") == [0, 1]  # a JSON null is text that is not there
    assert keys(table, "doc->'a' IS NULL") == [1]  # but a value
    assert keys(table, "doc->>'a' = '5'") == [2, 3]
    assert keys(table, "doc->>'a' = '[5]'") == [5]
    assert keys(table, "doc->>'a' = '9' OR doc->>'a' = '1'") == [4]
    assert keys(table, "doc->>'a' > '99999'") == [5, 6]
    assert table.scan("CAST(doc->>'a' AS double precision) > 100 AND k = 6").count() == 1


def test_t17_either_duplicate_may_count() -> None:
    table = documents(['{"a": 1, "a": 9}'], ['{"a": 5}'])
    for dialect, value in (("duckdb", 1), ("postgres", 9)):
        for number in (1, 9):
            found = table.scan(f"CAST(json_get_text(doc, 'a') AS int) = {number}", dialect=dialect)
            assert found.count() == (number == value)


def test_t18_a_key_that_statistics_leave_out_may_be_there() -> None:
    rare = ['{"a": 1}'] * 40 + ['{"a": 1, "b": "x"}']
    table = documents(rare, ['{"b": "y"}'] * 10, paths="doc")
    names = [name for name in table.handle.pinned.parts.table.column_names if "/b" in name]
    assert names  # one part knows it, the other does not
    assert keys(table, "doc->>'b' = 'x'") == [40]
    assert keys(table, "doc->>'b' >= 'x'") == [40, *range(41, 51)]
    assert table.scan("doc->>'b' = 'y'").explain().parts_read == 2


def test_t19_statistics_of_another_type_are_not_believed() -> None:
    table = appended({"k": [1], "v": [5]}, {"k": [2], "v": [50]})
    snapshot = table.handle.pinned
    parts = snapshot.parts.table
    for side in ("lower", "upper"):
        name = f"stats.{snapshot.schema.field('v').id}.{side}"
        place = parts.schema.get_field_index(name)
        parts = parts.set_column(place, name, pa.array(["5", "50"]))  # as text, when v was text
    table.handle.newest = table.handle.pinned = dataclasses.replace(
        snapshot, parts=PartTable(parts)
    )
    table.handle.read_only = True
    PLANS.clear()
    assert keys(table, "v > 6") == [2]
    assert table.scan("v > 6").explain().parts_read == 2


def test_t30_every_process_audits_the_same_parts() -> None:
    code = (
        "from rowsieve.executor.audit import Sample\n"
        "sample = Sample('9f', 40)\n"
        "print([i for i in range(64) if sample.has_part(f'part-{i}')])\n"
        "print([i for i in range(64) if sample.has_row_group('part-1', i)])\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert 10 < len(next(iter(found)).split()) < 100


def test_t31_a_soft_scan_is_right_where_pruning_is_wrong(caplog: pytest.LogCaptureFixture) -> None:
    table = appended({"k": [1, 2], "v": [5, 50]})
    where = "v > 10"
    lie(table, f"stats.{table.handle.pinned.schema.field('v').id}.upper", 6)
    assert table.scan(where).to_arrow().num_rows == 0  # what the lie does
    found = table.scan(where, pruning="soft", on_violation="report")
    assert found.to_arrow()["k"].to_pylist() == [2]
    assert found.metrics.audit_violations == 1
    assert "pruning is unsound" in caplog.text
    with pytest.raises(UnsoundPruning):
        table.scan(where, pruning="soft").to_arrow()


@pytest.mark.parametrize(
    ("fact", "values"),
    [
        ("lower", [None, None]),
        ("upper", [None, None]),
        ("lower", [math.nan, math.nan]),
        ("upper", [math.nan, math.nan]),
        ("lower", [60.0, 60.0]),  # above the upper one
        ("null_count", [None, None]),
        ("null_count", [7, 7]),  # more than there are rows
        ("null_count", [-1, -1]),
        ("nan_count", [None, None]),
        ("nan_count", [-5, 9]),
    ],
)
@pytest.mark.parametrize("where", ["v > 20", "v = 5", "v IS NULL", "v < 6", "v = 'NaN'"])
def test_t32_statistics_that_make_no_sense_fail_open(
    fact: str, values: list[Any], where: str
) -> None:
    schema = pa.schema([("k", pa.int64()), ("v", pa.float64())])
    table = appended(
        {"k": [1, 2], "v": [5.0, None]}, {"k": [3, 4], "v": [50.0, 51.0]}, schema=schema
    )
    right = keys(table, where)
    lie(table, f"stats.{table.handle.pinned.schema.field('v').id}.{fact}", values)
    assert keys(table, where) == right


def test_t33_a_critical_field_keeps_its_parents() -> None:
    schema = pa.schema(
        [
            pa.field("k", pa.int64(), nullable=False),
            ("noise", pa.string()),
            ("at", pa.struct([("lat", pa.float64()), ("name", pa.string())])),
        ]
    )
    properties = {
        "statistics_bytes": "0",
        "statistics_bytes_per_1000_rows": "0",
        "critical_columns": "at.lat",
    }
    table = keyed(schema=schema, properties=properties)
    for k in range(3):
        row = {"k": k, "noise": f"n{k}", "at": {"lat": float(k), "name": f"x{k}"}}
        table.upsert(pa.Table.from_pylist([row], schema=schema))
    assert table.writer_metrics.statistics_trimmed
    assert table.scan("(at).lat > 1.5").explain().parts_read == 1
    assert table.scan("at IS NULL").explain().parts_read == 0  # its ancestor
    assert table.scan("noise = 'n1'").explain().parts_read == 3  # trimmed
    assert table.scan("noise = 'n1'").count() == 1
    assert rs.open_table(table.uri).scan("k = 1").explain().parts_read == 1  # keys are critical
