"""Tables with types of every kind, and with what retention, refs and upkeep have to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import cycle, islice
from pathlib import Path
from typing import Final

import pyarrow as pa

import rowsieve
from rowsieve import Table
from tests.feature_matrix.feature import COUNT, FIRST, LAST, SECOND, TINY, Row, keyed
from tests.ternary_logic.kinds import KINDS, arrow_rows, schema_of

OUT_OF_PYTHON: Final = ("far_day", "far_ts")  # whose values `datetime` does not have


def _rows_of_every_type() -> pa.Table:
    """Each value of each kind of columns at least once, and a NULL in each."""
    kinds = {name: kind for name, kind in KINDS.items() if name not in OUT_OF_PYTHON}
    schema = schema_of(tuple(kinds))
    count = 1 + max(len(kind.values) for kind in kinds.values())
    cells = {name: [None, *islice(cycle(kind.values), count - 1)] for name, kind in kinds.items()}
    return arrow_rows(schema, {"id": range(count), **cells})


TYPED = _rows_of_every_type()


def every_type(folder: str) -> None:
    """A later commit hides some rows, and has them again."""
    properties = {"visibility": "eager", **TINY}
    table = rowsieve.create_table(folder, TYPED.slice(0, 20), key=["id"], properties=properties)
    table.upsert(TYPED.slice(10))


WIDENED: list[Row] = [
    {"id": i, "v": float(i), "d": datetime(1970, 1, 1) + timedelta(days=i)} for i in range(COUNT)
]
OF_WIDENED: Mapping[str, Callable[[Row], bool]] = {
    "v > 10.5": lambda row: row["v"] > 10.5,
    "id = 7 OR d < TIMESTAMP '1970-01-03 12:00:00'": lambda row: row["id"] in (0, 1, 2, 7),
}


def widened(folder: str) -> None:
    """A key and a column that had other types when their rows were written."""
    first = pa.table(
        {
            "id": pa.array(range(COUNT), pa.int32()),
            "v": pa.array(range(COUNT), pa.int16()),
            "d": pa.array(range(COUNT), pa.date32()),
        }
    )
    table = rowsieve.create_table(folder, first, key=["id"])
    with table.alter() as change:
        change.widen_column("id", "int64").widen_column("v", "float64")
        change.widen_column("d", "timestamp")
    table.upsert(pa.Table.from_pylist(WIDENED[::5], schema=table.schema))


def expiring(folder: str) -> None:
    """Rows that the condition matches were there and went; of the others, none matches."""
    table = keyed(folder, expire_rows_when="v < -1000")
    table.upsert({"id": [100, 101], "v": [-2000, -3000], "s": ["old", None]})
    assert table.maintain().expired is not None


def expires_again(table: Table) -> None:
    if not table.handle.read_only:
        before = table.to_arrow("id = 7")
        table.upsert(before.set_column(before.schema.get_field_index("v"), "v", [[-2000]]))
        assert table.maintain().expired is not None
        assert table.count("id = 7") == 0
        table.upsert(before)


def referred(folder: str) -> None:
    """A tag of the first version, and a branch with changes of its own."""
    table = rowsieve.create_table(folder, pa.Table.from_pylist(FIRST), key=["id"])
    table.tag("first")
    table.branch("audit").delete("id > 4")
    table.upsert(pa.Table.from_pylist(SECOND, schema=table.schema))


def keeps_refs(table: Table) -> None:
    """A clone has none."""
    for name in table.refs().column("name").to_pylist():
        rows = rowsieve.open_table(table.uri, ref=name).to_arrow(columns=["id", "v", "s"])
        expected = FIRST if name == "first" else FIRST[:5]
        assert sorted(rows.to_pylist(), key=lambda row: row["id"]) == expected


def with_versions(folder: str) -> None:
    rows = pa.Table.from_pylist(FIRST)
    table = rowsieve.create_table(
        folder, rows.schema, key=["id"], properties={"row_versions": "kept"}
    )
    table.upsert(rows)
    table.upsert(pa.Table.from_pylist(SECOND, schema=table.schema))
    table.compact()


def knows_versions(table: Table) -> None:
    changed = table.last_changed(0).read_all()
    assert sorted(changed.column("id").to_pylist()) == sorted(LAST)


def published_each_time(folder: str) -> None:
    """Each commit is published, also those of the ways."""
    keyed(folder, publish="iceberg, delta")


def is_published(table: Table) -> None:
    """Readers of Delta have the newest version."""
    if not table.handle.read_only and Path(table.uri.removeprefix("file://")).exists():
        table.set_properties({"audit_percent": "0"})
        foreign = rowsieve.from_delta(table.uri)
        assert sorted(foreign.to_arrow()["id"].to_pylist()) == sorted(LAST)
