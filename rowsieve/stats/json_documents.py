"""Decoding JSON documents down to the values at some paths, and nothing else.

Soundness: what is no JSON is found here exactly where `json_get` finds it, or more often. A
document in which a wanted key may stand twice is walked key by key, so that no value of it is lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Mask, as_mask
from rowsieve.predicate.functions.json_access import MAX_NESTING
from rowsieve.stats.json_kinds import Kind, Path
from rowsieve.stats.values import Values

MISSING: Final = msgspec.UNSET
NO_KIND: Final = Kind(0)


_SHORT: Final = 200  # a document of so many bytes nests no deeper, and has no endless number
_ENDLESS: Final = r"[0-9]{300}"  # Python, and so `json_get`, refuses whole numbers of 4,300 digits
_EXPONENT: Final = r"[:\[,]\s*-?[0-9]+(\.[0-9]+)?[eE]|^\s*-?[0-9]+(\.[0-9]+)?[eE]"
_ESCAPED_KEY: Final = r'\\u[0-9a-fA-F]{4}[^"]*"\s*:'
_ANY = msgspec.json.Decoder()
_MALFORMED = (msgspec.MsgspecError, RecursionError, ValueError)


class _Pairs(list[tuple[str, Any]]):
    """An object as its pairs, equal keys included."""


@dataclass(slots=True)
class Documents:
    """The values that stand at each path in some documents, in no order; `MISSING` for none.

    `kinds` holds for every path.
    """

    cells: dict[Path, list[Any]]
    kinds: Kind = NO_KIND


@dataclass(slots=True)
class _Node:
    wanted: bool = False
    members: dict[str, _Node] = field(default_factory=dict)
    type: Any = None
    take: dict[str, Callable[[Any], Any]] = field(default_factory=dict)


class PathTree:
    """Paths of keys as a tree of classes that msgspec decodes into; keys are plain."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.root = _Node()
        for path in paths:
            node = self.root
            for key in path:
                node = node.members.setdefault(str(key), _Node())
            node.wanted = True
        self.keys = sorted({str(key) for path in paths for key in path})
        self.paths = tuple(path for path, _ in self._wanted(self.root, ()))
        self.decode = msgspec.json.Decoder(_union(self.root)).decode

    def values(self, documents: list[Any]) -> Iterator[tuple[Path, list[Any]]]:
        """The values at each wanted path of documents that `decode` gave."""
        yield from _descend(self.root, documents, ())

    def _wanted(self, node: _Node, path: Path) -> Iterator[tuple[Path, _Node]]:
        if node.wanted:
            yield path, node
        for key, member in node.members.items():
            yield from self._wanted(member, (*path, key))


def decode_documents(values: Values, tree: PathTree) -> Documents:
    """Take apart a batch of JSON text."""
    found = Documents({path: [] for path in tree.paths})
    if values.null_count:
        found.kinds |= Kind.MISSING
        values = values.drop_null()
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
        values = values.chunk(0) if isinstance(values, pa.ChunkedArray) else values
    if _any(pc.match_substring_regex(values, _EXPONENT)):
        found.kinds |= Kind.EXPONENT
    if _has_depths(values):
        found.kinds |= Kind.OTHER
    repeating = _may_repeat(values, tree.keys)
    if repeating.any():
        _add_repeating(values.filter(pa.array(repeating)).to_pylist(), tree, found)
        values = values.filter(pa.array(~repeating))
    decoded, malformed = _decoded(values.to_pylist(), tree.decode)
    if malformed:
        found.kinds |= Kind.OTHER
    for path, cells in tree.values(decoded):
        found.cells[path] += cells
    return found


def _union(node: _Node) -> Any:
    """Whatever JSON has, objects as a class with the node's members."""
    if node.type is None:
        members = [
            (f"m{i}", _union(member) | msgspec.UnsetType, MISSING)
            for i, member in enumerate(node.members.values())
        ]
        names = {f"m{i}": key for i, key in enumerate(node.members)}
        node.type = msgspec.defstruct("Members", members, rename=names, gc=False)
        node.take = {key: _taker(node.type, name) for name, key in names.items()}
    elements = msgspec.defstruct("Nothing", []) | int | float | str | bool | None | list[Any]
    return node.type | int | float | str | bool | None | list[elements]  # type: ignore[valid-type]


