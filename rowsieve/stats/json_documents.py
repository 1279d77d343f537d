"""Decodes JSON documents to the values at given paths, and skips everything else.

Soundness: a document that `json_get` rejects as malformed is also rejected here. A document that
may repeat a wanted key in one object is walked key by key, so that no value is lost.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Mask, as_mask
from rowsieve.predicate.functions.nested.json_members import may_exceed_limits
from rowsieve.stats.json_kinds import JsonKind, Path
from rowsieve.stats.values import Values

MISSING: Final = msgspec.UNSET
NO_KIND: Final = JsonKind(0)


_EXPONENT: Final = r"[:\[,]\s*-?[0-9]+(\.[0-9]+)?[eE]|^\s*-?[0-9]+(\.[0-9]+)?[eE]"
_ESCAPED_KEY: Final = r'\\u[0-9a-fA-F]{4}[^"]*"\s*:'
_ANY = msgspec.json.Decoder()
_MALFORMED = (msgspec.MsgspecError, RecursionError, ValueError)


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as its pairs of key and value; keys may repeat."""


@dataclass(slots=True)
class Documents:
    """The values at each path in some documents, unordered; `MISSING` if a document has none.

    `kinds` applies to every path.
    """

    texts: pa.Array
    cells: dict[Path, list[Any]]
    kinds: JsonKind = NO_KIND
    _exponents: bool | None = None

    @property
    def may_have_exponents(self) -> bool:
        """True if a number may be written with an exponent; computed at the first call."""
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
    """A tree of classes for paths of keys, which msgspec decodes into; keys need no escapes."""

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
        """The values at each wanted path, and how often each key occurred."""
        by_path: dict[Path, list[Any]] = {}
        met: Counter[str] = Counter()
        _descend(self.root, documents, (), by_path, met)
        return by_path, met

    def cells(self, documents: list[Any]) -> tuple[dict[Path, list[Any]], Counter[str]]:
        """The value of every document at each wanted path, and how often each key occurred.

        In the order of the documents; `MISSING` if a document has none.
        """
        by_path: dict[Path, list[Any]] = {}
        met: Counter[str] = Counter()
        _descend_by_row(self.root, documents, (), by_path, met)
        return by_path, met


def decode_documents(values: Values, tree: PathTree) -> Documents:
    """Decode a batch of JSON text."""
    texts = values.drop_null() if values.null_count else values
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
        texts = texts.chunk(0) if isinstance(texts, pa.ChunkedArray) else texts
    kinds = JsonKind.MISSING if values.null_count else NO_KIND
    if may_exceed_limits(texts).any():
        kinds |= JsonKind.OTHER
    at_once = _decode_at_once(texts, tree, tree.values)
    if at_once is not None:
        return Documents(texts, at_once[1], kinds)
    batch = Documents(texts, {path: [] for path in tree.paths}, kinds)
    repeating = _may_repeat(texts, tree.keys)
    if repeating.any():
        _add_repeating(texts.filter(pa.array(repeating)).to_pylist(), tree, batch)
        texts = texts.filter(pa.array(~repeating))
    decoded, malformed = _decoded(texts.to_pylist(), tree.decoder.decode)
    if malformed:
        batch.kinds |= JsonKind.OTHER
    _add(tree, decoded, batch)
    return batch


def documents_by_row(texts: pa.Array, tree: PathTree) -> tuple[list[Any], Mask]:
    """Decode JSON texts, none of them NULL, in order; also the mask of unknown texts.

    A text is unknown, and its document `MISSING`, if it is malformed, may nest too deep, or repeats
    a wanted key in one object.
    """
    unknown = may_exceed_limits(texts)
    if not unknown.any():
        at_once = _decode_at_once(texts, tree, tree.cells)
        if at_once is not None:
            return at_once[0], unknown
    keys = frozenset(tree.keys)
    for row in np.flatnonzero(_may_repeat(texts, tree.keys) & ~unknown).tolist():
        unknown[row] = _repeats(texts[row].as_py(), keys)
    documents = _decoded_by_row(texts.to_pylist(), unknown, tree.decoder.decode)
    return documents, unknown


def exponents_by_row(texts: pa.Array) -> Mask:
    """(n,) whether a number in a text may be written with an exponent."""
    return as_mask(pc.match_substring_regex(texts, _EXPONENT))


def _decoded_by_row(texts: list[str], unknown: Mask, decode: Callable[[str], Any]) -> list[Any]:
    """Decode the texts that are not `unknown`, and add malformed ones to these."""
    if not unknown.any():
        try:
            return list(map(decode, texts))
        except _MALFORMED:
            pass
    documents = []
    for row, text in enumerate(texts):
        document = MISSING
        if not unknown[row]:
            try:
                document = decode(text)
            except _MALFORMED:
                unknown[row] = True
        documents.append(document)
    return documents


def _repeats(text: str, keys: Collection[str]) -> bool:
    """Return whether a document is malformed, or an object in it has one of these keys twice."""

    def refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
        wanted = [key for key, _ in pairs if key in keys]
        if len(set(wanted)) < len(wanted):
            raise ValueError

    try:
        json.loads(text, object_pairs_hook=refuse_repeated)
    except _MALFORMED:
        return True
    return False


_Walk: TypeAlias = Callable[[list[Any]], tuple[dict[Path, list[Any]], Counter[str]]]


