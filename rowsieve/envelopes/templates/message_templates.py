"""The bytes that alike messages share, and the slots between them, from the text of one message.

Soundness: a message that has the template's bytes, and in each slot a scalar of its kind, is JSON
with the structure of the sample. So it is what the general type reads of the sample, with other
values. A sample of which that is not sure has no template: with a name twice in an object, with
escapes in names, or with nested values or numbers that are no integers in its rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

Path: TypeAlias = tuple[str, ...]
"""The names of the objects that lead to a value, and its own."""

_TOKEN: Final = re.compile(
    rb'[ \t\r\n]*(?:(?P<text>"(?:[^"\\\x00-\x1f]|\\[^\x00-\x1f])*")|(?P<mark>[{}\[\],:])'
    rb"|(?P<word>true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?))"
)
_INTEGER: Final = re.compile(rb"-?[1-9][0-9]{0,17}|0")


class SlotKind(Enum):
    """What stands in a slot; text of a slot is between quotes, which its fragments lack."""

    INTEGER = "integer"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Slot:
    """A value that differs between messages; `read`: somebody reads it, and it may be NULL."""

    path: Path
    kind: SlotKind
    read: bool = False
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """Bytes before each slot and after the last one; `constants` are the other values read."""

    fragments: tuple[bytes, ...]
    slots: tuple[Slot, ...]
    constants: Mapping[Path, Any]


@dataclass(frozen=True, slots=True)
class _Leaf:
    path: Path
    start: int
    stop: int


def template_of(
    text: bytes, rows: Collection[Path], numbers: Collection[Path], fixed: Collection[Path]
) -> Template | None:
    """The template of messages like this one; None if it has none.

    `rows` are the paths of rows, `numbers` those of values that are read, and `fixed` those of
    values and objects that all messages share.
    """
    leaves = _leaves(text, {*fixed}, {*rows})
    if leaves is None:
        return None
    fragments: list[bytes] = []
    slots: list[Slot] = []
    constants: dict[Path, Any] = {}
    stop = 0
    for leaf in leaves:
        value = text[leaf.start : leaf.stop]
        in_row = leaf.path[:-1] in rows
        if leaf.path in fixed or value in (b"true", b"false", b"null"):
            if in_row and value != b"null":
                return None
            constants[leaf.path] = value
            continue
        slot = _slot(leaf.path, value, in_row=in_row, read=in_row or leaf.path in numbers)
        if slot is None:
            if in_row or leaf.path in numbers:
                return None
            continue
        slots.append(slot)
        fragments.append(text[stop : leaf.start])
        stop = leaf.stop
    fragments.append(text[stop:])
    return Template(tuple(fragments), tuple(slots), constants)


def _slot(path: Path, value: bytes, *, in_row: bool, read: bool) -> Slot | None:
    if value.startswith(b'"'):
        return Slot(path, SlotKind.TEXT, read, in_row)
    if _INTEGER.fullmatch(value):
        return Slot(path, SlotKind.INTEGER, read, in_row)
    return None


def _leaves(text: bytes, fixed: set[Path], rows: set[Path]) -> list[_Leaf] | None:
    """The scalars in objects of a document, and lists, fixed objects and columns of rows as such.

    None for a name twice in one object or with an escape.
    """
    walk = _TemplateWalk(_tokens(text), fixed, rows, [])
    try:
        walk.value(next(walk.tokens), (), within=False)
    except (StopIteration, ValueError, RecursionError):
        return None
    return walk.leaves


_Lexeme: TypeAlias = "re.Match[bytes]"


def _tokens(text: bytes) -> Iterator[_Lexeme]:
    place, stop = 0, len(text.rstrip(b" \t\r\n"))
    while place < stop:
        token = _TOKEN.match(text, place)
        if token is None:
            raise ValueError("not JSON")
        yield token
        place = token.end()


@dataclass(frozen=True, slots=True)
class _TemplateWalk:
    """Finds the leaves of a document. `within`: a leaf is being read, which has no leaves."""

    tokens: Iterator[_Lexeme]
    fixed: set[Path]
    rows: set[Path]
    leaves: list[_Leaf]

    def value(self, first: _Lexeme, path: Path, *, within: bool) -> None:
        """Add the leaves of the value that begins with a token."""
        mark = first["mark"]
        whole = mark != b"{" or path in self.fixed or path[:-1] in self.rows
        stop = first.end()
        if mark == b"{":
            stop = self.members(path, within=within or whole)
        elif mark == b"[":
            stop = self.items(path)
        if whole and not within:
            self.leaves.append(_Leaf(path, first.start(first.lastgroup or 0), stop))

    def members(self, path: Path, *, within: bool) -> int:
        """Add the leaves of an object, and return where it ends."""
        names: set[bytes] = set()
        while (token := next(self.tokens))["mark"] != b"}":
            name = (next(self.tokens) if token["mark"] == b"," else token)["text"]
            if not name or name in names or b"\\" in name or next(self.tokens)["mark"] != b":":
                raise ValueError("a name twice, or with an escape")
            names.add(name)
            self.value(next(self.tokens), (*path, name[1:-1].decode()), within=within)
        return token.end()

    def items(self, path: Path) -> int:
        """Return where a list ends."""
        while (token := next(self.tokens))["mark"] != b"]":
            if token["mark"] != b",":
                self.value(token, path, within=True)
        return token.end()
