"""Columns of unbounded numbers through a table: conditions, pruning, engines, schema changes."""

from __future__ import annotations

import decimal
import random
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from datafusion import SessionContext
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.bridges.where import to_predicate
from rowsieve.cli import app as cli
from rowsieve.errors import InvalidPredicate, RowsieveError, SchemaMismatch
from rowsieve.predicate.bind import bind
from rowsieve.types.encodings import schema_of
from rowsieve.types.numeric_bytes import STORAGE, encoded, spelled, to_text

D = decimal.Decimal
FIELD = pa.field("n", pa.string(), metadata={"ARROW:extension:name": "rowsieve.numeric.1"})
TEXTS = [
    *("0", "1", "-1", "0.1", "-0.1", "1.5", "2", "10", "-10", "99.99", "1e20", "-1e20"),
    *("123456789012345678901234567890123456789012345.5", "1e400", "-1e400", "1e-400", "-1e-400"),
    *("9007199254740992", "9007199254740993", "9007199254740994", "0.1000000000000000000000001"),
    *("NaN", "Infinity", "-Infinity", "9" * 80, "-" + "9" * 80),
]
CONSTANTS = ["0", "1", "1.5", "9007199254740993", "1e20", "-1e400", "0.1", "NaN", "-inf", "9" * 80]
OPERATORS = ["=", "<>", "<", "<=", ">", ">="]


def _rank(text: str) -> tuple[int, D]:
    number = D(text)
    return (1, D(0)) if number.is_nan() else (0, number)


def _holds(one: str, operator: str, other: str) -> bool:
    a, b = _rank(one), _rank(other)
    return {
        "=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b
    }[operator]  # fmt: skip


def _table(path: Path, texts: list[str | None], part_rows: int = 4) -> rs.Table:
    schema = pa.schema([pa.field("id", pa.int64()), FIELD])
    table = rs.create_table(str(path / "t"), schema, key=["id"])
    for start in range(0, len(texts), part_rows):
        values = pa.array(texts[start : start + part_rows], pa.string())
        table.upsert(pa.table({"id": range(start, start + len(values)), "n": values}))
    return table


def _kept(table: rs.Table, where: str, **settings: object) -> list[int]:
    found = table.scan(where=where, **settings).to_arrow()  # type: ignore[arg-type]
    return sorted(found.column("id").to_pylist())


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> tuple[rs.Table, list[str | None]]:
    chooser = random.Random(11)
    texts: list[str | None] = [*sorted(TEXTS, key=_rank), None]
    for _ in range(60):
        digits = "".join(chooser.choice("0019") for _ in range(chooser.choice([1, 3, 40])))
        texts.append(f"{chooser.choice(['', '-'])}{digits}e{chooser.randint(-50, 20)}")
    return _table(tmp_path_factory.mktemp("n"), texts), texts


@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_numbers_compare_exactly(
    operator: str, constant: str, numbers: tuple[rs.Table, list[str | None]]
) -> None:
    table, texts = numbers
    wanted = [
        place for place, text in enumerate(texts) if text and _holds(text, operator, constant)
    ]
    where = f"n {operator} '{constant}'"
    assert _kept(table, where) == wanted
    assert _kept(table, where, pruning="off") == wanted
    assert _kept(table, f"NOT n {operator} '{constant}'") == [
        place for place, text in enumerate(texts) if text and place not in wanted
    ]
    if constant[-1].isdigit() and "e" not in constant and len(constant) < 38:
        assert _kept(table, f"n {operator} {constant}", dialect="duckdb") == wanted
    if constant[-1].isdigit():
        assert _kept(table, f"n {operator} {constant}") == wanted


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("n = 1e50", [1]),
        ("n <> 1e50", [0, 2]),
        ("n IN (1e50, 1500)", [1]),
        ("n IN (1e50, -1.5e3)", [1]),
        ("n BETWEEN 1e49 AND 1e50", [1]),
        ("n - 1e50 = 1", [0]),
        ("n * 1e-50 = 1", [1]),
        ("CASE n WHEN 1e50 THEN TRUE ELSE FALSE END", [1]),
        ("n = 1e-400", [2]),
        ("id < 1e50 AND id > 1e-50", [1, 2]),
        ("id IN (1e0, 1e50)", [1]),
        ("1e50 > 5", [0, 1, 2]),
    ],
)
def test_constants_with_an_exponent_are_numerics(
    where: str, wanted: list[int], tmp_path: Path
) -> None:
    """Checked in PostgreSQL 15; a double cannot tell 10^50 from 10^50 + 1."""
    table = _table(tmp_path, [f"{10**50 + 1}", f"{10**50}", "1e-400"])
    assert _kept(table, where) == wanted
    assert _kept(table, where, pruning="off") == wanted


