"""An object store of the network, or of memory, behind obstore.

Soundness: a put is one conditional request (never multipart), so an object is there whole or not
at all. obstore retries by itself, which is one reason why "exists already" decides nothing.
Errors are rewritten without their source: its text may hold a signed URL.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import obstore
import obstore.exceptions

from rowsieve.errors import CorruptData, StoreError, UnsupportedOperation
from rowsieve.objects.durable import Patience
from rowsieve.objects.fetching import begin
from rowsieve.objects.range_file import open_ranges
from rowsieve.objects.store import (
    NativeFile,
    ObjectExists,
    ObjectNotFound,
    Paths,
    Place,
    checked_path,
    checked_range,
    within,
)

_QUERY = re.compile(r"\?[^\s\"')]*")
_ANSWER = re.compile(r"(status code: \d+[^:<{]*).*")  # the rest is the server's
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_PARAMETER = re.compile(
    r"\b(\w*(?:sig|signature|token|key|secret|password|credential|authorization))[=:]\s*"
    r"(?:(?:Bearer|Basic) )?[^\s&,;\"')]+",
    re.IGNORECASE,
)
_USER = re.compile(r"//[^\s/@\"']*@")
_T = TypeVar("_T")
_FIRST_LISTED = 1000
_ANSWERS = 3  # to one question, all but the last of which may break off
_requesting: list[int] = []  # the process that made the first request to a network, once it did


class RemoteStore:
    """Objects under `prefix` of an obstore store; `secrets` never appear in a message.

    `host`: where requests go, if that is configured; `overlaps`: whether it is across a network,
    so that requests are worth overlapping.
    """

    def __init__(
        self,
        store: Any,
        uri: str,
        *,
        prefix: str = "",
        secrets: tuple[str, ...] = (),
        host: str = "",
        overlaps: bool = False,
    ) -> None:
        self._store = store
        self._host = _USER.sub("//", _QUERY.sub("", host))
        self._overlaps = overlaps
        self._uri = uri
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._secrets = tuple(secret for secret in secrets if secret)

    @property
    def overlaps(self) -> bool:
        """Whether a request costs a round trip."""
        return self._overlaps

    def expect(self, places: Iterable[Place], *, keep: bool = False) -> None:
        """Nothing: only a `FetchingStore` fetches early."""

    @property
    def uri(self) -> str:
        """The URI without user, password or query."""
        return self._uri

    def __repr__(self) -> str:
        return f"RemoteStore({self._uri!r})"

    def get(self, path: str) -> bytes:
        """All bytes of an object."""
        return self._read(path, None)

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Bytes `[start, stop)` of an object."""
        length = checked_range(path, start, stop)
        if not length:
            return b""
        patience = Patience(_ANSWERS)
        while len(data := self._read(path, {"range": (start, stop)})) != length:
            if patience.again():  # the answer may have been cut short, not the object
                continue
            raise CorruptData(
                f"{path} in {self.uri} ends {length - len(data)} bytes before byte {stop}: it was "
                "truncated"
            )
        return data

    def size(self, path: str) -> int:
        """Size of the object in bytes."""
        with self._failing("read", path):  # not by HEAD, which some servers and policies refuse
            full = self._full(path)
            return int(self._asked(lambda: obstore.get(self._store, full)).meta["size"])

    def exists(self, path: str) -> bool:
        """Whether an object stands at `path`."""
        try:
            self.size(path)
        except ObjectNotFound:
            return False
        return True

    def put_new(self, path: str, data: bytes | memoryview) -> None:
        """Create an object in one conditional request."""
        with self._failing("create", path):
            view = memoryview(data).cast("B")  # the one form of buffer that obstore takes
            full = self._full(path)
            self._asked(
                lambda: obstore.put(self._store, full, view, mode="create", use_multipart=False)
            )

    def make_durable(self, path: str) -> None:
        """Nothing: an object that stands in such a store is durable."""

    def list(self, prefix: str, after: str | None = None, until: str | None = None) -> Paths:
        """Paths of the objects under `prefix`, sorted here; pages past `until` are not fetched."""
        with self._failing("list", prefix):
            return self._answered(lambda: self._listed(prefix, after, until))

    def _listed(self, prefix: str, after: str | None, until: str | None) -> Paths:
        offset = None if after is None else f"{self._prefix}{after}"
        found: list[str] = []
        for page in obstore.list(
            self._store, self._folder(prefix), offset=offset, chunk_size=_FIRST_LISTED
        ):
            paths = [str(item["path"])[len(self._prefix) :] for item in page]
            found.extend(path for path in paths if within(path, after, until))
            if until is not None and paths and min(paths) >= until:
                break  # a store that does not sort may hide names: heads are probed as well
        return sorted(found)

    def children(self, prefix: str = "") -> Paths:
        """Names directly under `prefix`."""
        with self._failing("list", prefix):
            folder = self._folder(prefix) or None
            result = self._answered(lambda: obstore.list_with_delimiter(self._store, folder))
        paths = [*result["common_prefixes"], *(item["path"] for item in result["objects"])]
        return sorted({str(path).rstrip("/").rpartition("/")[2] for path in paths})

    def open_input(self, path: str, size_bytes: int | None = None) -> NativeFile:
        """Open a file whose reads are ranged requests."""
        return open_ranges(self, path, size_bytes)

    def _read(self, path: str, options: Any) -> bytes:
        with self._failing("read", path):
            full = self._full(path)
            return self._answered(
                lambda: bytes(obstore.get(self._store, full, options=options).bytes())
            )

    def _answered(self, ask: Callable[[], _T]) -> _T:
        """What a request that changes nothing is answered with.

        obstore asks again until an answer begins; here it is asked again when one breaks off.
        """
        patience = Patience(_ANSWERS)
        while True:
            try:
                return self._asked(ask)
            except (obstore.exceptions.GenericError, OSError) as error:
                if isinstance(error, FileNotFoundError) or not patience.again():
                    raise

    def _asked(self, ask: Callable[[], _T]) -> _T:
        """What a request is answered with; Ctrl-C ends the wait for it.

        obstore does not see signals, which reach the main thread alone. So another one asks.
        """
        if self._overlaps and threading.current_thread() is threading.main_thread():
            return begin(ask).result()
        return ask()

    def _full(self, path: str) -> str:
        return f"{self._prefix}{checked_path(path)}"

    def _folder(self, prefix: str) -> str:
        return self._full(prefix) if prefix else self._prefix.rstrip("/")

    @contextmanager
    def _failing(self, action: str, path: str) -> Iterator[None]:
        if self._overlaps:
            _check_process(self._uri)
        try:
            yield
        except (FileNotFoundError, obstore.exceptions.NotFoundError):
            raise ObjectNotFound(f"no object {path} in {self.uri}", path=path) from None
        except obstore.exceptions.AlreadyExistsError:
            raise ObjectExists(f"{path} exists already in {self.uri}", path=path) from None
        except (obstore.exceptions.BaseError, OSError) as error:
            raise StoreError(
                f"cannot {action} {path or 'the table'} in {self.uri}: {self._told(error)}"
            ) from None

    def _told(self, error: Exception) -> str:
        """Tell what failed at which host, without anything secret.

        Servers repeat in their answers what was signed: of those only the code is told.
        """
        text = str(error)
        code = _CODE.search(text)
        text = _ANSWER.sub(r"\1", (text.splitlines() or [""])[0])
        text = _PARAMETER.sub(r"\1=***", _USER.sub("//", _QUERY.sub("", text)))
        for secret in self._secrets:
            text = text.replace(secret, "***")
        if self._host and self._host not in text:
            text = f"{text}, from {self._host}"
        return f"{type(error).__name__}: {text}" + (f" ({code[1]})" if code else "")


def _check_process(uri: str) -> None:
    """UnsupportedOperation in a fork of the process that made the first request.

    The threads of obstore's client stay behind in a fork: its requests would wait for ever.
    """
    if not _requesting:
        _requesting.append(os.getpid())
    if _requesting[0] != os.getpid():
        raise UnsupportedOperation(
            f"{uri} cannot be used in process {os.getpid()}, a fork of process {_requesting[0]} "
            "that used an object store before: the threads of its client stayed behind; start "
            "worker processes by 'spawn' (multiprocessing.get_context('spawn')) and open the table "
            "again in each"
        )
