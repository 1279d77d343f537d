"""The branches and tags of a table, as its log registers them.

A branch or tag is a log of its own (`rowsieve.objects.ref_store`), which begins with a version of
another log, over the same data files. Each one is a property of the table, so that commits of the
table's own log order all that happens to them: creation, publication, removal, and the floors of
retention. The folders of dropped ones are listed until their files are gone.

Soundness (invariant 42): a change of properties that is not about refs keeps all of them, which
`check_refs_kept` proves for each commit. Refs need a writer of protocol 8; older writers, which do
not know them, refuse the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Final, NamedTuple, TypeVar

import msgspec

from rowsieve.decoded_types import described
from rowsieve.errors import (
    CorruptData,
    InvalidInput,
    UnsupportedOperation,
    VersionNotFound,
    did_you_mean,
)
from rowsieve.objects import ObjectStore, RefStore, table_store
from rowsieve.properties import DROPPED_REFS, OWN_REF, REF
from rowsieve.storage.snapshot import REFS_WRITER, Snapshot, TableInfo
from rowsieve.storage.versioned_names import new_id

CLOSING: Final = "expire_versions"  # the operation that closes a dropped log
REF_OPERATIONS: Final = frozenset(
    {"create_branch", "create_tag", "drop_branch", "drop_tag", "fast_forward", "remove_orphans"}
)
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", re.ASCII)
_NUMBER: Final = re.compile(r"v?\d+", re.ASCII)
MAIN: Final = "main"
_T = TypeVar("_T")


class RefKind(Enum):
    """A branch has commits of its own; a tag never changes."""

    BRANCH = "branch"
    TAG = "tag"


class Published(NamedTuple):
    """A version of a branch, and the version of the table that has taken it over."""

    of_branch: int
    of_table: int


class Ref(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A branch or tag: its folder, and the version that it began with.

    `of` is the folder of the log that had this version, empty for the table's own. `published` are
    the fast-forwards, oldest first.
    """

    kind: RefKind
    folder: str
    version: int
    commit_id: str
    timestamp_us: int
    of: str = ""
    published: tuple[Published, ...] = ()

    @property
    def is_tag(self) -> bool:
        """True for a tag."""
        return self.kind is RefKind.TAG


class OwnRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the log of a branch or tag says about itself."""

    kind: RefKind
    name: str


def checked_ref_name(name: str) -> str:
    """Return the name; InvalidInput if it cannot be one, or could be a number of a version."""
    if _NAME.fullmatch(name) is None or _NUMBER.fullmatch(name) or name == MAIN:
        raise InvalidInput(
            f"{name!r} cannot name a branch or tag: a name has 1 to 100 letters, digits, '_', '.' "
            f"and '-', begins with one of the first three, is not {MAIN!r}, and is not how a "
            "version is written, as 7 or v7; write v7.0 or release-7 instead"
        )
    return name


def new_folder(name: str, base_version: int) -> str:
    """Return the name of a new folder; its id names the version that its creator had read."""
    return f"{name}.{new_id(base_version)}"


def refs_of(properties: Mapping[str, str]) -> dict[str, Ref]:
    """The branches and tags by name; CorruptData if a property is damaged."""
    return {
        name.removeprefix(REF): _decoded(name, text, Ref)
        for name, text in properties.items()
        if name.startswith(REF)
    }


def dropped_of(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The folders of dropped branches and tags whose files may still exist."""
    text = properties.get(DROPPED_REFS)
    return () if text is None else _decoded(DROPPED_REFS, text, tuple[str, ...])


def own_ref(properties: Mapping[str, str]) -> OwnRef | None:
    """What a branch or tag is; None for a table."""
    text = properties.get(OWN_REF)
    return None if text is None else _decoded(OWN_REF, text, OwnRef)