@pytest.mark.parametrize("constant", ["1e400", "-1e400", "1e-400"])
def test_constants_beyond_floats_are_refused_next_to_one(constant: str) -> None:
    schema = schema_of(pa.schema([("f", pa.float64())]))[0]
    for where in (f"f > {constant}", f"f IN (1.5, {constant})"):
        with pytest.raises(InvalidPredicate, match="beyond the range of float64"):
            bind(to_predicate(where, "postgres", schema), schema)


def test_lists_distinct_and_null(numbers: tuple[rs.Table, list[str | None]]) -> None:
    table, texts = numbers
    wanted = [place for place, text in enumerate(texts) if text in ("2", "99.99")]
    assert _kept(table, "n IN (2, 99.99, 7)") == wanted
    assert _kept(table, "n IN ('2', '99.990')") == wanted
    assert _kept(table, "n IS NULL") == [place for place, text in enumerate(texts) if not text]
    assert _kept(table, "n IS DISTINCT FROM 2") == [
        place for place, text in enumerate(texts) if text != "2"
    ]
    assert _kept(table, "n BETWEEN 1 AND 2") == [
        place
        for place, text in enumerate(texts)
        if text and _holds(text, ">=", "1") and _holds(text, "<=", "2")
    ]


def test_a_float_compares_as_a_float(numbers: tuple[rs.Table, list[str | None]]) -> None:
    table, texts = numbers
    same = [place for place, text in enumerate(texts) if text and float(D(text)) == 2.0**53]
    assert len(same) == 2
    assert _kept(table, "n = CAST('9007199254740992' AS double precision)") == same
    beyond = [place for place, text in enumerate(texts) if text and _rank(text)[1] > D("1.8e308")]
    nans = [place for place, text in enumerate(texts) if text == "NaN"]
    assert _kept(table, "n > CAST(1e308 AS double precision)") == sorted(beyond + nans)


def test_columns_compare_with_other_numbers(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), FIELD, ("i", pa.int64()), ("d", pa.decimal128(38, 2))])
    table = rs.create_table(str(tmp_path / "t"), schema, key=["id"])
    decimals = pa.array([D("1.50"), D(0), D(2), None], pa.decimal128(38, 2))
    rows = {"id": range(4), "n": ["1.5", "-7", "2", "3"], "i": [1, -7, 3, 3], "d": decimals}
    table.upsert(pa.table(rows))
    assert _kept(table, "n = i") == [1, 3]
    assert _kept(table, "n > i") == [0]
    assert _kept(table, "i > n") == [2]
    assert _kept(table, "n = d") == [0, 2]
    assert _kept(table, "n = n") == [0, 1, 2, 3]
    assert _kept(table, "CAST(n AS text) = '-7'") == [1]
    assert _kept(table, "CAST(n AS decimal(10, 0)) = 2") == [0, 2]
    assert _kept(table, "CAST(n AS double precision) < 1.6") == [0, 1]


def test_exact_bounds_skip_parts(tmp_path: Path) -> None:
    texts: list[str | None] = [f"{10**40 + place}.5" for place in range(16)]
    table = _table(tmp_path, texts)
    scan = table.scan(where=f"n = '{10**40 + 9}.5'")
    assert scan.to_arrow().column("id").to_pylist() == [9]
    assert scan.metrics.parts_read == 1
    assert table.scan(where=f"n > '{10**40 + 15}.5'").explain().parts_read == 0
    assert table.scan(where="n < CAST(1e39 AS double precision)").explain().parts_read == 0


