"""Proof that a store refuses to create an object twice; every commit relies on that.

Each table has one small probe object, which is created twice. A store that accepts the second put
would let concurrent commits overwrite each other (invariants, rule 2).
Soundness: only a refusal ("already exists") is proof; any other error of the store is not.
"""

from __future__ import annotations

from typing import Final

from rowsieve.errors import StoreError, UnsupportedOperation
from rowsieve.locks import ForkSafeLock
from rowsieve.objects import ObjectExists, ObjectStore
from rowsieve.objects.durable import Patience

PROBE: Final = "_rowsieve/create-only"
_CONTENT: Final = b"Created twice by every writer: the second try must be refused.\n"
_ATTEMPTS: Final = 6

_proven_lock = ForkSafeLock()
_proven: set[tuple[str, str]] = set()  # (store, table uuid)


def prove_create_only(store: ObjectStore, table_uuid: str) -> None:
    """Prove it once per process and table; UnsupportedOperation if the store overwrites.

    Local tables need no probe: link(2) never overwrites.
    """
    key = (store.uri, table_uuid)
    with _proven_lock:
        if store.uri.startswith("file:") or key in _proven:
            return
    if not (_refuses(store) or _refuses(store)):
        raise UnsupportedOperation(
            f"{store.uri} does not honour create-only puts: it accepted a second put of {PROBE}, "
            "so concurrent commits could overwrite each other; use a store with conditional puts"
        )
    with _proven_lock:
        _proven.add(key)


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
                    f"cannot determine whether {store.uri} honours create-only puts: {problem}"
                ) from problem
        else:
            return False
