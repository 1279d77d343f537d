"""Odd names of columns and members in Spark sessions that are case-sensitive and that are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import UnknownColumn
from rowsieve.providers.spark.name_case import name_in_another_case
from rowsieve.types.encodings import schema_of

classic = pytest.importorskip("pyspark.sql.functions")
connect = pytest.importorskip("pyspark.sql.connect.functions", exc_type=ImportError)

pytestmark = pytest.mark.spark

CASE = "spark.sql.caseSensitive"
NAMES = (
    *("a b", "a.b", "a`b", "it's", '"q"', "select", "ÀÉ", "\u0131", "日本", "😀", "a\nb", "%20"),
    *("`", "``", "\\", "1", "-", "x;--", "null", "$x", "*", "a,b"),
)
CASED = pa.schema(
    [
        ("id", pa.int64()),
        ("a", pa.int64()),
        ("s", pa.struct([("x", pa.int64()), ("Y", pa.struct([("z", pa.int64())]))])),
        ("l", pa.list_(pa.struct([("w", pa.int64())]))),
        ("m", pa.map_(pa.string(), pa.struct([("v", pa.int64())]))),
    ]
)


@pytest.fixture(params=["classic", "client"])
def session(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session that is put back to finding names in any case."""
    name = "spark" if request.param == "classic" else "client"
    session = request.getfixturevalue(name)
    yield session
    session.conf.unset(CASE)


@pytest.fixture
def cased(tmp_path: Path) -> rs.Table:
    row = {"id": 1, "a": 2, "s": {"x": 3, "Y": {"z": 4}}, "l": [{"w": 5}], "m": [("k", {"v": 6})]}
    return rs.create_table(tmp_path / "t", pa.Table.from_pylist([row], schema=CASED), key=["id"])


def load(session: Any, table: rs.Table, where: str) -> Any:
    return session.read.format("rowsieve").option("where", where).load(table.uri)


OTHER_CASE = ("A = 2", "ID = 7", "s.X = 3", "S.x = 3", "s.y.z = 4", "s.Y.Z = 4", "m['k'].V = 6")


def test_a_name_in_another_case_is_found_only_where_spark_finds_it(
    session: Any, cased: rs.Table
) -> None:
    where = "A = 2 AND s.y.z = 4"
    plain, narrow = cased.to_spark(session), cased.to_spark(session, where=where)
    loaded, empty = load(session, cased, where), load(session, cased, "ID = 7")
    assert [frame.count() for frame in (plain.where(where), narrow, loaded, empty)] == [1, 1, 1, 0]
    session.conf.set(CASE, "true")
    for text in OTHER_CASE:
        with pytest.raises(Exception, match=r"UNRESOLVED|FIELD_NOT_FOUND"):
            plain.where(text).schema  # noqa: B018 - a client asks its server here
        with pytest.raises(UnknownColumn, match="exact name"):
            cased.to_spark(session, where=text)
    for frame in (loaded, empty, load(session, cased, where)):
        with pytest.raises(Exception, match=f"UnknownColumn.*{CASE}"):
            frame.collect()
    assert narrow.count() == 1  # it has the settings of its making


def test_exact_names_are_found_by_every_session(session: Any, cased: rs.Table) -> None:
    where = "id = 1 AND a = 2 AND s.x = 3 AND s.Y.z = 4 AND get(l, 0).w = 5 AND m['k'].v = 6"
    for value in ("true", "false"):
        session.conf.set(CASE, value)
        assert cased.to_spark(session).where(where).count() == 1
        assert cased.to_spark(session, where=where).count() == 1
        assert load(session, cased, where).count() == 1


@pytest.mark.parametrize("value", ["true", "false"])
def test_odd_names_of_columns_are_read_written_and_selected_by(
    session: Any, tmp_path: Path, value: str
) -> None:
    session.conf.set(CASE, value)
    names = (*NAMES, "Case", "case") if value == "true" else NAMES
    columns = {name: [number, number + 1] for number, name in enumerate(names)}
    table = rs.create_table(tmp_path / "t", pa.table({"id": [1, 2], **columns}), key=["id"])
    functions = connect if "connect" in type(session).__module__ else classic
    quoted = {name: "`" + name.replace("`", "``") + "`" for name in names}
    text = " AND ".join(f"{quoted[name]} = {number}" for number, name in enumerate(names))
    column = functions.col(quoted[names[0]]) == 0
    for number, name in enumerate(names):
        column &= functions.col(quoted[name]) == number
    plain = table.to_spark(session)
    for frame in (plain.where(text), *(table.to_spark(session, where=w) for w in (text, column))):
        assert [tuple(row) for row in frame.collect()] == [(1, *range(len(names)))]
    moved = plain.where("id = 1").selectExpr("id + 2 AS id", *quoted.values())
    table.write_spark(moved, "upsert")
    rows = table.scan(order_by_key=True).to_arrow().to_pylist()
    assert rows[2] == {**rows[0], "id": 3}


def test_names_are_compared_with_the_struct_that_they_are_of() -> None:
    schema, _ = schema_of(CASED)
    for where in OTHER_CASE:
        assert name_in_another_case(where, schema) is not None, where
    for where in ("a = 2", "s.x = 1 OR s.Y.z = 2", "l[0].w = 5", "m['k'].v = 6", "m.K = 6"):
        assert name_in_another_case(where, schema) is None, where
    assert name_in_another_case("l[0].W = 5", schema) == "W"
    assert name_in_another_case("nowhere = 5", schema) is None  # reading it says so


TWO_CASES = pa.schema([("id", pa.int64()), ("a", pa.int64()), ("A", pa.int64())])


def test_a_name_of_two_columns_is_found_only_where_spark_finds_it(
    session: Any, tmp_path: Path
) -> None:
    rows = pa.Table.from_pylist([{"id": 1, "a": 2, "A": 3}], schema=TWO_CASES)
    table = rs.create_table(tmp_path / "t", rows, key=["id"])
    theirs = table.to_spark(session)
    for where in ("a = 2", "A = 3", "`A` = 3"):
        with pytest.raises(Exception, match="AMBIGUOUS_REFERENCE"):
            theirs.where(where).collect()
        with pytest.raises(UnknownColumn, match="ambiguous"):
            table.to_spark(session, where=where)
        with pytest.raises(Exception, match="ambiguous"):
            load(session, table, where).collect()
    session.conf.set(CASE, "true")
    for where, count in (("a = 2", 1), ("A = 3", 1), ("`A` = 2", 0)):
        assert theirs.where(where).count() == count
        assert table.to_spark(session, where=where).count() == count
        assert load(session, table, where).count() == count
