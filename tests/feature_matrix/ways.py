"""What can happen to a table; each way returns the table in which its features must still hold.

A way that joins is a function and an entry of `WAYS`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyiceberg.table import StaticTable

import rowsieve
from rowsieve import Table
from rowsieve.errors import InvalidSchemaChange, UnsupportedOperation
from tests.feature_matrix.feature import Feature

Way = Callable[[str, Feature, Path], Table]
REPOSITORY = Path(__file__).parent.parent.parent


def reopen(_: str, __: Feature, folder: Path) -> Table:
    return rowsieve.open_table(folder)


def other_process(name: str, _: Feature, folder: Path) -> Table:
    command = [sys.executable, "-m", "tests.feature_matrix", name, str(folder)]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return rowsieve.open_table(folder)


def compact(_: str, __: Feature, folder: Path) -> Table:
    table = rowsieve.open_table(folder)
    table.compact()
    return table


def maintain(_: str, __: Feature, folder: Path) -> Table:
    table = rowsieve.open_table(folder)
    table.maintain()
    return table


def vacuum(_: str, __: Feature, folder: Path) -> Table:
    table = rowsieve.open_table(folder)
    table.expire_versions(retain_last=1)
    table.remove_orphans(grace_s=0.0)
    return table


def restore(_: str, __: Feature, folder: Path) -> Table:
    table = rowsieve.open_table(folder)
    version = table.version
    table.delete("TRUE")
    assert table.count() == 0
    table.restore(version)
    return table


def restore_columns(_: str, feature: Feature, folder: Path) -> Table:
    """Restore rows from before a change of columns."""
    table = rowsieve.open_table(folder)
    version = table.version
    with table.alter() as change:
        change.add_column("one more", "int64", default=5)
    table.delete(f'"{feature.key}" IS NOT NULL')
    table.restore(version)
    return table


def evolve(_: str, feature: Feature, folder: Path) -> Table:
    table = rowsieve.open_table(folder)
    other = next(name for name in table.schema.names if name not in (feature.key, *table.key))
    with table.alter() as change:
        change.add_column("one more", "int64", default=5, after=feature.key)
    with suppress(InvalidSchemaChange):  # a property names the column
        table.rename_column(other, "for a while")
        table.rename_column("for a while", other)
    return table


def rewrite_all(_: str, feature: Feature, folder: Path) -> Table:
    """Write all rows anew, as an update that changes nothing."""
    table = rowsieve.open_table(folder)
    other = next(name for name in table.schema.names if name not in (feature.key, *table.key))
    if other.isidentifier():
        table.update({other: other})
    return table


def publish(_: str, feature: Feature, folder: Path) -> Table:
    """Readers of Iceberg have the same rows, by their numbers."""
    table = rowsieve.open_table(folder)
    try:
        place = table.publish("iceberg").metadata_location
    except UnsupportedOperation:
        table.compact()
        try:
            place = table.publish("iceberg").metadata_location
        except UnsupportedOperation:  # Iceberg has no such type
            return table
    ids = StaticTable.from_metadata(str(place)).scan(selected_fields=(feature.key,)).to_arrow()
    assert sorted(ids[feature.key].to_pylist()) == sorted(row[feature.key] for row in feature.rows)
    return table


def moved_folder(_: str, __: Feature, folder: Path) -> Table:
    other = folder.parent / "moved"
    shutil.copytree(folder, other)
    shutil.rmtree(folder)
    return rowsieve.open_table(other)


def clone(_: str, __: Feature, folder: Path) -> Table:
    table = rowsieve.open_table(folder).clone(folder.parent / "clone")
    shutil.rmtree(folder)
    return table


def pinned(_: str, __: Feature, folder: Path) -> Table:
    """The version stays readable after later commits."""
    table = rowsieve.open_table(folder)
    version = table.version
    table.delete("TRUE")
    return rowsieve.open_table(folder, version=version)


def moved_in(_: str, __: Feature, folder: Path) -> Table:
    """The table is one of a database, which has its later commits."""
    table = rowsieve.Database(folder.parent / "database").move_in("t", folder)
    table.compact()
    return rowsieve.open_table(folder)


def moved_out(_: str, __: Feature, folder: Path) -> Table:
    """The table was one of a database, and has its log again."""
    database = rowsieve.Database(folder.parent / "database")
    database.move_in("t", folder).analyze()
    assert database.move_out("t").uri == rowsieve.open_table(folder).uri
    shutil.rmtree(folder.parent / "database")
    return rowsieve.open_table(folder)


def export_iceberg(_: str, feature: Feature, folder: Path) -> Table:
    """Publish as Iceberg, and open what readers of it have: the same rows."""
    table = rowsieve.open_table(folder)
    place = _published(table, "iceberg").metadata_location
    _same_rows(rowsieve.from_iceberg(StaticTable.from_metadata(str(place))), table, feature)
    return table


def export_delta(_: str, feature: Feature, folder: Path) -> Table:
    """Publish as Delta, and open what readers of it have: the same rows."""
    table = rowsieve.open_table(folder)
    _published(table, "delta")
    _same_rows(rowsieve.from_delta(folder), table, feature)
    return table


def _published(table: Table, format_: Literal["iceberg", "delta"]) -> Any:
    """Publish the table; rows that no file has are written into files first."""
    try:
        return table.publish(format_)
    except UnsupportedOperation:
        table.compact()
        return table.publish(format_)


def _same_rows(foreign: Table, table: Table, feature: Feature) -> None:
    """Compare all rows with those of the table, in the types that the format has."""
    names = feature.data.schema.names
    rows = foreign.to_arrow(columns=names)
    own = table.to_arrow(columns=names).cast(rows.schema, safe=False)
    assert sorted(map(repr, rows.to_pylist())) == sorted(map(repr, own.to_pylist()))
    assert foreign.count() == len(feature.rows)


def written_from_a_log(_: str, feature: Feature, folder: Path) -> Table:
    """A writer has a row in its log while the table is compacted, and deletes it again."""
    table, other = rowsieve.open_table(folder), rowsieve.open_table(folder)
    with table.writer(wal_dir=folder.parent / "log", flush_interval_s=100.0) as writer:
        known = table.to_arrow(columns=[*table.schema.names]).slice(0, 1)
        key = known.schema.get_field_index(feature.key)
        fresh = pa.array(["~"] if pa.types.is_string(known.schema[key].type) else [100_000])
        row = known.set_column(key, known.schema[key], fresh.cast(known.schema[key].type))
        where = f'"{feature.key}" = {fresh[0].as_py()!r}'
        (writer.upsert if table.key else writer.append)(row).result()
        other.compact()
        assert (other.count(where), table.count(where)) == (0, 1)
        writer.flush()
        assert table.delete(where).rows_deleted == 1
    return rowsieve.open_table(folder)


WAYS: Mapping[str, Way] = {
    "reopen": reopen,
    "other process": other_process,
    "compact": compact,
    "maintain": maintain,
    "vacuum": vacuum,
    "restore": restore,
    "restore columns": restore_columns,
    "evolve": evolve,
    "rewrite": rewrite_all,
    "publish": publish,
    "export to Iceberg": export_iceberg,
    "export to Delta": export_delta,
    "written from a log": written_from_a_log,
    "moved folder": moved_folder,
    "clone": clone,
    "pinned version": pinned,
    "moved in": moved_in,
    "moved out": moved_out,
}
