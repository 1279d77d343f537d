"""Deletion vectors as Delta's log names them: inside of it, or in a file of their own.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md#deletion-vectors
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from typing import Any, Final

from rowsieve.objects import ObjectStore, put_fresh
from rowsieve.predicate.rowset import RowSet
from rowsieve.publication.places import stored_file
from rowsieve.publication.puffin import encoded_vector, vector_inside

_INLINE_BYTES: Final = 512  # a vector that is larger gets a place in a file
_FOLDER: Final = "metadata"  # a reader takes what is before the name for the folder
_NAME: Final = 20  # characters of a name
_VERSION: Final = b"\1"
_Z85: Final = (
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)
_A85_TO_Z85: Final = bytes.maketrans(bytes(range(33, 118)), _Z85)
_Z85_TO_A85: Final = bytes.maketrans(_Z85, bytes(range(33, 118)))


def descriptors(
    store: ObjectStore,
    hidden: Mapping[str, RowSet],
    known: Mapping[str, dict[str, Any]],
) -> dict[str, dict[str, Any]]:
    """Return the descriptor of the vector of each data file; writes one file for the large ones.

    `known` are the actions that added the files before, of which the same vectors are used again.
    """
    by_path: dict[str, dict[str, Any]] = {}
    pieces, at, name = [_VERSION], len(_VERSION), uuid.uuid4()
    for path, rows in hidden.items():
        vector = encoded_vector(rows.to_ids())
        inside = vector_inside(vector)
        facts = {"sizeInBytes": len(inside), "cardinality": len(rows)}
        if len(inside) <= _INLINE_BYTES:
            padded = inside + bytes(-len(inside) % 4)
            by_path[path] = {"storageType": "i", "pathOrInlineDv": _z85(padded), **facts}
            continue
        before = known.get(path, {}).get("deletionVector")
        if before is not None and _has(store, before, inside):
            by_path[path] = before
            continue
        by_path[path] = {
            "storageType": "u",
            "pathOrInlineDv": f"{_FOLDER}{_z85(name.bytes)}",
            "offset": at,
            **facts,
        }
        pieces.append(vector)
        at += len(vector)
    if len(pieces) > 1:
        put_fresh(store, _file_name(name), b"".join(pieces))
    return by_path


def _file_name(name: uuid.UUID) -> str:
    return f"{_FOLDER}/deletion_vector_{name}.bin"


def _has(store: ObjectStore, known: Mapping[str, Any], inside: bytes) -> bool:
    """Return whether a descriptor names a file with this vector."""
    if known.get("storageType") != "u" or known["sizeInBytes"] != len(inside):
        return False
    name = uuid.UUID(bytes=_from_z85(known["pathOrInlineDv"][-_NAME:]))
    start = known["offset"] + 4  # after the length
    return stored_file(store, _file_name(name), (start, start + len(inside))) == inside


def _z85(data: bytes) -> str:
    """Encode bytes, a multiple of four, in Z85: Ascii85 with another alphabet."""
    groups = [data[start : start + 4] for start in range(0, len(data), 4)]
    encoded = b"".join(base64.a85encode(group).replace(b"z", b"!!!!!") for group in groups)
    return encoded.translate(_A85_TO_Z85).decode()


def _from_z85(text: str) -> bytes:
    return base64.a85decode(text.encode().translate(_Z85_TO_A85))
