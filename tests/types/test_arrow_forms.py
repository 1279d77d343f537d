"""Which Arrow types a table accepts, and what it makes of them: the tables of the types page.

`python -m tests.types.test_arrow_forms` writes them anew.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from datafusion import SessionContext

import rowsieve as rs
from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.errors import RowsieveError, SchemaMismatch
from rowsieve.types.encodings import schema_of
from rowsieve.types.interval_bytes import from_arrow
from rowsieve.types.logical import (
    Interval,
    LogicalType,
    Numeric,
    is_nested,
    is_ordered,
    type_name,
)
from rowsieve.types.numeric_bytes import STORAGE, from_numbers
from tests.types.arrow_forms import field_of, forms

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "types.md"
FORMS = forms()
START, STOP = "<!-- forms -->\n", "\n<!-- end -->"


def _data(name: str) -> pa.Table:
    schema = pa.schema([pa.field("id", pa.int64()), field_of(name, FORMS[name])])
    return pa.table([pa.array([1, 2, 3]), FORMS[name]], schema=schema)


def _refusal(name: str) -> str | None:
    try:
        schema_of(_data(name).schema)
    except SchemaMismatch as error:
        return str(error)
    return None


ACCEPTED = [name for name in FORMS if _refusal(name) is None]
REFUSED = [name for name in FORMS if name not in ACCEPTED]


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_accepted_form_is_read_back_in_every_way(name: str, tmp_path: Path) -> None:
    data = _data(name)
    table = rs.create_table(str(tmp_path / "t"), data, key=["id"])
    table.upsert(data)
    wanted = [str(value) for value in FORMS[name].to_pylist()]
    if name == "arrow.uuid":
        wanted = [str(value) for value in FORMS[name].storage.to_pylist()]
    if name == "struct of uuid":
        wanted = [str({"m": None if m is None else m.bytes}) for m in _members(FORMS[name])]
    got = table.scan().to_arrow().column("c")
    if pa.types.is_duration(FORMS[name].type) or pa.types.is_interval(FORMS[name].type):
        wanted = [str(value) for value in from_arrow(FORMS[name]).to_pylist()]
    if got.type == STORAGE:
        wanted = [str(value) for value in from_numbers(FORMS[name]).to_pylist()]
    if "zone" not in name:  # instants are printed in the zone of their type
        assert [str(value) for value in got.to_pylist()] == wanted
    dataset = table.to_dataset()
    assert dataset.to_table().column("c").to_pylist() == got.to_pylist()
    assert pl.scan_pyarrow_dataset(dataset).collect().height == 3
    assert table.scan_polars().collect().height == 3
    counts = "SELECT count(*), count(c) FROM dataset"
    assert duckdb.execute(counts).fetchall() == [(3, 3 - got.null_count)]
    context = SessionContext()
    context.register_table("t", table)
    seen = context.sql("SELECT c FROM t ORDER BY id").to_arrow_table().column("c")
    assert seen.cast(got.type).to_pylist() == got.to_pylist()
    assert table.scan(where="c IS NULL").count() == got.null_count


@pytest.mark.parametrize("name", REFUSED)
def test_another_form_is_refused_by_name_before_anything_is_written(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(SchemaMismatch, match="which tables do not support; ") as refusal:
        rs.create_table(str(tmp_path / "t"), _data(name), key=["id"])
    assert str(FORMS[name].type.value_type if "list" in name else FORMS[name].type) in str(
        refusal.value
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("extension", "storage"),
    [
        (b"rowsieve.uuid.2", pa.binary(16)),
        (b"rowsieve.uuid.1", pa.string()),
        (b"rowsieve.json.1", pa.binary()),
        (b"rowsieve.money.1", pa.int64()),
        (b"rowsieve.", pa.int64()),
        (b"rowsieve.\xff", pa.list_(pa.int64())),
    ],
)
def test_an_extension_of_ours_that_is_unknown_is_a_named_error(
    extension: bytes, storage: pa.DataType, tmp_path: Path
) -> None:
    field = pa.field("c", storage, metadata={b"ARROW:extension:name": extension})
    for wrapped in (field, pa.field("outer", pa.struct([field]))):
        schema = pa.schema([pa.field("id", pa.int64()), wrapped])
        with pytest.raises(SchemaMismatch, match=r"'c' has the extension type 'rowsieve.*remove"):
            rs.create_table(str(tmp_path / "t"), schema, key=["id"])


def test_the_page_shows_the_forms_as_they_are() -> None:
    shown = re.findall(f"{START}(.*?){STOP}", PAGE.read_text(), re.DOTALL)
    assert shown == [_accepted(), _refused()]


def _members(values: pa.Array) -> Sequence[uuid.UUID | None]:
    members: Sequence[uuid.UUID | None] = values.field(0).to_pylist()
    return members


def _accepted() -> str:
    lines = [
        "| given | column | rows, DuckDB by `to_dataset` | Polars | Spark | compares | bounds |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in ACCEPTED:
        schema, _ = schema_of(_data(name).schema)
        table = rs.create_table(f"memory://{name.encode().hex()}", _data(name), key=["id"])
        dataset, type_ = table.to_dataset(), schema.field("c").type
        cells = (
            name,
            f"`{type_name(type_)}`",
            f"`{dataset.schema.field('c').type}`, {_duckdb_type(dataset)}",
            str(pl.scan_pyarrow_dataset(dataset).collect_schema()["c"]),
            spark_schema(schema.fields)["c"].dataType.simpleString(),
            _compares(table),
            _bounds(type_),
        )
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines)


def _bounds(type_: LogicalType) -> str:
    if isinstance(type_, Interval):
        return "of lengths"
    if isinstance(type_, Numeric):
        return "yes"
    if is_nested(type_):
        return "of members"
    return "yes" if is_ordered(type_) else "no"


def _duckdb_type(dataset: object) -> str:
    return str(duckdb.execute("DESCRIBE SELECT c FROM dataset").fetchall()[0][1])


def _compares(table: rs.Table) -> str:
    for operator, found in (("<=", "`<`"), ("=", "`=`")):
        try:
            table.scan(where=f"c {operator} c").count()
        except RowsieveError:
            continue
        return found
    return "no"


def _refused() -> str:
    lines = ["| given | what the error says |", "|---|---|"]
    for name in REFUSED:
        _, _, remedy = (_refusal(name) or "").partition("; ")
        lines.append(f"| {name} | {remedy} |")
    return "\n".join(lines)


def write() -> None:
    """Put the tables as they are now into the page."""
    tables = iter([_accepted(), _refused()])
    PAGE.write_text(
        re.sub(
            f"{START}.*?{STOP}",
            lambda _: f"{START}{next(tables)}{STOP}",
            PAGE.read_text(),
            flags=re.DOTALL,
        )
    )


if __name__ == "__main__":
    write()
