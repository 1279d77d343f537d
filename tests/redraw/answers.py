"""What the code makes of one input: how it is written, read back, decided, each as a digest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rowsieve.bridges.languages import bridge_named
from rowsieve.bridges.sql.language import from_text
from rowsieve.bridges.translate import translate
from rowsieve.bridges.translation import Translation
from rowsieve.errors import RowsieveError
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import Outcome, evaluate
from rowsieve.predicate.interpret import interpret
from rowsieve.predicate.ir import Predicate, root_conjuncts
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema
from tests.predicate.part_statistics import Known, statistics
from tests.redraw.inputs import as_json
from tests.strategies import SCHEMA, SEMANTICS

NOW_US = 1_763_800_000_000_000
PARTS = 8


@dataclass(frozen=True)
class Answer:
    """The outcome of one input.

    `said`: an exactness, or the class of the error. `left`: conditions left out. `words`: what was
    written, or the verdicts of the parts. `read`: how the words read back, as `said`. `tree`: what
    was read. `rows`: what it is on each awkward row.
    """

    said: str
    left: int = 0
    words: str = ""
    read: str = ""
    tree: str = ""
    rows: str = ""


@dataclass(frozen=True)
class Judged:
    """An answer, with the outcomes by which one that is new can be judged."""

    answer: Answer
    wanted: Outcome | None = None
    found: Outcome | None = None


def meaning_of(number: int) -> Semantics | None:
    """The rules that a condition is meant by: the bridge's own (None), or another engine's."""
    return None if number % 2 == 0 else SEMANTICS[number // 2 % len(SEMANTICS)]


def written(number: int, predicate: Predicate, name: str, rows: pa.RecordBatch) -> Judged:
    """The predicate in a bridge's language, and read back."""
    bridge = bridge_named(name)
    meant = meaning_of(number)
    made: Translation[Any, Any]
    try:
        if meant is None:
            made = bridge.writes(predicate, SCHEMA, bridge.semantics)
        else:
            made = translate(predicate, "rowsieve", target=name, schema=SCHEMA, semantics=meant)
    except RowsieveError as error:
        return Judged(Answer(type(error).__name__))
    left = 0 if made.residual is None else len(root_conjuncts(made.residual))
    said, expression = made.exactness.value, made.expression
    if expression is None:
        return Judged(Answer(said, left))
    words = digest(words_of(name, expression))
    read = _read(lambda: bridge.reads(expression, SCHEMA))
    if isinstance(read, str):
        return Judged(Answer(said, left, words, read))
    known = read.expression
    if known is None:
        return Judged(Answer(said, left, words, read.exactness.value))
    found = outcome(known, SCHEMA, bridge.semantics, rows)
    answer = Answer(
        *(said, left, words, read.exactness.value),
        *(digest(as_json(known).encode()), shown(found)),
    )
    wanted = outcome(predicate, SCHEMA, meant or bridge.semantics, rows)
    return Judged(answer, _known(wanted), _known(found))


def text_read(dialect: str, text: str, schema: Schema, rows: pa.RecordBatch) -> Judged:
    """What SQL text is read as for a translation."""
    read = _read(lambda: from_text(text, schema, dialect=dialect))
    if isinstance(read, str):
        return Judged(Answer(read))
    left = 0 if read.residual is None else 1
    if (known := read.expression) is None:
        return Judged(Answer(read.exactness.value, left))
    found = outcome(known, schema, bridge_named(dialect).semantics, rows)
    tree = digest(as_json(known).encode())
    return Judged(Answer(read.exactness.value, left, "", "", tree, shown(found)))


def decided(number: int, predicate: Predicate, rows: pa.RecordBatch) -> Judged:
    """The verdicts of parts by their statistics, and the outcomes of the rows."""
    semantics = SEMANTICS[number % len(SEMANTICS)]
    try:
        bound = bind(predicate, SCHEMA, semantics, now_us=NOW_US)
        verdicts = interpret(bound, _statistics(rows))
    except RowsieveError as error:
        return Judged(Answer(type(error).__name__))
    found = outcome(predicate, SCHEMA, semantics, rows)
    words = "".join(str(int(verdict)) for verdict in verdicts)
    return Judged(Answer("decided", words=words, rows=shown(found)), found=_known(found))


def parts_of(rows: pa.RecordBatch) -> list[pa.RecordBatch]:
    """The rows in parts of one size."""
    size = rows.num_rows // PARTS
    return [rows.slice(start, size) for start in range(0, rows.num_rows, size)]


_KNOWN: dict[int, tuple[pa.RecordBatch, Known]] = {}


def _statistics(rows: pa.RecordBatch) -> Known:
    """Of each part, without two columns; taken once, as long as the rows are the same object."""
    if id(rows) not in _KNOWN:
        _KNOWN[id(rows)] = rows, statistics(parts_of(rows), frozenset({"wide", "time"}))
    return _KNOWN[id(rows)][1]


def outcome(
    predicate: Predicate, schema: Schema, semantics: Semantics, rows: pa.RecordBatch
) -> Outcome | str:
    """What the predicate is on each row, or the class of the error."""
    try:
        return evaluate(bind(predicate, schema, semantics, now_us=NOW_US), rows)
    except RowsieveError as error:
        return type(error).__name__


def _known(found: Outcome | str) -> Outcome | None:
    return None if isinstance(found, str) else found


def _read(read: Callable[[], Translation[Predicate, Any]]) -> Translation[Predicate, Any] | str:
    try:
        return read()
    except RowsieveError as error:
        return type(error).__name__


def shown(found: Outcome | str) -> str:
    """The outcomes as a digest, the class of an error as it is."""
    if isinstance(found, str):
        return found
    masks = (found.true, found.null, found.failed)
    return digest(b"".join(np.packbits(mask).tobytes() for mask in masks))


def digest(content: bytes) -> str:
    """Eight digits."""
    return hashlib.blake2b(content, digest_size=4).hexdigest()


def words_of(name: str, expression: Any) -> bytes:
    """An expression of a bridge as bytes that are the same for the same expression."""
    if isinstance(expression, bytes):
        return expression
    if name == "polars":
        serialized: bytes = expression.meta.serialize()
        return serialized
    if name == "iceberg":
        return _iceberg(expression).encode()
    return _plain(expression).encode("utf-8", "backslashreplace")


def _plain(expression: Any) -> str:
    """Its text; arrays by their type and values."""
    if isinstance(expression, list | tuple):
        return f"[{', '.join(map(_plain, expression))}]"
    if isinstance(expression, pa.Array | pa.Scalar):
        return f"{expression.type} {expression}"
    return repr(expression)


def _iceberg(expression: Any) -> str:
    """pyiceberg's own text, with the sets of literals in order."""
    below: Sequence[Any] = [
        part
        for name in ("left", "right", "child")
        if (part := getattr(expression, name, None)) is not None
    ]
    kind = type(expression).__name__
    if below:
        return f"{kind}({', '.join(map(_iceberg, below))})"
    literals = getattr(expression, "literals", None)
    if literals is None:
        return repr(expression)
    return f"{kind}({expression.term!r}, {sorted(map(repr, literals))})"
