"""The tables below a folder of other projects' test data: Parquet files, Delta and Iceberg tables.

Each is opened twice: by Rowsieve, and by a reader of its own project, which judges. Some projects
keep the rows that a Delta table should have beside it, as Parquet files in `expected`; these judge
before any reader does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

import rowsieve as rs


@dataclass(frozen=True)
class Kind:
    """How tables of a format are opened, and how their judge reads them."""

    opened: Callable[[Path], rs.Table]
    judged: Callable[[Path], pa.Table]


@dataclass(frozen=True)
class Case:
    """One table of a corpus: its format, and its file or folder."""

    kind: str
    path: Path

    def open(self) -> rs.Table:
        return KINDS[self.kind].opened(self.path)

    def judged(self) -> pa.Table:
        return KINDS[self.kind].judged(self.path)


def cases(top: Path) -> list[Case]:
    """All tables below a folder, by path; files that belong to a Delta or Iceberg table are not."""
    return sorted(_cases(top), key=lambda case: case.path)


def _cases(top: Path) -> Iterator[Case]:
    for folder, inner, files in os.walk(top):
        here = Path(folder)
        if "_delta_log" in inner:
            yield Case("delta", here)
            inner[:] = []
        elif metadata := sorted((here / "metadata").glob("*.metadata.json"), key=_version):
            yield Case("iceberg", metadata[-1])
            inner[:] = []
        else:
            parquet = (here / name for name in files if name.endswith((".parquet", ".parq")))
            yield from (Case("parquet", path) for path in parquet)


def _version(path: Path) -> tuple[int, str]:
    """The version that metadata files start with: `v12.metadata.json`, `00012-….metadata.json`."""
    number = re.match(r"v?(\d+)", path.name)
    return int(number[1]) if number else -1, path.name


def _expected(table: Path) -> pa.Table | None:
    folder = table.parent / "expected"
    files = sorted(folder.rglob("*.parquet"))
    return pq.read_table(files) if files else None


def _delta_rows(path: Path) -> pa.Table:
    import deltalake

    expected = _expected(path)
    if expected is not None:
        return expected
    query = deltalake.QueryBuilder().register("judged", deltalake.DeltaTable(str(path)))
    return pa.table(query.execute("SELECT * FROM judged").read_all())


def _iceberg(path: Path) -> Any:
    """The table of a metadata file. Its location may be relative to a folder above: go there."""
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(str(path))
    location = Path(table.location())
    above = [folder for folder in path.parents if (folder / location).is_dir()]
    if not location.is_absolute() and above:
        os.chdir(above[0])
    return table


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "parquet": Kind(
            lambda path: rs.open_parquet(str(path), hive=False),
            lambda path: pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read(),
        ),
        "delta": Kind(lambda path: rs.from_delta(str(path)), _delta_rows),
        "iceberg": Kind(
            lambda path: rs.from_iceberg(_iceberg(path)),
            lambda path: _iceberg(path).scan().to_arrow(),
        ),
    }
)
