"""The statements of a SQL file in the form of Spark's own tests.

-- comment; --IMPORT other.sql; --SET name=value,name=value; --CONFIG_DIM… (passed over)
--QUERY-DELIMITER-START … --QUERY-DELIMITER-END    one statement, whatever semicolons it has
statement;
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_END = re.compile(r"(?<!\\);[ \t]*(?=\n|$)")
_IMPORT = re.compile(r"^--IMPORT\s+(\S+)", re.MULTILINE)
_SET = re.compile(r"^--SET\s+(\S.*)$", re.MULTILINE)
_DELIMITED = re.compile(r"^--QUERY-DELIMITER-START\n(.*?)^--QUERY-DELIMITER-END$", re.M | re.S)
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement, without its semicolon; the line in its file on which its first word stands."""

    line: int
    sql: str


def settings(path: Path) -> dict[str, str]:
    """The settings that the file and those that it imports ask for."""
    found: dict[str, str] = {}
    for other in _imported(path):
        found |= settings(other)
    for match in _SET.finditer(_text(path)):
        pairs = (pair.partition("=") for pair in match[1].split(",") if "=" in pair)
        found |= {name.strip(): value.strip() for name, _, value in pairs}
    return found


def statements(path: Path) -> Iterator[Statement]:
    """The statements of the imported files, then of the file itself, in order."""
    for other in _imported(path):
        yield from statements(other)
    text, start = _text(path), 0
    for match in _DELIMITED.finditer(text):
        yield from _split(text[start : match.start()], text.count("\n", 0, start))
        first = text.count("\n", 0, match.start(1))
        yield Statement(first + 1, match[1].strip().rstrip(";").strip())
        start = match.end()
    yield from _split(text[start:], text.count("\n", 0, start))


def _split(text: str, line: int) -> Iterator[Statement]:
    code, start = _COMMENT.sub("", text), 0
    for match in [*_END.finditer(code), None]:
        piece = code[start : None if match is None else match.start()]
        if sql := piece.strip():
            skipped = len(piece) - len(piece.lstrip())
            yield Statement(line + code.count("\n", 0, start + skipped) + 1, sql)
        start = len(code) if match is None else match.end()


def _imported(path: Path) -> list[Path]:
    return [_found(path, match[1]) for match in _IMPORT.finditer(_text(path))]


def _found(path: Path, name: str) -> Path:
    """Another file of this name, nearest above: Spark looks for it in the outermost folder."""
    above = (folder / name for folder in path.parents)
    return next(each for each in above if each.is_file() and each != path)


def _text(path: Path) -> str:
    return path.read_text(errors="replace")
