"""Variants in Parquet files of others, and in Arrow data: JSON documents, in every way to read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext

import rowsieve as rs
from rowsieve.errors import RowsieveError, SchemaMismatch, UnsupportedOperation
from tests.types.variants import column, variant

DOCUMENTS = [
    '{"kind":"a","n":1,"tags":["x",2],"user":{"id":7}}',
    '{"kind":"b","n":1.5,"tags":[],"user":null}',
    '{"kind":"a","n":12345678901234567,"user":{"id":"7"}}',
    '{"kind":null}',
    '"text"',
    "[1,2]",
    None,
]
_EXTENSION = {b"ARROW:extension:name": b"arrow.parquet.variant"}


def _write(path: Path, shredding: str = "") -> Path:
    """Let DuckDB write the documents as Variants; it shreds by itself, or as `shredding` says."""
    con = duckdb.connect()
    rows = pa.table({"id": range(len(DOCUMENTS)), "t": pa.array(DOCUMENTS, pa.string())})
    con.register("rows", rows)
    con.sql(
        "COPY (SELECT id, t::JSON::VARIANT AS v FROM rows ORDER BY id) "
        f"TO '{path}' (FORMAT parquet{shredding})"
    )
    return path


@pytest.fixture(scope="module", params=["", ", SHREDDING {v: 'STRUCT(kind VARCHAR, n BIGINT)'}"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write(tmp_path_factory.mktemp("variants") / "rows.parquet", request.param)


def _texts(rows: pa.Table, name: str = "v") -> list[Any]:
    texts = rows.sort_by("id")[name].to_pylist()
    return [None if text is None else json.loads(text) for text in texts]


WANTED = [None if text is None else json.loads(text) for text in DOCUMENTS]
CONDITIONS = {
    "v->>'kind' = 'a'": [0, 2],
    "v->'user'->>'id' = '7'": [0, 2],
    "(v->>'n')::bigint > 1": [2],
    "v->'tags'->>0 = 'x'": [0],
    "v->>'kind' IS NULL AND v IS NOT NULL": [3, 4, 5],
    "v IS NULL": [6],
}


def _check(table: rs.Table | Any, name: str = "v") -> None:
    assert _texts(table.scan().to_arrow(), name) == WANTED
    for where, ids in CONDITIONS.items():
        condition = where.replace("v->", f"{name}->").replace("v IS", f"{name} IS")
        if "bigint" in where:  # the text 1.5 cannot be cast to bigint
            condition = f"id <> 1 AND {condition}"
        found = table.scan(where=condition).to_arrow()
        assert sorted(found["id"].to_pylist()) == ids, condition


def test_a_file_in_place_has_json_documents(file: Path) -> None:
    table = rs.open_parquet(file)
    assert table.schema.field("v").type == pa.string()
    assert table.schema.field("v").metadata[b"ARROW:extension:name"] == b"rowsieve.json.1"
    _check(table)
    small = table.scan(columns=["v"], where="id = 0").to_arrow()
    assert small["v"].to_pylist() == [DOCUMENTS[0]]


def test_engines_see_the_text(file: Path) -> None:
    table = rs.open_parquet(file)
    dataset = table.to_dataset()
    wanted = {(0, '"a"'), (2, '"a"')}
    with duckdb.connect() as con:
        con.register("dataset", dataset)
        found = con.execute("SELECT id, v::JSON->'kind' FROM dataset WHERE v LIKE '%\"a\"%'")
        assert set(found.fetchall()) == wanted
    context = SessionContext()
    context.register_table("t", table.to_datafusion())
    rows = context.sql('SELECT id FROM t WHERE v LIKE \'%"kind":"a"%\'').to_pydict()
    assert sorted(rows["id"]) == [0, 2]


def test_an_imported_table_is_changed_and_compacted(file: Path, tmp_path: Path) -> None:
    table = rs.from_parquet(file, str(tmp_path / "t"), key=["id"])
    _check(table)
    table.rename_column("v", "doc")
    _check(table, "doc")
    with pytest.raises(UnsupportedOperation):
        table.publish("iceberg", str(tmp_path / "iceberg"))
    table.upsert(pa.table({"id": [1, 7], "doc": column([WANTED[1], {"z": [1.5, {"a": "é"}]}])}))
    table.upsert({"id": [0], "doc": [DOCUMENTS[0]]})
    table.compact()
    assert _texts(table.scan(where="id < 7").to_arrow(), "doc") == WANTED
    assert _texts(table.scan(where="id = 7").to_arrow(), "doc") == [{"z": [1.5, {"a": "é"}]}]
    assert _texts(table.scan(version=0).to_arrow()) == WANTED


def test_publications_do_not_pass_variants_off_as_text(file: Path, tmp_path: Path) -> None:
    table = rs.from_parquet(file, str(tmp_path / "t"))
    for kind in ("delta", "iceberg"):
        with pytest.raises(RowsieveError, match=r"compact|not its own|earlier"):
            table.publish(kind, str(tmp_path / kind))


def test_files_with_text_and_with_variants_are_one_column(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "a.parquet").write_bytes(file.read_bytes())
    con = duckdb.connect()
    con.sql(f"""COPY (SELECT 9::BIGINT AS id, '{{"kind":"a"}}'::JSON AS v)
                TO '{folder}/b.parquet' (FORMAT parquet)""")
    table = rs.open_parquet(folder)
    assert sorted(table.scan(where="v->>'kind' = 'a'").to_arrow()["id"].to_pylist()) == [0, 2, 9]


def _spark_file(path: Path, rows: pa.Table, types: dict[str, Any]) -> Path:
    """A file as Spark 4.0 writes it: a plain struct, and Spark's own schema in the footer."""
    fields = [{"name": name, "type": types.get(name, "long")} for name in rows.column_names]
    spark = json.dumps({"type": "struct", "fields": fields})
    marks = {"org.apache.spark.sql.parquet.row.metadata": spark}
    pq.write_table(rows.replace_schema_metadata(marks), path)
    return path