def test_engines_see_a_float_and_bytes_that_sort(
    numbers: tuple[rs.Table, list[str | None]],
) -> None:
    table, texts = numbers
    wanted = [
        place for place, text in enumerate(texts) if text and not D(text).is_nan() and D(text) > 10
    ]
    limit, nan = encoded(10), encoded("NaN")
    dataset = table.to_dataset()
    context = SessionContext()
    context.register_table("t", table)
    found = context.sql(
        f"SELECT id FROM t WHERE n['exact'] > X'{limit.hex()}' AND n['exact'] < X'{nan.hex()}'"
    ).to_arrow_table()
    assert sorted(found.column("id").to_pylist()) == wanted
    near = context.sql("SELECT id FROM t WHERE n['approx'] > 10 AND n['approx'] <> 'NaN'::double")
    assert sorted(near.to_arrow_table().column("id").to_pylist()) == wanted
    seen = duckdb.execute("SELECT id FROM dataset WHERE n.approx > 10 AND NOT isnan(n.approx)")
    assert sorted(row[0] for row in seen.fetchall()) == wanted
    for frame in (pl.scan_pyarrow_dataset(dataset), table.scan_polars()):
        approx = pl.col("n").struct.field("approx")
        got = frame.filter((approx > 10) & approx.is_not_nan()).sort("id").collect()
        assert got["id"].to_list() == wanted


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("n = n", [1, 2, 3]),
        ("n <> n", []),
        ("n IS DISTINCT FROM n", []),
        ("n = named_struct('approx', 1.5, 'exact', X'{0}')", [1]),
        ("n > named_struct('approx', 1.0, 'exact', X'{0}')", [1, 2, 3]),
        ("n IN (named_struct('approx', 1.5, 'exact', X'{0}'))", [1]),
    ],
)
def test_an_engine_compares_the_structs_that_it_sees(
    where: str, wanted: list[int], tmp_path: Path
) -> None:
    table = _table(tmp_path, [None, "1.5", "2e400", "NaN"], part_rows=2)
    context = SessionContext()
    context.register_table("t", table)
    query = f"SELECT id FROM t WHERE {where.format(encoded('1.5').hex())} ORDER BY id"
    assert context.sql(query).to_arrow_table().column("id").to_pylist() == wanted


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(pa.array(["1x"]), id="text"),
        pytest.param(pa.array(["1e131072"]), id="too many digits"),
        pytest.param(pa.array([1.5]), id="float"),
        pytest.param(pa.array([True]), id="boolean"),
        pytest.param(pa.array([{"approx": 1.0, "exact": b""}], STORAGE), id="no bytes"),
        pytest.param(pa.array([{"approx": 1.0, "exact": None}], STORAGE), id="NULL bytes"),
        pytest.param(pa.array([{"approx": 1.0, "exact": b"\x09"}], STORAGE), id="class"),
        pytest.param(pa.array([{"approx": 1.0, "exact": b"\x03\x80"}], STORAGE), id="short"),
        pytest.param(pa.array([{"approx": 1.0, "exact": encoded(2)}], STORAGE), id="float off"),
        pytest.param(pa.array([{"approx": None, "exact": encoded(2)}], STORAGE), id="no float"),
        pytest.param(
            pa.array([{"approx": 2.0, "exact": encoded(2) + b"\x00"}], STORAGE), id="zeros"
        ),
        pytest.param(
            pa.array([{"approx": 2.0, "exact": encoded(2)[:-1] + b"\xff"}], STORAGE), id="digit"
        ),
    ],
)
def test_a_malformed_number_is_refused(values: pa.Array, tmp_path: Path) -> None:
    table = rs.create_table(
        str(tmp_path / "t"), pa.schema([pa.field("id", pa.int64()), FIELD]), key=["id"]
    )
    with pytest.raises(SchemaMismatch, match="column 'n'"):
        table.upsert(pa.table({"id": [1], "n": values}))
    assert table.version == 0


@pytest.mark.parametrize(
    "where", ["n = 'many'", "n = TRUE", "n LIKE '1%'", "n = DATE '2024-01-01'"]
)
def test_a_comparison_with_another_type_is_refused(
    where: str, numbers: tuple[rs.Table, list[str | None]]
) -> None:
    with pytest.raises(InvalidPredicate):
        numbers[0].scan(where=where).to_arrow()


def test_wide_decimals_are_numbers_of_any_size(tmp_path: Path) -> None:
    values = pa.array([D("1.25"), None, D(10) ** 70], pa.decimal256(76, 2))
    table = rs.create_table(str(tmp_path / "t"), {"id": [1, 2, 3], "n": values}, key=["id"])
    stored = table.scan().to_arrow().column("n").combine_chunks()
    assert to_text(stored).to_pylist() == ["1.25", None, str(10**70)]
    table.upsert(table.scan().to_arrow())
    assert _kept(table, "n > 2") == [3]
    assert rs.to_native(table.scan().to_arrow()).column("n").to_pylist() == [
        "1.25", None, str(10**70)
    ]  # fmt: skip


