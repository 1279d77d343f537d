"""Each flag can be turned on and back at run time, in every order, and no row changes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.config import Config
from rowsieve.flags.flag import FLAGS
from tests.daily import today
from tests.profiles import some
from tests.small_tables import fresh_uri

pytestmark = pytest.mark.usefixtures("former_config")

VALUES: dict[str, tuple[str | float, ...]] = {
    "pruning": ("on", "soft", "off"),
    "audit_percent": (0.0, 50.0),
    "audit_on_violation": ("raise", "report"),
    "statistics": ("on", "off"),
    "inline_bytes": (16_384, 0),
    "visibility": ("lazy", "eager"),
    "value_forms": ("structured", "opaque"),
    "compaction": ("leveled", "tiered"),
    "write_encoding": ("columns", "both", "codec"),
    "read_encoding": ("columns", "codec", "shadow"),
    "on_encoding_difference": ("report", "raise"),
}
"""The values of each flag, the default first."""

SCHEMA = pa.schema(
    [pa.field("k", pa.int64(), nullable=False), ("v", pa.int64()), ("u", pa.json_())]
)
CONDITIONS = ("v >= 40", "k = 3", "k > 2 AND v < 30", "v IS NULL")

Turn = Callable[[rs.Table, str, Any], None]


def by_process(_table: rs.Table, name: str, value: Any) -> None:
    rs.configure(Config(**{name: value}))


def by_rule(_table: rs.Table, name: str, value: Any) -> None:
    rs.configure(Config(flags=rs.Flags([rs.Rollout(name, value, percent=100)])))


def by_property(table: rs.Table, name: str, value: Any) -> None:
    table.set_properties({name: value})


def by_unset(table: rs.Table, name: str, value: Any) -> None:
    """Set it for the process, below a property that is removed."""
    rs.configure(Config(**{name: value}))
    table.unset_properties([name])


class Story:
    """A table and a dictionary that get the same changes."""

    def __init__(self, draws: random.Random) -> None:
        self.draws = draws
        # The protocol that all flags need; the values of the properties are those of the defaults.
        self.table = rs.create_table(
            fresh_uri(), SCHEMA, key=["k"], properties={"inline_bytes": 1, "visibility": "lazy"}
        )
        self.table.set_properties({"row_codec": "msgpack"})
        self.table.unset_properties(["inline_bytes", "visibility"])
        self.model: dict[int, int | None] = {}

    def change(self) -> None:
        """Upsert, delete by key and update by condition."""
        keys = sorted(self.draws.sample(range(8), 4))
        values = [self.draws.choice([None, self.draws.randrange(60)]) for _ in keys]
        texts = [f'{{"k": {key}}}' for key in keys]
        rows = pa.table({"k": keys, "v": values, "u": texts}, schema=SCHEMA)
        self.table.upsert(rows)
        self.model |= dict(zip(keys, values, strict=True))
        gone = self.draws.randrange(8)
        self.table.delete(keys={"k": [gone]})
        self.model.pop(gone, None)
        self.table.update({"v": "v + 1"}, where="v > 30")
        self.model |= {k: v + 1 for k, v in self.model.items() if v is not None and v > 30}

    def check(self) -> None:
        """Every condition has the rows of the model."""
        matches: tuple[Callable[[int, int | None], bool], ...] = (
            lambda _k, v: v is not None and v >= 40,
            lambda k, _v: k == 3,
            lambda k, v: k > 2 and v is not None and v < 30,
            lambda _k, v: v is None,
        )
        for where, matching in zip(CONDITIONS, matches, strict=True):
            rows = self.table.scan(where, order_by_key=True).to_arrow().to_pylist()
            expected = [(k, v, f'{{"k": {k}}}') for k, v in sorted(self.model.items())]
            assert [(row["k"], row["v"], row["u"]) for row in rows] == [
                row for row in expected if matching(row[0], row[1])
            ], where
        assert self.table.count() == len(self.model)


def orders(values: Sequence[Any]) -> Iterator[tuple[tuple[Any, ...], tuple[Turn, ...]]]:
    """Every order of the values of a flag and back to the default.

    Any two values of an order are set by every pair of ways; three are not set by all triples.
    """
    ways = (by_process, by_rule, by_property)
    for order in permutations(values):
        for first, second in product(range(len(ways)), repeat=2):
            numbers = (first, second, (first + second) % len(ways))
            turns = [ways[number] for number in numbers[: len(values)]]
            yield (*order, values[0]), (*turns, by_unset)


def test_the_values_are_those_of_all_flags() -> None:
    assert list(VALUES) == list(FLAGS)
    for name, values in VALUES.items():
        assert values[0] == FLAGS[name].default
        for value in values:
            FLAGS[name].check(name, value)


@pytest.mark.parametrize("name", VALUES)
def test_a_flag_in_every_order(name: str) -> None:
    all_orders = list(orders(VALUES[name]))
    chosen = some(all_orders, len(all_orders), today().toordinal())
    for number, (values, turns) in enumerate(chosen):
        rs.configure(Config())
        story = Story(random.Random(f"{number}/{name}"))
        for value, turn in zip(values, turns, strict=True):
            turn(story.table, name, value)
            story.change()
            story.check()
        story.table.compact()
        story.check()


def test_two_flags_are_turned_on_and_back_in_every_order() -> None:
    orders_of_two = [(on, back) for on in permutations(VALUES, 2) for back in (on, on[::-1])]
    for number, (on, back) in enumerate(some(orders_of_two, 56, today().toordinal())):
        turn_all(on, back, random.Random(f"{number}/{on}/{back}"))


def test_all_flags_are_turned_on_and_back_in_random_orders() -> None:
    """Of 11! orders, these; the date draws others each day."""
    for number in some(range(16), 16):
        draws = random.Random(f"{today()}/{number}")
        on, back = (draws.sample(list(VALUES), len(VALUES)) for _ in range(2))
        turn_all(on, back, draws)


def turn_all(on: Sequence[str], back: Sequence[str], draws: random.Random) -> None:
    """Turn these flags on for the process, one by one, then back; no row changes."""
    rs.configure(Config())
    story, turned = Story(draws), dict[str, Any]()
    turns = [(name, draws.choice(VALUES[name][1:])) for name in on]
    for name, value in (*turns, *((name, VALUES[name][0]) for name in back)):
        turned[name] = value
        rs.configure(Config(**turned))
        story.change()
        story.check()
        if len(turned) == len(on):
            story.table.compact()
            story.check()
