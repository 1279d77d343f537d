"""The property `cluster_by`: where rows are written depends on it, and no answer does."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.errors import InvalidInput, InvalidSchemaChange
from rowsieve.executor import sorted_rows
from rowsieve.objects import open_store
from rowsieve.storage.parts import clustered_rows
from rowsieve.storage.parts.part_writer import PartWriter
from tests.profiles import examples

SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.float64()),
        ("t", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("d", pa.decimal128(9, 2)),
        ("l", pa.list_(pa.int64())),
        ("s", pa.struct([("x", pa.int64()), ("l", pa.list_(pa.int64()))])),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("n", pa.int64()),
    ]
)
ORDERS = ["a", "b DESC NULLS FIRST, t", "zorder(a, b)", "hilbert(a, b, t)", "hilbert(ts, d)"]
ORDERS += ["l DESC", "s, a", "zorder(s, l)"]


def rows_of(numbers: range, seed: int = 0) -> pa.Table:
    """Rows with few values of each column, NULL and NaN among them; `n` identifies a row."""
    drawn = np.random.default_rng([seed, numbers.start])
    count = len(numbers)
    odd = drawn.integers(0, 12, (5, count))
    return pa.table(
        {
            "a": pa.array(odd[0] - 3, mask=odd[0] == 0),
            "b": pa.array(np.where(odd[1] == 1, math.nan, odd[1] / 2), mask=odd[1] == 0),
            "t": [None if v == 0 else "abc"[: v % 4] for v in odd[2]],
            "ts": pa.array(odd[3] * 10**12, mask=odd[3] == 0).cast(SCHEMA.field("ts").type),
            "d": [None if v == 0 else Decimal(int(v)) for v in odd[4]],
            "l": [None if v == 0 else list(range(v % 3, v)) for v in odd[0].tolist()],
            "s": [None if v == 1 else {"x": v % 3, "l": [v]} for v in odd[1].tolist()],
            "m": [[("k", v)] for v in odd[0].tolist()],
            "n": numbers,
        },
        schema=SCHEMA,
    )


def content(table: rs.Table, where: Any = None) -> list[str]:
    return sorted(map(repr, table.scan(where).to_arrow().to_pylist()))


def orders(table: rs.Table) -> list[str | None]:
    return table.handle.pinned.parts.sort_orders()


def table_at(path: Path, order: str | None, **properties: str) -> rs.Table:
    given = {**properties, **({} if order is None else {"cluster_by": order})}
    return rs.create_table(path, SCHEMA, properties=given)


@pytest.mark.parametrize("order", ORDERS)
def test_changes_and_compaction_have_the_answers_of_an_unclustered_table(
    tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_rows, "SORT_BYTES", 2_000)
    tables = [table_at(tmp_path / name, by) for name, by in (("a", order), ("b", None))]
    for table in tables:
        table.append(rows_of(range(100)))
        table.append(rows_of(range(100, 150)))
        table.delete("a = 2 OR n IN (3, 101)")
        table.update({"t": "upper(t)"}, where="b > 3")
        table.overwrite(rows_of(range(150, 160)), where="n >= 150")
    for where in (None, "a > 1", "b IS NULL OR t = 'AB'", "ts < timestamptz '1970-03-01 0:00Z'"):
        assert content(tables[0], where) == content(tables[1], where)
    tables[0].compact()
    assert content(tables[0]) == content(tables[1])
    (recorded,) = orders(tables[0])
    assert recorded is not None


@examples(25)
@given(counts=st.lists(st.integers(0, 60), min_size=1, max_size=4))
def test_a_part_that_records_a_plain_order_has_it(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int]
) -> None:
    table = table_at(tmp_path_factory.mktemp("t"), "b DESC NULLS FIRST, a")
    for seed, count in enumerate(counts):
        table.append(rows_of(range(count), seed))
    table.compact()
    found = table.scan().to_arrow()
    rows = list(zip(found.column("b").to_pylist(), found.column("a").to_pylist(), strict=True))

    def place(row: tuple[float | None, int | None]) -> tuple[float, float]:
        """NULL is first in both columns; NaN is above every number, so it descends from there."""
        b, a = row
        first = -math.inf if b is None else -1e300 if math.isnan(b) else -b
        return (first, -math.inf if a is None else a)

    assert list(map(place, rows)) == sorted(map(place, rows))


def test_parts_in_the_order_of_a_struct_are_skipped_by_its_fields(tmp_path: Path) -> None:
    drawn = np.random.default_rng(3).permutation(60_000)
    place = pa.array([{"x": i // 600, "y": i % 600} for i in drawn.tolist()])
    pages = {}
    for order in ("", "place"):
        given = {"cluster_by": order} if order else {}
        table = rs.create_table(tmp_path / f"t{order}", {"place": place}, properties=given)
        scan = table.scan("(place).x = 40")
        found = scan.explain(row_groups=True).groups[0].parts[0].row_groups
        assert found is not None
        pages[order] = found.pages_read
        assert scan.to_arrow().num_rows == 600
    rows = table.to_arrow()["place"].to_pylist()
    assert rows == sorted(rows, key=lambda row: (row["x"], row["y"]))
    assert pages["place"] * 3 <= pages[""]


def test_box_of_two_columns_reads_few_pages(tmp_path: Path) -> None:
    drawn = np.random.default_rng(5)
    count = 140_000
    data = pa.table({"a": drawn.integers(0, 1_000, count), "b": drawn.random(count)})
    pages = {}
    for order in ("", "zorder(a, b)", "hilbert(a, b)"):
        given = {"cluster_by": order} if order else {}
        table = rs.create_table(tmp_path / f"t{order[:1]}", data, properties=given)
        scan = table.scan("a >= 210 AND a < 310 AND b >= 0.61 AND b < 0.71")
        found = scan.explain(row_groups=True).groups[0].parts[0].row_groups
        assert found is not None
        pages[order] = found.pages_read
        assert scan.to_arrow().num_rows == scan.count() == expected_in_box(data)
    assert pages["zorder(a, b)"] * 3 <= pages[""]
    assert pages["hilbert(a, b)"] * 3 <= pages[""]


def expected_in_box(data: pa.Table) -> int:
    a, b = data.column("a").to_numpy(), data.column("b").to_numpy()
    return int(((a >= 210) & (a < 310) & (b >= 0.61) & (b < 0.71)).sum())


def test_parts_record_the_order_of_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_at(tmp_path, "a DESC, t NULLS LAST", checkpoint_interval="1")
    table.append(rows_of(range(20)))
    table.set_properties({"cluster_by": "hilbert(a, b)"})
    table.append(rows_of(range(20, 40)))
    table.unset_properties(["cluster_by"])
    table.append(rows_of(range(40, 60)))
    plain = "1 DESC NULLS LAST, 3 ASC NULLS LAST"
    assert set(orders(rs.open_table(tmp_path))) == {plain, "hilbert(1, 2)", None}
    table.set_properties({"cluster_by": "zorder(b, a)"})
    table.compact()
    assert orders(rs.open_table(tmp_path)) == ["zorder(2, 1)"]
    table.restore(version=2)
    assert orders(rs.open_table(tmp_path)) == [plain]
    monkeypatch.setattr(clustered_rows, "RUN_BYTES", 1)
    snapshot = table.handle.pinned
    writer = PartWriter(open_store(table.uri), snapshot.schema, (), {"cluster_by": "a"}, 0)
    for _ in range(2):
        writer.write(rows_of(range(100)))
    assert writer.finish().sort_orders() == [None], "a part of two runs has no order"


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        ("nope", "names 'nope', which is not a column; the columns are a, b"),
        ("m", "column 'm' of type .* have no order"),
        ("zorder(a)", "has 1 columns"),
        ("a, a", "twice"),
        ("", "cannot be read"),
        ("hilbert(a, b", "cannot be read"),
    ],
)
def test_orders_that_do_not_fit_are_refused(tmp_path: Path, order: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        table_at(tmp_path / "new", order)
    assert not (tmp_path / "new").exists()
    table = table_at(tmp_path / "old", None)
    with pytest.raises(InvalidInput, match=reason):
        table.set_properties({"cluster_by": order})
    assert table.version == 0


def test_tables_with_a_key_keep_the_order_of_the_key(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="for tables without a key"):
        rs.create_table(tmp_path, SCHEMA, key=["n"], properties={"cluster_by": "a"})
    table = rs.create_table(tmp_path, SCHEMA, key=["n"])
    with pytest.raises(InvalidInput, match="for tables without a key"):
        table.set_properties({"cluster_by": "a"})


def test_clustered_column_is_renamed_after_the_property(tmp_path: Path) -> None:
    table = table_at(tmp_path, "zorder(a, t)")
    table.append(rows_of(range(10)))
    with pytest.raises(InvalidSchemaChange, match="unset_properties"):
        table.rename_column("t", "u")
    with pytest.raises(InvalidSchemaChange, match="unset_properties"):
        table.drop_column("a")
    with (  # noqa: PT012 # the commit is at the end of the block
        pytest.raises(InvalidSchemaChange, match="cluster_by name a column whose name becomes"),
        table.alter() as alter,
    ):
        alter.rename_column("t", "u")
        alter.rename_column("b", "t")
    table.rename_column("b", "c")
    table.set_properties({"cluster_by": "zorder(a, c)"})
    names = ["c" if name == "b" else name for name in SCHEMA.names]
    table.append(rows_of(range(10, 20)).rename_columns(names))
    assert orders(table) == ["zorder(1, 3)", "zorder(1, 2)"]
