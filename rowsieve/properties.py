"""Table properties: settings stored with a table; names and values are checked when set."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rowsieve.errors import InvalidInput, did_you_mean
from rowsieve.flags.flag import FLAGS

_COUNT = "a count from 1", re.compile(r"[1-9]\d{0,17}", re.ASCII)
_COMMITS = "a count from 1 to 999999999", re.compile(r"[1-9]\d{0,8}", re.ASCII)
_FORMS: Mapping[str, tuple[str, re.Pattern[str]]] = {
    "target_part_bytes": _COUNT,
    "checkpoint_interval": _COMMITS,
    "statistics_inline_bytes": _COUNT,
    "isolation": ("serializable or snapshot", re.compile("serializable|snapshot")),
    "late_horizon": (
        "a count of seconds, minutes, hours or days, or forever; '7 days of event time'",
        re.compile(r"\d{1,9} (second|minute|hour|day)s?( of event time)?|forever", re.ASCII),
    ),
    "on_too_late": ("error or drop", re.compile("error|drop")),
    "column_order": ("row or each", re.compile("row|each")),
    "row_versions": ("kept or dropped", re.compile("kept|dropped")),
    "column_names": ("user or tag", re.compile("user|tag")),
    "inline_total_bytes": _COUNT,
    "spark.path": (
        "a folder as Spark names it, such as /mnt/table or hdfs://name/table, without a password",
        re.compile(
            r"([A-Za-z][A-Za-z0-9+.-]*:(//[A-Za-z0-9._-]+(@[A-Za-z0-9.-]+)?(:\d{1,5})?)?)?"
            r"/[A-Za-z0-9_./ =+,~-]*"
        ),
    ),
    "publish": ("iceberg, delta or both", re.compile(r"(iceberg|delta)( *, *(iceberg|delta))?")),
    **{flag.name: (flag.form, flag.pattern) for flag in FLAGS.values()},
    "row_codec": ("the name of a codec", re.compile(r"[A-Za-z0-9_-]{1,200}", re.ASCII)),
    "batch_version": _COMMITS,
    "ignored_batch_versions": (
        "counts from 1, separated by commas",
        re.compile(r"[1-9]\d{0,8}( *, *[1-9]\d{0,8}){0,99}", re.ASCII),
    ),
}

PROPERTIES: Mapping[str, str] = {
    "account": "whose table it is, for rollouts of flags to a share of accounts",
    "target_part_bytes": "stored bytes at which a writer starts another part (default 128 MiB)",
    "checkpoint_interval": "commits between checkpoints (default 32)",
    "cluster_by": "order of written rows without a key: 'a, b DESC', zorder(a, b), hilbert(a, b)",
    "compaction": "leveled (default): no part overlaps another; tiered: fewer bytes written",
    "expire_rows_when": "condition on rows that maintain deletes: at < now() - interval '9 days'",
    "inline_bytes": "bytes of a change that its log entry holds, without a file (0: none)",
    "inline_total_bytes": "bytes of such changes that a writer folds into a file (default 1 MiB)",
    "isolation": "what updates and deletes check: serializable (default) or snapshot",
    "visibility": "whether upserts and deletes store which rows they hide: lazy (default) or eager",
    "statistics": "'on' (default) or 'off': whether parts have statistics beyond their key ranges",
    "statistics_bytes": "bytes of statistics that a part may have (default 1024)",
    "statistics_bytes_per_1000_rows": "bytes more for each thousand of its rows (default 16)",
    "statistics_inline_bytes": "bytes of them in the list of parts itself (default 8192)",
    "collectors": "columns whose statistics a registered collector makes: 'age: tens'",
    "critical_columns": "columns whose statistics are never trimmed, in addition to keys and times",
    "text_statistics": "text columns whose values may spell numbers or be compared in one case",
    "json_statistics": "paths in JSON columns, as payload.user.id; a plain column finds its paths",
    "json_shredding": "paths in JSON columns that files also store as columns, to skip pages by",
    "pruning": "on (default); off reads every part; soft does so too, and audits all pruning first",
    "audit_percent": "share of what pruning skips that scans check, 0 to 100 (default 0)",
    "audit_on_violation": "what a scan does that finds pruning wrong: raise (default) or report",
    "late_horizon": "how long deletes of an event order are kept (default 7 days), or forever",
    "on_too_late": "what changes beyond late_horizon are: error (default), or drop: left out",
    "column_order": "what events of an event order compare: row (default), or each of its columns",
    "combine": "rules by which upserts combine values with the row's, as 'visits: sum, day: max'",
    "history": "columns in which a version of a row begins and ends, as 'valid_from, valid_to'",
    "row_versions": "whether rewrites keep the version that last changed a row: kept, or dropped",
    "column_names": "names in data files: user (default), or tag, which hides them; never changes",
    "value_forms": "stored uuid, json, interval, numeric: structured (default) or opaque bytes",
    "row_codec": "codec of the second form of rows: msgpack, json, avro, or a registered one",
    "write_encoding": "forms of rows in new files: columns (default), both, or codec",
    "read_encoding": "form that reads believe: columns (default), codec, or shadow: compares both",
    "on_encoding_difference": "what shadow reads do with a difference: report (default) or raise",
    "batch_version": "number of the writer of columns in new files (default 1); never goes down",
    "ignored_batch_versions": "batch versions whose columns are wrong; the codec is read instead",
    "spark.path": "the table's folder as Spark names it, where that does not follow from its URI",
    "publish": "formats as which each commit is published after it: 'iceberg, delta', or one",
}


COMBINE = "combine"
COLUMN_ORDER_BY = "column_order"
HISTORY = "history"
OLDEST_VERSION = "rowsieve.oldest_version"
OLDEST_BASE = "rowsieve.oldest_base"
CONSTRAINTS = "rowsieve.constraints"
PUBLISH = "publish"
REF = "rowsieve.ref."  # and the name of a branch or tag
DROPPED_REFS = "rowsieve.dropped_refs"
OWN_REF = "rowsieve.own_ref"
MOVED = "rowsieve.moved"
SINCE = "rowsieve.since"
UPPER = "rowsieve.upper"
TRUNCATED = "rowsieve.truncated_before"
MANAGED: Mapping[str, str] = {
    OLDEST_VERSION: "expire_versions",
    OLDEST_BASE: "remove_orphans",
    CONSTRAINTS: "add_constraint",
    "rowsieve.row_versions_since": "set_properties with row_versions",
    "rowsieve.restored": "restore",
    DROPPED_REFS: "drop_ref",
    OWN_REF: "branch",
    MOVED: "move_in of a database",
    SINCE: "advance_since",
    UPPER: "append_updates",
    TRUNCATED: "apply_events of a truncate",
}
"""Properties that only their own operations set, and one of these."""

FIXED: Mapping[str, str] = {
    "key": "parts are sorted and merged by it; create a table with another key= from these rows",
    "mode": "it depends on whether the table has a key; create a table with or without key=",
    "uuid": "it identifies the table in its files and in caches",
}
"""Names that users may mistake for properties, and why they cannot change."""


AT_CREATION: Mapping[str, tuple[str, str]] = {
    "column_names": (
        "user",
        "files have their names; create a table with the other value from these rows",
    ),
    COLUMN_ORDER_BY: (
        "row",
        "its rows have, or lack, sequences of values; create a table with the other value",
    ),
}
"""Properties that only the creation of a table sets: default, and why they cannot change."""


def is_by_column(properties: Mapping[str, str]) -> bool:
    """Return whether the event order of a table is one of each column."""
    return properties.get(COLUMN_ORDER_BY) == "each"


def resolves_upserts(properties: Mapping[str, str]) -> bool:
    """Return whether upserts have to read the rows that they meet."""
    return COMBINE in properties or is_by_column(properties)


def settings_among(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that users set, by name, in order; not those that the library keeps."""
    return {n: v for n, v in sorted(properties.items()) if n not in MANAGED}


