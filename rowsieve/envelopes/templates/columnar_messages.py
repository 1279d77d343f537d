"""Read messages of Debezium that match a template into columns, without objects of Python.

A message that no template matches is left to the decoder of the format, which also decides whether
a sample of a new template is a message that is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.envelopes.actions import EventAction
from rowsieve.envelopes.alike_messages import Alike
from rowsieve.envelopes.decoding import DECODING_ERRORS
from rowsieve.envelopes.entries import ColumnEntries
from rowsieve.envelopes.formats import Format
from rowsieve.envelopes.templates.message_templates import Path, Template, template_of
from rowsieve.envelopes.templates.template_matching import Matched, MessageBytes, match
from rowsieve.envelopes.values.readings import BY_TYPE, TargetColumn, is_single

Places = npt.NDArray[np.int64]

TEMPLATES_IN_CACHE: Final = 8
MATCHED_FROM_MESSAGES: Final = (
    1 << 8
)  # messages of a block that pay for the matching of all of them
_SAMPLES: Final = 4  # of a block, and fruitless ones of a call
_WRITTEN: Final = frozenset({EventAction.WRITE, EventAction.DELETE})


@dataclass(frozen=True, slots=True)
class _Known:
    """A template, what its messages share, and the paths at which its rows stand."""

    template: Template
    constants: Mapping[str, Any]
    payload: Path
    columns: Mapping[str, Mapping[str, Path]]  # of each row that all have: paths by column
    schema: bytes | None

    def entries(self, matched: Matched, start: int) -> ColumnEntries:
        """The messages that match as entries."""
        depth = len(self.payload)
        values = {".".join(path[depth:]): array for path, array in matched.values.items()}
        nulls = pa.nulls(len(matched.rows))
        rows = {
            row: {name: matched.values.get(path, nulls) for name, path in columns.items()}
            for row, columns in self.columns.items()
        }
        return ColumnEntries(matched.rows + start, self.constants, values, rows)


@dataclass(slots=True)
class _Rest:
    """The places of messages that no template matched so far."""

    places: Places


@dataclass(slots=True)
class ColumnarReader:
    """Finds templates among the messages of a call, and reads the messages that match.

    `names` has the column of each name in rows. `decode` raises for what is no message.
    """

    format: Format
    targets: Sequence[TargetColumn]
    names: Mapping[str, str]
    decode: Callable[[Any], Any]
    known: list[_Known] = field(default_factory=list)
    fruitless: int = 0

    def read(
        self, texts: pa.Array, start: int
    ) -> tuple[list[tuple[ColumnEntries, bytes | None]], Places]:
        """The entries of messages that match, with their schema, and the places of the others.

        `start` is the number of the first message.
        """
        rest = _Rest(np.arange(len(texts)))
        if self.format.alike is None or texts.null_count or len(texts) < MATCHED_FROM_MESSAGES:
            return [], rest.places
        messages = MessageBytes(texts)
        results: list[tuple[ColumnEntries, bytes | None]] = []
        for known in self._candidates(texts, rest):
            if len(rest.places) < MATCHED_FROM_MESSAGES:
                break
            matched = match(known.template, messages, rest.places)
            if len(matched.rows) < MATCHED_FROM_MESSAGES:
                self.fruitless += known not in self.known
                continue
            if known not in self.known:
                self.known = [known, *self.known][:TEMPLATES_IN_CACHE]
            results.append((known.entries(matched, start), known.schema))
            rest.places = np.setdiff1d(rest.places, matched.rows, assume_unique=True)
        return results, rest.places

    def _candidates(self, texts: pa.Array, rest: _Rest) -> Iterator[_Known]:
        """The known templates, and then those of some messages of the rest at that time."""
        yield from list(self.known)
        for share in range(_SAMPLES):
            places = rest.places
            if self.fruitless >= _SAMPLES or len(places) < MATCHED_FROM_MESSAGES:
                return
            sample = texts[int(places[len(places) * share // _SAMPLES])]
            known = self._template(sample.as_py().encode())
            if known is None:
                self.fruitless += 1
            else:
                yield known

    def _template(self, text: bytes) -> _Known | None:
        """The template of a message; None if it has none, or is not read."""
        try:
            sample = json.loads(text)
            self.decode(text)
        except DECODING_ERRORS:
            return None
        assert self.format.alike is not None
        shared = self.format.alike(sample, self.format.orders)
        if shared is None:
            return None
        if shared.beside_schema and not sample.keys() <= {"schema", "payload"}:
            return None
        payload = ("payload",) if shared.beside_schema else ()
        entry = sample["payload"] if shared.beside_schema else sample
        if self.format.meanings.get(entry.get(self.format.op)) not in _WRITTEN:
            return None
        columns = self._columns(entry, payload)
        if columns is None:
            return None
        template = template_of(
            text,
            rows=[(*payload, row) for row in columns],
            numbers=[(*payload, "source", name) for name in (*shared.numbers, *shared.others)],
            fixed=_fixed(shared, payload, self.format.op),
        )
        if template is None:
            return None
        return self._known(template, shared, entry, payload, columns)

    def _known(
        self,
        template: Template,
        shared: Alike,
        entry: Mapping[str, Any],
        payload: Path,
        columns: Mapping[str, Mapping[str, Path]],
    ) -> _Known:
        others = {name: entry["source"].get(name) for name in shared.others}
        constants = {
            f"source.{name}": value for name, value in (*shared.constants, *others.items())
        }
        constants[self.format.op] = entry[self.format.op]
        schema = None
        if shared.beside_schema:
            schema = template.constants.get(("schema",), b"")
            schema = b"" if schema == b"null" else schema
        return _Known(template, constants, payload, columns, schema)

    def _columns(
        self, entry: Mapping[str, Any], payload: Path
    ) -> dict[str, dict[str, Path]] | None:
        """The paths of the columns of each row; None if one is not for a template."""
        readable = {
            each.field.name
            for each in self.targets
            if type(each.field.type) in BY_TYPE and not is_single(each.field.type)
        }
        columns: dict[str, dict[str, Path]] = {}
        for row in dict.fromkeys((self.format.before, self.format.after)):
            if not isinstance(values := entry.get(row), dict):
                continue
            names = {name: self.names.get(name) for name in values}
            if not {*names.values()} <= readable:
                return None
            columns[row] = {
                column: (*payload, row, name) for name, column in names.items() if column
            }
        return columns


def _fixed(shared: Alike, payload: Path, op: str) -> list[Path]:
    names = [name for name, _ in shared.constants]
    return [("schema",), (*payload, op), *((*payload, "source", name) for name in names)]
