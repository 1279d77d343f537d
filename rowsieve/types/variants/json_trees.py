"""Writes the nodes of decoded Variants as JSON texts, all of them at once.

A text is a sequence of tokens: keys, scalars and punctuation. The positions of the tokens follow
from the nodes, and one `take` copies the bytes. Keys of an object are sorted by their bytes.
Soundness: an object that has a key twice is a ValueError.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.types.variants.variant_nodes import NO_KEY, ROOT, Ints, Nodes
from rowsieve.types.variants.variant_texts import TEXT, quoted

MAX_TEXT: Final = 2**31 - 1
"""The bytes of one array of texts."""
_MARKS: Final = (",", "{", "}", "[", "]")
_COMMA, _OBJECT, _END_OBJECT, _ARRAY, _END_ARRAY = range(5)


class TooLong(ValueError):
    """The texts do not fit into one array; fewer texts may fit."""


def written(nodes: Nodes, rows: int) -> pa.Array:
    """Return the JSON text of each tree, (rows,); the first `rows` nodes are the roots."""
    parent, key, place, depth = (
        np.concatenate(each) for each in (nodes.parent, nodes.key, nodes.place, nodes.depth)
    )
    keys, ranks = _sorted_keys(nodes)
    has_key = key != NO_KEY
    rank = np.full(len(key), NO_KEY, np.int64)
    rank[has_key] = ranks[key[has_key]]
    among = np.where(has_key, rank, place)
    siblings = parent * (int(among.max(initial=0)) + 1) + among
    order = np.argsort(siblings, kind="stable")  # fast: most nodes are in this order
    later = np.zeros(len(order), np.bool_)
    later[1:] = (parent[order[1:]] == parent[order[:-1]]) & (parent[order[1:]] != ROOT)
    if (later[1:] & has_key[order[1:]] & (rank[order[1:]] == rank[order[:-1]])).any():
        raise ValueError("an object of it has a key twice")
    younger = np.zeros(len(order), np.bool_)
    younger[order] = later
    leads = (has_key | younger).astype(np.int64)  # one token: the key, the comma, or both
    begin, size = _places(nodes, parent, depth, order, leads)
    texts = sum(map(len, nodes.texts))
    marks = texts + 2 * len(keys)
    token = np.empty(int(size[:rows].sum()), np.int64)
    lead = np.where(has_key, texts + rank + np.where(younger, len(keys), 0), marks + _COMMA)
    token[begin[leads > 0]] = lead[leads > 0]
    first, last = begin + leads, begin + size - 1
    for containers, opening, closing in (
        (nodes.objects, _OBJECT, _END_OBJECT),
        (nodes.arrays, _ARRAY, _END_ARRAY),
    ):
        for each in containers:
            token[first[each]] = marks + opening
            token[last[each]] = marks + closing
    if nodes.scalars:
        token[first[np.concatenate(nodes.scalars)]] = np.arange(texts)
    tokens = pa.concat_arrays([*nodes.texts, keys, _joined(",", keys), pa.array(_MARKS, TEXT)])
    return _rows(tokens, token, begin[:rows])


def _places(nodes: Nodes, parent: Ints, depth: Ints, order: Ints, leads: Ints) -> tuple[Ints, Ints]:
    """Return the first token of each node, and its number of tokens, children included."""
    size = leads + 1
    for each in (*nodes.objects, *nodes.arrays):
        size[each] += 1
    by_depth = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[by_depth], np.arange(int(depth.max(initial=0)) + 2))
    levels = [by_depth[a:b] for a, b in pairwise(bounds)]
    for level in levels[:0:-1]:
        np.add.at(size, parent[level], size[level])
    before = np.cumsum(size[order]) - size[order]
    head = np.ones(len(order), np.bool_)  # the first of its siblings
    head[1:] = parent[order[1:]] != parent[order[:-1]]
    before -= before[head][np.cumsum(head) - 1]
    begin = np.empty(len(order), np.int64)
    begin[order] = before
    for level in levels[1:]:
        above = parent[level]
        begin[level] += begin[above] + leads[above] + 1
    return begin, size


def _sorted_keys(nodes: Nodes) -> tuple[pa.Array, Ints]:
    """The distinct keys as they are written, sorted by their bytes; and the rank of each key."""
    encoded = pa.concat_arrays(nodes.keys).dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary)
    ranks = np.empty(len(order), np.int64)
    ranks[order.to_numpy()] = np.arange(len(order))
    return _joined(quoted(encoded.dictionary.take(order)), ":"), ranks[encoded.indices.to_numpy()]


def _joined(*parts: pa.Array | str) -> pa.Array:
    texts = [pa.scalar(part, TEXT) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*texts, pa.scalar("", TEXT))


def _rows(tokens: pa.Array, token: Ints, begin: Ints) -> pa.Array:
    lengths = pc.binary_length(tokens).to_numpy()
    if int(lengths[token].sum()) > MAX_TEXT:
        raise TooLong("its text is longer than 2 GiB")
    text = tokens.take(pa.array(token))
    offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset :]
    bounds = np.append(offsets[begin], offsets[len(token)])
    return pa.LargeStringArray.from_buffers(len(begin), pa.py_buffer(bounds), text.buffers()[2])
