"""Old parts, row groups and pages have the statistics of an added column's default (trap T20)."""

from __future__ import annotations

import datetime
import re
import struct
import uuid

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import UnprunablePredicate

ROWS = 200_000


@pytest.fixture(scope="module")
def table() -> Table:
    """One large part without c; c has the default 7. One small part with c = 8."""
    rows = pa.table({"id": range(ROWS), "x": [i // 100 for i in range(ROWS)]})
    made = rowsieve.create_table(f"memory:///pruned-{uuid.uuid4().hex}", rows, key=["id"])
    made.add_column("c", pa.int64(), default=7)
    made.add_column("d", pa.string())
    made.rename_column("x", "y")
    made.upsert(pa.table({"id": [ROWS], "y": [5], "c": [8], "d": ["d"]}))
    return made


@pytest.mark.parametrize(
    ("where", "parts"),
    [
        ("c = 7", 1),
        ("c = 8", 1),
        ("c = 9", 0),
        ("c > 6", 2),
        ("c IS NULL", 0),
        ("d IS NULL", 1),
        ("d IS NOT NULL", 1),
        ("d = 'd'", 1),
        ("y > 1999", 0),
        ("y = 5", 2),
        ("c = 7 AND d IS NULL", 1),
        ("c = 7 AND d = 'd'", 0),
    ],
)
def test_parts_are_pruned_by_the_default(table: Table, where: str, parts: int) -> None:
    scan = table.scan(where)
    assert sum(len(piece.parts) for split in scan.plan().splits for piece in split.pieces) == parts
    assert scan.count() == table.scan(where, pruning="off").count()


@pytest.mark.parametrize("where", ["c = 9 OR y = 1500", "d = 'q' OR y = 1500", "c < 7 OR y = 1500"])
def test_row_groups_and_pages_are_pruned_by_the_default(table: Table, where: str) -> None:
    scan = table.scan(where)
    assert scan.to_arrow().num_rows == 100
    assert scan.metrics.row_groups_read == 1
    assert scan.metrics.rows_decoded <= 2 * 8_192


def test_a_point_on_a_key_is_found_by_bloom_filters_of_old_parts(table: Table) -> None:
    assert table.scan("id = 5 AND c = 7").to_arrow().to_pylist() == [
        {"id": 5, "y": 0, "c": 7, "d": None}
    ]
    assert table.scan("id = 5 AND c = 8").to_arrow().num_rows == 0


def test_estimates_know_the_default(table: Table) -> None:
    columns = table.scan().statistics().columns
    assert columns["c"].null_count == 0
    assert (columns["c"].lower, columns["c"].upper) == (pa.scalar(7), pa.scalar(8))
    assert columns["d"].null_count == ROWS


def test_an_added_column_counts_as_prunable_before_any_part_has_it() -> None:
    made = rowsieve.create_table(
        f"memory:///pruned-{uuid.uuid4().hex}", pa.table({"id": [1]}), key=["id"]
    )
    made.add_column("c", pa.int64(), default=7)
    made.require_pruning("c = 7")
    with pytest.raises(UnprunablePredicate):
        made.require_pruning("c = c")


def test_a_checkpoint_in_shards_keeps_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowsieve.storage.log.checkpoint.SHARDED_FROM", 2)
    made = rowsieve.create_table(
        f"memory:///pruned-{uuid.uuid4().hex}",
        pa.table({"id": [1], "b": [5]}),
        key=["id"],
        properties={"checkpoint_interval": "4"},
    )
    made.upsert(pa.table({"id": [2], "b": [6]}))
    made.drop_column("b")
    made.add_column("b", pa.int64(), default=50)
    made.upsert(pa.table({"id": [3], "b": [5]}))  # version 4: the checkpoint
    made.add_column("e", pa.float64(), default=float("nan"))
    opened = rowsieve.open_table(made.uri)
    assert opened.scan("b = 50").to_arrow().num_rows == 2
    assert opened.scan("b = 5").to_arrow().to_pylist()[0]["id"] == 3
    assert opened.count("b = 6") == 0
    assert opened.count("e = CAST('NaN' AS double precision)") == 3
    assert opened.count("e > 1") == 3  # NaN is the greatest value
    assert opened.count("e < 1") == 0


def test_an_explanation_counts_the_bytes_of_columns_by_id(table: Table) -> None:
    renamed = str(table.scan("y = 1500", columns=["y"]).explain(row_groups=True))
    whole = re.search(r"of ([\d,]+) bytes", renamed)
    assert whole is not None
    assert whole[1] != "0"
    assert '"c" = 7' in str(table.scan("c = 7", columns=["c"]).explain(row_groups=True))


def _geometry(x: float) -> bytes:
    return b"\x01" + struct.pack("<Idd", 1, x, 2 * x)


_GEOMETRY = pa.field("c", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})
_JSON = '{"a": 5, "b": {"c": "x"}, "l": [1, "y"], "n": null, "f": 1.5}'


@pytest.mark.parametrize(
    ("type_", "default", "refuted", "kept"),
    [
        pytest.param(
            "json", _JSON,
            [
                "(c->>'a')::int = 6", "(c->>'a')::int > 5", "c->'b'->>'c' = 'y'",
                "c->>'zz' = 'p'", "c->'l'->>1 = 'x'", "(c->>'f')::float8 > 2", "c->>'n' = 'x'",
            ],
            ["(c->>'a')::int = 5", "c->'b'->>'c' = 'x'", "c->>'zz' IS NULL", "c->'l'->>1 = 'y'"],
            id="json",
        ),
        pytest.param("json", None, ["(c->>'a')::int = 6"], ["c->>'a' IS NULL"], id="json null"),
        pytest.param(
            "interval", pa.scalar((1, 0, 0), pa.month_day_nano_interval()),
            ["c > interval '30 days'"], ["c = interval '30 days'"], id="interval",
        ),
        pytest.param("numeric", "1e60", ["c = 6", "c < 1"], ["c > 1"], id="numeric"),
        pytest.param("numeric", "NaN", ["c = 6", "c < 1"], ["c > 1"], id="numeric nan"),
        pytest.param(
            _GEOMETRY, _geometry(1.0),
            ["ST_XMin(c) > 1", "c && ST_MakeEnvelope(5, 5, 9, 9)"],
            ["ST_YMax(c) = 2", "c && ST_MakeEnvelope(0, 0, 9, 9)"], id="geometry",
        ),
        pytest.param(_GEOMETRY, b"junk", ["ST_XMin(c) < 1"], ["ST_XMin(c) IS NULL"], id="no wkb"),
        pytest.param(
            pa.list_(pa.int64()), None,
            ["cardinality(c) > 0", "c[1] = 5", "c = ARRAY[1]", "5 = ANY(c)"], ["c IS NULL"],
            id="list",
        ),
        pytest.param(
            pa.map_(pa.string(), pa.int64()), None, ["c IS NOT NULL"], ["c IS NULL"], id="map"
        ),
    ],
)  # fmt: skip
def test_values_derived_from_a_default_prune(
    type_: object, default: object, refuted: list[str], kept: list[str]
) -> None:
    made = rowsieve.create_table(
        f"memory:///derived-{uuid.uuid4().hex}", pa.table({"id": [1, 2]}), key=["id"]
    )
    with made.alter() as change:
        change.add_column("c", type_, default=default)
    for newer in (False, True):  # the second time, a newer part has the column
        if newer:
            made.upsert(pa.table({"id": [9], "c": made.to_arrow(where="id = 1")["c"]}))
        for where in refuted:
            scan = made.scan(f"id < 5 AND {where}")
            assert scan.explain().parts_read == 0, where
            assert made.count(where) == made.scan(where, pruning="off").count() == 0
        for where in kept:
            assert made.count(where) == made.scan(where, pruning="off").count() > 0, where


@pytest.mark.parametrize(
    ("type_", "default", "where"),
    [
        ("numeric", "5", "(s).c = 5"),
        ("interval", datetime.timedelta(days=30), "(s).c = interval '1 month'"),
    ],
)
def test_a_derived_default_is_null_where_its_struct_is(
    type_: str, default: object, where: str
) -> None:
    rows = pa.table({"id": [1, 2, 3], "s": [{"a": 1}, None, {"a": 2}]})
    made = rowsieve.create_table(f"memory:///derived-{uuid.uuid4().hex}", rows)
    made.add_column("s.c", type_, default=default)
    assert made.count(where) == made.scan(where).to_arrow().num_rows == 2
    assert made.count(f"NOT ({where})") == 0
    assert made.count(f"({where}) IS NULL") == 1


@pytest.mark.parametrize(
    "where", ["(d->>'a')::int = 6 OR y = 1500", "e > interval '1 day' OR y = 1500"]
)
def test_derived_defaults_prune_row_groups_and_pages(where: str) -> None:
    rows = pa.table({"id": range(ROWS), "y": [i // 100 for i in range(ROWS)]})
    made = rowsieve.create_table(f"memory:///derived-{uuid.uuid4().hex}", rows, key=["id"])
    made.add_column("d", "json", default='{"a": 5}')
    made.add_column("e", "interval", default=datetime.timedelta(hours=1))
    scan = made.scan(where)
    assert scan.to_arrow().num_rows == 100
    assert scan.metrics.row_groups_read == 1
    assert scan.metrics.rows_decoded <= 2 * 8_192
