"""What an error about foreign files, tables or stores advises is done, and works."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import SchemaMismatch
from tests.foreign.file_refusals import OF_FILES, write
from tests.foreign.refusals import Refusal
from tests.foreign.table_refusals import OF_TABLES

REFUSALS = {**OF_FILES, **OF_TABLES}


def test_no_two_refusals_have_one_name() -> None:
    assert not OF_FILES.keys() & OF_TABLES.keys()


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_the_advice_of_a_refusal_works(refusal: Refusal, tmp_path: Path) -> None:
    with pytest.raises(refusal.error, match=refusal.advice):
        refusal.call(tmp_path)
    table = refusal.followed(tmp_path)
    rows = table.to_arrow()
    assert table.count() == len(rows) >= 1
    assert table.count("v >= 1") == table.scan("v >= 1").to_arrow().num_rows == len(rows)


def test_a_column_that_the_table_lacks_is_added_first_or_left_out(tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path / "lake")
    table = catalog.create_table("db.t", pa.table({"v": [0]}))
    path = write(tmp_path / "a.parquet", v=[1], w=[2])
    call = f"CALL system.add_files('db', 't', '{path}')"
    with pytest.raises(SchemaMismatch, match="Add the column first, or write the file without it"):
        catalog.call(call)
    narrow = write(tmp_path / "b.parquet", v=[3])
    catalog.call(f"CALL system.add_files('db', 't', '{narrow}')")
    table.add_column("w", "int64")
    catalog.call(call)
    table.refresh()
    rows = sorted(table.to_arrow().to_pylist(), key=lambda row: row["v"])
    assert rows == [{"v": 0, "w": None}, {"v": 1, "w": 2}, {"v": 3, "w": None}]
