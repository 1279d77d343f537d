"""Run one logic test file, of our own or of another project."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.logic.pair import Failed, Outcome, Pair, Rows
from tests.logic.records import Query, Statement, records


def run_foreign(path: Path) -> Outcome:
    """Compare our tables with memory on a file of another project; its own rows are not used."""
    pair = Pair()
    for record in records(path.read_text(errors="replace"), path.parent):
        try:
            if isinstance(record, Query) and record.error is not None:
                pair.outcome.expects_an_error.append(record.line)
            elif isinstance(record, Query):
                pair.compare(record.line, record.sql)
            else:
                pair.statement(record.sql)
        except Failed:
            pass  # what a later record needs fails in both
    return pair.outcome


def run_ours(path: Path, *, merges: bool) -> Outcome:
    """Hold a file of ours to all that it says, over memory and over our tables."""
    pair = Pair(merges=merges)
    wrong = pair.outcome.wrong
    for record in records(path.read_text(), path.parent):
        match record:
            case Statement(line=line, sql=sql, error=error):
                if (problem := _statement(pair, sql, error)) is not None:
                    wrong.append((line, f"{problem}\n{sql}"))
            case Query(line=line, sql=sql, error=None, rows=None):
                pair.compare(line, sql)
            case Query(line=line, sql=sql):
                for answer in pair.answers(sql):
                    if (problem := _difference(record, answer)) is not None:
                        wrong.append((line, f"{problem}\n{sql}"))
                pair.outcome.compared += 1
    wrong += pair.outcome.raised
    if pair.outcome.failed_in_both or pair.outcome.undecided or pair.outcome.tables_in_memory:
        wrong.append((0, f"a query or a table was not compared: {pair.outcome}"))
    return pair.outcome


def _statement(pair: Pair, sql: str, error: str | None) -> str | None:
    try:
        pair.statement(sql)
    except Failed as failure:
        found = error is not None and re.search(error, str(failure))
        return None if found else str(failure)
    return None if error is None else "it succeeded"


def _difference(query: Query, answer: Rows | Failed) -> str | None:
    if query.error is not None:
        found = isinstance(answer, Failed) and re.search(query.error, str(answer))
        return None if found else f"instead of the error {query.error!r}: {answer}"
    if isinstance(answer, Failed):
        return str(answer)
    found_rows = [" ".join(map(_text, row)) for row in answer]
    expected = list(query.rows or ())
    if query.sort != "nosort":
        found_rows, expected = sorted(found_rows), sorted(expected)
    return None if found_rows == expected else f"{found_rows} instead of {expected}"


def _text(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case "":
            return "(empty)"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.10g}"
        case list():
            return f"[{', '.join(map(_text, value))}]"
        case dict():
            return "{" + ", ".join(f"{key}: {_text(item)}" for key, item in value.items()) + "}"
        case _:
            return str(value)
