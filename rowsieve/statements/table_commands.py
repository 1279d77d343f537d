"""Commands on one table, as Spark's users know them from Delta Lake: OPTIMIZE, VACUUM and others.

An engine that has such commands of its own runs them for its own tables: reading one says nothing
about whose table it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from rowsieve.bridges.sql.dialects import Dialect
from rowsieve.errors import InvalidInput
from rowsieve.statements.parse_statement import split_verb
from rowsieve.statements.tokens import StatementTokens, Target, tokens_of

_BY_PATH: Final = "rowsieve"
"""The first part of the name of a table at a path; Delta Lake's commands take it as a text, too."""
_VERBS: Final = frozenset({"OPTIMIZE", "VACUUM", "RESTORE", "DESCRIBE", "DESC"})


@dataclass(frozen=True, slots=True)
class Optimize:
    """`OPTIMIZE name [WHERE condition] [ZORDER BY (columns)]`."""

    target: Target
    where: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vacuum:
    """`VACUUM name [RETAIN n HOURS] [DRY RUN]`."""

    target: Target
    hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Restore:
    """`RESTORE [TABLE] name TO VERSION AS OF n`, or `TIMESTAMP AS OF 'time'`."""

    target: Target
    version: int | None = None
    timestamp: str = ""


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """`DESCRIBE HISTORY name [LIMIT n]`."""

    target: Target
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class DescribeDetail:
    """`DESCRIBE DETAIL name`."""

    target: Target


TableCommand: TypeAlias = Optimize | Vacuum | Restore | DescribeHistory | DescribeDetail


def read_table_command(text: str, dialect: Dialect) -> TableCommand | None:
    """Read a statement; None for another one. InvalidInput for a clause that it does not have."""
    verb, text = split_verb(text)
    if verb not in _VERBS:
        return None
    reader = tokens_of(text, folds=False, dialect=dialect)
    if reader is None:
        return None
    reader.take(verb)
    match verb:
        case "OPTIMIZE":
            return _optimize(reader)
        case "VACUUM":
            return _vacuum(reader)
        case "RESTORE":
            return _restore(reader)
        case _ if reader.take("HISTORY") and reader.at < reader.count:
            return _history(reader)
        case _ if reader.take("DETAIL"):
            return _alone(reader)
    return None


def _target(reader: StatementTokens) -> Target:
    start = reader.start
    text = reader.piece(reader.at, min(reader.at + 1, reader.count))
    if len(text) > 1 and text[0] == text[-1] == "'" and "/" in text and "\\" not in text:
        reader.at += 1
        return Target(text, (_BY_PATH, text[1:-1]), start=start)
    written, parts = reader.path()
    return Target(written, parts, start=start)


def _alone(reader: StatementTokens) -> DescribeDetail:
    target = _target(reader)
    reader.end("DESCRIBE DETAIL")
    return DescribeDetail(target)


def _history(reader: StatementTokens) -> DescribeHistory:
    target = _target(reader)
    limit = _number(reader, "LIMIT") if reader.take("LIMIT") else None
    reader.end("DESCRIBE HISTORY")
    return DescribeHistory(target, limit)


def _optimize(reader: StatementTokens) -> Optimize:
    target, where, columns = _target(reader), "", []
    if reader.take("WHERE"):
        where = reader.until(reader.find("ZORDER", "BY"), "a condition")
    if reader.take("ZORDER", "BY"):
        in_brackets = reader.take("(")
        columns = [reader.path()[1]]
        while reader.take(","):
            columns.append(reader.path()[1])
        if in_brackets:
            reader.need(")")
    reader.end("OPTIMIZE")
    return Optimize(target, where, tuple(".".join(parts) for parts in columns))


def _vacuum(reader: StatementTokens) -> Vacuum:
    target, hours = _target(reader), None
    if reader.take("RETAIN"):
        hours = _number(reader, "RETAIN")
        reader.need("HOURS")
    dry_run = reader.take("DRY", "RUN")
    reader.end("VACUUM")
    return Vacuum(target, hours, dry_run)


def _restore(reader: StatementTokens) -> Restore:
    reader.take("TABLE")
    target = _target(reader)
    reader.need("TO")
    if reader.take("VERSION", "AS", "OF"):
        version = _number(reader, "VERSION AS OF")
        reader.end("RESTORE")
        return Restore(target, version)
    reader.need("TIMESTAMP", "AS", "OF")
    text = reader.until(reader.count, "a time").strip()
    if len(text) < 2 or text[0] not in "'\"" or text[-1] != text[0] or "\\" in text:
        raise InvalidInput(
            f"sql: RESTORE {target.name} TO TIMESTAMP AS OF {text}: give the time as a text, such "
            "as '2026-01-31 12:00:00'"
        )
    return Restore(target, timestamp=text[1:-1])


def _number(reader: StatementTokens, after: str) -> int:
    """Consume a whole number."""
    word = reader.next()
    if not (word.isascii() and word.isdecimal()):
        raise InvalidInput(f"sql: {after} {word or 'the end'}: give a whole number")
    reader.at += 1
    return int(word)