def _decode_at_once(
    texts: pa.Array, tree: PathTree, walk: _Walk
) -> tuple[list[Any], dict[Path, list[Any]]] | None:
    """Decode all documents as lines in one call; None if a document needs closer inspection.

    Returns the documents, and their values as `walk` finds them.


    Each document must begin and end with a brace. Then no JSON value spans the line break between
    two documents: strings cannot contain it, and between two braces JSON requires a comma. So each
    document has at least one value, and if there are as many values as documents, each has exactly
    one. If a wanted key occurs in the text as often as it was decoded, no object repeats it.
    """
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    if not len(texts) or np.diff(offsets).min() < 2:
        return None
    data = np.frombuffer(texts.buffers()[2], np.uint8)
    if (data[offsets[:-1]] != ord("{")).any() or (data[offsets[1:] - 1] != ord("}")).any():
        return None
    text = data[offsets[0] : offsets[-1]].tobytes()
    if b"\\" in text and (b"\\u" in text or b"\\/" in text):
        return None  # escapes may spell a key in another way
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "\n")[0].as_buffer()
    try:
        documents = tree.decoder.decode_lines(lines)
    except _MALFORMED:
        return None
    if len(documents) != len(texts):
        return None
    by_path, met = walk(documents)
    if any(text.count(f'"{key}"'.encode()) != met[key] for key in tree.keys):
        return None
    return documents, by_path


def _union(node: _Node) -> Any:
    """The type of any JSON value, with objects as a class with the node's members.

    Lists decode to tuples, because the garbage collector's work on lists would double the time.
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
    node: _Node, values: list[Any], path: Path, by_path: dict[Path, list[Any]], met: Counter[str]
) -> None:
    if node.wanted:
        by_path[path] = values
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
        _descend(member, inner, (*path, key), by_path, met)


def _descend_by_row(
    node: _Node, values: list[Any], path: Path, by_path: dict[Path, list[Any]], met: Counter[str]
) -> None:
    if node.wanted:
        by_path[path] = values
    if not node.members:
        return
    same = all(type_ is node.type for type_ in set(map(type, values)))
    for key, member in node.members.items():
        take = node.take[key]
        if same:
            inner = list(map(take, values))
        else:
            inner = [take(value) if type(value) is node.type else MISSING for value in values]
        met[key] += len(inner) - inner.count(MISSING)
        _descend_by_row(member, inner, (*path, key), by_path, met)


def _add(tree: PathTree, documents: list[Any], batch: Documents) -> None:
    for path, cells in tree.values(documents)[0].items():
        batch.cells[path] += cells


def _decoded(texts: list[str], decode: Callable[[str], Any]) -> tuple[list[Any], bool]:
    """The well-formed documents, and whether any was malformed."""
    try:
        return list(map(decode, texts)), False
    except _MALFORMED:
        pass
    documents = []
    for text in texts:
        try:
            documents.append(decode(text))
        except _MALFORMED:
            continue
    return documents, True


def _may_repeat(values: pa.Array, keys: Sequence[str]) -> Mask:
    """(n,) whether a wanted key may occur more than once in a document, escaped or not."""
    repeats: Mask = np.zeros(len(values), dtype=np.bool_)
    if not keys or not len(values):
        return repeats
    repeats |= as_mask(pc.match_substring_regex(values, _ESCAPED_KEY))
    if any("/" in key for key in keys):
        repeats |= as_mask(pc.match_substring(values, "\\/"))
    for key in keys:
        repeats |= as_mask(pc.greater(pc.count_substring(values, f'"{key}"'), 1))
    return repeats


def _add_repeating(texts: list[str], tree: PathTree, batch: Documents) -> None:
    """Add documents that may repeat a key; most only use it in several objects."""
    plain = []
    for text in texts:
        try:
            document = _ANY.decode(text)
        except _MALFORMED:
            batch.kinds |= JsonKind.OTHER
            continue
        if "\\" not in text and _has_all_keys(text, document, tree.keys):
            plain.append(tree.decoder.decode(text))
            continue
        try:
            pairs = json.loads(text, object_pairs_hook=_Pairs)
        except _MALFORMED:
            batch.kinds |= JsonKind.OTHER
            continue
        _walk(tree.root, [pairs], (), batch)
    _add(tree, plain, batch)


def _has_all_keys(text: str, document: Any, keys: Sequence[str]) -> bool:
    """Return whether decoding kept all occurrences of the wanted keys: no object repeats one."""
    encoded = msgspec.json.encode(document).decode()
    return all(_count(text, key) == _count(encoded, key) for key in keys)


def _count(text: str, key: str) -> int:
    quoted = f'"{key}"'
    return len(re.findall(re.escape(quoted) + r"\s*:", text)) if quoted in text else 0


def _walk(node: _Node, values: list[Any], path: Path, batch: Documents) -> None:
    if node.wanted:
        batch.cells[path] += [_plain(value) for value in values]
    for key, member in node.members.items():
        inner = []
        for value in values:
            pairs = value if isinstance(value, _Pairs) else ()
            items = [item for name, item in pairs if name == key]
            if len(items) > 1:
                batch.kinds |= JsonKind.MISSING
            inner += items or [MISSING]
        _walk(member, inner, (*path, key), batch)


def _plain(value: Any) -> Any:
    """Convert a value of `json` to what msgspec would decode here."""
    if isinstance(value, _Pairs):
        return {}
    return tuple(value) if isinstance(value, list) else value


def _any(truth: pa.Array) -> bool:
    return bool(pc.any(truth, min_count=0).as_py())
