"""The difference of two versions is the net one; a profile has the facts of `summarize`."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowsieve import Table
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.picture_facts.difference_facts import difference_of
from rowsieve.pictures.difference import ChangedCell, VersionDifference
from rowsieve.pictures.profile import ColumnProfile, Profile
from tests.pictures.parsed import HOSTILE, page_of, texts
from tests.small_tables import appended, keyed, kv


@pytest.fixture(scope="module")
def table() -> Table:
    table = keyed({"k": [*range(10)], "v": [*range(10)]})
    table.upsert(kv((2, 50), (3, 3), (40, 1), (7, 70)))
    table.delete("k IN (1, 5)")
    table.upsert(kv((7, 7), (40, None)))
    return table


def test_each_key_counts_once(table: Table) -> None:
    picture = table.difference(1)
    page_of(picture)
    assert (picture.before, picture.after) == (1, table.version)
    assert (picture.inserted, picture.updated, picture.deleted) == (1, 1, 2)
    assert picture.columns == (("v", 1),)
    assert ChangedCell("2", "updated", "v", "2", "50") in picture.samples
    assert ChangedCell("40", "inserted", "all", "", "v=NULL") in picture.samples
    assert {cell.key for cell in picture.samples if cell.kind == "deleted"} == {"1", "5"}
    assert table.difference(1, 2).summary == "1 inserted, 2 updated, 0 deleted"
    assert table.difference(2, 2).summary == "0 inserted, 0 updated, 0 deleted"
    page_of(table.difference(2, 2))


def test_samples_are_few_and_counts_are_not(table: Table) -> None:
    picture = table.difference(1, samples=1)
    assert (picture.deleted, len(picture.samples)) == (2, 3)
    assert table.difference(1, samples=0).samples == ()


def test_what_cannot_be_compared_is_refused(table: Table) -> None:
    with pytest.raises(InvalidInput, match="older one first"):
        table.difference(3, 2)
    with pytest.raises(InvalidInput, match="negative"):
        table.difference(1, samples=-1)
    keyless = appended({"k": [1], "v": [1]}, {"k": [2], "v": [2]})
    with pytest.raises(UnsupportedOperation):
        keyless.difference(1)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_pairs_are_counted_across_batches(size: int) -> None:
    kinds = ["delete", "update_preimage", "update_postimage"] * 3 + ["insert"]
    lists: list[list[float | None] | None] = [
        [1],
        [2, None],
        [2, None],
        [1],
        [2],
        [3],
        [1],
        None,
        [1],
        [0],
    ]
    nan = float("nan")
    rows = pa.table(
        {
            "k": [0, 1, 1, 2, 3, 3, 4, 5, 5, 6],
            "l": pa.array(lists, pa.list_(pa.float64())),
            "f": [0.0, nan, nan, 1.0, nan, 1.0, 0.0, None, None, 1.0],
            "_change_type": kinds,
        }
    )
    feed = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=size))
    picture = difference_of("t", (1, 2), ["k"], feed, 5)
    assert (picture.inserted, picture.updated, picture.deleted) == (1, 3, 3)
    assert picture.columns == (("l", 2), ("f", 1))


def test_a_profile_has_the_facts_of_summarize(table: Table) -> None:
    by_name = {column.name: column for column in table.profile(exact=True).columns}
    assert by_name["v"][2:5] == (1, "0", "50")
    assert by_name["v"].exact
    assert not {c.name: c for c in table.profile().columns}["v"].exact
    root = page_of(table.profile())
    assert "bounds" in texts(root, "b")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_stays_text(name: str) -> None:
    cell = ChangedCell(name, name, name, name, name)
    page_of(VersionDifference(name, 1, 2, 1, 1, 1, ((name, 1),), (cell,)))
    page_of(Profile(name, 1, 3, [ColumnProfile(name, name, 1, name, name, 2, exact=False)]))
