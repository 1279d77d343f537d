"""One log entry: `_rowsieve/log/<version, 20 digits>.json`, in sealed JSON lines.

    {"commit": {version, commit_id, predecessor, table, timestamp_us, operation, ...}}
    {"protocol": {"reader", "writer", "features"}}       entry 0, and where they change
    {"table": {"uuid", "key", "mode", "properties"}}     together with the protocol
    {"schema": {...}, "next_field_id": n}                entry 0, and where it changes
    {"remove": {"parts": [part id, ...]}}
    {"add": {"file", "size", "checksum", "parts", "rows"}}   `<commit id>.arrow` in the same folder
    {"add": {..., "content"}}                            the same in the entry, for parts in memory
    {"checksum": "xxh3_128:..."}

Soundness: an unknown protocol or feature is UnsupportedProtocol; it is checked before the rest of
the entry is decoded. Under a known protocol an unknown line or field is CorruptData. Removes apply
before adds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from rowsieve.decoded_types import described
from rowsieve.errors import UnsupportedProtocol
from rowsieve.shown import Shown, html, printable
from rowsieve.storage.log.sealed_lines import damaged, seal, unseal
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.snapshot import FEATURES, MODES, READER_VERSION, TableInfo
from rowsieve.types.instants import from_microseconds
from rowsieve.types.schema import Schema, schema_from_json, schema_to_json

LOG: Final = "_rowsieve/log"
_NAME = re.compile(rf"{LOG}/(\d{{20}})\.json")
_MANIFEST_NAME = re.compile(r"[0-9a-f]{32}\.arrow")
_KINDS: Final = ("commit", "protocol", "table", "schema", "remove", "add")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit in a table's history, or the result of a change that had nothing to do.

    `rows_late` counts changes that a newer version of their key had overtaken in the event order:
    they change nothing. If nothing was done, `committed` is False, the other counts are 0, and
    `version`, `commit_id` and `timestamp` are those of the current version. Inside a transaction
    `committed` is False, too, and the counts are those of the change.
    """

    version: int
    commit_id: str
    timestamp: datetime
    operation: str
    rows_written: int
    rows_deleted: int
    parts_added: int
    parts_removed: int
    metadata: Mapping[str, Any]
    committed: bool = True
    rows_late: int = 0

    def __repr__(self) -> str:
        if not self.committed and (self.parts_added or self.parts_removed):
            counts = f"+{self.rows_written:,} -{self.rows_deleted:,} rows"
            return f"<rowsieve.Commit: {self.operation} in an open transaction: {counts}>"
        if not self.committed:
            late = f"; {self.rows_late:,} rows were late" if self.rows_late else ""
            return (
                f"<rowsieve.Commit: {self.operation} had nothing to do at version {self.version}"
                f"{late}>"
            )
        facts = ", ".join(f"{name} {value}" for name, value in self._facts().items())
        return f"<rowsieve.Commit version {self.version}: {facts}>"

    def _repr_html_(self) -> str:
        title = f"rowsieve.Commit version {self.version}"
        if not self.committed:
            return html(Shown(f"{title}: {self.operation} had nothing to do", {}, ()))
        notes = [(str(name), str(value)[:200]) for name, value in self.metadata.items()]
        return html(Shown(title, self._facts(), notes, ("metadata", "value")))

    def _facts(self) -> dict[str, str]:
        return {
            "operation": printable(self.operation),
            "at": f"{self.timestamp:%Y-%m-%d %H:%M:%S} UTC",
            "rows": f"+{self.rows_written:,} -{self.rows_deleted:,}",
            "parts": f"+{self.parts_added:,} -{self.parts_removed:,}",
            "id": self.commit_id[:8],
        } | ({"late": f"{self.rows_late:,}"} if self.rows_late else {})


class AddedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The Arrow file that lists the parts of a commit or a checkpoint.

    `content`: the list itself, if it is in the entry (`rowsieve.storage.log.inline_parts`); there
    is no file then, and `size` is that of the list without compression.
    """

    file: str
    size: int
    checksum: str
    parts: int
    rows: int
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A decoded entry. `added`: its parts with commit_ts filled in; None if not loaded."""

    version: int
    commit_id: str
    predecessor: str | None
    table_uuid: str
    timestamp_us: int
    operation: str
    rows_written: int = 0
    rows_deleted: int = 0
    token: tuple[str, int] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    info: TableInfo | None = None
    schema: Schema | None = None
    next_field_id: int | None = None
    removed: tuple[str, ...] = ()
    file: AddedFile | None = None
    added: PartTable | None = field(default=None, compare=False)
    rows_late: int = 0

    @property
    def commit(self) -> Commit:
        """The entry as users see it."""
        return Commit(
            self.version,
            self.commit_id,
            from_microseconds(self.timestamp_us),
            self.operation,
            self.rows_written,
            self.rows_deleted,
            0 if self.file is None else self.file.parts,
            len(self.removed),
            self.metadata,
            rows_late=self.rows_late,
        )


class _CommitLine(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    version: int
    commit_id: str
    predecessor: str | None
    table: str
    timestamp_us: int
    operation: str
    rows_written: int
    rows_deleted: int
    token: tuple[str, int] | None
    metadata: dict[str, Any]
    rows_late: int = 0


class _ProtocolLine(msgspec.Struct, forbid_unknown_fields=True):
    reader: int
    writer: int
    features: list[str]


class _TableLine(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    uuid: str
    key: list[str]
    mode: str
    properties: dict[str, str]
    sequence: tuple[str, ...] = ()
    late_floor: tuple[str, ...] = ()


class _RemoveLine(msgspec.Struct, forbid_unknown_fields=True):
    parts: list[str]


def log_path(version: int) -> str:
    """Return the path of a version's entry."""
    return f"{LOG}/{version:020d}.json"


def version_of(path: str) -> int | None:
    """Return the version in an entry's path; None for any other file."""
    match = _NAME.fullmatch(path)
    return int(match[1]) if match else None


def encode_entry(entry: LogEntry) -> bytes:
    """Serialise and seal an entry, without `added`."""
    commit = _CommitLine(
        entry.version,
        entry.commit_id,
        entry.predecessor,
        entry.table_uuid,
        entry.timestamp_us,
        entry.operation,
        entry.rows_written,
        entry.rows_deleted,
        entry.token,
        dict(entry.metadata),
        entry.rows_late,
    )
    lines: list[dict[str, Any]] = [{"commit": commit}]
    if entry.info is not None:
        lines += info_lines(entry.info)
    if entry.schema is not None:
        lines.append(schema_line(entry.schema, entry.next_field_id))
    if entry.removed:
        lines.append({"remove": {"parts": entry.removed}})
    if entry.file is not None:
        lines.append({"add": entry.file})
    return seal(lines)


def decode_entry(data: bytes, version: int, where: str) -> LogEntry:
    """Decode the entry of `version`; `where` names the file in errors."""
    lines = lines_by_kind(data, where, _KINDS)
    if "commit" not in lines:
        raise damaged(f"{where} has no commit line")
    commit = convert(lines["commit"]["commit"], _CommitLine, where)
    if commit.version != version:
        raise damaged(f"{where} holds version {commit.version}: it was renamed or copied")
    schema, next_field_id = read_schema(lines, where) if "schema" in lines else (None, None)
    removed = convert(lines["remove"]["remove"], _RemoveLine, where) if "remove" in lines else None
    return LogEntry(
        version=version,
        commit_id=commit.commit_id,
        predecessor=commit.predecessor,
        table_uuid=commit.table,
        timestamp_us=commit.timestamp_us,
        operation=commit.operation,
        rows_written=commit.rows_written,
        rows_deleted=commit.rows_deleted,
        token=commit.token,
        metadata=commit.metadata,
        rows_late=commit.rows_late,
        info=read_info(lines, where) if "protocol" in lines or "table" in lines else None,
        schema=schema,
        next_field_id=next_field_id,
        removed=() if removed is None else tuple(removed.parts),
        file=read_added_file(lines, where),
    )


def info_lines(info: TableInfo) -> list[dict[str, Any]]:
    """Return the protocol and table lines."""
    protocol = _ProtocolLine(info.reader_version, info.writer_version, list(info.features))
    table = _TableLine(
        info.uuid,
        list(info.key),
        info.mode,
        dict(info.properties),
        info.sequence,
        info.late_floor,
    )
    return [{"protocol": protocol}, {"table": table}]


def schema_line(schema: Schema, next_field_id: int | None) -> dict[str, Any]:
    """Return the schema line."""
    return {"schema": schema_to_json(schema), "next_field_id": next_field_id}


def lines_by_kind(data: bytes, where: str, known: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Unseal a file whose lines are of `known` kinds, each at most once.

    The protocol line is checked first: a newer protocol explains any other unknown content.
    """
    lines = unseal(data, where)
    for kind, line in lines:
        if kind == "protocol":
            _check_protocol(line["protocol"], where)
    by_kind: dict[str, dict[str, Any]] = {}
    for kind, line in lines:
        if kind not in known:
            raise damaged(f"{where} has a line of unknown kind {kind!r}")
        if kind in by_kind:
            raise damaged(f"{where} has more than one {kind!r} line")
        if set(line) != ({kind, "next_field_id"} if kind == "schema" else {kind}):
            raise damaged(f"{where} has unknown fields in its {kind!r} line: {sorted(line)}")
        by_kind[kind] = line
    return by_kind


def read_info(lines: Mapping[str, Mapping[str, Any]], where: str) -> TableInfo:
    """Read the protocol and table lines, of which there must be one: they come together."""
    if "protocol" not in lines or "table" not in lines:
        raise damaged(f"{where} has only one of the lines 'protocol' and 'table'")
    protocol = convert(lines["protocol"]["protocol"], _ProtocolLine, where)
    table = convert(lines["table"]["table"], _TableLine, where)
    if table.mode not in MODES:
        raise UnsupportedProtocol(
            f"{where} describes a table of mode {table.mode!r}; this version of rowsieve knows "
            f"{', '.join(MODES)}: upgrade rowsieve"
        )
    return TableInfo(
        table.uuid,
        tuple(table.key),
        table.mode,
        table.properties,
        protocol.reader,
        protocol.writer,
        tuple(protocol.features),
        table.sequence,
        table.late_floor,
    )


def read_schema(lines: Mapping[str, Mapping[str, Any]], where: str) -> tuple[Schema, int]:
    """Read the schema line, which there must be."""
    schema = schema_from_json(convert(lines["schema"]["schema"], dict[str, Any], where))
    return schema, convert(lines["schema"]["next_field_id"], int, where)


def read_added_file(lines: Mapping[str, Mapping[str, Any]], where: str) -> AddedFile | None:
    """Read the line that names the Arrow file."""
    if "add" not in lines:
        return None
    added = convert(lines["add"]["add"], AddedFile, where)
    if added.content is not None:
        if added.file or added.checksum:
            raise damaged(f"{where} has a list of parts, and names the file {added.file!r}")
    elif _MANIFEST_NAME.fullmatch(added.file) is None:
        raise damaged(f"{where} names the file {added.file!r}, which is not a manifest's name")
    return added


def convert(value: Any, type_: type[_T], where: str) -> _T:
    """Convert a decoded JSON value to `type_`; CorruptData names the file and the mismatch."""
    try:
        return msgspec.convert(value, described(type_))
    except msgspec.ValidationError as error:
        raise damaged(f"{where} does not have the log's form: {error}") from error


def _check_protocol(value: Any, where: str) -> None:
    reader = value.get("reader") if isinstance(value, dict) else None
    features = value.get("features", []) if isinstance(value, dict) else []
    if isinstance(reader, int) and reader > READER_VERSION:
        raise UnsupportedProtocol(
            f"{where} needs reader protocol {reader}; this version of rowsieve reads up to "
            f"{READER_VERSION}: upgrade rowsieve"
        )
    unknown = sorted(set(map(str, features)) - FEATURES) if isinstance(features, list) else []
    if unknown:
        raise UnsupportedProtocol(
            f"{where} uses features unknown to this version of rowsieve: {', '.join(unknown)}; "
            "upgrade rowsieve"
        )


def newest_absent(start: int, entries: Sequence[LogEntry | None]) -> int:
    """The version of the last entry that does not exist; `start` is that of the first entry."""
    return max(number for number, entry in enumerate(entries, start) if entry is None)
