"""Shredded JSON through the table: fewer bytes are read, and nothing else changes."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.table import StaticTable
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.cli.app import app
from rowsieve.errors import InvalidInput, InvalidSchemaChange
from rowsieve.providers.datafusion import SessionContext
from tests import random_tables
from tests.profiles import examples
from tests.small_tables import appended, fresh_uri

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("j", pa.json_())])
SHREDDED = {"json_shredding": "j.kind, j.user.id"}
GROUP_ROWS, GROUPS = 40, 20  # pages of 10 rows
HIDDEN = "_rowsieve_shredded"


@pytest.fixture(scope="module", autouse=True)
def tiny_row_groups() -> Iterator[None]:
    yield from random_tables.tiny_row_groups(GROUP_ROWS)


def rows(ids: Sequence[int], documents: Sequence[str | None]) -> pa.Table:
    texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(documents, pa.string()))
    return pa.table([pa.array(ids, pa.int64()), texts], schema=SCHEMA)


def document(number: int) -> str:
    pad = f"x{number * 7919:08x}" * 40
    return json.dumps({"kind": f"k{number // 10:03}", "user": {"id": number}, "pad": pad})


def numbered(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return rows(ids, [document(i) for i in ids])


def made(uri: Any, properties: dict[str, str] | None = None, **options: Any) -> rs.Table:
    table = rs.create_table(uri, SCHEMA, properties=SHREDDED | (properties or {}), **options)
    (table.upsert if table.key else table.append)(numbered(0, GROUP_ROWS * GROUPS))
    return table


def ids_of(found: pa.Table) -> list[int]:
    return sorted(found.column("id").to_pylist())


def files(table: rs.Table) -> list[Path]:
    return sorted((Path(table.uri.removeprefix("file://")) / "data").glob("*.parquet"))


@pytest.fixture(scope="module")
def shredded() -> rs.Table:
    return made(fresh_uri())


CONDITIONS = [
    pytest.param("j->>'kind' = 'k033'", "postgres", 10, id="text"),
    pytest.param("(j->'user'->>'id')::bigint BETWEEN 335 AND 338", "postgres", 4, id="number"),
    pytest.param("j->>'kind' IN ('k033', 'zzz')", "postgres", 10, id="list"),
    *(
        pytest.param("json_get_text(j, 'kind') = 'k033'", dialect, 10, id=dialect)
        for dialect in ("duckdb", "datafusion")
    ),
    pytest.param("(j #>> '{user,id}')::double precision > 789.5", "postgres", 10, id="path"),
]


@pytest.mark.parametrize(("where", "dialect", "count"), CONDITIONS)
def test_one_page_of_twenty_row_groups_is_read(
    shredded: rs.Table, where: str, dialect: str, count: int
) -> None:
    scan = shredded.scan(where, dialect=dialect)
    assert scan.to_arrow().num_rows == count
    found = scan.metrics
    assert (found.row_groups_considered, found.row_groups_pruned) == (GROUPS, GROUPS - 1)
    assert (found.pages_considered, found.pages_pruned) == (4, 3)
    full = shredded.scan(where, dialect=dialect, pruning="off")
    assert full.to_arrow().num_rows == count
    assert found.bytes_read * 30 < full.metrics.bytes_read
    text = str(shredded.scan(where, dialect=dialect).explain(row_groups=True))
    assert "1 of 20 row groups, 1 of their 4 pages" in text


def test_a_path_that_no_row_lacks_needs_no_data(shredded: rs.Table) -> None:
    scan = shredded.scan("j->>'kind' IS NULL")
    assert scan.to_arrow().num_rows == 0
    assert scan.metrics.bytes_read == 0


def test_an_audit_finds_nothing_wrong(shredded: rs.Table) -> None:
    for where in ("j->>'kind' = 'k033'", "(j->'user'->>'id')::int > 700", "j->'user' IS NULL"):
        found = [
            ids_of(shredded.scan(where, pruning=how).to_arrow()) for how in ("soft", "off", "on")
        ]
        assert found[0] == found[1] == found[2]


# Every value, and every condition as a function of the row's value in Python.
VALUES: list[Any] = [0, 1, 5, -3, 2.5, 7.0, True, False, None, "a", "b", "5", "", [1], {"x": 1}]
Outcome = bool | None


def text_of(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"))


def compared(op: str, constant: str) -> Any:
    test = {"=": operator.eq, "<": operator.lt, ">=": operator.ge, "<>": operator.ne}[op]

    def matches(value: Any) -> Outcome:
        text = text_of(value)
        return None if text is None else test(text.encode(), constant.encode())

    return matches


def modelled(kind: str, op: str, constant: str) -> tuple[str, Any]:
    compare = compared(op, constant)
    match kind:
        case "text":
            return f"j->>'v' {op} '{constant}'", compare
        case "not":
            text = f"NOT (j->>'v' {op} '{constant}')"
            return text, lambda value: None if compare(value) is None else not compare(value)
        case "null":
            return "j->>'v' IS NULL", lambda value: value is None
        case "or null":
            text = f"j->>'v' {op} '{constant}' OR j->>'v' IS NULL"
            return text, lambda value: value is None or compare(value)
        case _:
            return f"j->>'v' IN ('{constant}', '5')", lambda v: text_of(v) in (constant, "5")


@given(
    st.lists(
        st.lists(st.sampled_from(VALUES), min_size=1, max_size=12)
        | st.builds(lambda value, n: [value] * n, st.sampled_from(VALUES), st.integers(1, 50)),
        min_size=1,
        max_size=6,
    ),
    st.lists(
        st.builds(
            modelled,
            st.sampled_from(["text", "not", "null", "or null", "list"]),
            st.sampled_from(["=", "<", ">=", "<>"]),
            st.sampled_from(["a", "5", "7.0", "true", "z", ""]),
        ),
        min_size=1,
        max_size=3,
    ),
    st.booleans(),
    st.randoms(use_true_random=False),
)
@examples(40)
def test_pruning_on_and_off_and_row_by_row_agree(
    batches: list[list[Any]], conditions: list[tuple[str, Any]], keyed: bool, chance: Any
) -> None:
    table = rs.create_table(
        fresh_uri(), SCHEMA, key=["id"] if keyed else None, properties={"json_shredding": "j.v"}
    )
    known: list[tuple[int, Any]] = []
    for batch in batches:
        ids = [chance.randrange(60) if keyed else len(known) + i for i in range(len(batch))]
        own = dict(zip(ids, batch, strict=True))
        documents = [json.dumps({"v": value}) for value in own.values()]
        (table.upsert if keyed else table.append)(rows(list(own), documents))
        known = [(i, v) for i, v in known if i not in own] + list(own.items())
    for text, matches in conditions:
        wanted = sorted(i for i, value in known if matches(value))
        assert ids_of(table.scan(text).to_arrow()) == wanted, text
        assert ids_of(table.scan(text, pruning="off").to_arrow()) == wanted, text


def test_the_columns_are_in_the_files_alone(tmp_path: Path) -> None:
    table = made(tmp_path / "t", key=["id"])
    names = ["id", "j"]
    assert HIDDEN in pq.read_schema(files(table)[0]).names
    assert table.schema.names == table.to_arrow().schema.names == names
    assert table.to_dataset().schema.names == names
    assert table.to_dataset().to_table().schema.names == names
    changed = table.changes(0, 1).read_all()
    assert changed.num_rows == GROUP_ROWS * GROUPS
    assert HIDDEN not in changed.schema.names
    context = datafusion.SessionContext()
    context.register_table("t", table)
    own = SessionContext()
    own.register_table("t", table)
    for each in (context, own):
        found = each.sql("SELECT * FROM t WHERE id < 50").to_arrow_table()
        assert (found.schema.names, found.num_rows) == (names, 50)
    assert table.scan("id = 7").to_arrow().column("j").to_pylist() == [document(7)]


def test_datafusion_reads_clean_files_itself_once_the_column_is_gone(tmp_path: Path) -> None:
    table = made(tmp_path / "t", key=["id"])
    table.unset_properties(["json_shredding"])
    table.drop_column("j")
    table.upsert(pa.table({"id": [5_000]}))
    own = SessionContext()
    own.register_table("t", table)
    found = own.sql("SELECT * FROM t WHERE id >= 790").to_arrow_table()
    assert (found.schema.names, ids_of(found)) == (["id"], [*range(790, 800), 5_000])


def test_files_read_as_those_of_others_have_the_columns_of_the_table(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    source = files(table)[0]
    opened = rs.open_parquet(source)
    assert opened.schema.names == ["id", "j"]
    assert opened.count("id < 10") == 10
    placed = rs.from_parquet(source, uri=tmp_path / "placed")
    assert placed.schema.names == placed.to_arrow().schema.names == ["id", "j"]
    other = rs.create_table(tmp_path / "other", SCHEMA)
    result = CliRunner().invoke(app, ["upsert", str(tmp_path / "other"), str(source)])
    assert result.exit_code == 0, result.output
    other.refresh()
    assert other.count() == GROUP_ROWS * GROUPS


def test_publications_have_the_columns_of_the_table(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.publish("delta")
    builder = QueryBuilder().register("t", DeltaTable(tmp_path / "t"))
    found = pa.table(builder.execute("SELECT * FROM t WHERE id < 10 ORDER BY id").read_all())
    assert found.schema.names == ["id", "j"]
    assert found.column("j").to_pylist() == [document(i) for i in range(10)]
    assert rs.from_delta(tmp_path / "t").schema.names == ["id", "j"]
    table.publish("iceberg")
    (metadata,) = (tmp_path / "t" / "metadata").glob("v*.metadata.json")
    scanned = StaticTable.from_metadata(str(metadata)).scan("id < 10").to_arrow()
    assert scanned.schema.names == ["id", "j"]
    assert sorted(scanned.column("j").to_pylist()) == sorted(document(i) for i in range(10))
    imported = rs.from_iceberg(StaticTable.from_metadata(str(metadata)))
    assert imported.schema.names == imported.to_arrow().schema.names == ["id", "j"]


def test_rewrites_write_the_columns_anew_by_the_property_in_force(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", SCHEMA, key=["id"])
    table.upsert(numbered(0, 80))
    where = "j->>'kind' = 'k003'"
    assert table.scan(where).explain(row_groups=True).parts_read == 1
    table.set_properties(SHREDDED)
    table.upsert(numbered(60, 200))
    scan = table.scan(where)
    assert ids_of(scan.to_arrow()) == [*range(30, 40)]
    assert [HIDDEN in pq.read_schema(file).names for file in files(table)].count(True) == 1
    table.compact()
    scan = table.scan(where)
    assert ids_of(scan.to_arrow()) == [*range(30, 40)]
    assert (scan.metrics.row_groups_considered, scan.metrics.row_groups_pruned) == (5, 4)
    table.unset_properties(["json_shredding"])
    table.upsert(numbered(0, 200))
    table.compact()
    scan = table.scan(where)
    assert ids_of(scan.to_arrow()) == [*range(30, 40)]
    assert scan.metrics.row_groups_pruned == 0


def test_t1_a_newer_version_of_a_row_is_not_pruned_away() -> None:
    table = rs.create_table(fresh_uri(), SCHEMA, key=["id"], properties=SHREDDED)
    table.upsert(numbered(0, 80))
    table.upsert(rows([5, 45], ['{"kind": "new"}', None]))
    assert ids_of(table.scan("j->>'kind' = 'k000'").to_arrow()) == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert ids_of(table.scan("j->>'kind' = 'new'").to_arrow()) == [5]
    assert ids_of(table.scan("j->>'kind' IS NULL").to_arrow()) == [45]
    table.delete("j->>'kind' = 'k001'")
    assert table.count() == 70


def test_names_of_columns_are_found_by_id(tmp_path: Path) -> None:
    table = made(tmp_path / "t", {"column_names": "tag"})
    assert pq.read_schema(files(table)[0]).names == ["f1", "f2", HIDDEN]
    table.unset_properties(["json_shredding"])
    table.rename_column("j", "document")
    scan = table.scan("document->>'kind' = 'k033'")
    assert (scan.to_arrow().num_rows, scan.metrics.row_groups_pruned) == (10, GROUPS - 1)
    table.drop_column("document")
    table.add_column("document", "json", default='{"kind": "k033"}')
    assert table.count("document->>'kind' = 'k033'") == GROUP_ROWS * GROUPS
    assert table.count("document->>'kind' = 'k034'") == 0


def test_a_column_may_have_the_name_of_the_hidden_ones(tmp_path: Path) -> None:
    schema = pa.schema([*SCHEMA, pa.field(HIDDEN, pa.string())])
    table = rs.create_table(tmp_path / "t", schema, properties=SHREDDED)
    data = numbered(0, 80)
    table.append(data.append_column(HIDDEN, [["x"] * 80]).cast(schema))
    assert pq.read_schema(files(table)[0]).names == ["id", "j", HIDDEN, f"{HIDDEN}_"]
    scan = table.scan("j->>'kind' = 'k003'")
    assert scan.to_arrow().column(HIDDEN).to_pylist() == ["x"] * 10
    assert scan.metrics.row_groups_pruned == 1
    assert rs.open_parquet(files(table)[0]).schema.names == ["id", "j", HIDDEN]


@pytest.mark.parametrize("leaf", ["kinds", "int", "float", "string"])
def test_a_column_may_have_the_path_of_a_hidden_one(tmp_path: Path, leaf: str) -> None:
    name = f"{HIDDEN}.p0.{leaf}"
    schema = pa.schema([*SCHEMA, pa.field(name, pa.float64())])
    table = rs.create_table(tmp_path / "t", schema, properties=SHREDDED)
    table.append(numbered(0, 80).append_column(name, [[1.0, float("nan")] * 40]).cast(schema))
    assert pq.read_schema(files(table)[0]).names == ["id", "j", name, f"{HIDDEN}_"]
    assert table.count(f'"{name}" > 5') == 40  # NaN is above all numbers
    assert table.scan(f'"{name}" > 5').to_arrow().num_rows == 40


def test_names_that_differ_in_case_alone_are_not_used(tmp_path: Path) -> None:
    schema = pa.schema([*SCHEMA, pa.field(HIDDEN.upper(), pa.string())])
    table = rs.create_table(tmp_path / "t", schema, properties=SHREDDED)
    table.append(numbered(0, 80).append_column(HIDDEN.upper(), [["x"] * 80]).cast(schema))
    assert pq.read_schema(files(table)[0]).names == ["id", "j", HIDDEN.upper(), f"{HIDDEN}_"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("j", "names 'j' without a path"),
        ("id.x", "of type int64; it accepts JSON columns only"),
        ("nope.x", "names 'nope', which is not a column; the columns are id, j"),
        ('j."a""b"', "names the key 'a\"b'; keys with quotes"),
        ("j..x", "no name at character 3"),
        (", ".join(f"j.k{i}" for i in range(33)), "names 33 paths; at most 32"),
    ],
)
def test_wrong_paths_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        rs.create_table(fresh_uri(), SCHEMA, properties={"json_shredding": text})
    table = appended(schema=SCHEMA)
    with pytest.raises(InvalidInput, match=message):
        table.set_properties({"json_shredding": text})
    assert table.version == 0


def test_opaque_values_are_not_shredded() -> None:
    table = appended(schema=SCHEMA, properties=SHREDDED)
    with pytest.raises(InvalidInput, match="unset one of the two"):
        table.set_properties({"value_forms": "opaque"})
    with pytest.raises(InvalidSchemaChange, match="json_shredding"):
        table.rename_column("j", "document")