def test_a_variant_of_older_spark_is_known_by_its_schema(tmp_path: Path) -> None:
    rows = pa.table({"id": [0, 1], "v": column([{"a": 1}, None]), "s": column([{"a": 1}, None])})
    path = _spark_file(tmp_path / "a.parquet", rows, {"v": "variant", "s": {"type": "struct"}})
    table = rs.open_parquet(path)
    assert table.scan().to_arrow()["v"].to_pylist() == ['{"a":1}', None]
    assert pa.types.is_struct(table.schema.field("s").type)  # nothing says that it is one


def test_damaged_variants_are_an_error_that_names_the_file(tmp_path: Path) -> None:
    wrong = pa.array([variant(1), {"metadata": b"\x01\x00\x00", "value": b"\x18\x01"}])
    rows = pa.table({"id": [0, 1], "v": wrong})
    table = rs.open_parquet(_spark_file(tmp_path / "a.parquet", rows, {"v": "variant"}))
    assert table.scan(columns=["id"]).to_arrow().num_rows == 2
    with pytest.raises(SchemaMismatch, match=r"a\.parquet.*'v'.*Variant.*cut off"):
        table.scan().to_arrow()


def test_a_typed_value_of_an_unknown_type_is_refused(tmp_path: Path) -> None:
    type_ = pa.struct([("metadata", pa.binary()), ("typed_value", pa.uint8())])
    rows = pa.table({"v": pa.array([{"metadata": b"\x01\x00\x00", "typed_value": 1}], type_)})
    named = pa.schema([rows.schema.field("v").with_metadata(_EXTENSION)])
    with pytest.raises(SchemaMismatch, match=r"'v' is a Variant stored as.*engine that wrote it"):
        rs.create_table(str(tmp_path / "t"), named)


def test_arrow_data_with_the_extension_is_json_at_any_depth(tmp_path: Path) -> None:
    plain = column([]).type
    named = pa.field("v", plain, metadata=_EXTENSION)
    inner = pa.struct([named])
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            named,
            pa.field("l", pa.list_(named.with_name("item"))),
            pa.field("s", inner),
        ]
    )
    table = rs.create_table(str(tmp_path / "t"), schema, key=["id"])
    one, two = column([{"a": 1}, ["x"]]).to_pylist()
    rows = [
        {"id": 0, "v": one, "l": [one, None, two], "s": {"v": two}},
        {"id": 1, "v": None, "l": [], "s": None},
    ]
    table.upsert(pa.Table.from_pylist(rows, schema=schema))
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 0, "v": '{"a":1}', "l": ['{"a":1}', None, '["x"]'], "s": {"v": '["x"]'}},
        {"id": 1, "v": None, "l": [], "s": None},
    ]
    found = table.scan(where="(s).v->>0 = 'x' AND l[1]->>'a' = '1'").to_arrow()
    assert found["id"].to_pylist() == [0]
    wrong = [{"id": 2, "v": {"metadata": b"\x01\x00\x00", "value": b"\x05\xff"}}]
    with pytest.raises(SchemaMismatch, match=r"'v'.*Variant.*UTF8.*row 0"):
        table.upsert(pa.Table.from_pylist(wrong, schema=schema))
    with pytest.raises(SchemaMismatch, match="'v' is json in the table, but struct"):
        table.upsert({"id": [3], "v": [{"a": 1}], "l": [[]], "s": [None]})
    assert table.version == 1


def test_arrow_data_of_spark_is_json(tmp_path: Path) -> None:
    mark = pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"})
    type_ = pa.struct([pa.field("value", pa.binary(), nullable=False), mark])
    rows = pa.table({"id": [0, 1], "v": pa.array([variant({"a": 1}), None], type_)})
    table = rs.create_table(str(tmp_path / "t"), rows, key=["id"])
    assert table.scan().to_arrow()["v"].to_pylist() == ['{"a":1}', None]
    unmarked = rows.cast(pa.schema([("id", pa.int64()), ("v", column([]).type)]))
    other = rs.create_table(str(tmp_path / "other"), unmarked, key=["id"])
    assert pa.types.is_struct(other.schema.field("v").type)


def test_a_text_column_takes_no_variants(file: Path) -> None:
    with pytest.raises(SchemaMismatch, match="column of the type json"):
        rs.open_parquet(file, schema=pa.schema({"v": pa.string()}))


def test_a_delta_table_with_variants_has_json(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "delta"
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "a.parquet").write_bytes(file.read_bytes())
    features = ["variantType"]
    fields = [{"name": name, "type": type_, "nullable": True, "metadata": {}}
              for name, type_ in (("id", "long"), ("v", "variant"))]  # fmt: skip
    actions: list[dict[str, Any]] = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        },
        {
            "metaData": {
                "id": "0",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [],
                "configuration": {},
            }
        },
        {
            "add": {
                "path": "a.parquet",
                "partitionValues": {},
                "size": (folder / "a.parquet").stat().st_size,
                "modificationTime": 1,
                "dataChange": True,
            }
        },
    ]
    log = folder / "_delta_log" / "00000000000000000000.json"
    log.write_text("\n".join(map(json.dumps, actions)))
    _check(rs.from_delta(str(folder)))
    _check(rs.import_delta(str(folder), str(tmp_path / "t")))
