"""Proof that a store refuses to create an object twice; every commit relies on that.

Each table has one small probe object, which is created twice. A store that accepts the second put
would let concurrent commits overwrite each other (invariants, rule 2).
Soundness: only a refusal ("already exists") is proof; any other error of the store is not.
"""

from __future__ import annotations

from typing import Final

from rowsieve.byte_cache import ByteCache
from rowsieve.errors import StoreError, UnsupportedOperation
from rowsieve.objects import ObjectExists, ObjectStore
from rowsieve.objects.durable import Patience

PROBE: Final = "_rowsieve/create-only"
_CONTENT: Final = b"Created twice by every writer: the second try must be refused.\n"
_ATTEMPTS: Final = 6

_proven: Final[ByteCache[tuple[str, str], str]] = ByteCache(4 * 1024 * 1024, "proven stores")
"""Proofs by store and table uuid; one that was evicted costs a request."""


def prove_create_only(store: ObjectStore, table_uuid: str) -> None:
    """Prove it unless the proof is cached; UnsupportedOperation if the store overwrites.

    Local tables need no probe: link(2) never overwrites.
    """
    key = (store.uri, table_uuid)
    if store.uri.startswith("file:") or _proven.get(key):
        return
    if not (_refuses(store) or _refuses(store)):
        raise UnsupportedOperation(
            f"{store.uri} does not honour create-only puts: it accepted a second put of {PROBE}, "
            "so concurrent commits could overwrite each other; use a store with conditional puts"
        )
    _proven.put(key, PROBE, 400 + len(store.uri))


def _refuses(store: ObjectStore) -> bool:
    """Return whether the store refuses to create the probe because it already exists."""
    patience = Patience(_ATTEMPTS)
    while True:
        try:
            store.put_new(PROBE, _CONTENT)
        except ObjectExists:
            return True
        except StoreError as problem:
            if not patience.again():
                raise StoreError(
                    f"cannot determine whether {store.uri} honours create-only puts: {problem}; "
                    "nothing was committed. Try again, and check that you may write there"
                ) from problem
        else:
            return False
