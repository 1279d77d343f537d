"""A column `s.x` and the member `x` of a struct `s` have the same path in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs


@pytest.mark.parametrize("value", [1, 1.0, "a"])
def test_a_leaf_does_not_get_the_settings_of_a_column_with_its_path(
    tmp_path: Path, value: Any
) -> None:
    members = [{"x": 1.0}, {"x": float("nan")}] * 40
    data = pa.table({"s.x": [value] * 80, "s": members})
    table = rs.create_table(tmp_path / "t", data.schema)
    table.append(data)
    (file,) = (tmp_path / "t" / "data").glob("*.parquet")
    leaf = pq.read_metadata(file).row_group(0).column(1)
    assert leaf.path_in_schema == "s.x"
    assert leaf.statistics is None  # it has NaN
    assert "RLE_DICTIONARY" not in leaf.encodings
    assert table.count("(s).x > 5") == 40
