"""Actions of ALTER TABLE that set and unset properties of a table.

`SET TBLPROPERTIES ('expire_rows_when' = '…')` and `UNSET TBLPROPERTIES [IF EXISTS] ('…')` as Spark
writes them, `SET PROPERTIES expire_rows_when = '…', other = DEFAULT` as Trino does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.errors import InvalidInput
from rowsieve.statements.table_options import read_option_name, read_pairs
from rowsieve.statements.tokens import StatementTokens, tokens_of

_DEFAULT: Final = "default"
_BEGINS: Final = re.compile(r"(?:(?:UN)?SET\s+TBLPROPERTIES|SET\s+PROPERTIES)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """Properties to set and to unset; with `if_exists`, those to unset may not be set."""

    settings: Mapping[str, str]
    unset: tuple[str, ...] = ()
    if_exists: bool = False


def read_settings_change(actions: str, dialect: Dialect) -> SettingsChange | None:
    """Read the actions of an ALTER TABLE; None for others. InvalidInput for what it cannot read."""
    if _BEGINS.match(actions) is None:
        return None
    if dialect.backslash_strings and "\\" in actions:
        raise InvalidInput("sql: a backslash in a property; use Table.set_properties")
    reader = tokens_of(actions, folds=False, dialect=dialect)
    if reader is None:
        raise InvalidInput(f"sql: {actions[:80]!r} cannot be read; give one statement")
    if reader.take("SET", "PROPERTIES"):
        return _properties(reader)
    sets = reader.take("SET")
    if not sets:
        reader.need("UNSET")
    reader.need("TBLPROPERTIES")
    if_exists = reader.take("IF", "EXISTS")
    reader.bracket()
    after, reader.at = reader.at, reader.opened + 1
    if sets:
        change = SettingsChange(read_pairs(reader, after - 1, "SET TBLPROPERTIES"))
    else:
        change = SettingsChange({}, _names(reader, after - 1), if_exists)
    reader.at = after
    reader.end("ALTER TABLE")
    return change


def _properties(reader: StatementTokens) -> SettingsChange:
    """Read Trino's pairs, of which DEFAULT unsets one."""
    settings: dict[str, str] = {}
    unset: list[str] = []
    for begin, end in reader.terms(reader.count):
        reader.at = begin
        name = read_option_name(reader, "SET PROPERTIES")
        reader.need("=")
        if reader.piece(reader.at, end).lower() == _DEFAULT:
            unset.append(name)
        else:
            reader.at = begin
            settings |= read_pairs(reader, end, "SET PROPERTIES")
    return SettingsChange(settings, tuple(unset), if_exists=True)


def _names(reader: StatementTokens, stop: int) -> tuple[str, ...]:
    names = []
    for begin, end in reader.terms(stop):
        reader.at = begin
        names.append(read_option_name(reader, "UNSET TBLPROPERTIES"))
        if reader.at != end:
            raise InvalidInput("sql: UNSET TBLPROPERTIES takes names, as in ('late_horizon')")
    return tuple(names)
