"""Parses and checks the options of reads and writes; an unknown option is an error.

Spark lower-cases option names. Values of `storage.*` may be secrets: no message includes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypedDict

import msgspec

from rowsieve.errors import InvalidInput
from rowsieve.executor.read_settings import ReadSwitches
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.spark.known_options import (
    adds_columns,
    flag_of,
    known_names,
    refuse_unknown,
)
from rowsieve.providers.spark.option_values import (
    REF_OPTIONS,
    condition_of,
    count_of,
    time_with_zone,
    uri_of,
    with_prefix,
)
from rowsieve.providers.spark.store_options import STORAGE, storage_of
from rowsieve.statements.name_lists import names_of
from rowsieve.storage.differential import read_at, time_of_text
from rowsieve.storage.parts.reading_views import with_options
from rowsieve.storage.snapshot import Snapshot

METADATA: Final = "metadata."
PROPERTY: Final = "property."
MODES: Final = ("append", "upsert", "delete")
STREAM_MODES: Final = (*MODES, "changes")
_READ: Final = (
    "path",
    *REF_OPTIONS,
    "where",
    "time_zone",
    "ansi",
    "predicate",
    "parts",
    "columns",
    "version",
    "as_of",
    "split_bytes",
    "pruning",
    "audit",
    "on_violation",
    "read_encoding",
    "on_encoding_difference",
    "at",
    "expanded",
    "reporter",
    "readChangeFeed",
)
_WRITE: Final = (
    "path",
    *REF_OPTIONS,
    "mode",
    "key",
    "sequence",
    "if_exists",
    "replaceWhere",
    "time_zone",
    "ansi",
    "predicate",
    "token_app",
    "token_sequence",
    "userMetadata",
    "mergeSchema",
    "overwriteSchema",
    "notes",
    "write_id",
    "one_pass",
    "merge",
)
_STREAM: Final = (
    "path",
    "mode",
    "op",
    "sequence",
    "missing",
    "userMetadata",
    "mergeSchema",
    "overwriteSchema",
    "checkpointLocation",
)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of `spark.read`; `where` is SQL in Spark's dialect.

    `time_zone` and `ansi` are the settings under which `where` is evaluated: both or neither.
    `predicate` is a serialised condition that `to_spark` passes if the condition is not text, and
    `parts` are the ids of the only parts that it leaves to the source.
    `reporter` is the name of a reporter that is registered in every process that reads. `at` and
    `expanded` are of differential tables.
    """

    uri: str
    storage: Mapping[str, str] = field(repr=False)  # may hold secrets
    where: str | None = None
    semantics: Semantics | None = None
    predicate: Predicate | None = None
    parts: frozenset[str] | None = None
    columns: tuple[str, ...] | None = None
    version: int | None = None
    as_of: str | None = None
    split_bytes: int | None = None
    switches: ReadSwitches = field(default_factory=ReadSwitches)
    reporter: str | None = None
    at: str | None = None
    expanded: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        """Read Spark's options; InvalidInput says which one is wrong."""
        options = known_names(options)
        refuse_unknown(options, _READ, (STORAGE,), "read")
        as_of, options = time_with_zone(options)
        columns, parts = options.get("columns"), options.get("parts")
        predicate, semantics = condition_of(options)
        return cls(
            uri=uri_of(options),
            storage=storage_of(options),
            where=options.get("where"),
            semantics=semantics,
            predicate=predicate,
            parts=None if parts is None else frozenset(parts.split(",")),
            columns=None if columns is None else names_of(columns),
            version=count_of(options, "version"),
            as_of=as_of,
            split_bytes=count_of(options, "split_bytes", least=1),
            reporter=options.get("reporter"),
            switches=_switches(options),
            at=options.get("at"),
            expanded=flag_of(options, "expanded"),
        )

    def view(self, snapshot: Snapshot) -> Snapshot:
        """Return the version as these options ask to read it; InvalidInput if it cannot be."""
        switches = self.switches
        return with_options(
            read_at(snapshot, time_of_text(snapshot, self.at), expanded=self.expanded),
            switches.read_encoding,
            switches.on_encoding_difference,
        )


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of `df.write`; the commit's metadata contains `write_id`.

    `key` names the key of a table that may be created; it is empty for one without a key.
    `event_order` names the columns that order its changes.
    `replace_where` is SQL in Spark's dialect; `semantics` are its settings, or None. `predicate` is
    a serialised condition that `write_spark` passes instead. `merge_base` is the version that
    `merge_spark` read, and then `op` is the column that says which rows are keys to delete.
    `one_pass` commits nothing if the key ranges of tasks overlap; `write_spark` writes again then.
    `adds_columns`: the write adds the columns that the table lacks.
    """

    uri: str
    storage: Mapping[str, str] = field(repr=False)  # may hold secrets
    mode: str | None = None
    token: tuple[str, int] | None = None
    metadata: Mapping[str, str] | None = None
    write_id: str | None = None
    op: str | None = None
    sequence: str | None = None
    keeps_missing: bool = False
    key: tuple[str, ...] | None = None
    event_order: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    if_exists: str | None = None
    replace_where: str | None = None
    semantics: Semantics | None = None
    predicate: Predicate | None = None
    merge_base: int | None = None
    one_pass: bool = False
    adds_columns: bool = False

    @property
    def is_conditional(self) -> bool:
        """True if it replaces only the rows that match a condition."""
        return self.replace_where is not None or self.predicate is not None

    @property
    def commit_metadata(self) -> dict[str, str]:
        """The metadata of the commit."""
        metadata = {"write_id": self.write_id} if self.write_id else {}
        return {**(self.metadata or {}), **metadata}

    @classmethod
    def parse_stream(cls, options: Mapping[str, str]) -> WriteOptions:
        """Read the options of `df.writeStream`; its token is the query and the batch."""
        options = known_names(options)
        refuse_unknown(options, _STREAM, (STORAGE, METADATA), "stream")
        mode, op, sequence = options.get("mode"), options.get("op"), options.get("sequence")
        missing = options.get("missing")
        if mode is not None and mode not in STREAM_MODES:
            raise InvalidInput(f"option mode is one of {', '.join(STREAM_MODES)}, not {mode!r}")
        others = {"op": op, "sequence": sequence, "missing": missing}
        named = [name for name, value in others.items() if value is not None]
        if mode != "changes" and named:
            raise InvalidInput(f"option {named[0]} is of mode changes; give that mode, or omit it")
        if mode == "changes" and op is None:
            raise InvalidInput("mode changes needs the option op, the column of actions")
        if missing not in (None, "error", "keep"):
            raise InvalidInput(f"option missing is error or keep, not {missing!r}")
        return cls(
            uri=uri_of(options, writes=True),
            storage=storage_of(options),
            mode=mode,
            metadata=_metadata(options),
            op=op,
            sequence=sequence,
            keeps_missing=missing == "keep",
            adds_columns=adds_columns(options),
        )

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> WriteOptions:
        """Read Spark's options; InvalidInput says which one is wrong."""
        options = known_names(options)
        refuse_unknown(options, _WRITE, (STORAGE, METADATA, PROPERTY), "write")
        mode = options.get("mode")
        if mode is not None and mode not in MODES:
            raise InvalidInput(f"option mode is one of {', '.join(MODES)}, not {mode!r}")
        application = options.get("token_app")
        sequence = count_of(options, "token_sequence")
        if (application is None) != (sequence is None):
            raise InvalidInput(
                "options token_app and token_sequence, or txnAppId and txnVersion, go together; "
                "one is missing"
            )
        token = None
        if application is not None and sequence is not None:
            token = (application, sequence)
        predicate, semantics = condition_of(options, "replacewhere")
        base, op = _merge(options)
        return cls(
            uri=uri_of(options, writes=True),
            storage=storage_of(options),
            mode=mode,
            token=token,
            metadata=_metadata(options),
            write_id=options.get("write_id"),
            replace_where=options.get("replacewhere"),
            semantics=semantics,
            predicate=predicate,
            merge_base=base,
            op=op,
            one_pass=_one_pass(options),
            adds_columns=adds_columns(options),
            **_creation(options),
        )


