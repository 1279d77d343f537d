"""Columns of enums through a table: conditions, pruning, engines, schema changes."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.bridges.languages import BRIDGES
from rowsieve.cli.app import app as cli
from rowsieve.errors import InvalidPredicate, InvalidSchemaChange, RowsieveError, SchemaMismatch
from tests.profiles import examples

LABELS = ["sad", "ok", "happy", "a'b", "é"]  # not in the order of their text
TYPE = "enum('sad', 'ok', 'happy', 'a''b', 'é')"
VALUES = [*LABELS, None, "happy", "sad", None, "é"]
OPERATORS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
TEXT_DIALECTS = ["duckdb", "datafusion", "spark", "trino"]


def _table(values: Sequence[str | None], type_: str = TYPE, part_rows: int = 3) -> rs.Table:
    schema = pa.schema([pa.field("id", pa.int64())])
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", schema, key=["id"])
    table.add_column("mood", type_)
    table.add_column("other", type_)
    for start in range(0, len(values), part_rows):
        taken = values[start : start + part_rows]
        turned = [values[-1 - start - place] for place in range(len(taken))]
        ids = range(start, start + len(taken))
        rows = {
            name: pa.array(of, pa.string()) for name, of in (("mood", taken), ("other", turned))
        }
        table.upsert(pa.table({"id": ids, **rows}))
    return table


@pytest.fixture(scope="module")
def moods() -> rs.Table:
    return _table(list(VALUES))


def _kept(table: rs.Table, where: str, **settings: Any) -> list[int]:
    found = sorted(table.scan(where=where, **settings).to_arrow().column("id").to_pylist())
    assert found == sorted(
        table.scan(where=where, pruning="off", **settings).to_arrow().column("id").to_pylist()
    )
    return found


def _holds(one: Any, operator: str, other: Any) -> bool | None:
    """SQL's comparison of two values that sort as Python has them; None is NULL."""
    if operator.startswith("IS"):
        return (one != other) is (operator == "IS DISTINCT FROM")
    if one is None or other is None:
        return None
    outcomes: dict[str, bool] = {
        "=": one == other, "<>": one != other, "<": one < other, "<=": one <= other,
        ">": one > other, ">=": one >= other,
    }  # fmt: skip
    return outcomes[operator]


def _place(label: str | None) -> int | None:
    return None if label is None else LABELS.index(label)


@pytest.mark.parametrize("operator", OPERATORS)
def test_labels_compare_by_their_declaration(operator: str, moods: rs.Table) -> None:
    for label in LABELS:
        outcomes = [_holds(_place(value), operator, _place(label)) for value in VALUES]
        spelled = label.replace("'", "''")
        where = f"mood {operator} '{spelled}'"
        assert _kept(moods, where) == [i for i, found in enumerate(outcomes) if found]
        assert _kept(moods, f"NOT ({where})") == [
            i for i, found in enumerate(outcomes) if found is False
        ]
        if operator in ("<", "<="):
            turned = {"<": ">", "<=": ">="}[operator]
            assert _kept(moods, f"'{spelled}' {turned} mood") == _kept(moods, where)


@pytest.mark.parametrize("operator", OPERATORS)
def test_two_columns_compare_by_the_declaration(operator: str, moods: rs.Table) -> None:
    pairs = zip(VALUES, reversed(VALUES), strict=True)
    outcomes = [_holds(_place(one), operator, _place(other)) for one, other in pairs]
    assert _kept(moods, f"mood {operator} other") == [
        i for i, found in enumerate(outcomes) if found
    ]
    assert _kept(moods, f"NOT (mood {operator} other)") == [
        i for i, found in enumerate(outcomes) if found is False
    ]


@pytest.mark.parametrize("dialect", TEXT_DIALECTS)
@pytest.mark.parametrize("operator", OPERATORS[:6])
def test_other_engines_compare_the_text(operator: str, dialect: str, moods: rs.Table) -> None:
    for label in ["ok", "happy", "nope"]:
        outcomes = [_holds(value and value.encode(), operator, label.encode()) for value in VALUES]
        where = f"mood {operator} '{label}'"
        wanted = [i for i, found in enumerate(outcomes) if found]
        assert _kept(moods, where, dialect=dialect) == wanted
    assert _kept(moods, f"mood::text {operator} 'ok'") == _kept(
        moods, f"mood {operator} 'ok'", dialect=dialect
    )


