"""Random tables with a history: every layout, hidden rows and columns that changed, from a seed.

A step of a history is a row of `STEPS`: a kind of change that joins is one function and one row.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

import rowsieve
from rowsieve import Table
from rowsieve.errors import EvaluationError, InvalidInput, InvalidSchemaChange
from rowsieve.types.logical import Int
from rowsieve.types.schema import Schema
from tests.random_tables import tiny_row_groups
from tests.small_tables import fresh_uri
from tests.ternary_logic.kinds import KINDS, Kind, arrow_rows, schema_of

_IDS = 40
_ROW_GROUPS = (3, 8, 8, 1_000)
_KEYABLE = ("s", "i8", "day", "bin")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "target_part_bytes": ("1", "2000", "100000000"),
    "statistics_bytes": ("1024", "1024", "200", "20", "100000"),
    "statistics_inline_bytes": ("8192", "1"),
    "checkpoint_interval": ("1", "3", "32"),
    "value_forms": ("structured", "opaque"),
    "column_names": ("user", "tag"),
}
_IN_DATABASE = 6  # the last of the places
_INLINE_BYTES = ("0", "0", "1", "1", "400", "16384", "400")
"""By the place of a seed: all rows in files, by two protocols, some in the log, all of them."""
_WIDENED: Mapping[str, str] = {
    "i8": "int64",
    "i32": "int64",
    "u8": "int32",
    "f32": "float64",
    "d": "decimal(9,4)",
    "mood": "enum('sad', 'ok', 'é', 'new')",
}


@dataclass
class History:
    """A table under construction, and what its changes draw from."""

    chance: random.Random
    table: Table
    kinds: dict[str, Kind] = field(default_factory=dict)
    next_id: int = 100

    @property
    def schema(self) -> Schema:
        return self.table.handle.pinned.schema

    @property
    def payload(self) -> list[str]:
        """Columns that are not in the key."""
        return [name for name in self.schema.names if name not in ("id", *self.table.key)]

    def ids(self, count: int) -> list[int]:
        """New numbers, or in a table with a key also those of earlier rows."""
        if self.table.key:
            return sorted(self.chance.sample(range(_IDS), count))
        self.next_id += count
        return list(range(self.next_id - count, self.next_id))

    def rows(self, ids: list[int]) -> pa.Table:
        """Rows with few different values, so that bounds are narrow and conditions hit."""
        return drawn_rows(self.chance, self.schema, self.kinds, ids, self.table.key)


def drawn_rows(
    chance: random.Random,
    schema: Schema,
    kinds: Mapping[str, Kind],
    ids: list[int],
    key: tuple[str, ...] = (),
) -> pa.Table:
    """Draw a row for each number, from a window of the values of each column."""
    nulls = chance.choice((0.0, 0.2, 0.2, 0.9))
    cells: dict[str, list[object]] = {"id": list(ids)}
    for name in schema.names[1:] if schema.names[0] == "id" else schema.names:
        if name == "id":
            continue
        values = kinds[name].values
        most = chance.choice((1, 1, 2, 3, len(values)))
        window = chance.sample(list(values), min(most, len(values)))
        share = 0.0 if name in key else nulls
        cells[name] = [None if chance.random() < share else chance.choice(window) for _ in ids]
    return arrow_rows(schema, cells)


def write(history: History) -> None:
    rows = history.rows(history.ids(history.chance.randint(1, 12)))
    history.table.upsert(rows) if history.table.key else history.table.append(rows)


def delete(history: History) -> None:
    divisor = history.chance.choice((3, 5, 7))
    history.table.delete(f"id % {divisor} = {history.chance.randrange(3)}")


def delete_keys(history: History) -> None:
    if history.table.key:
        rows = history.table.head(3)
        history.table.delete(keys=rows.select(list(history.table.key)))


def update(history: History) -> None:
    name = history.chance.choice(history.payload)
    history.table.update({name: None}, where=f"id % 4 = {history.chance.randrange(4)}")


def overwrite(history: History) -> None:
    low = history.chance.randrange(30)
    if not history.table.key:
        history.table.overwrite(history.rows([low, low + 1]), where=f"id IN ({low}, {low + 1})")


def restore(history: History) -> None:
    same = history.schema.id
    versions = [
        version
        for version in range(1, history.table.version)
        if rowsieve.open_table(history.table.uri, version=version).handle.pinned.schema.id == same
    ]
    if versions:
        history.table.restore(history.chance.choice(versions))


def add_column(history: History) -> None:
    kind = history.chance.choice([*KINDS])
    name = f"{kind}_{len(history.kinds)}"
    value = history.chance.choice((None, *KINDS[kind].values[:3]))
    fields = schema_of((kind,))
    filled = arrow_rows(fields, {"id": [0], kind: [value]})
    with history.table.alter() as change:
        change.add_column(name, filled.schema.field(kind), default=filled[kind][0])
    history.kinds[name] = KINDS[kind]


def drop_column(history: History) -> None:
    if len(history.payload) > 3:
        history.table.drop_column(history.chance.choice(history.payload))


def rename_column(history: History) -> None:
    name = history.chance.choice(history.payload)
    new = f"{name}r"
    history.table.rename_column(name, new)
    history.kinds[new] = history.kinds[name]


def widen(history: History) -> None:
    for name in history.payload:
        if name in _WIDENED:
            history.table.widen_column(name, _WIDENED[name])


def compact(history: History) -> None:
    history.table.compact()


def build_vectors(history: History) -> None:
    if history.table.key:
        history.table.build_deletion_vectors()


def change_layout(history: History) -> None:
    history.table.set_properties(layout(history.chance, history.schema.names, creation=False))


@dataclass(frozen=True)
class Step:
    """A change of a history; it is drawn `weight` times as often as one of weight 1."""

    apply: Callable[[History], None]
    weight: int = 1


STEPS = (
    Step(write, 9),
    Step(delete, 3),
    Step(delete_keys, 2),
    Step(update, 2),
    Step(overwrite),
    Step(restore),
    Step(add_column, 3),
    Step(drop_column),
    Step(rename_column),
    Step(widen),
    Step(compact, 2),
    Step(build_vectors),
    Step(change_layout),
)
# A random change may be one that the table refuses, such as a text for a column of numbers.
_REFUSED = (InvalidSchemaChange, InvalidInput, EvaluationError)


def layout(chance: random.Random, names: tuple[str, ...], *, creation: bool) -> dict[str, str]:
    """Draw properties of a table with these columns."""
    chosen = {name: chance.choice(values) for name, values in _CHOICES.items()}
    if not creation:
        del chosen["column_names"]
    texts = [name for name in ("s", "t") if name in names and chance.random() < 0.6]
    if texts:
        chosen["text_statistics"] = ", ".join(texts)
    if "j" in names:
        chosen["json_statistics"] = chance.choice(("j", "j.a", "j.a, j.b"))
        if chosen["value_forms"] == "structured" and chance.random() < 0.5:
            chosen["json_shredding"] = chance.choice(("j.a", "j.a, j.b"))
    return chosen


@contextmanager
def random_table(
    seed: int, kinds: Mapping[str, Kind] = KINDS, most: int = 12, uri: str | None = None
) -> Iterator[History]:
    """Build the table of a seed: in memory with tiny row groups, or at a place for others."""
    chance = random.Random(seed)
    names = tuple(sorted(chance.sample(list(kinds), min(len(kinds), chance.randint(6, most)))))
    rows = chance.choice(_ROW_GROUPS)
    # Other processes, which read a given place, know row groups of the format's size only.
    for _ in tiny_row_groups(rows) if uri is None else (None,):
        history = History(
            chance,
            _created(chance, names, kinds, uri or fresh_uri(), seed % len(_INLINE_BYTES)),
            {name: kinds[name] for name in names},
        )
        history.kinds["id"] = Kind(Int(64), range(_IDS))
        for _ in range(chance.randint(3, 9)):
            (step,) = chance.choices(STEPS, [step.weight for step in STEPS])
            try:
                step.apply(history)
            except _REFUSED:
                continue
        history.table.refresh()
        yield history


def _created(
    chance: random.Random, names: tuple[str, ...], kinds: Mapping[str, Kind], uri: str, place: int
) -> Table:
    key: tuple[str, ...] = ()
    if chance.random() < 0.6:
        first = [name for name in _KEYABLE if name in names and chance.random() < 0.4][:1]
        key = (*first, "id")
    settings = layout(chance, names, creation=True)
    if set(key) & set(settings.get("text_statistics", "").split(", ")):
        del settings["text_statistics"]
    if key:
        settings["visibility"] = chance.choice(("lazy", "eager"))
    elif chance.random() < 0.4:
        settings["cluster_by"] = "id"
    fields = [
        f.with_nullable(False) if f.name in key else f  # noqa: FBT003 - pyarrow takes no name
        for f in arrow_rows(schema_of(names, kinds), dict.fromkeys(("id", *names), ())).schema
    ]
    settings["inline_bytes"] = _INLINE_BYTES[place]
    is_named = place == _IN_DATABASE
    create = rowsieve.Database(uri).create_table if is_named else rowsieve.create_table
    name = "t" if is_named else uri
    table = create(name, pa.schema(fields), list(key) or None, properties=settings)
    rows = drawn_rows(
        chance, table.handle.pinned.schema, kinds, list(range(chance.choice((6, 20)))), key
    )
    table.upsert(rows) if key else table.append(rows)
    return table