def _metadata(options: Mapping[str, str]) -> dict[str, str]:
    """The metadata of the commit, with the text that Delta calls userMetadata."""
    metadata = with_prefix(options, METADATA)
    if (text := options.get("usermetadata")) is not None:
        metadata["userMetadata"] = text
    if (notes := options.get("notes")) is not None:  # Spark writes the names of others small
        metadata |= msgspec.json.decode(notes, type=dict[str, str])
    return metadata


def _merge(options: Mapping[str, str]) -> tuple[int | None, str | None]:
    """The version that a merge read, and its column of deletes; None of any other write."""
    if (text := options.get("merge")) is None:
        return None, None
    base, _, op = text.partition(":")
    others = {name for name in options if not name.startswith(STORAGE)}
    others -= {"token_app", "token_sequence", "notes"}
    if others != {"path", "write_id", "merge"} or not (base.isdigit() and op):
        raise InvalidInput("option merge is what Table.merge_spark passes on; call that instead")
    return int(base), op


def _one_pass(options: Mapping[str, str]) -> bool:
    """Return whether `write_spark` writes again with a shuffle if this write commits nothing."""
    if (text := options.get("one_pass")) is None:
        return False
    if text != "true" or "write_id" not in options or "key" in options:
        raise InvalidInput("option one_pass is what Table.write_spark passes on; call that instead")
    return True


class _Creation(TypedDict):
    key: tuple[str, ...] | None
    event_order: tuple[str, ...]
    properties: Mapping[str, str]
    if_exists: str | None


def _creation(options: Mapping[str, str]) -> _Creation:
    """The options of a table that a write may create."""
    key, if_exists = options.get("key"), options.get("if_exists")
    properties = with_prefix(options, PROPERTY)
    if if_exists not in (None, "error", "ignore"):
        raise InvalidInput(f"option if_exists is error or ignore, not {if_exists!r}")
    sequence = options.get("sequence", "").strip()
    if key is None and (properties or if_exists or sequence):
        raise InvalidInput(
            "options sequence, if_exists and property.* are for a table that the write creates; "
            "name its key with .option('key', 'id'), or .option('key', '') for a table without one"
        )
    return {
        "key": None if key is None else names_of(key, "key") if key.strip() else (),
        "event_order": names_of(sequence, "sequence") if sequence else (),
        "properties": properties,
        "if_exists": if_exists,
    }


def _switches(options: Mapping[str, str]) -> ReadSwitches:
    """The audit and pruning settings among the options, checked."""
    text = options.get("audit")
    try:
        audit = None if text is None else float(text)
    except ValueError as error:
        raise InvalidInput(f"option audit is a percentage from 0 to 100, not {text!r}") from error
    pruning: Any = options.get("pruning")
    on_violation: Any = options.get("on_violation")
    encoding: Any = options.get("read_encoding")
    on_difference: Any = options.get("on_encoding_difference")
    return ReadSwitches(pruning, audit, on_violation, encoding, on_difference)
