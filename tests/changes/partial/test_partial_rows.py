"""Rows of which changes give some columns are those that applying them one by one gives."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve
from rowsieve import Table
from rowsieve.changes.partial import resolving
from rowsieve.changes.partial.combine_rules import RULES
from tests.changes.partial.oracle import Rows, apply_change
from tests.profiles import examples
from tests.small_tables import fresh_uri

NAN = float("nan")
JSON = {"ARROW:extension:name": "rowsieve.json.1"}
PAIR = pa.struct([("x", pa.int64()), ("y", pa.float64())])


@dataclass(frozen=True)
class Kind:
    """A column, values of it, and the rules that it may have."""

    type: pa.DataType
    values: Sequence[Any]
    rules: Sequence[str] = ()
    default: Any = None
    nullable: bool = True
    metadata: Mapping[str, str] | None = None


COLUMNS: Mapping[str, Kind] = {
    "i": Kind(pa.int32(), (None, -3, 0, 1, 2**20), ("sum", "min", "max"), default=7),
    "u": Kind(pa.uint64(), (None, 0, 1, 2**60), ("sum", "min", "max")),
    "f": Kind(pa.float64(), (None, NAN, -0.0, 0.0, -1.5, float("inf")), ("min", "max")),
    "m": Kind(
        pa.decimal128(38, 2),
        (None, Decimal("-0.01"), Decimal("99999999999999999999.25")),
        ("sum", "max"),
    ),
    "s": Kind(pa.string(), (None, "", "a", "ab", "ä"), ("min", "max"), default="new"),
    "t": Kind(pa.bool_(), (None, False, True), ("min", "max")),
    "n": Kind(pa.int64(), (0, 5, -5), ("sum", "min"), default=1, nullable=False),
    "l": Kind(
        pa.list_(pa.float64()),
        (None, [], [None], [NAN, -0.0], [0.0, 1.0, 1.0]),
        ("union_of_lists",),
    ),
    "o": Kind(
        pa.list_(PAIR),
        (None, [], [{"x": 1, "y": NAN}, None], [{"x": 1, "y": NAN}, {"x": None, "y": 0.0}]),
        ("union_of_lists",),
    ),
    "p": Kind(PAIR, (None, {"x": None, "y": -0.0}, {"x": 2, "y": NAN})),
    "j": Kind(
        pa.string(),
        (
            None,
            "null",
            "[1]",
            '{"a":1,"b":{"c":[]}}',
            '{"b":{"d":null,"e":2},"a":null}',
            '{"b":7}',
            '{"":{"":{}}}',
        ),
        ("json_merge",),
        metadata=JSON,
    ),
}
SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        *(
            pa.field(name, kind.type, nullable=kind.nullable, metadata=kind.metadata)
            for name, kind in COLUMNS.items()
        ),
    ]
)
DEFAULTS = {name: kind.default for name, kind in COLUMNS.items()}
NAMES = tuple(COLUMNS)


def empty_table() -> Table:
    table = rowsieve.create_table(fresh_uri(), SCHEMA, key=["k"])
    for name, kind in COLUMNS.items():
        if kind.default is not None:
            table.set_default(name, kind.default)
    return table


def changes_of(keys: int = 3) -> st.SearchStrategy[dict[str, Any]]:
    """A change of one of few keys, which gives some columns; some changes delete."""
    columns = st.lists(st.sampled_from(NAMES), unique=True, max_size=6)
    row = columns.flatmap(
        lambda names: st.fixed_dictionaries(
            {"k": st.integers(0, keys), **{n: st.sampled_from(COLUMNS[n].values) for n in names}}
        )
    )
    deleted = st.builds(lambda k: {"k": k, "op": "d"}, st.integers(0, keys))
    return st.one_of(row, row, row, deleted)


def rules_of() -> st.SearchStrategy[dict[str, str]]:
    chosen = {
        name: st.sampled_from((None, "last", "first", "last_not_null", *kind.rules))
        for name, kind in COLUMNS.items()
    }
    return st.fixed_dictionaries(chosen).map(lambda r: {n: v for n, v in r.items() if v})


def as_arrow(batch: Sequence[Mapping[str, Any]], first: int) -> pa.Table:
    """The changes as columns; what a change does not give is in its list of unchanged columns."""
    columns: dict[str, Any] = {"k": pa.array([row["k"] for row in batch], pa.int64())}
    for name in NAMES:
        values = [row.get(name) for row in batch]
        columns[name] = pa.array(values, COLUMNS[name].type)
    columns["op"] = [row.get("op", "u") for row in batch]
    columns["lsn"] = list(range(first, first + len(batch)))
    unchanged = [[name for name in NAMES if name not in row] or None for row in batch]
    columns["kept"] = pa.array(unchanged, pa.list_(pa.string()))
    return pa.table(columns)


def as_dicts(batch: Sequence[Mapping[str, Any]], first: int) -> list[dict[str, Any]]:
    return [{"op": "u", **row, "lsn": first + i} for i, row in enumerate(batch)]


def stored(table: Table) -> list[str]:
    """The rows as text by key, with JSON in one form."""
    rows = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["k"])
    return [shown(row) for row in rows]


def shown(row: Mapping[str, Any]) -> str:
    text = row["j"]
    form = text if text is None else json.dumps(json.loads(text), separators=(",", ":"))
    return repr({**{name: row[name] for name in ("k", *NAMES)}, "j": form})


@examples(400)
@given(
    st.lists(st.lists(changes_of(), min_size=1, max_size=6), min_size=1, max_size=4),
    rules_of(),
    st.booleans(),
)
def test_any_cutting_gives_what_single_changes_give(
    batches: list[list[dict[str, Any]]], rules: dict[str, str], in_arrow: bool
) -> None:
    table = empty_table()
    expected: Rows = {}
    first = 0
    for batch in batches:
        data = as_arrow(batch, first) if in_arrow else as_dicts(batch, first)
        table.apply_changes(
            data,
            op="op",
            sequence="lsn",
            missing="keep",
            unchanged="kept" if in_arrow else None,
            combine=rules,
        )
        first += len(batch)
        for change in batch:
            apply_change(expected, change, DEFAULTS, rules)
        assert stored(table) == [shown(expected[key]) for key in sorted(expected)]
    whole = empty_table()
    every = [change for batch in batches for change in batch]
    whole.apply_changes(
        as_dicts(every, 0)[::-1], op="op", sequence="lsn", missing="keep", combine=rules
    )
    assert stored(whole) == stored(table)
    again = empty_table()
    for change in every:
        if change.get("op") == "d":
            again.delete(keys=pa.table({"k": [change["k"]]}))
        else:
            again.upsert([change], columns="given", combine=rules)
    assert stored(again) == stored(table)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_each_rule_is_reached_by_a_type(rule: str) -> None:
    general = ("last", "first", "last_not_null")
    assert rule in general or any(rule in kind.rules for kind in COLUMNS.values())


def small(**options: Any) -> Table:
    schema = pa.schema(
        [pa.field("k", pa.int64(), nullable=False), ("a", pa.int64()), ("b", pa.string())]
    )
    return rowsieve.create_table(fresh_uri(), schema, key=["k"], **options)


def test_columns_that_the_data_lacks_keep_their_values() -> None:
    table = small()
    table.upsert({"k": [1, 2], "a": [10, 20], "b": ["x", "y"]})
    commit = table.upsert({"K": [2, 3], "a": [None, 30]}, columns="given")
    assert (commit.operation, commit.rows_written) == ("upsert", 2)
    assert sorted(map(tuple, (row.values() for row in table.scan().to_arrow().to_pylist()))) == [
        (1, 10, "x"),
        (2, None, "y"),
        (3, 30, None),
    ]


def test_columns_in_all_rows_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table = small()
    table.upsert({"k": [1], "a": [10], "b": ["x"]})

    def refuse(*_: Any) -> Any:
        raise AssertionError("the table was read")

    monkeypatch.setattr(resolving, "current_rows", refuse)
    table.upsert({"k": [1], "a": [11], "b": ["y"]}, columns="given")
    changes = [{"k": 1, "op": "d", "lsn": 1}, {"k": 1, "op": "u", "a": 3, "lsn": 2}]
    table.apply_changes(changes, op="op", sequence="lsn", missing="keep")
    assert table.scan().to_arrow().to_pylist() == [{"k": 1, "a": 3, "b": None}]


def test_repeated_keys_of_an_upsert_apply_in_their_order() -> None:
    table = small()
    rows = [{"k": 1, "a": 1}, {"k": 1, "b": "x"}, {"k": 1, "a": 5}]
    with pytest.raises(rowsieve.errors.KeyViolation, match="in their order"):
        table.upsert(rows, columns="given")
    table.upsert(rows, columns="given", combine={"a": "sum"}, on_duplicate="last")
    assert table.scan().to_arrow().to_pylist() == [{"k": 1, "a": 6, "b": "x"}]
