"""Decoding JSON documents down to the values at some paths, and nothing else.

Soundness: what is no JSON is found here exactly where `json_get` finds it, or more often. A
document in which a wanted key may stand twice is walked key by key, so that no value of it is lost.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
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

    texts: pa.Array
    cells: dict[Path, list[Any]]
    kinds: Kind = NO_KIND
    _exponents: bool | None = None

    @property
    def may_have_exponents(self) -> bool:
        """Whether a number may be written with an exponent; looked up when first asked."""
        if self._exponents is None:
            self._exponents = _any(pc.match_substring_regex(self.texts, _EXPONENT))
        return self._exponents


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
        self.paths = tuple(_wanted(self.root, ()))
        self.decoder = msgspec.json.Decoder(_union(self.root))

    def values(self, documents: list[Any]) -> tuple[dict[Path, list[Any]], Counter[str]]:
        """The values at each wanted path of decoded documents, and how often each key was met."""
        found: dict[Path, list[Any]] = {}
        met: Counter[str] = Counter()
        _descend(self.root, documents, (), found, met)
        return found, met


def decode_documents(values: Values, tree: PathTree) -> Documents:
    """Take apart a batch of JSON text."""
    texts = values.drop_null() if values.null_count else values
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
        texts = texts.chunk(0) if isinstance(texts, pa.ChunkedArray) else texts
    kinds = Kind.MISSING if values.null_count else NO_KIND
    if _has_depths(texts):
        kinds |= Kind.OTHER
    at_once = _decode_at_once(texts, tree)
    if at_once is not None:
        return Documents(texts, at_once, kinds)
    found = Documents(texts, {path: [] for path in tree.paths}, kinds)
    repeating = _may_repeat(texts, tree.keys)
    if repeating.any():
        _add_repeating(texts.filter(pa.array(repeating)).to_pylist(), tree, found)
        texts = texts.filter(pa.array(~repeating))
    decoded, malformed = _decoded(texts.to_pylist(), tree.decoder.decode)
    if malformed:
        found.kinds |= Kind.OTHER
    _add(tree, decoded, found)
    return found


def _decode_at_once(texts: pa.Array, tree: PathTree) -> dict[Path, list[Any]] | None:
    """The values of plain documents, decoded as lines in one call; None where some are not plain.

    Each document begins with a brace and ends with one. Then no value reaches over the line break
    between two of them: inside a string it is forbidden, and outside nothing may stand between
    braces without a comma. So each has at least one value, and as many values as documents means
    one each. A wanted key that stands as often in the text as it was met stands nowhere twice.
    """
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    if not len(texts) or np.diff(offsets).min() < 2:
        return None
    data = np.frombuffer(texts.buffers()[2], np.uint8)
    if (data[offsets[:-1]] != ord("{")).any() or (data[offsets[1:] - 1] != ord("}")).any():
        return None
    text = data[offsets[0] : offsets[-1]].tobytes()
    if b"\\" in text and (b"\\u" in text or b"\\/" in text):
        return None  # a key may be spelt in two ways
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "\n")[0].as_buffer()
    try:
        documents = tree.decoder.decode_lines(lines)
    except _MALFORMED:
        return None
    if len(documents) != len(texts):
        return None
    found, met = tree.values(documents)
    if any(text.count(f'"{key}"'.encode()) != met[key] for key in tree.keys):
        return None
    return found


def _union(node: _Node) -> Any:
    """Whatever JSON has, objects as a class with the node's members.

    Lists are tuples, which the garbage collector lets be; it would double the time.
    """
    members = [
        (f"m{i}", _union(member) | msgspec.UnsetType, MISSING)
        for i, member in enumerate(node.members.values())
    ]
    names = {f"m{i}": key for i, key in enumerate(node.members)}
    node.type = msgspec.defstruct("Members", members, rename=names, gc=False)
    node.take = {key: attrgetter(name) for name, key in names.items()}
    elements = msgspec.defstruct("Nothing", []) | int | float | str | bool | None | list[Any]
    return node.type | int | float | str | bool | None | tuple[elements, ...]  # type: ignore[valid-type]


def _wanted(node: _Node, path: Path) -> Iterator[Path]:
    if node.wanted:
        yield path
    for key, member in node.members.items():
        yield from _wanted(member, (*path, key))


def _descend(
    node: _Node, values: list[Any], path: Path, found: dict[Path, list[Any]], met: Counter[str]
) -> None:
    if node.wanted:
        found[path] = values
    if not node.members:
        return
    objects = values
    if any(type_ is not node.type for type_ in set(map(type, values))):
        objects = [value for value in values if type(value) is node.type]
    for key, member in node.members.items():
        inner = list(map(node.take[key], objects))
        met[key] += len(inner) - inner.count(MISSING)
        if len(objects) < len(values):
            inner.append(MISSING)
        _descend(member, inner, (*path, key), found, met)


def _add(tree: PathTree, documents: list[Any], found: Documents) -> None:
    for path, cells in tree.values(documents)[0].items():
        found.cells[path] += cells


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
            plain.append(tree.decoder.decode(text))
            continue
        try:
            pairs = json.loads(text, object_pairs_hook=_Pairs)
        except _MALFORMED:
            found.kinds |= Kind.OTHER
            continue
        _walk(tree.root, [pairs], (), found)
    _add(tree, plain, found)


def _has_all_keys(text: str, document: Any, keys: Sequence[str]) -> bool:
    """Whether decoding kept every wanted key that the text has, so that none stood twice."""
    kept = msgspec.json.encode(document).decode()
    return all(_count(text, key) == _count(kept, key) for key in keys)


def _count(text: str, key: str) -> int:
    quoted = f'"{key}"'
    return len(re.findall(re.escape(quoted) + r"\s*:", text)) if quoted in text else 0


def _walk(node: _Node, values: list[Any], path: Path, found: Documents) -> None:
    if node.wanted:
        found.cells[path] += [_plain(value) for value in values]
    for key, member in node.members.items():
        inner = []
        for value in values:
            pairs = value if isinstance(value, _Pairs) else ()
            items = [item for name, item in pairs if name == key]
            if len(items) > 1:
                found.kinds |= Kind.MISSING
            inner += items or [MISSING]
        _walk(member, inner, (*path, key), found)


def _plain(value: Any) -> Any:
    """A value of `json` as msgspec would give it here."""
    if isinstance(value, _Pairs):
        return {}
    return tuple(value) if isinstance(value, list) else value


def _any(truth: pa.Array) -> bool:
    return bool(pc.any(truth, min_count=0).as_py())