def test_the_command_line_reads_numbers_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"id,n\n1,1.50\n2,{'9' * 50}\n3,\n")
    (tmp_path / "a.jsonl").write_text('{"id": 4, "n": "1e60"}\n')
    uri = str(tmp_path / "t")
    runner = CliRunner()
    for command in (
        ["create", uri, str(tmp_path / "a.csv"), "--key", "id", "--type", "n=numeric"],
        ["upsert", uri, str(tmp_path / "a.csv")],
        ["upsert", uri, str(tmp_path / "a.jsonl")],
    ):
        result = runner.invoke(cli.app, command)
        assert result.exit_code == 0, result.output
    table = rs.open_table(uri)
    assert rs.to_native(table.scan(order_by_key=True).to_arrow()).column("n").to_pylist() == [
        "1.5", "9" * 50, None, "1" + "0" * 60
    ]  # fmt: skip
    shown = runner.invoke(cli.app, ["query", "SELECT n FROM t WHERE n['approx'] < 2", uri])
    assert [line.strip() for line in shown.output.splitlines()] == ["n", "───", "1.5", "1 row"]
    digits = "9" * 50
    for output, line in (
        ("csv", f'2,"{digits}"'),
        ("json", f'{{"id":2,"n":"{digits}"}}'),
        ("markdown", f"| 2 | {digits} |"),
    ):
        query = ["query", "SELECT id, n FROM t ORDER BY id", uri, "--output", output]
        assert line in runner.invoke(cli.app, query).output.splitlines()
    rows = pa.table({"s": [{"approx": 1.5, "exact": b"no number"}]})
    rs.create_table(tmp_path / "u", rows)
    shown = runner.invoke(cli.app, ["query", "SELECT s FROM u", str(tmp_path / "u")])
    assert '{"approx":1.5,"exact":"' in shown.output
    assert "numeric" in runner.invoke(cli.app, ["inspect", uri]).output


@pytest.mark.spark
def test_spark_sees_a_struct(spark: Any, numbers: tuple[rs.Table, list[str | None]]) -> None:
    table, texts = numbers
    wanted = [
        place
        for place, text in enumerate(texts)
        if text and _rank(text)[1] > 10 and "n" not in text
    ]
    frame = spark.read.format("rowsieve").load(table.uri)
    assert frame.schema["n"].dataType.simpleString() == "struct<approx:double,exact:binary>"
    found = frame.filter("n.approx > 10 AND n.approx < double('Infinity')").collect()
    finite = [place for place in wanted if float(D(texts[place] or 0)) != float("inf")]
    assert sorted(row["id"] for row in found) == finite
    rows = {row["id"]: row["n"] for row in frame.collect()}
    assert all(
        (rows[place] is None) if not text else (bytes(rows[place]["exact"]) == encoded(text))
        for place, text in enumerate(texts)
    )
    asked = spark.read.format("rowsieve").option("where", "n IS NULL").load(table.uri)
    assert [row["id"] for row in asked.collect()] == [texts.index(None)]


def test_a_number_is_no_key(tmp_path: Path) -> None:
    with pytest.raises(RowsieveError, match="numeric"):
        rs.create_table(str(tmp_path / "t"), pa.schema([FIELD]), key=["n"])


def test_an_added_number_has_its_default_in_old_rows(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), {"id": [1]}, key=["id"])
    table.add_column("n", "numeric", default=D("1e30"))
    table.upsert(pa.table({"id": [2], "n": ["7"]}))
    table = rs.open_table(table.uri)
    assert _kept(table, "n = 1e30") == [1]
    assert _kept(table, "n < 1e30") == [2]
    table.compact()
    assert _kept(table, "n = 1e30") == [1]
    for number in (D("NaN"), 10**60, D(10) ** 60):
        table = rs.create_table(f"memory:///default{number!r}", {"id": [1]}, key=["id"])
        table.add_column("n", "numeric", default=number)
        assert _kept(table, f"n = '{number}'") == [1]
    with pytest.raises(SchemaMismatch, match="cast it to an integer, a decimal or text"):
        table.add_column("m", "numeric", default=1.5)


def test_choices_among_numbers_are_numbers(numbers: tuple[rs.Table, list[str | None]]) -> None:
    table, texts = numbers
    null = texts.index(None)
    ones = [place for place, text in enumerate(texts) if text and D(text) == 1]
    assert _kept(table, "COALESCE(n, 1) = 1") == sorted([*ones, null])
    assert _kept(table, f"CASE WHEN id = {null} THEN 1.0 ELSE n END = 1") == sorted([*ones, null])