def with_refs(info: TableInfo, refs: Mapping[str, Ref], dropped: Iterable[str]) -> TableInfo:
    """Return the table information with these refs instead of those that it has."""
    properties = without_refs(info.properties)
    for name, ref in refs.items():
        properties[f"{REF}{name}"] = msgspec.json.encode(ref).decode()
    if folders := tuple(dict.fromkeys(dropped)):
        properties[DROPPED_REFS] = msgspec.json.encode(folders).decode()
    writer = max(info.writer_version, REFS_WRITER)
    return replace(info, properties=properties, writer_version=writer)


def without_refs(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that are not about branches and tags."""
    return {
        name: text
        for name, text in properties.items()
        if not name.startswith(REF) and name not in (DROPPED_REFS, OWN_REF)
    }


def as_own_ref(info: TableInfo, ref: OwnRef) -> TableInfo:
    """Return the table information of the log of a branch or tag."""
    properties = without_refs(info.properties)
    properties[OWN_REF] = msgspec.json.encode(ref).decode()
    writer = max(info.writer_version, REFS_WRITER)
    return replace(info, properties=properties, writer_version=writer)


def check_not_tag(operation: str, head: Snapshot) -> None:
    """Raise UnsupportedOperation if this is the log of a tag; retention alone may close it."""
    if operation != CLOSING:
        refuse_tag(operation, head)


def refuse_tag(operation: str, head: Snapshot) -> None:
    """Raise UnsupportedOperation if this is the log of a tag."""
    if OWN_REF not in head.table.properties:
        return
    ref = own_ref(head.table.properties)
    if ref is not None and ref.kind is RefKind.TAG:
        raise UnsupportedOperation(
            f"{operation}: {ref.name!r} is a tag, which never changes; make a branch of it, or "
            "change the table"
        )


def check_refs_kept(operation: str, info: TableInfo, head: Snapshot) -> None:
    """Raise InvalidInput if new table information loses a branch or tag of the head."""
    if operation in REF_OPERATIONS:
        return
    before, after = head.table.properties, info.properties
    names = {name for name in (*before, *after) if name.startswith(REF)} | {DROPPED_REFS, OWN_REF}
    if changed := sorted(name for name in names if before.get(name) != after.get(name)):
        raise InvalidInput(
            f"this {operation} changes {changed[0]}, which only branch, tag, fast_forward and "
            "drop_ref may change; nothing was committed"
        )


def ref_named(name: str, head: Snapshot, uri: str) -> Ref:
    """Return the branch or tag of a name; VersionNotFound if the table has none."""
    refs = refs_of(head.table.properties)
    if _NUMBER.fullmatch(name):
        number = name.removeprefix("v")
        raise InvalidInput(
            f"version {name!r} is text, which is the name of a tag or branch; give a whole number, "
            f"such as version={number[:18]}"
        )
    if (ref := refs.get(name)) is None:
        known = ", ".join(refs) or "none"
        raise VersionNotFound(
            f"{uri} has no branch or tag {name!r}; it has {known}{did_you_mean(name, refs)}"
        )
    return ref


def restorable_ref(store: ObjectStore, name: str, head: Snapshot) -> Ref:
    """Return a tag of a version of the table itself; UnsupportedOperation for any other ref."""
    if isinstance(store, RefStore):
        raise UnsupportedOperation(
            f"restore: this is a branch, and {name!r} is a tag of the table; give a number of a "
            "version of the branch"
        )
    ref = ref_named(name, head, store.uri)
    if not ref.is_tag or ref.of:
        raise UnsupportedOperation(
            f"restore: {name!r} is not a tag of a version of the table itself, so its commits have "
            "other numbers; publish a branch with fast_forward"
        )
    return ref


def store_of(store: ObjectStore, folder: str) -> RefStore:
    """The store of the branch or tag in a folder, given any store of the table."""
    return RefStore(table_store(store), folder)


def _decoded(name: str, text: str, type_: type[_T]) -> _T:
    try:
        return msgspec.json.decode(text, type=described(type_))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptData(
            f"table property {name} is {text[:200]!r}, which is damaged ({error}); restore the log "
            "from a copy"
        ) from error
