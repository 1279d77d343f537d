"""Access JSON text by path: `->`, `->>`, `#>`, `#>>`.

`json_get` follows constant keys: text in objects, and integers (from 0, negative from the end) in
lists; `json_path` uses a text key for both. A missing value is NULL. Text that is not JSON, or
nests deeper than `MAX_NESTING`, has no values: every path into it is NULL, never an error, and
statistics must agree (`is_json`). `Semantics` says which of several equal keys counts (invariant
29). Numbers keep their original text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed
from rowsieve.predicate.functions.nested.json_members import (
    MAX_NESTING,
    NUMERAL,
    Key,
    followed,
    members,
    unquoted,
)
from rowsieve.predicate.functions.row import (
    Argument,
    Function,
    NullRule,
    Resolver,
    Signature,
    never_fails,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Int, Json, LogicalType, String

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_WHOLE = msgspec.json.Decoder(float_hook=len)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)


def is_json(text: str) -> bool:
    """Whether the text is JSON whose values can be accessed."""
    if text.count("[") + text.count("{") > MAX_NESTING and _depth(text) > MAX_NESTING:
        return False
    try:
        _WHOLE.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def find_member(text: str, path: Sequence[Key], *, adaptive: bool, first_wins: bool) -> str | None:
    """Return the original JSON text at a path; None if there is none."""
    if not is_json(text):
        return None
    return _follow(text.strip(), path, adaptive=adaptive, first_wins=first_wins)


def _follow(text: str, path: Sequence[Key], *, adaptive: bool, first_wins: bool) -> str | None:
    piece: str | None = text
    for key in path:
        if piece is None:
            return None
        piece = _member(piece, key, adaptive=adaptive, first_wins=first_wins)
    return piece


def find_members(
    texts: pa.Array, path: Sequence[Key], *, adaptive: bool, first_wins: bool
) -> pa.Array:
    """Return the original JSON text at a path in each document, NULL if there is none; (n,)."""
    if texts.type != pa.string():  # another layout of text
        texts = texts.cast(pa.string())
    first = followed(path, adaptive=adaptive)
    at_once = members(texts, first, first_wins=first_wins)
    member_texts, undecided = at_once or (texts, np.ones(len(texts), np.bool_))
    if at_once is not None and len(first) < len(path):
        rest = path[len(first) :]
        pieces = [
            None
            if piece is None
            else _follow(piece, rest, adaptive=adaptive, first_wins=first_wins)
            for piece in member_texts.to_pylist()
        ]
        member_texts = pa.array(pieces, pa.string())
    if not undecided.any():
        return member_texts
    singly = [
        find_member(document, path, adaptive=adaptive, first_wins=first_wins)
        for document in texts.filter(pa.array(undecided)).to_pylist()
    ]
    return pc.replace_with_mask(member_texts, pa.array(undecided), pa.array(singly, pa.string()))


def _member(text: str, key: Key, *, adaptive: bool, first_wins: bool) -> str | None:
    if text.startswith("{"):
        return None if isinstance(key, int) else _of_object(text, key, first_wins=first_wins)
    if not text.startswith("["):
        return None
    if isinstance(key, str):
        if not adaptive or not NUMERAL.fullmatch(key):
            return None
        key = int(key)
    items = _ITEMS.decode(text)
    if not -len(items) <= key < len(items):
        return None
    return bytes(items[key]).decode().strip()


def _of_object(text: str, key: str, *, first_wins: bool) -> str | None:
    if first_wins:
        return next((value for name, value in _pairs(text) if name == key), None)
    raw = _MEMBERS.decode(text).get(key)
    return None if raw is None else bytes(raw).decode().strip()


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of an object in the order written, duplicates included."""
    depth, name, start = 0, "", 0
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if depth == 1 and mark == ":" and not start:
            start = token.end()
        elif depth == 1 and mark in (",", "}") and start:
            yield name, text[start : token.start()].strip()
            start = 0
        elif depth == 1 and not start and mark.startswith('"'):
            name = _TEXT.decode(mark)
        depth += (mark in ("{", "[")) - (mark in ("}", "]"))


def _depth(text: str) -> int:
    depth = most = 0
    for token in _TOKEN.finditer(text):
        mark = token.group()
        depth += (mark in ("{", "[")) - (mark in ("}", "]"))
        most = max(most, depth)
    return most


def _resolve(result: LogicalType, *, adaptive: bool) -> Resolver:
    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        if len(arguments) < 2 or not isinstance(arguments[0].type, Json | None):
            return None
        types: list[LogicalType] = []
        for key in arguments[1:]:
            if not key.is_constant or isinstance(key.constant, bool):
                return None
            if isinstance(key.constant, int) and not adaptive:
                types.append(Int(64))
            elif isinstance(key.constant, str):
                types.append(String())
            else:
                return None
        return Signature((Json(), *types), result)

    return resolve


def _evaluator(*, adaptive: bool, text: bool) -> Callable[..., Computed]:
    def evaluate(arguments: Sequence[pa.Array], _: Signature, semantics: Semantics) -> Computed:
        values = arguments[0]
        if not len(values):
            return Computed(values)
        path = [argument[0].as_py() for argument in arguments[1:]]
        encoded = values.dictionary_encode()
        member_texts = find_members(
            encoded.dictionary, path, adaptive=adaptive, first_wins=semantics.first_duplicate_wins
        )
        if text:
            member_texts = unquoted(member_texts)
        return Computed(member_texts.take(encoded.indices))

    return evaluate


def _row(name: str, *, adaptive: bool, text: bool) -> Function:
    return Function(
        f"{name}(json, constant key, …)",
        _resolve(String() if text else Json(), adaptive=adaptive),
        _evaluator(adaptive=adaptive, text=text),
        can_fail=never_fails,
        nulls=NullRule.PARTIAL,
    )


ROWS = (
    _row("json_get", adaptive=False, text=False),
    _row("json_get_text", adaptive=False, text=True),
    _row("json_path", adaptive=True, text=False),
    _row("json_path_text", adaptive=True, text=True),
)
