"""Timelines, health and translations of real tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve import Table
from rowsieve.errors import InvalidInput, UnsupportedOperation
from tests.pictures.parsed import page_of, texts
from tests.small_tables import keyed, kv


@pytest.fixture(scope="module")
def table() -> Table:
    table = keyed({"k": [1, 2], "v": [1, 2]}, properties={"inline_bytes": "0"})
    table.upsert(kv((2, 5), (3, 3)))
    table.tag("audit", version=1)
    table.branch("dev")
    table.delete("k = 1")
    table.compact()
    return table


def test_a_timeline_has_rows_bytes_and_labels(table: Table) -> None:
    with table.lease(version=2):
        picture = table.timeline()
    page_of(picture)
    marks = {mark.version: mark for mark in picture.versions}
    assert list(marks) == list(range(table.version + 1))
    assert (marks[1].rows_in, marks[1].operation) == (2, "upsert")
    files = {row["rows"]: row["size_bytes"] for row in table.files().to_pylist()}
    last = marks[table.version]
    assert last.is_rewrite
    assert last.bytes_in == sum(files.values())
    assert last.bytes_out is not None
    assert last.bytes_in is not None
    assert last.bytes_out > last.bytes_in
    assert marks[1].labels == ("tag audit",)
    assert "lease" in marks[2].labels
    assert "branch dev" in marks[3].labels


def test_calls_open_their_versions(table: Table) -> None:
    for mark in table.timeline(3).versions:
        assert eval(mark.call, {"rs": rs}).version == mark.version
    (mark,) = table.at_ref("dev").timeline().versions
    assert eval(mark.call, {"rs": rs}).ref == "dev"


def test_expired_versions_are_named() -> None:
    table = keyed({"k": [1], "v": [1]}, properties={"inline_bytes": "0"})
    table.upsert(kv((1, 2)))
    table.expire_versions(retain_last=1)
    picture = table.timeline()
    assert picture.floor
    assert f"versions before {picture.floor} cannot be read" in picture.summary
    page_of(picture)


def test_a_history_is_a_list_and_a_picture(table: Table) -> None:
    history = table.history(2)
    assert history == list(history)
    assert [commit.operation for commit in history] == ["compact", "delete"]
    assert [mark.version for mark in history.picture().versions] == [
        commit.version for commit in reversed(history)
    ]
    assert "rs.open_table" in history._repr_html_()


def test_health_knows_where_the_bytes_are(table: Table) -> None:
    picture = table.health()
    page_of(picture)
    shares = {share.name: share for share in picture.shares}
    assert shares["live"].size_bytes == sum(row["size_bytes"] for row in table.files().to_pylist())
    assert shares["history"].files > 0
    assert shares["left over"].files == 0
    table.handle.store.put_new("data/" + "0" * 32 + ".parquet", b"x" * 1234)
    left = {share.name: share for share in table.health().shares}["left over"]
    assert (left.files, left.size_bytes) == (1, 1234)
    assert picture.notes == ()


def test_health_advises_with_statements() -> None:
    table = keyed(*({"k": [1, 2, i], "v": [i] * 3} for i in range(3, 12)))
    picture = table.health()
    (remedy,) = [each for each in picture.remedies if each.action == "compact"]
    assert remedy.python == f"rs.open_table({table.uri!r}).compact()"
    eval(remedy.python, {"rs": rs})
    assert table.health().remedies == ()


def test_a_transaction_has_no_timeline(table: Table) -> None:
    with table.transaction() as open_:
        for call in (open_.timeline, open_.health):
            with pytest.raises(UnsupportedOperation, match="transaction"):
                call()
        open_.rollback()
    with pytest.raises(InvalidInput, match="at least 1"):
        table.timeline(0)


def test_a_translation_says_which_conditions_were_refused() -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    made = rs.translate("id > 5 AND upper(name) = 'X'", "spark", target="iceberg", schema=schema)
    picture = made.picture()
    assert [each.exactness for each in picture.conditions] == ["exact", "unsupported"]
    assert (picture.source, picture.target) == ("spark", "iceberg")
    assert picture.conditions[1].reason
    root = page_of(picture)
    assert texts(root, "b") == ["exact", "refused"]
    assert made == rs.translate(
        "id > 5 AND upper(name) = 'X'", "spark", target="iceberg", schema=schema
    )


def test_conditions_that_cannot_be_read_are_listed_too() -> None:
    schema = pa.schema([("id", pa.int64())])
    made = rs.translate("id > 5 AND my_udf(id)", "spark", target="duckdb", schema=schema)
    assert [each.exactness for each in made.picture().conditions] == ["unsupported", "exact"]


def test_health_counts_the_files_that_lie_elsewhere(tmp_path: Path) -> None:
    source = tmp_path / "source.parquet"
    pq.write_table(pa.table({"k": [1, 2], "v": [1, 2]}), source)
    table = rs.from_parquet(source, tmp_path / "t", key=["k"])
    share = {share.name: share for share in table.health().shares}["in place"]
    assert (share.files, share.size_bytes) == (1, source.stat().st_size)
    table.upsert(kv((1, 5), (2, 6)))
    table.compact()
    assert "in place" not in {share.name for share in table.health().shares}