def test_numbers_inside_lists_and_structs_are_kept(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": [1, 2],
            "s": pa.array([{"n": D(10) ** 50}, None], pa.struct([("n", pa.decimal256(60, 0))])),
            "l": pa.array([[D("0.5"), None], []], pa.list_(pa.decimal256(60, 2))),
        }
    )
    table = rs.create_table(str(tmp_path / "t"), rows, key=["id"])
    assert _kept(table, "(s).n > 5") == [1]
    assert _kept(table, "(s).n > '1e51'") == []
    got = table.scan().to_arrow().column("l").to_pylist()
    assert [None if item is None else item["approx"] for item in got[0]] == [0.5, None]


@pytest.mark.parametrize("names", ["user", "tag"])
def test_numbers_inside_columns_keep_their_digits(names: str, tmp_path: Path) -> None:
    """Both leaves of a number are read, also where the fields of its column have changed."""
    one = pa.field("n", pa.string(), metadata={b"ARROW:extension:name": b"rowsieve.numeric.1"})
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("l", pa.list_(one)),
            ("s", pa.struct([one, ("x", pa.int64())])),
            ("m", pa.map_(pa.string(), one)),
            ("ls", pa.list_(pa.struct([one]))),
        ]
    )
    big = f"{2**80}.5"
    row = {
        "id": 1,
        "l": [big, None],
        "s": {"n": big, "x": 1},
        "m": [("k", big)],
        "ls": [{"n": big}],
    }
    table = rs.create_table(
        tmp_path / "t",
        pa.Table.from_pylist([row], schema=schema),
        properties={"column_names": names},
    )

    def check(name: str) -> None:
        found = table.to_arrow().to_pylist()[0]
        numbers = [found["l"][0], found["s"][name], found["m"][0][1], found["ls"][0][name]]
        assert [spelled(each["exact"]) for each in numbers] == [big] * 4
        assert found["l"][1] is None

    check("n")
    for path in ("s", "ls.element"):
        table.rename_column(f"{path}.n", "renamed")
        table.add_column(f"{path}.more", "int64", default=7)
    check("renamed")
    table.drop_column("s.x")
    check("renamed")


_TRANSLATED = [
    *(f"n {operator} '{constant}'" for operator in OPERATORS for constant in ("1.5", "-1e400")),
    "n IN (2, 99.99, '1e400')",
    "NOT (n BETWEEN 1 AND '9007199254740993')",
    "n IS DISTINCT FROM 2",
    "n <> 'NaN' AND n > 0",
    "n < CAST('1e300' AS double precision)",
]


@pytest.mark.parametrize("where", _TRANSLATED)
def test_a_translation_keeps_the_rows_in_engines(
    where: str, numbers: tuple[rs.Table, list[str | None]]
) -> None:
    table, _ = numbers
    wanted, context, dataset = _kept(table, where), SessionContext(), table.to_dataset()
    context.register_table("t", table)

    def written(target: str) -> Any:
        return rs.translate(where, "postgres", target=target, schema=table).exact()

    if "double" not in where:
        found = context.sql(f"SELECT id FROM t WHERE {written('datafusion')}").to_arrow_table()
        assert sorted(found.column("id").to_pylist()) == wanted
        frame = context.table("t").filter(written("datafusion_exprs")).to_arrow_table()
        assert sorted(frame.column("id").to_pylist()) == wanted
        kept = dataset.to_table(filter=written("pyarrow_exprs"))
        assert sorted(kept.column("id").to_pylist()) == wanted
        lazy = table.scan_polars().filter(written("polars")).collect()
        assert sorted(lazy["id"]) == wanted
    assert _kept(table, written("spark"), dialect="spark") == wanted


@pytest.mark.parametrize("target", ["trino", "iceberg"])
def test_an_engine_without_such_numbers_is_named(
    target: str, numbers: tuple[rs.Table, list[str | None]]
) -> None:
    table, _ = numbers
    made = rs.translate("n > 1.5", "postgres", target=target, schema=table)
    assert made.expression is None
    assert f"{target} has no numbers of any size" in made.notes[0]


@pytest.mark.parametrize("dialect", ["datafusion", "duckdb"])
def test_a_struct_does_not_compare_with_a_number(dialect: str, tmp_path: Path) -> None:
    table = _table(tmp_path, ["1", "2"])
    if dialect == "duckdb":
        assert _kept(table, "n > 1", dialect=dialect) == [1]
        return
    with pytest.raises(InvalidPredicate, match=r"sees a numeric as a struct.*float64"):
        table.scan(where="n > 1.5", dialect=dialect)
    assert _kept(table, "n = n AND (n IS DISTINCT FROM NULL)", dialect=dialect) == [0, 1]
