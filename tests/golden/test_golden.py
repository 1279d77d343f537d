"""Tables that earlier versions of the format wrote are read, and changed, by every later one."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

import rowsieve
from tests.golden import story

FOLDER = Path(__file__).parent


def expected(rows: Iterable[story.Row], schema: pa.Schema) -> list[str]:
    """The rows as text, in which NaN and -0.0 have their own; in the order of the schema."""
    shown = [story.table_of({0: row}, schema).to_pylist()[0] for row in rows]
    return sorted(map(repr, shown))


def found(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def check_versions(folder: Path, versions: tuple[Iterable[story.Row], ...]) -> None:
    for version, rows in enumerate(versions):
        table = rowsieve.open_table(folder, version=version)
        for row in rows:
            assert set(row) == set(table.schema.names)
        assert found(table.to_arrow()) == expected(rows, table.schema), version
    newest = rowsieve.open_table(folder)
    assert newest.version == len(versions) - 1


def by_version(versions: tuple[story.Rows, ...]) -> tuple[Iterable[story.Row], ...]:
    return tuple(rows.values() for rows in versions)


GOLDEN = {
    "before": by_version(story.BEFORE_VERSIONS),
    "plain": (*by_version(story.PLAIN_VERSIONS), story.PLAIN_LAST),
    "evolved": by_version(story.EVOLVED_VERSIONS),
    "tagged": by_version(story.EVOLVED_VERSIONS),
    "forms": by_version(story.FORMS_VERSIONS),
    "clustered": story.CLUSTERED_VERSIONS,
    "enums": by_version(story.ENUMS_VERSIONS),
    "shredded": by_version(story.SHREDDED_VERSIONS),
    "nanos": by_version(story.NANOS_VERSIONS),
}


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", GOLDEN)
def test_every_version_is_read(name: str) -> None:
    before = files_of(FOLDER / name)
    check_versions(FOLDER / name, GOLDEN[name])
    assert files_of(FOLDER / name) == before  # a reader writes nothing


CONDITIONS: dict[str, dict[str, set[int]]] = {
    "before": {
        "f = CAST('NaN' AS real)": {1},
        "f = 0": {2},
        "j ->> 'k' = '5'": {1},
        "st.x = 5": {4},
        "d < 0": {2},
        "s LIKE 'z%' OR i = 7": {4, 7},
        "at IS NOT NULL": {6},
        "b": {1, 3},
        "day > DATE '2000-01-01'": {3},
    },
    "plain": {"id = 3": {3}, "s = 'five'": {6}, "b IS NOT TRUE": {3, 4, 5, 6}, "d > 0": {1, 5}},
    "evolved": {
        "b = '50' AND i = 6": {6},
        "b <> '50'": {8, 9},
        "nan > 5": {2, 3, 4, 6, 7},
        "zero = 0": {2, 3, 4, 6, 7, 8},
        "money > 1.2 AND text LIKE 'zzz%'": {2, 3, 4, 6, 7, 8},
        '"inner".p = 1': {8},
        "none IS NULL AND i > 0": {3, 4, 6, 7},
        "i > 2147483647": {8},
        "f = 0.1": {8},
        "d >= 12345.6789": {8},
        "\"a.b\" = 'two'": {2},
        "doc ->> 'k' IS NOT NULL": {2},
        "merged = 'm'": {9},
        "must IS NULL": {8},
        "moment < TIMESTAMPTZ '2026-11-23 01:02:04+00'": {2, 3, 4, 6, 7, 8},
    },
}
CONDITIONS["forms"] = {
    "n = 1.5": {1},
    "n < 1": {4},
    "u IS NULL": {3},
    "j ->> 'k' = '1' AND i > 0": {1},
    "u > CAST('70000000-0000-0000-0000-000000000000' AS uuid)": {4},
}
CONDITIONS["enums"] = {
    "mood > 'sad'": {3, 4},
    "mood = 'it''s, new'": {4},
    "mood < 'é' AND i > 0": {1, 3},
}
CONDITIONS["shredded"] = {
    "(j ->> 'k')::double precision = 5": {1},
    "(j ->> 'k')::double precision > 1e18": {5},
    "j -> 'a' ->> 'b' = 'x'": {1},
    "j -> 'a' ->> 'b' = 'y'": set(),
    "j ->> 'k' = '7'": set(),
    "j ->> 'k' = '8'": {4},
    "j ->> 'k' IS NULL": {3},
}
CONDITIONS["nanos"] = {
    "at > '2023-11-14 22:13:20'": {1},
    "at < '1970-01-01'": {3},
    "utc = '2023-11-14 22:13:20.000000002+00'": {4},
    "utc < TIMESTAMPTZ '1969-12-31 23:59:59.999999+00'": set(),
    "utc <= '1969-12-31 23:59:59.999999999+00'": {3},
    "at IS NULL AND i > 0": {4},
    "later = '2023-11-14 22:13:20.000000003'": {1, 3, 4},
}
CONDITIONS["clustered"] = CONDITIONS["plain"]
CONDITIONS["tagged"] = CONDITIONS["evolved"]


def key_of(name: str) -> str:
    """The name of the key column in the newest version."""
    return "key" if name in ("evolved", "tagged") else "id"


@pytest.mark.parametrize(
    ("name", "where", "keys"),
    [(name, where, keys) for name, each in CONDITIONS.items() for where, keys in each.items()],
)
def test_conditions_find_their_rows(name: str, where: str, keys: set[int]) -> None:
    table = rowsieve.open_table(FOLDER / name)
    key = key_of(name)
    for pruning in ("on", "soft", "off"):
        scan = table.scan(where, [key], pruning=pruning)
        assert set(scan.to_arrow().column(key).to_pylist()) == keys


@pytest.mark.parametrize("name", GOLDEN)
def test_engines_read_the_newest_version(name: str) -> None:
    table = rowsieve.open_table(FOLDER / name)
    context = datafusion.SessionContext()
    context.register_table("t", table)
    rows = expected(GOLDEN[name][-1], table.schema)
    assert found(context.sql("SELECT * FROM t").to_arrow_table().cast(table.schema)) == rows
    assert found(table.to_dataset().to_table()) == rows


def test_a_table_from_before_evolves(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    shutil.copytree(FOLDER / "before", folder)
    story.evolve(str(folder))
    check_versions(folder, GOLDEN["evolved"])
    table = rowsieve.open_table(folder)
    assert table.schema.names[:3] == ["b", "key", "text"]
    assert table.compact().committed
    assert found(table.to_arrow()) == expected(GOLDEN["evolved"][-1], table.schema)
    check_versions(folder, (*GOLDEN["evolved"], GOLDEN["evolved"][-1]))


@pytest.mark.parametrize("name", GOLDEN)
def test_a_table_from_before_is_changed(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "table"
    shutil.copytree(FOLDER / name, folder)
    table = rowsieve.open_table(folder)
    key = key_of(name)
    rows: list[dict[str, Any]] = [row for row in GOLDEN[name][-1] if row[key] != 4]
    table.delete(f"{key} = 4")
    table.update({"i": "11"}, where=f"{key} = 3")
    rows = [{**row, "i": 11} if row[key] == 3 else row for row in rows]
    assert found(table.to_arrow()) == expected(rows, table.schema)
    table.compact()
    assert found(table.to_arrow()) == expected(rows, table.schema)
    table.restore(len(GOLDEN[name]) - 1)
    assert found(table.to_arrow()) == expected(GOLDEN[name][-1], table.schema)


def test_parts_record_the_order_of_their_rows() -> None:
    found = []
    for version in range(len(GOLDEN["clustered"])):
        table = rowsieve.open_table(FOLDER / "clustered", version=version)
        found.append(set(table.handle.pinned.parts.sort_orders()))
    curve, columns = "hilbert(2, 4)", "5 DESC NULLS LAST, 1 ASC NULLS FIRST"
    assert found == [set(), {curve}, {curve}, {curve}, {curve, columns}, {columns}]