def _taker(type_: Any, name: str) -> Callable[[Any], Any]:
    def take(value: Any) -> Any:
        return getattr(value, name) if type(value) is type_ else MISSING

    return take


def _descend(node: _Node, values: list[Any], path: Path) -> Iterator[tuple[Path, list[Any]]]:
    if node.wanted:
        yield path, values
    for key, member in node.members.items():
        yield from _descend(member, list(map(node.take[key], values)), (*path, key))


def _decoded(texts: list[str], decode: Callable[[str], Any]) -> tuple[list[Any], bool]:
    """The documents that are JSON, and whether there were others."""
    try:
        return list(map(decode, texts)), False
    except _MALFORMED:
        pass
    found = []
    for text in texts:
        try:
            found.append(decode(text))
        except _MALFORMED:
            continue
    return found, True


def _has_depths(values: pa.Array) -> bool:
    """Whether a document may nest deeper than `json_get` follows, or hold an endless number."""
    long = values.filter(pc.greater(pc.binary_length(values), _SHORT))
    if not len(long):
        return False
    opened = pc.add(pc.count_substring(long, "["), pc.count_substring(long, "{"))
    return _any(pc.greater(opened, MAX_NESTING)) or _any(pc.match_substring_regex(long, _ENDLESS))


def _may_repeat(values: pa.Array, keys: Sequence[str]) -> Mask:
    """(n,) documents in which a wanted key may stand more than once, in whatever spelling."""
    repeats: Mask = np.zeros(len(values), dtype=np.bool_)
    if not keys or not len(values):
        return repeats
    repeats |= as_mask(pc.match_substring_regex(values, _ESCAPED_KEY))
    if any("/" in key for key in keys):
        repeats |= as_mask(pc.match_substring(values, "\\/"))
    for key in keys:
        repeats |= as_mask(pc.greater(pc.count_substring(values, f'"{key}"'), 1))
    return repeats


def _add_repeating(texts: list[str], tree: PathTree, found: Documents) -> None:
    """Documents that need a look at each key; most only name a key at several places."""
    plain = []
    for text in texts:
        try:
            document = _ANY.decode(text)
        except _MALFORMED:
            found.kinds |= Kind.OTHER
            continue
        if "\\" not in text and _has_all_keys(text, document, tree.keys):
            plain.append(tree.decode(text))
            continue
        try:
            pairs = json.loads(text, object_pairs_hook=_Pairs)
        except _MALFORMED:
            found.kinds |= Kind.OTHER
            continue
        _walk(tree.root, [pairs], (), found)
    for path, cells in tree.values(plain):
        found.cells[path] += cells


def _has_all_keys(text: str, document: Any, keys: Sequence[str]) -> bool:
    """Whether decoding kept every wanted key that the text has, so that none stood twice."""
    kept = msgspec.json.encode(document).decode()
    return all(_count(text, key) == _count(kept, key) for key in keys)


def _count(text: str, key: str) -> int:
    quoted = f'"{key}"'
    return len(re.findall(re.escape(quoted) + r"\s*:", text)) if quoted in text else 0


def _walk(node: _Node, values: list[Any], path: Path, found: Documents) -> None:
    if node.wanted:
        found.cells[path] += [{} if isinstance(value, _Pairs) else value for value in values]
    for key, member in node.members.items():
        inner = []
        for value in values:
            pairs = value if isinstance(value, _Pairs) else ()
            items = [item for name, item in pairs if name == key]
            if len(items) > 1:
                found.kinds |= Kind.MISSING
            inner += items or [MISSING]
        _walk(member, inner, (*path, key), found)


def _any(truth: pa.Array) -> bool:
    return bool(pc.any(truth, min_count=0).as_py())