def check_constant(before: Mapping[str, str], wanted: Mapping[str, str | None]) -> None:
    """Raise InvalidInput if a change sets a property that cannot change to another value."""
    for name, (default, why) in AT_CREATION.items():
        value = before.get(name, default)
        if name in wanted and (wanted[name] or default) != value:
            raise InvalidInput(
                f"table property {name!r} is {value!r} since the table was created, and cannot "
                f"change: {why}"
            )


def check_properties(properties: Mapping[str, str | int | float]) -> dict[str, str]:
    """Return the properties as text; InvalidInput for an unknown name or an invalid value."""
    checked = {}
    for name, value in properties.items():
        check_name(name)
        text = str(value)
        form = _FORMS.get(name)
        if form is not None and not form[1].fullmatch(text):
            raise InvalidInput(f"table property {name!r} must be {form[0]}, not {value!r}")
        checked[name] = text
    return checked


def check_name(name: str) -> None:
    """Raise InvalidInput unless this is the name of a property."""
    if name in PROPERTIES:
        return
    if name in MANAGED or str(name).startswith(REF):
        raise InvalidInput(
            f"table property {name!r} is kept by Rowsieve and cannot be set or unset; "
            f"{MANAGED.get(name, 'branch, tag or drop_ref')} changes it"
        )
    if name in FIXED:
        raise InvalidInput(
            f"{name!r} is not a property and cannot change after create_table: {FIXED[name]}"
        )
    hint = did_you_mean(str(name), PROPERTIES)
    raise InvalidInput(f"unknown table property {name!r}; known are {', '.join(PROPERTIES)}{hint}")