def test_lists_ranges_and_choices(moods: rs.Table) -> None:
    def those(*labels: str | None) -> list[int]:
        return [i for i, value in enumerate(VALUES) if value in labels]

    assert _kept(moods, "mood IN ('ok', 'é')") == those("ok", "é")
    assert _kept(moods, "mood NOT IN ('ok', 'é')") == those("sad", "happy", "a'b")
    assert _kept(moods, "mood NOT IN ('ok', NULL)") == []
    assert _kept(moods, "mood BETWEEN 'ok' AND 'a''b'") == those("ok", "happy", "a'b")
    assert _kept(moods, "mood < 'sad' OR mood IS NULL") == those(None)
    assert _kept(moods, "coalesce(mood, 'é') >= 'a''b'") == those("a'b", "é", None)
    assert _kept(moods, "nullif(mood, 'ok') IS NULL") == those("ok", None)
    assert _kept(moods, "CASE WHEN id < 5 THEN mood ELSE 'sad' END > 'happy'") == [3, 4]
    assert _kept(moods, "mood::text LIKE '%a%'") == those("sad", "happy", "a'b")
    assert _kept(moods, "mood LIKE '%a%'", dialect="duckdb") == those("sad", "happy", "a'b")


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("mood = 'nope'", "'nope' is not a label of enum"),
        ("mood IN ('ok', 'OK')", "'OK' is not a label"),
        ("mood < 5", "no meaning"),
        ("mood = 'ok'::text", "cast the enum to text"),
        ("mood LIKE 'o%'", "LIKE needs text"),
        ("greatest(mood, other) = 'ok'", "no meaning"),
        ("upper(mood) = 'OK'", "no meaning"),
        ("ARRAY[mood] = ARRAY[other]", "no meaning"),
        ("mood IN (1, 2)", "no meaning"),
    ],
)
def test_what_postgres_refuses_is_refused(where: str, what: str, moods: rs.Table) -> None:
    with pytest.raises(InvalidPredicate, match=what):
        moods.scan(where=where)


def test_parts_and_pages_are_skipped_by_an_order_of_labels() -> None:
    table = _table(["sad"] * 3 + ["ok"] * 3 + ["happy"] * 3)
    explained = str(table.scan(where="mood < 'ok'").explain())
    assert "parts 3 considered, 2 skipped" in explained
    plan = table.scan(where="mood > 'ok'").explain()
    assert "parts 3 considered, 2 skipped" in str(plan)


@examples(60)
@given(
    st.permutations(["a", "b", "c", "d"]),
    st.lists(st.sampled_from([None, "a", "b", "c", "d"]), min_size=1, max_size=9),
    st.sampled_from(OPERATORS[:6]),
    st.sampled_from("abcd"),
)
def test_any_declaration_compares_as_its_places(
    labels: list[str], values: list[str | None], operator: str, label: str
) -> None:
    table = _table(values, f"enum({', '.join(map(repr, labels))})")
    places = {each: place for place, each in enumerate(labels)}
    outcomes = [_holds(places.get(value or ""), operator, places[label]) for value in values]
    wanted = [i for i, found in enumerate(outcomes) if found]
    assert _kept(table, f"mood {operator} '{label}'") == wanted


def test_translations_keep_the_order_of_the_labels(moods: rs.Table) -> None:
    text = "mood > 'sad' AND mood <= 'happy'"
    rows, wanted = moods.scan().to_arrow(), _kept(moods, text)
    for bridge in BRIDGES:
        if bridge.name == "spark_columns":  # needs a session
            continue
        made = rs.translate(text, "postgres", target=bridge.name, schema=moods)
        assert made.exactness.value == "exact", (bridge.name, made.notes)
        if bridge.name in ("duckdb", "postgres"):  # the text of both is a list of labels
            query = f"SELECT id FROM rows WHERE {made.expression} ORDER BY id"
            found: Any = duckdb.from_arrow(rows).query("rows", query)
            assert [row[0] for row in found.fetchall()] == wanted
    back = rs.translate("mood < 'happy'", "duckdb", target="postgres", schema=moods)
    assert back.exact() == 'CAST("mood" AS VARCHAR) COLLATE "C" < CAST(\'happy\' AS VARCHAR)'
    cast = rs.translate("mood = 'ok'", "duckdb", target="postgres", schema=moods)
    assert cast.exact() == "CAST(\"mood\" AS VARCHAR) = CAST('ok' AS VARCHAR)"


