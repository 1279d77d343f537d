"""The kernels that decide which version of a key counts, broken."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

_KERNELS = (
    "tests/executor/test_merge.py",
    "tests/executor/test_visibility.py",
    "tests/executor/test_repeats.py",
    "tests/executor/test_repeated_key.py",
    "tests/executor/test_windows.py",
)
WINDOWS, MERGE, VISIBILITY, REPEATS = (
    f"executor/merging/{name}.py" for name in ("windows", "merge", "visibility", "repeats")
)
WORDS = "types/ordering/key_words.py"
SUITES = {
    WINDOWS: _KERNELS,
    MERGE: _KERNELS,
    VISIBILITY: _KERNELS,
    REPEATS: ("tests/executor/test_repeats.py", "tests/executor/test_merge.py"),
    WORDS: ("tests/types/test_key_words.py", "tests/executor/test_repeats.py"),
}

MUTANTS = (
    # windows
    Mutant(
        WINDOWS,
        "the watermark is the largest last key",
        "watermark = min(cursor.last_key",
        "watermark = max(cursor.last_key",
    ),
    Mutant(
        WINDOWS,
        "there is no watermark",
        "stop = max(self._keys.count_up_to(watermark), start)",
        "stop = len(self._keys)",
    ),
    Mutant(
        WINDOWS,
        "a window takes one row too many",
        "stop = max(self._keys.count_up_to(watermark), start)",
        "stop = min(max(self._keys.count_up_to(watermark), start) + 1, len(self._keys))",
    ),
    Mutant(
        WINDOWS,
        "a stream that begins at the watermark is not opened",
        "cursor.first <= min(",
        "cursor.first < min(",
    ),
    Mutant(
        WINDOWS,
        "streams are opened from the last key down",
        "waiting.sort(key=lambda cursor: cursor.first, reverse=True)",
        "waiting.sort(key=lambda cursor: cursor.first)",
    ),
    Mutant(
        WINDOWS,
        "the oldest stream comes first",
        "cursors.sort(key=lambda cursor: cursor.number)",
        "cursors.sort(key=lambda cursor: -cursor.number)",
    ),
    Mutant(
        WINDOWS,
        "what is left of two streams counts as uncontested",
        "if len(cursors) + len(waiting) < 2 and contested:",
        "if len(cursors) + len(waiting) < 3 and contested:",
    ),
    Mutant(
        WINDOWS,
        "streams that are not open yet are forgotten",
        "if len(cursors) + len(waiting) < 2 and contested:",
        "if len(cursors) < 2 and contested:",
    ),
    Mutant(
        WINDOWS,
        "a batch's rows are numbered from 0",
        "self._offset, self._start = offset, 0",
        "self._offset, self._start = 0, 0",
    ),
    Mutant(
        WINDOWS,
        "a run begins where its batch does",
        "            self._rows,\n            start,",
        "            self._rows,\n            0,",
    ),
    Mutant(
        WINDOWS,
        "a run has the rows before it, too",
        "return self.batch.slice(self.start, len(self))",
        "return self.batch.slice(0, self.start + len(self))",
    ),
    Mutant(
        WINDOWS,
        "a stream that was opened too late is taken",
        "if key < self.first:",
        "if key == self.first[:0]:",
        ("tests/executor/test_audit.py",),
    ),
    # merge
    Mutant(MERGE, "old versions come out", "ranking.order[~ranking", "ranking.order[ranking"),
    Mutant(
        MERGE,
        "the oldest version counts",
        "ranking.order[~ranking.repeats]",
        "ranking.order[~np.append(ranking.repeats[1:], False)]",
    ),
    Mutant(
        MERGE,
        "tombstones show a row",
        "np.full(len(run), -1, dtype=np.int64)",
        "np.full(len(run), 0, dtype=np.int64)",
    ),
    Mutant(
        MERGE,
        "tombstones over one run are forgotten",
        "if len(runs) == 1:",
        "if len(data) == 1:",
    ),
    Mutant(MERGE, "rows are taken from the wrong run", "offset += len(run)", "offset = len(run)"),
    Mutant(
        MERGE,
        "the version after the one that repeats is reported",
        "np.argmax(ranking.repeats)",
        "np.argmin(ranking.repeats)",
    ),
    # visibility
    Mutant(
        VISIBILITY,
        "hidden rows are counted from where the run starts",
        "rows + (run.start + run.offset)",
        "rows + run.offset",
    ),
    Mutant(VISIBILITY, "hidden rows are shown", "[rows.complement() for rows", "[rows for rows"),
    Mutant(VISIBILITY, "the start offset is dropped", "(run.start + run.offset)", "run.start"),
    Mutant(
        VISIBILITY,
        "the first windows are forgotten",
        "known.union(more) if rows and not known.is_empty else more",
        "more",
    ),
    Mutant(
        VISIBILITY,
        "rows are hidden in the stream beside",
        "noted[run.stream].append",
        "noted[run.stream - 1].append",
    ),
    Mutant(
        VISIBILITY,
        "a failure is remembered",
        "            self._end(parts)\n            mine.set_exception",
        "            self.answers.put(parts, (), 0)\n            mine.set_exception",
    ),
    Mutant(
        VISIBILITY,
        "an answer for other parts is remembered",
        "self.answers.put(parts, rows, ",
        "self.answers.put(len(str(parts)), rows, ",
    ),
    # repeats
    Mutant(
        REPEATS,
        "of equal keys the oldest comes first",
        'order = np.argsort(words, kind="stable")',
        'order = len(words) - 1 - np.argsort(words[::-1], kind="stable")',
    ),
    Mutant(
        REPEATS,
        "every row of another key repeats",
        "np.equal(ascending[1:], ascending[:-1]",
        "np.not_equal(ascending[1:], ascending[:-1]",
    ),
    Mutant(
        REPEATS,
        "equal words are equal keys, when ranked",
        "if packed.exact or _are_repeats(runs, order, repeats):",
        "if packed.runs:",
    ),
    Mutant(
        REPEATS,
        "equal words are equal keys, when looked up",
        "    if packed.exact:\n        lowest",
        "    if packed.runs:\n        lowest",
    ),
    Mutant(
        REPEATS,
        "one equal column is an equal key",
        "    return all(\n        as_mask",
        "    return any(\n        as_mask",
    ),
    Mutant(
        REPEATS,
        "the table forgets the run before the last",
        "        if number < len(runs) - 1:\n            seen[run] = True",
        "        if number < len(runs) - 2:\n            seen[run] = True",
    ),
    Mutant(
        REPEATS,
        "the search forgets all runs but the one before",
        "earlier = np.concatenate((earlier, np.delete(run, rows)))",
        "earlier = run.copy()",
    ),
    Mutant(
        REPEATS,
        "the sides of the search are swapped",
        "rows = places[matches] if large is run else np.flatnonzero(matches)",
        "rows = np.flatnonzero(matches) if large is run else places[matches]",
    ),
    Mutant(
        REPEATS,
        "a key above all others is the lowest",
        "matches = large[places] == small",
        "matches = (large[places] == small) | (places == 0)",
    ),
    Mutant(
        REPEATS,
        "columns of a key are added up",
        "codes * len(codes) + column",
        "codes + column",
    ),
    Mutant(
        REPEATS,
        "keys below 0 stand at the end of the table",
        "- np.int64(lowest)",
        "- np.int64(0)",
    ),
    # words
    Mutant(
        WORDS,
        "what does not fit is cut, and called exact",
        "return _Bits([word >> np.uint64(width - room) for word in words], room, exact=False)",
        "return _Bits([word >> np.uint64(width - room) for word in words], room)",
    ),
    Mutant(
        WORDS,
        "the first bits are cut instead of the last",
        "[word >> np.uint64(width - room) for word in words]",
        "[word & np.uint64((1 << room) - 1) for word in words]",
    ),
    Mutant(
        WORDS,
        "a second column is taken to ascend",
        "ordered=place == 0)",
        "ordered=True)",
    ),
    Mutant(WORDS, "columns overlap", "shift = np.uint64(right.width)", "shift = np.uint64(1)"),
    Mutant(
        WORDS,
        "text that is cut is called exact",
        "return _Bits(words, 8 * (taken + 1), taken == rest)",
        "return _Bits(words, 8 * (taken + 1))",
    ),
    Mutant(
        WORDS,
        "bytes that are cut are called exact",
        "8 * taken, taken == rest)",
        "8 * taken)",
    ),
    Mutant(
        WORDS,
        "a zero byte at the end is no byte",
        "table[:, taken] = np.minimum(rest, taken + 1)",
        "table[:, taken] = 0",
    ),
    Mutant(
        WORDS,
        "the first byte that differs counts as common",
        "next((i for i, (a, b)",
        "next((i + 1 for i, (a, b)",
    ),
    Mutant(
        WORDS,
        "large decimals lose their upper half",
        "if any((high != low >> 63).any() for low, high in halves):",
        "if not halves:",
    ),
)
