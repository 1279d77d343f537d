"""A file that is gone: damage of the newest version, in each way to read it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import CorruptData
from rowsieve.providers.datafusion import SessionContext


def test_a_missing_file_of_the_newest_version_is_damage_for_each_reader(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", pa.table({"id": [1]}), ["id"])
    for file in (tmp_path / "t" / "data").iterdir():
        file.unlink()
    session = SessionContext()
    session.register_table("t", rs.open_table(tmp_path / "t"))
    with pytest.raises(CorruptData, match="is missing"):
        session.sql("SELECT * FROM t").to_arrow_table()
    with pytest.raises(CorruptData, match="is missing"):
        table.to_arrow()
