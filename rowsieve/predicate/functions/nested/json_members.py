"""Finds values in many JSON documents at once, by paths that begin with keys of objects.

msgspec decodes all documents in one call to classes that have only the keys of the path, and keeps
the original text of the value there. Numbers and strings elsewhere are checked and thrown away.

Soundness: the results are those of `find_member` in `json_access`, the slow path. Documents on
which the two could differ are reported by position for the slow path: documents that are
not objects, may nest too deep, have very long numbers or are malformed; and, where the first of
several equal keys counts, all of a batch in which a key may repeat.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Mask, as_mask

Key: TypeAlias = str | int

MAX_NESTING: Final = 100
_SHORT: Final = 200  # bytes; a document of this size cannot exceed the limits checked below
_ENDLESS: Final = r"[0-9]{300}"  # Python, and so `find_member`, rejects integers over 4,300 digits
NUMERAL: Final = re.compile(r"-?[0-9]{1,9}")
_LONGEST: Final = 8  # keys of a path that are followed in one step
_MIN_DOCUMENTS: Final = 16  # documents
_MAX_BYTES: Final = 2**30
_UNSET: Final = msgspec.UNSET
_MEMBER: Final = attrgetter("m")
_TEXT: Final = msgspec.json.Decoder(str)
_ELEMENTS: Final = msgspec.defstruct("Nothing", []) | int | float | str | bool | list[Any] | None
_OTHERS: Final = int | float | str | bool | tuple[_ELEMENTS, ...] | None  # type: ignore[valid-type]
"""Values that are not objects; lists are tuples, which cost the garbage collector nothing."""
_MALFORMED: Final = (msgspec.MsgspecError, RecursionError, ValueError)


def may_exceed_limits(texts: pa.Array) -> Mask:
    """(n,) whether a document may nest too deep, or have a number too long, for `find_member`."""
    exceeds = as_mask(pc.greater(pc.binary_length(texts), _SHORT))
    if not exceeds.any():
        return exceeds
    long = texts.filter(pa.array(exceeds))
    opened = pc.add(pc.count_substring(long, "["), pc.count_substring(long, "{"))
    deep = as_mask(pc.greater(opened, MAX_NESTING))
    exceeds[exceeds] = deep | as_mask(pc.match_substring_regex(long, _ENDLESS))
    return exceeds


def followed(path: Sequence[Key], *, adaptive: bool) -> tuple[str, ...]:
    """Return the first keys of a path that `members` can follow: names in objects, no indexes."""
    keys: list[str] = []
    for key in path[:_LONGEST]:
        if not isinstance(key, str) or (adaptive and NUMERAL.fullmatch(key)):
            break
        keys.append(key)
    return tuple(keys)


def members(
    texts: pa.Array, path: tuple[str, ...], *, first_wins: bool
) -> tuple[pa.Array, Mask] | None:
    """Return the JSON text at a path in each document, and the mask of undecided documents.

    (n,) each; NULL where there is none, and where it is not decided. `texts`: documents, none of
    them NULL. None if the fast path does not pay, or cannot follow the path.
    """
    if len(texts) < _MIN_DOCUMENTS or not path or texts.nbytes > _MAX_BYTES:
        return None
    decoder = _decoder(path)
    if decoder is None:
        return None
    undecided = ~_plain_objects(texts)
    plain = texts.filter(pa.array(~undecided)) if undecided.any() else texts
    member_texts, wrong = decoder.decode(plain, first_wins=first_wins)
    if not undecided.any():
        return member_texts, wrong
    places = np.cumsum(~undecided) - 1
    spread = member_texts.take(pa.array(places, mask=undecided))
    undecided[~undecided] = wrong
    return spread, undecided


def unquoted(values: pa.Array) -> pa.Array:
    """Return JSON values as `->>` does: text without quotes, NULL for JSON null."""
    values = pc.if_else(pc.equal(values, "null"), pa.scalar(None, pa.string()), values)
    is_text = as_mask(pc.fill_null(pc.starts_with(values, '"'), fill_value=False))
    if not is_text.any():
        return values
    quoted = values.filter(pa.array(is_text))
    escaped = as_mask(pc.match_substring(quoted, "\\"))
    plain = pc.utf8_slice_codeunits(quoted, 1, -1)
    if escaped.any():
        decoded = [_TEXT.decode(each) for each in quoted.filter(pa.array(escaped)).to_pylist()]
        plain = pc.replace_with_mask(plain, pa.array(escaped), pa.array(decoded, pa.string()))
    return pc.replace_with_mask(values, pa.array(is_text), plain)


class _Decoder:
    """Decodes documents to classes with the keys of one path, the last of them as original text."""

    def __init__(self, path: tuple[str, ...]) -> None:
        """`path`: keys that need no escapes; ValueError for others."""
        type_: Any = msgspec.Raw
        self._steps: list[tuple[str, type]] = []
        for key in reversed(path):
            members = [("m", type_ | msgspec.UnsetType, msgspec.UNSET)]
            members_type = msgspec.defstruct("Members", members, rename={"m": key}, gc=False)
            self._steps.insert(0, (key, members_type))
            type_ = members_type | _OTHERS
        self._decoder = msgspec.json.Decoder(type_)

    def decode(self, texts: pa.Array, *, first_wins: bool) -> tuple[pa.Array, Mask]:
        """Return the texts at the path, and which documents are not decided; (n,) each.

        `texts` begin and end with braces.
        """
        documents, wrong = self._documents(texts)
        values, counts = documents, []
        for _, step in self._steps:
            same = all(type_ is step for type_ in set(map(type, values)))
            if same:
                values = list(map(_MEMBER, values))
            else:
                values = [_MEMBER(each) if type(each) is step else _UNSET for each in values]
            counts.append(len(values) - values.count(_UNSET))
        if first_wins and self._may_repeat(texts, counts):
            return pa.nulls(len(texts), pa.string()), np.ones(len(texts), np.bool_)
        member_texts = [None if each is _UNSET else bytes(each).decode() for each in values]
        return pa.array(member_texts, pa.string()), wrong

    def _documents(self, texts: pa.Array) -> tuple[list[Any], Mask]:
        """Decode all documents as lines, or each by itself if one of them is malformed.

        No value spans the line break between two documents: strings cannot contain it, and between
        two braces JSON requires a comma. So each document has at least one value, and if there are
        as many values as documents, each has exactly one.
        """
        wrong: Mask = np.zeros(len(texts), np.bool_)
        lines = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "\n")
        try:
            documents = self._decoder.decode_lines(lines[0].as_buffer())
        except _MALFORMED:
            documents = []
        if len(documents) == len(texts):
            return documents, wrong
        documents = []
        for row, text in enumerate(texts.to_pylist()):
            try:
                documents.append(self._decoder.decode(text))
            except _MALFORMED:
                wrong[row] = True
                documents.append(None)
        return documents, wrong

    def _may_repeat(self, texts: pa.Array, counts: Sequence[int]) -> bool:
        """Whether an object may have a key of the path twice: it occurs more often than decoded."""
        escapes = pc.or_(pc.match_substring(texts, "\\u"), pc.match_substring(texts, "\\/"))
        if pc.any(escapes, min_count=0).as_py():
            return True
        met: Counter[str] = Counter()
        for (key, _), count in zip(self._steps, counts, strict=True):
            met[key] += count
        return any(
            pc.sum(pc.count_substring(texts, f'"{key}"')).as_py() != count
            for key, count in met.items()
        )


@lru_cache(maxsize=256)
def _decoder(path: tuple[str, ...]) -> _Decoder | None:
    try:
        return _Decoder(path)
    except ValueError:  # msgspec has no keys that need escapes
        return None


def _plain_objects(texts: pa.Array) -> Mask:
    """(n,) whether a document begins and ends with a brace, and is within all limits."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"\0", np.uint8)
    plain: Mask = np.diff(offsets) > 1
    plain &= data[np.minimum(offsets[:-1], len(data) - 1)] == ord("{")
    plain &= data[np.maximum(offsets[1:] - 1, 0)] == ord("}")
    return plain & ~may_exceed_limits(texts)
