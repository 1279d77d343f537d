"""Velox, which has Presto's functions, as a judge of what we write for Trino.

Run as a module, because its library ends the process when it is unloaded: texts in Trino's words as
JSON on its input, what became of each on its output: `same`, `other` or why it could not be asked.
Presto is not Trino: what both share is read off both (`docs/decisions`).
"""

from __future__ import annotations

import datetime
import json
import math
import os
import re
import sys
from typing import Any

from rowsieve.predicate.ir import Operand
from tests.bridges.sql.spelled import CALLS, ours, table, written

ROWS = table()


def main() -> None:
    """Judge every call of the names on the input."""
    from pyvelox import legacy

    names, columns = [], []
    for name in ROWS.column_names:
        names.append(name)
        columns.append(legacy.import_from_arrow(ROWS[name].combine_chunks()))

    def ask(text: str) -> list[Any]:
        found = legacy.Expression.from_string(text).evaluate(names, columns)
        values: list[Any] = legacy.export_to_arrow(found).to_pylist()
        return values

    verdicts = {}
    for name in json.load(sys.stdin):
        for operand in CALLS[name]:
            verdicts[written(operand, "trino")] = _verdict(operand, ask)
    json.dump(verdicts, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # its destructors end the process with an error


def _verdict(operand: Operand, ask: Any) -> str:
    try:
        found = ask(_parsable(written(operand, "trino")))
    except Exception as error:
        return str(error).split("Reason: ")[-1].split("\n")[0]
    values, failed = ours(operand, "trino", ROWS)
    pairs = zip(found, values, failed, strict=True)
    wrong = [(a, b) for a, b, bad in pairs if not bad and not _same(a, b)]
    return f"other: {wrong[:3]}" if wrong else "same"


def _parsable(text: str) -> str:
    """The same in what Velox parses: parts and joined texts as functions."""
    text = text.replace('"', "").replace("DOY FROM", "DAY_OF_YEAR FROM")
    text = re.sub(
        r"EXTRACT\((\w+) FROM (\w+)\)", lambda found: f"{found[1].lower()}({found[2]})", text
    )
    return re.sub(r"^(\w+) \|\| (\w+)$", r"concat(\1, \2)", text)


def _same(found: Any, wanted: Any) -> bool:
    if isinstance(found, float) and isinstance(wanted, int | float):
        return found == wanted or (math.isnan(found) and math.isnan(wanted))
    if isinstance(found, datetime.datetime) != isinstance(wanted, datetime.datetime):
        return False
    return bool(found == wanted)


if __name__ == "__main__":
    main()
