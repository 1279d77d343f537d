"""Types that msgspec decodes into, each described by one thread.

msgspec (0.22.0) describes a class at its first use, and runs Python code for that. A thread that
needs the class meanwhile takes the unfinished description for a whole one, and the process ends in
a segmentation fault. So every class of ours is described under a lock before it is decoded into;
`tests/test_decoded_types.py` holds that. A class that one thread creates and uses needs no lock.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from rowsieve.locks import ForkSafeLock

T = TypeVar("T")

_described: Final[set[Any]] = set()
_lock: Final = ForkSafeLock()


def described(type_: T) -> T:
    """Return the type once msgspec has its whole description; cheap after the first call.

    For types of modules: they are kept for ever. The argument `type` of msgspec takes the result.
    """
    if type_ not in _described:
        with _lock:
            msgspec.msgpack.Decoder(type_)
            _described.add(type_)
    return type_
