"""Where tests are about files: their tables keep no change in the log unless a test says so.

Elsewhere new tables have the default, and changes of at most 16,384 bytes have no file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

import rowsieve
from rowsieve.config import current

OF_FILES: Final[Mapping[str, str]] = {
    "catalog/test_purge": "the files that a purge removes",
    "catalog/test_purge_interleavings": "files tell that newer entries were lost",
    "changes/event_order/test_event_order": "which files are read, and protocols",
    "changes/history/test_history": "which files are skipped",
    "changes/test_constraints": "constraints that statistics prove",
    "changes/test_current_rows": "which files are read for keys",
    "changes/test_evolving": "statistics of columns by id",
    "changes/test_evolving_fields": "statistics of fields by id",
    "changes/test_expiring_rows": "files that leave without being read",
    "changes/test_isolation": "statistics that refute a conflict",
    "changes/test_settings": "properties of the next file, and protocols",
    "changes/test_stored_vectors": "vectors of files, and the protocol of their tables",
    "changes/test_widening": "which old files are skipped",
    "cli/test_cli_catalog": "folders and files that commands leave",
    "cli/test_cli_cleaning": "which files are removed",
    "columns": "which statistics and pages of files are read by id",
    "compaction": "which files are rewritten",
    "differential/test_differential_tables": "which parts are skipped by their times",
    "differential/test_encodings_of_updates": "the forms of updates inside of files",
    "differential/test_in_datafusion": "files as rows of a table",
    "encodings": "the forms of rows inside of files",
    "executor": "which row groups and pages are decoded",
    "feature_matrix": "tables with inline changes are one of its features",
    "foreign": "files of other writers beside ours",
    "invariants": "files, vectors and bounds, which the rules name",
    "maintenance": "files that are checked, missed and removed",
    "metadata_tables/test_table_kinds": "files as rows of a table",
    "metrics": "counters of files and bytes",
    "mutants": "the histories in which a fault shows are those of files",
    "parquet": "the files themselves",
    "predicate/functions": "which parts their statistics skip",
    "predicate/pruning": "statistics of files, ours and those of others",
    "picture_facts": "drawings of files",
    "pictures": "drawings of files",
    "planner": "which files, row groups and pages are skipped",
    "procedures": "which files they rewrite",
    "providers/datafusion": "which files DataFusion reads itself",
    "providers/spark": "which files Spark reads itself",
    "providers/test_dataset": "bytes of files that are read, and damage to them",
    "publication": "which files readers of other formats get",
    "refs/test_branches": "which files a branch shares",
    "refs/test_tags": "which files a tag keeps",
    "retention": "which files are removed",
    "simulation": "each world draws where its small changes live",
    "stats": "the statistics of files",
    "storage": "lists of parts, their side files, and damage to them",
    "stores": "requests by path, and faults at each of them",
    "tables/test_bad_predicates": "errors of decoding, which pruning avoids",
    "tables/test_clustering": "the order of rows in files",
    "tables/test_damage": "damaged files",
    "tables/test_epoch_of_now": "which parts are skipped as time passes",
    "tables/test_special_files": "odd files in the place of ours",
    "test_computed_property": "requests for lists of parts that are files",
    "telemetry": "spans of requests for files",
    "ternary_logic": "each history draws where its small changes live",
    "traps": "statistics of files, and files that lie",
}
"""Folders and files of tests, and what about files they test."""


@pytest.fixture(scope="module", autouse=True)
def _tables_of_files(request: pytest.FixtureRequest) -> Iterator[None]:
    path = request.path.relative_to(Path(__file__).parent)
    places = {path.with_suffix("").as_posix(), *(each.as_posix() for each in path.parents)}
    if places.isdisjoint(OF_FILES):
        yield
        return
    former = rowsieve.configure(replace(current(), inline_bytes=0))
    yield
    rowsieve.configure(former)