def test_engines_see_text(moods: rs.Table) -> None:
    dataset, context = moods.to_dataset(), SessionContext()
    context.register_table("t", moods)
    wanted = [i for i, value in enumerate(VALUES) if value is not None and value < "ok"]
    query = "SELECT id FROM {} WHERE mood < 'ok' ORDER BY id"
    assert context.sql(query.format("t")).to_pydict()["id"] == wanted
    seen: Any = duckdb.sql(query.format("dataset"))
    assert dataset.schema.names
    assert [row[0] for row in seen.fetchall()] == wanted
    found = pl.scan_pyarrow_dataset(dataset).filter(pl.col("mood") < "ok").collect()
    assert sorted(found["id"]) == wanted
    assert sorted(moods.scan_polars().filter(pl.col("mood") < "ok").collect()["id"]) == wanted


def test_an_enum_of_polars_comes_back_as_one() -> None:
    enum = pl.Enum(LABELS)
    frame = pl.DataFrame({"id": range(len(VALUES)), "mood": pl.Series(VALUES, dtype=enum)})
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", frame, key=["id"])
    table.upsert(frame)
    native = rs.to_native(table.scan(order_by_key=True).to_arrow())
    assert pl.DataFrame(native).equals(frame)
    table.upsert(native)
    assert native.column("mood").to_pandas().cat.ordered
    empty = rs.to_native(table.scan(where="id < 0").to_arrow())
    assert pl.DataFrame(empty).schema["mood"] == enum
    table.evolve(frame.to_arrow().schema)


@pytest.mark.parametrize("form", [pa.string(), pa.large_string(), pa.string_view()])
def test_values_are_labels_in_every_form(form: pa.DataType, moods: rs.Table) -> None:
    table = _table(list(VALUES))
    good, bad = (pa.array([None, "ok", last], form) for last in ("é", "OK"))
    others = pa.nulls(3, pa.string())
    encoded = (lambda values: values.dictionary_encode()) if form != pa.string_view() else None
    for change in (lambda values: values, encoded):
        if change is not None:
            table.upsert(pa.table({"id": [1, 2, 3], "mood": change(good), "other": others}))
            with pytest.raises(
                SchemaMismatch, match=r"'mood'.*'OK' is not one of its labels.*row 2"
            ):
                table.upsert(pa.table({"id": [1, 2, 3], "mood": change(bad), "other": others}))


def test_updates_and_defaults_are_labels() -> None:
    table = _table(list(VALUES))
    table.update({"mood": "'happy'"}, where="mood < 'happy'")
    assert _kept(table, "mood < 'happy'") == []
    with pytest.raises(RowsieveError, match="nope"):
        table.update({"mood": "'nope'"}, where="id = 0")
    with pytest.raises(RowsieveError):
        table.update({"mood": "lower('NOPE')"}, where="id = 0")
    table.update({"mood": "lower('OK')"}, where="id = 0")
    table.update({"mood": "other"}, where="id = 1")
    assert _kept(table, "mood = 'ok'") == [0]
    table.sql("ALTER TABLE this ADD COLUMN level enum('low', 'high') DEFAULT 'low'")
    assert _kept(table, "level < 'high'") == list(range(len(VALUES)))
    for bad in ("'middle'", "5"):
        with pytest.raises(RowsieveError):
            table.sql(f"ALTER TABLE this ALTER COLUMN level SET DEFAULT {bad}")
    table.add_column("s", pa.struct([("x", pa.int64())]))
    with pytest.raises(RowsieveError, match="only a column of its own"):
        table.add_column("s.e", "enum('a')")


