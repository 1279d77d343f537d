"""Functions of text that an engine lacks, and patterns whose case folding differs."""

from __future__ import annotations

from rowsieve.bridges.differences.engine_difference import Difference, Direction, always
from rowsieve.predicate import ir

# Functions that Trino has under other names, or for bytes only.
_NOT_IN_TRINO = ("md5", "sha256_hex", "octet_length", "contains", "left", "days_between")


def _folds(node: ir.Like) -> bool:
    return node.ignore_case


ROWS = (
    *(
        Difference(
            *("trino", Direction.READS, frozenset({name}), always),
            f"has no function {name} of text",
        )
        for name in _NOT_IN_TRINO
    ),
    *(
        Difference(
            *(engine, direction, frozenset({ir.Like}), _folds),
            "may fold the case of other letters than Rowsieve",
        )
        for engine, direction in (
            ("postgres", Direction.WRITES),  # reading rejects more
            ("duckdb", Direction.WRITES),  # reading lower-cases both sides
            ("trino", Direction.READS | Direction.WRITES),
        )
    ),
)
