"""Events as each tool and each source database writes them, and the rows that they leave.

The story is our own: a harbour's boats are read by a snapshot, created, renamed, given another key
and deleted. The shapes are those that the tools document. The first line of a file has the format,
the options of the call, what is skipped, and the rows; the others are the messages. `instants`: the
source has no local times.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.envelopes.event_formats import FORMATS
from tests.small_tables import fresh_uri

FILES = sorted((Path(__file__).parent / "golden").glob("*.jsonl"))
BOATS = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        ("name", pa.string()),
        ("length_m", pa.decimal128(6, 2)),
        ("launched", pa.date32()),
        ("seen", pa.timestamp("us")),
        ("moored", pa.bool_()),
    ]
)
pytestmark = pytest.mark.filterwarnings("ignore:apply_events. the events are ordered by")


def read(path: Path) -> tuple[dict[str, Any], list[str]]:
    first, *messages = path.read_text().splitlines()
    return json.loads(first), messages


def boats(story: dict[str, Any]) -> Table:
    """The empty table; `seen` has instants if the source has no local times."""
    seen = pa.field("seen", pa.timestamp("us", "UTC" if story.get("instants") else None))
    schema = BOATS.set(BOATS.get_field_index("seen"), seen)
    return rowsieve.create_table(fresh_uri(), schema, key=["id"])


def shown(table: Table) -> list[dict[str, Any]]:
    found = table.scan(order_by_key=True).to_arrow().to_pylist()
    texts = ("length_m", "launched", "seen")
    return [
        {name: str(v) if name in texts and v is not None else v for name, v in row.items()}
        for row in found
    ]


def test_each_format_has_a_file() -> None:
    assert {read(path)[0]["format"] for path in FILES} == set(FORMATS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_events_leave_the_rows_of_the_source(path: Path) -> None:
    story, messages = read(path)
    table = boats(story)
    applied = table.apply_events("\n".join(messages), format=story["format"], **story["options"])
    assert shown(table) == story["rows"]
    assert applied.skipped == story["skipped"]
    assert applied.bad.num_rows == 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_their_order_in_a_call_and_repeats_do_not_matter(path: Path) -> None:
    story, messages = read(path)
    random.Random(path.stem).shuffle(messages)
    table = boats(story)
    table.apply_events(messages * 2, format=story["format"], **story["options"])
    assert shown(table) == story["rows"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_columns_come_from_the_events(path: Path) -> None:
    story, messages = read(path)
    table = rowsieve.create_table(fresh_uri(), pa.schema([("id", pa.int32())]), key=["id"])
    options = {name: value for name, value in story["options"].items() if name != "times"}
    table.apply_events(messages, format=story["format"], schema_mode="merge", **options)
    assert set(map(str.lower, table.schema.names)) == set(BOATS.names)
    assert table.scan(order_by_key=True).to_arrow().column("id").to_pylist() == [1, 3, 9]
