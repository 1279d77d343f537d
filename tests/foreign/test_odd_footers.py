"""Files with footers of odd shapes: their rows under conditions are those of pyarrow in memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import SchemaMismatch
from rowsieve.parquet.foreign_footer.schema_tree import CONVERTED
from rowsieve.parquet.thrift import I32, encoded_value
from tests.foreign.damaged import Fields, edit_schema
from tests.foreign.odd_footers import SHAPES, conditions
from tests.profiles import IS_DEEP, some

OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt, "<=": operator.le, "=": operator.eq, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip
SLOW: Final = frozenset(["one column of 5,000 groups", "5,000 columns of one group"])
SMALL: Final = [name for name in SHAPES if name not in SLOW]


def judged(name: str, sign: str, value: Any) -> Any:
    column = pc.field(name)
    if value is None:
        return column.is_null() if sign == "null" else column.is_valid()
    return OPERATORS[sign](column, value)


@pytest.mark.parametrize("shape", [*SMALL, *some(sorted(SLOW), 2)])
def test_rows_and_pruning_are_those_of_pyarrow(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.parquet"
    rows = SHAPES[shape](path)
    table = rs.open_parquet(str(path))
    assert table.schema.names == rows.schema.names
    if shape not in SLOW:
        assert table.scan().to_arrow().to_pylist() == rows.to_pylist()
    for name, sign, value in conditions(rows, 20 if IS_DEEP else 4, seed=len(shape)):
        where = judged(name, sign, value)
        chosen = rows.filter(where).select([name])
        scan = table.scan(where, columns=[name])
        assert scan.to_arrow().to_pylist() == chosen.to_pylist(), (name, sign, value)
        assert table.count(where) == len(chosen)


def test_a_group_whose_chunks_lack_statistics_is_read(tmp_path: Path) -> None:
    path = tmp_path / "later.parquet"
    SHAPES["later groups without statistics"](path)
    metadata = pq.read_metadata(path)
    has = [metadata.row_group(i).column(0).statistics is not None for i in (0, 1)]
    assert has == [True, False]
    table = rs.open_parquet(str(path))
    assert table.count("n = 3481") == 1  # of the last group
    assert table.scan("n < 0").to_arrow().num_rows == 0


def test_columns_that_differ_by_an_annotation_only_have_types_of_their_own(tmp_path: Path) -> None:
    raw = pa.table({"s": pa.array([b"a", b"\xff"], pa.binary())})
    texts = pa.table({"s": pa.array([b"a", b"b"], pa.binary())})
    for name, rows in (("a", texts), ("b", raw)):
        pq.write_table(rows, tmp_path / f"{name}.parquet", store_schema=False)
    edit_schema(tmp_path / "a.parquet", as_enum)
    with pytest.raises(SchemaMismatch, match=r"string in .*a\.parquet and binary in .*b\.parquet"):
        rs.open_parquet(str(tmp_path))


def as_enum(place: int, element: Fields) -> None:
    if place:
        element[CONVERTED] = encoded_value(I32(4))
