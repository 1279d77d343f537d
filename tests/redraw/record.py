"""Record what the code makes of 20,000 inputs: `python -m tests.redraw.record FILE`.

`--spark` adds those of Spark's columns, for which a session is started.
"""

from __future__ import annotations

import argparse
import dataclasses
import lzma
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from rowsieve.predicate.codec import predicate_from_json
from rowsieve.predicate.ir import Predicate
from tests.redraw import inputs
from tests.redraw.answers import Answer, Judged, decided, text_read, written
from tests.redraw.inputs import TABLES

BRIDGES = (
    *("postgres", "spark", "datafusion", "duckdb", "trino", "datafusion_exprs", "spark_filters"),
    *("pyarrow_exprs", "polars", "iceberg", "delta_dnf", "substrait"),
)
DECIDED, TEXTS, SPARK_COLUMNS = "decided", "texts", "spark_columns"
SPARK_COUNT = 360
RECORD = Path(__file__).parent / "record.xz"


class Record:
    """Inputs, and by group what was made of each."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.commit: str = content["commit"]
        self.trees = [predicate_from_json(msgspec.json.decode(text)) for text in content["trees"]]
        self.texts: list[tuple[str, str, str]] = [tuple(item) for item in content["texts"]]
        self.tables = {name: _batch(raw) for name, raw in content["tables"].items()}
        self.answers = {
            group: [Answer(*item) for item in zip(*columns, strict=True)]
            for group, columns in content["answers"].items()
        }

    def asked(self, group: str, number: int) -> Judged:
        """What the code makes of one input now."""
        if group == TEXTS:
            dialect, table, text = self.texts[number]
            return text_read(dialect, text, TABLES[table], self.tables[table])
        tree, rows = self.trees[number % len(self.trees)], self.tables["columns"]
        if group == DECIDED:
            return decided(number, tree, self.tables["parts"])
        return written(number, tree, group, rows)

    def shown(self, group: str, number: int) -> str:
        """The input, for a message."""
        return repr(self.texts[number] if group == TEXTS else self.trees[number % len(self.trees)])


def load(path: Path = RECORD) -> Record:
    """Read a record."""
    return Record(msgspec.msgpack.decode(lzma.decompress(path.read_bytes())))


def _batch(raw: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(raw) as reader:
        return reader.read_next_batch()


def _raw(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    raw: bytes = sink.getvalue().to_pybytes()
    return raw


def sizes(trees: Sequence[Predicate], texts: Sequence[Any], *, spark: bool) -> dict[str, int]:
    """How many inputs each group has."""
    found = dict.fromkeys(BRIDGES, len(trees)) | {DECIDED: 2 * len(trees), TEXTS: len(texts)}
    return found | ({SPARK_COLUMNS: min(SPARK_COUNT, len(trees))} if spark else {})


def columns_of(answers: Iterable[Answer]) -> list[list[Any]]:
    """The answers field by field, which compresses best."""
    return [list(column) for column in zip(*map(dataclasses.astuple, answers), strict=True)]


def make(path: Path, *, spark: bool, say: Callable[[str], None]) -> None:
    """Draw the inputs, ask the code and write the record."""
    trees = inputs.trees()
    texts = inputs.texts(trees)
    content: dict[str, Any] = {
        "commit": subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip(),
        "trees": [inputs.as_json(tree) for tree in trees],
        "texts": texts,
        "tables": {name: _raw(batch) for name, batch in inputs.tables().items()},
        "answers": {},
    }
    record = Record(content)
    for group, count in sizes(trees, texts, spark=spark).items():
        answers = [record.asked(group, number).answer for number in range(count)]
        content["answers"][group] = columns_of(answers)
        exact = sum(answer.said in ("exact", "decided") for answer in answers)
        say(f"{group}: {count} inputs, {exact} exact or decided")
    path.write_bytes(lzma.compress(msgspec.msgpack.encode(content), preset=9 | lzma.PRESET_EXTREME))
    say(f"{path}: {path.stat().st_size:,} bytes")


def main() -> None:
    """Make a record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--spark", action="store_true")
    chosen = parser.parse_args()
    if not chosen.spark:
        make(chosen.file, spark=False, say=print)
        return
    from rowsieve.providers.spark.java import spark_session

    session = spark_session("record", {"spark.log.level": "OFF"}, master="local[1]")
    try:
        make(chosen.file, spark=True, say=print)
    finally:
        session.stop()


if __name__ == "__main__":
    main()
