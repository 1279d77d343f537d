"""The comparisons of an event order, broken."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

STORED, LATE, FLOOR, COMMITS = (
    f"changes/event_order/{name}.py"
    for name in ("stored_sequences", "late_changes", "too_late", "ordered_commits")
)
SEQUENCES, NEWEST = "types/ordering/sequences.py", "changes/data/newest_per_key.py"
WRITER, CHANGE = "storage/parts/part_writer.py", "changes/change.py"
HORIZON, ACTIONS = "compaction/late_horizon.py", "executor/newest_actions.py"
REWRITE = "procedures/built_ins/rewrite_tombstones.py"
PLACE, TRUNCATE = "changes/event_order/truncation.py", "changes/event_order/truncating.py"
_ORDER = (
    "tests/changes/event_order/test_event_order.py",
    "tests/changes/event_order/test_every_writer.py",
)
_COMPACTION = ("tests/compaction/test_late_horizon.py",)
_TRUNCATES = ("tests/envelopes/test_event_order.py",)
SUITES = {
    STORED: _ORDER,
    LATE: _ORDER,
    COMMITS: _ORDER,
    SEQUENCES: _ORDER,
    NEWEST: _ORDER,
    FLOOR: _COMPACTION,
    HORIZON: _COMPACTION,
    REWRITE: _COMPACTION,
    PLACE: _TRUNCATES,
    TRUNCATE: _TRUNCATES,
}

MUTANTS = (
    Mutant(
        SEQUENCES,
        "an equal sequence is above",
        "pc.greater(left, other)",
        "pc.greater_equal(left, other)",
        _ORDER,
    ),
    Mutant(
        SEQUENCES,
        "only the first column of a sequence counts",
        "undecided &= _mask(pc.equal(left, other), missing=False)",
        "undecided &= False",
        _ORDER,
    ),
    Mutant(
        SEQUENCES,
        "the greatest sequence of a part is that of its last column alone",
        "for array in columns.arrays:\n        taken",
        "for array in columns.arrays[-1:]:\n        taken",
        _ORDER,
    ),
    Mutant(
        STORED,
        "parts are compared with the greatest sequence of a batch",
        "sequences.columns(least(changes, sequences))",
        "sequences.columns(greatest(changes, sequences))",
        _ORDER,
    ),
    Mutant(
        STORED,
        "the oldest version of a key counts",
        "np.argsort(-commits[places], kind=",
        "np.argsort(commits[places], kind=",
        _ORDER,
    ),
    Mutant(
        STORED,
        "parts after an overwrite by condition are not read",
        "places = np.flatnonzero(near & (commits >= first))",
        "places = np.flatnonzero(near & above)",
        _ORDER,
    ),
    Mutant(
        STORED,
        "tombstones are not looked at",
        "            (True, source.tombstones(columns, deleted.rows)),\n",
        "",
        _ORDER,
    ),
    Mutant(
        LATE,
        "an event is late if it is newer",
        "        _taken(sequences.columns(stored.versions), matched),\n"
        "        _taken(sequences.columns(actions), ours),\n",
        "        _taken(sequences.columns(actions), ours),\n"
        "        _taken(sequences.columns(stored.versions), matched),\n",
        _ORDER,
    ),
    Mutant(
        LATE,
        "no concurrent commit of a key conflicts",
        "return bool(self.touches(",
        "return False and bool(self.touches(",
        _ORDER,
    ),
    Mutant(
        COMMITS,
        "no concurrent commit is looked at",
        "touched_by=check",
        "touched_by=lambda _: False",
        ("tests/changes/event_order/test_every_writer.py",),
    ),
    Mutant(
        CHANGE,
        "rows of statements are not compared",
        "            if not overtakes:\n",
        "            if False:\n",
        _ORDER,
    ),
    Mutant(
        WRITER,
        "the bound of a part leaves out its tombstones",
        "_raised(rows.upper if rows else None, deletes, self._sequence)",
        "_raised(rows.upper if rows else None, None if rows else deletes, self._sequence)",
        _ORDER,
    ),
    Mutant(
        NEWEST,
        "the first of several changes of a key counts",
        "    last[:-1] = ~keys.repeats(ordered)[1:]\n",
        "    last = ~keys.repeats(ordered)\n",
        _ORDER,
    ),
    Mutant(
        NEWEST,
        "different changes with one sequence collapse",
        "        if differs.any():\n",
        "        if False:\n",
        _ORDER,
    ),
    Mutant(
        FLOOR,
        "a change at the floor is in time",
        "low = ~is_above(sequences.columns(actions), sequences.columns(floor))",
        "low = is_above(sequences.columns(floor), sequences.columns(actions))",
        _COMPACTION,
    ),
    Mutant(
        FLOOR,
        "changes by condition are too late",
        "stored.versions)]] = False",
        "stored.versions)]] = True",
        _COMPACTION,
    ),
    Mutant(
        STORED,
        "versions of a key before the newest part are not read",
        "[near & above].min()",
        "[near & above].max()",
        _ORDER,
    ),
    Mutant(
        PLACE,
        "a truncate removes a row with its own sequence",
        "return is_above(order.columns(ends), order.columns(rows))",
        "return ~is_above(order.columns(rows), order.columns(ends))",
        _TRUNCATES,
    ),
    Mutant(
        TRUNCATE,
        "an older truncate replaces a newer one",
        "if before is not None and not is_below(snapshot, place, before)[0]:",
        "if False:",
        _TRUNCATES,
    ),
    Mutant(
        HORIZON,
        "a delete of the horizon's own version stays",
        "deletes.column(DELETED_AT.name).to_numpy()) <= self.version",
        "deletes.column(DELETED_AT.name).to_numpy()) < self.version",
        _COMPACTION,
    ),
    Mutant(
        HORIZON,
        "a delete at the horizon of event time stays",
        "event_us(deletes.column(field.name), field) <= self.event_us",
        "event_us(deletes.column(field.name), field) < self.event_us",
        _COMPACTION,
    ),
    Mutant(
        HORIZON,
        "an event of the future forgets deletes",
        "event_us=min(newest, clock.now_us())",
        "event_us=newest",
        _COMPACTION,
    ),
    Mutant(
        HORIZON,
        "deletes go when their part was rewritten",
        "past = self.horizon.has_passed(deletes, self.sequence)",
        "past = np.full(deletes.num_rows, self.horizon.version >= 0)",
        _COMPACTION,
    ),
    Mutant(
        HORIZON,
        "the floor sinks",
        "_greatest((sequences, floor_of(snapshot)), order)",
        "_greatest((sequences,), order)",
        _COMPACTION,
    ),
    Mutant(
        ACTIONS,
        "a delete gets the commit after its own",
        "    dates = pc.fill_null(deletes.column(place), pa.scalar(commit_ts, pa.int64()))\n",
        "    dates = pa.array([commit_ts + 1] * deletes.num_rows, pa.int64())\n",
        _COMPACTION,
    ),
    Mutant(
        REWRITE,
        "deletes of keys with a newer row stay in a rewrite",
        "        visible[hidden] = False\n",
        "",
        _COMPACTION,
    ),
    Mutant(
        REWRITE,
        "the oldest delete of a key stays in a rewrite",
        "np.argsort(-commits, kind=",
        "np.argsort(commits, kind=",
        _COMPACTION,
    ),
    Mutant(
        REWRITE,
        "deletes after the last row are lost in a rewrite",
        "here, self.rest = self.rest, self.rest.slice(0, 0)",
        "here = self.rest.slice(0, 0)",
        _COMPACTION,
    ),
    Mutant(
        REWRITE,
        "each task keeps the deletes of all ranges",
        "            if plan.filter is not None:\n",
        "            if False:\n",
        _COMPACTION,
    ),
)
