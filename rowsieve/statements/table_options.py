"""Options of a CREATE TABLE: `WITH (sequence = 'lsn', late_horizon = '7 days')`.

Also `OPTIONS (sequence 'lsn')` and `TBLPROPERTIES ('late_horizon' = '7 days')`, as Spark writes it.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from rowsieve.errors import InvalidInput
from rowsieve.statements.tokens import StatementTokens

_CLAUSES: Final = ("WITH", "OPTIONS", "TBLPROPERTIES")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_TEXT: Final = re.compile(r"(['\"])((?:(?!\1).|\1\1)*)\1", re.DOTALL)


def read_table_options(reader: StatementTokens) -> dict[str, str]:
    """Consume the clause of options, if it is next; names are in lower case unless quoted.

    A list, `ARRAY['a', 'b']`, becomes a JSON list of its texts. InvalidInput for another value.
    """
    if reader.next() not in _CLAUSES:
        return {}
    clause = reader.next()
    reader.at += 1
    reader.bracket()
    after, reader.at = reader.at, reader.opened + 1
    options = read_pairs(reader, after - 1, clause)
    reader.at = after
    return options


def read_pairs(reader: StatementTokens, stop: int, clause: str) -> dict[str, str]:
    """Consume `name = value, …` up to `stop`; return the values as text."""
    pairs: dict[str, str] = {}
    for begin, end in reader.terms(stop):
        reader.at = begin
        name = read_option_name(reader, clause)
        reader.take("=")
        if name in pairs:
            raise InvalidInput(f"sql: {clause} names {name!r} twice; give it once")
        pairs[name] = _value(reader.piece(reader.at, end), name)
    reader.at = stop
    return pairs


def read_option_name(reader: StatementTokens, clause: str) -> str:
    """Consume the name of an option, which may be a text."""
    text = reader.piece(reader.at, reader.at + 1)
    if (quoted := _text(text)) is not None:
        reader.at += 1
        return quoted
    try:
        return ".".join(reader.path()[1])
    except InvalidInput as error:
        raise InvalidInput(
            f"sql: {clause} ({text} ...): give names and values, as in WITH (sequence = 'lsn')"
        ) from error


def _text(written: str) -> str | None:
    """The text in quotes; None for what is not in quotes."""
    if (quoted := _TEXT.fullmatch(written)) is None:
        return None
    return quoted[2].replace(quoted[1] * 2, quoted[1])


def _value(text: str, name: str) -> str:
    """A text, a number, TRUE, FALSE or a list of texts, as text."""
    if (quoted := _text(text)) is not None:
        return quoted
    if _NUMBER.fullmatch(text) or text.lower() in ("true", "false"):
        return text.lower()
    listed = re.fullmatch(r"(?:ARRAY\s*)?[\[(](.*)[\])]", text, re.IGNORECASE | re.DOTALL)
    items = [] if listed is None else re.split(r",\s*(?=['\"])", listed[1])
    texts = [_text(item.strip()) for item in items]
    if not items or None in texts:
        raise InvalidInput(
            f"sql: the value of {name} is {text!r}; give a text, a number, TRUE, FALSE or a list "
            "of texts, as in ARRAY['a', 'b']"
        )
    return msgspec.json.encode(texts).decode()