def test_labels_are_added_behind_the_others() -> None:
    table = _table(["sad", "é", None])
    before = table.version
    longer = f"{TYPE[:-1]}, 'new')"
    table.widen_column("mood", longer)
    table.upsert({"id": [3], "mood": ["new"], "other": ["ok"]})
    assert _kept(table, "mood > 'sad'") == [1, 3]
    assert _kept(table, "mood > 'é'") == [3]
    assert _kept(table, "mood >= other") == [1, 3]  # one has the labels of the other, and more
    with pytest.raises(InvalidPredicate, match="'new' is not a label"):
        table.scan(where="mood = 'new'", version=before)
    table.sql(f"ALTER TABLE this ALTER COLUMN mood TYPE {longer[:-1]}, 'newer')")
    for wrong in ("enum('sad')", TYPE, f"enum('newest', {longer[5:]}", "string"):
        with pytest.raises(InvalidSchemaChange):
            table.widen_column("mood", wrong)
    table.compact()
    assert _kept(table, "mood > 'é'") == [3]


def test_an_enum_is_a_key_that_sorts_as_text() -> None:
    schema = pa.schema([("n", pa.int64())])
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", schema.append(
        pa.field("mood", pa.string(), metadata={
            "ARROW:extension:name": "rowsieve.enum.1",
            "ARROW:extension:metadata": '["b", "a", "c"]',
        })
    ), key=["mood"])  # fmt: skip
    for n, labels in enumerate(itertools.permutations("abc", 2)):
        table.upsert({"n": [n, n], "mood": list(labels)})
    found = table.scan(order_by_key=True).to_arrow()
    assert found.column("mood").to_pylist() == ["a", "b", "c"]
    assert found.column("n").to_pylist() == [4, 5, 5]
    below = table.scan(where="mood < 'c'").to_arrow().column("mood")
    assert sorted(below.to_pylist()) == ["a", "b"]
    assert table.scan(where="mood <= 'b'").to_arrow().column("mood").to_pylist() == ["b"]
    table.delete("mood > 'b'")
    assert table.scan().to_arrow().column("mood").to_pylist() == ["b"]


def test_the_command_line_shows_the_labels(tmp_path: Any) -> None:
    (tmp_path / "moods.csv").write_text("id,mood\n1,ok\n2,sad\n")
    uri, file = str(tmp_path / "t"), str(tmp_path / "moods.csv")
    made = CliRunner().invoke(
        cli, ["create", uri, file, "--key", "id", "--type", "mood=enum('sad','ok')"]
    )
    assert made.exit_code == 0, made.output
    assert CliRunner().invoke(cli, ["upsert", uri, file]).exit_code == 0
    assert rs.open_table(uri).scan(where="mood < 'ok'").to_arrow()["id"].to_pylist() == [2]
    shown = CliRunner().invoke(cli, ["inspect", uri])
    assert "enum('sad', 'ok')" in shown.output, shown.output


@pytest.mark.parametrize("key", [None, ["id"], ["mood"]], ids=str)
def test_files_in_place_have_labels_only(key: list[str] | None, tmp_path: Path) -> None:
    catalog = rs.Catalog(tmp_path / "lake")
    named = {"ARROW:extension:name": "rowsieve.enum.1", "ARROW:extension:metadata": '["b", "a"]'}
    mood = pa.field("mood", pa.string(), nullable=key != ["mood"], metadata=named)
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), mood]), key=key)
    for name, ids, labels in (("good", [1, 2], ["a", "b"]), ("bad", [3, 4], ["a", "no label"])):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"id": ids, "mood": labels}), tmp_path / name / "some.parquet")
    for folder in ("hive/mood=a", "hive/mood=no label"):
        (tmp_path / folder).mkdir(parents=True)
        pq.write_table(pa.table({"id": [5]}), tmp_path / folder / "some.parquet")
    for name in ("bad", "hive"):
        with pytest.raises(SchemaMismatch, match=r"'no label' is not|'no label', which is not"):
            catalog.call(f"CALL system.add_files('db', 't', source => '{tmp_path / name}')")
    catalog.call(f"CALL system.add_files('db', 't', source => '{tmp_path / 'good'}')")
    table.refresh()
    assert _kept(table, "mood >= 'b'") == [1, 2]
