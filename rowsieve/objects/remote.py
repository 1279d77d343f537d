"""A network or in-memory object store, accessed through obstore.

Soundness: a put is one conditional request (never multipart), so an object is complete or absent.
obstore retries internally; therefore "already exists" may be the result of our own put. Errors are
rewritten and not chained: the original text may contain a signed URL.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import obstore
import obstore.exceptions

from rowsieve.errors import CorruptData, InvalidInput, StoreError, UnsupportedOperation
from rowsieve.objects.credentials import Credentials
from rowsieve.objects.durable import Patience
from rowsieve.objects.fetching import begin, together
from rowsieve.objects.hedged_reads import HedgedReads
from rowsieve.objects.location import in_place
from rowsieve.objects.range_file import open_ranges
from rowsieve.objects.request_failures import Cause, describe, failure_of, without_user
from rowsieve.objects.store import (
    DELETED_AT_ONCE,
    Converting,
    Details,
    NativeFile,
    ObjectDetail,
    ObjectExists,
    ObjectNotFound,
    Paths,
    Place,
    checked_path,
    checked_range,
    within,
)

_T = TypeVar("_T")
_PAGE_OBJECTS = 1000
_ATTEMPTS = 3  # per read, against responses that break off
_REFUSALS = 2  # of requests to delete many, after which the server gets no more of them
_RENEWALS = 3  # of credentials, for one request
_ABSENT = (FileNotFoundError, obstore.exceptions.NotFoundError)
_requesting: list[int] = []  # id of the process that sent the first network request


class RemoteStore:
    """Objects under `prefix` of an obstore store; `secrets` never appear in a message.

    `host`, `account`: the configured endpoint and account, if any. `overlaps`: whether the store is
    across a network, so that concurrent requests pay. `bulk_deletes` makes a client that deletes
    many objects in a request, with few retries, and `single_deletes` one that deletes each in a
    request of its own: some servers refuse the former. `credentials` are renewed when the server
    refuses them. `hedged` reads are sent again when they take long.
    """

    def __init__(
        self,
        store: Any,
        uri: str,
        *,
        prefix: str = "",
        secrets: tuple[str, ...] = (),
        host: str = "",
        account: str = "",
        credentials: Credentials | None = None,
        overlaps: bool = False,
        hedged: HedgedReads | None = None,
        bulk_deletes: Callable[[], Any] | None = None,
        single_deletes: Callable[[], Any] | None = None,
    ) -> None:
        self._store = store
        self._bulk_deletes = bulk_deletes
        self._single_deletes = single_deletes
        self._refused_deletes = 0  # requests to delete many, in a row
        self._host = without_user(host)
        self._credentials = credentials
        self._hedged = hedged
        self.server = f"{self._host} {account}".strip()
        self._overlaps = overlaps
        self._uri = uri
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._secrets = tuple(secret for secret in secrets if secret)

    @property
    def overlaps(self) -> bool:
        """True if a request costs a network round trip."""
        return self._overlaps

    def expect(self, places: Iterable[Place], *, keep: bool = False) -> None:
        """Do nothing: only a `FetchingStore` prefetches."""

    @property
    def uri(self) -> str:
        """The URI without user, password or query."""
        return self._uri

    def __repr__(self) -> str:
        return f"RemoteStore({self._uri!r})"

    def get(self, path: str) -> bytes:
        """Return all bytes of an object."""
        return self._read(path, None)

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Return bytes `[start, stop)` of an object; CorruptData if it is shorter."""
        length = checked_range(path, start, stop)
        if not length:
            return b""
        patience = Patience(_ATTEMPTS)
        while len(data := self._read(path, {"range": (start, stop)})) != length:
            if patience.again():  # the response may be truncated, not the object
                continue
            raise CorruptData(
                f"{path} in {self.uri} ends {length - len(data)} bytes before byte {stop}: it was "
                "truncated; restore it from a copy"
            )
        return data

    def size(self, path: str) -> int:
        """Return the size of the object in bytes."""
        with self._failing("read", path):  # some servers and policies reject HEAD
            full = self._readable(path)
            return int(self._send(lambda: obstore.get(self._store, full)).meta["size"])

    def exists(self, path: str) -> bool:
        """Return whether an object exists at `path`."""
        try:
            self.size(path)
        except ObjectNotFound:
            return False
        return True

    def put_new(self, path: str, data: bytes | memoryview) -> None:
        """Create an object in one conditional request."""
        with self._failing("create", path):
            view = memoryview(data).cast("B")  # the only kind of buffer that obstore accepts
            full = self._full(path)
            self._send(
                lambda: obstore.put(self._store, full, view, mode="create", use_multipart=False)
            )

    def put_hint(self, path: str, data: bytes) -> None:
        """Put an object in one request, whether its name is taken or not."""
        with self._failing("create", path):
            full = self._full(path)
            self._send(
                lambda: obstore.put(self._store, full, memoryview(data), use_multipart=False)
            )

    def make_durable(self, path: str) -> None:
        """Do nothing: every object in such a store is durable."""

    def list(self, prefix: str, after: str | None = None, until: str | None = None) -> Paths:
        """List the objects under `prefix`, sorted; pages past `until` are not requested.

        A page in ascending order that reaches `until` is the last one; of other pages, one that has
        no name before `until`.
        """
        with self._failing("list", prefix):
            return self._send_retrying(lambda: self._listed(prefix, after, until))

    def _listed(self, prefix: str, after: str | None, until: str | None) -> Paths:
        offset = None if after is None else f"{self._prefix}{after}"
        names: list[str] = []
        for page in obstore.list(
            self._store, self._folder(prefix), offset=offset, chunk_size=_PAGE_OBJECTS
        ):
            paths = [str(item["path"])[len(self._prefix) :] for item in page]
            names.extend(path for path in paths if within(path, after, until))
            if until is not None and paths and _last_name(paths) >= until:
                break  # an unsorted store may hide names; LogReader probes for them
        return sorted(names)

    def children(self, prefix: str = "") -> Paths:
        """List the names directly under `prefix`, sorted."""
        result = self._level(prefix)
        paths = [*result["common_prefixes"], *(item["path"] for item in result["objects"])]
        return sorted({str(path).rstrip("/").rpartition("/")[2] for path in paths})

    def folders(self, prefix: str = "") -> Paths:
        """List the common prefixes directly under `prefix`, sorted."""
        paths = self._level(prefix)["common_prefixes"]
        return sorted({str(path).rstrip("/").rpartition("/")[2] for path in paths})

    def _level(self, prefix: str) -> Any:
        """The objects and common prefixes directly under `prefix`."""
        with self._failing("list", prefix):
            folder = self._folder(prefix) or None
            return self._send_retrying(lambda: obstore.list_with_delimiter(self._store, folder))

    def details(self, prefix: str, most: int | None = None) -> Details:
        """List the objects under `prefix` with their sizes and the store's times, sorted.

        With `most`, end with the page on which the listing has so many objects.
        """
        with self._failing("list", prefix):
            return self._send_retrying(lambda: self._detailed(prefix, most))

    def _detailed(self, prefix: str, most: int | None) -> Details:
        details: Details = {}
        for page in obstore.list(self._store, self._folder(prefix), chunk_size=_PAGE_OBJECTS):
            for item in page:
                modified_us = int(item["last_modified"].timestamp() * 1_000_000)
                path = str(item["path"])[len(self._prefix) :]
                details[path] = ObjectDetail(int(item["size"]), modified_us)
            if most is not None and len(details) >= most:
                break
        return dict(sorted(details.items()))

    def leftovers(self) -> Details:
        """Return nothing: a put is one request, which leaves nothing behind."""
        return {}

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects: across a network in requests of many paths, otherwise one by one.

        Also one by one where the server refuses requests of many paths.
        """
        most = DELETED_AT_ONCE if self._overlaps else 1
        for start in range(0, len(paths), most):
            run = [self._full(path) for path in paths[start : start + most]]
            with self._failing("delete", paths[start]), suppress(*_ABSENT):
                self._delete_run(run)

    def _delete_run(self, run: Paths) -> None:
        if self._bulk_deletes is None or self._single_deletes is None:
            self._send_retrying(partial(_delete_present, self._store, run))
            return
        if self._refused_deletes < _REFUSALS:
            with suppress(obstore.exceptions.GenericError):
                self._send(partial(_delete_present, self._bulk_deletes(), run))
                self._refused_deletes = 0
                return
        client = self._single_deletes()
        together(
            self,
            [
                partial(self._send_retrying, partial(_delete_present, client, [path]))
                for path in run
            ],
        )
        self._refused_deletes += 1

    def open_input(self, path: str, size_bytes: int | None = None) -> NativeFile:
        """Open a file whose reads are range requests."""
        return open_ranges(self, path, size_bytes)

    def _read(self, path: str, options: Any) -> bytes:
        with self._failing("read", path):
            full = self._readable(path)
            request = partial(
                self._send_retrying,
                lambda: bytes(obstore.get(self._store, full, options=options).bytes()),
            )
            return request() if self._hedged is None else self._hedged.read(request)

    def _send_retrying(self, request: Callable[[], _T]) -> _T:
        """Send a read-only request and return its response; retry when a response breaks off.

        obstore retries a request only until its response begins.
        """
        patience = Patience(_ATTEMPTS)
        while True:
            try:
                return self._send(request)
            except (obstore.exceptions.GenericError, OSError) as error:
                is_lasting = (
                    isinstance(error, FileNotFoundError) or failure_of(error).cause.is_lasting
                )
                if is_lasting or not patience.again():
                    raise

    def _send(self, request: Callable[[], _T]) -> _T:
        """Send a request and return its response, with renewed credentials if it is refused.

        A refused request had no effect, so it may be sent again whatever it is.
        """
        if (credentials := self._credentials) is None:
            return self._dispatched(request)
        for _ in range(_RENEWALS):
            credential = credentials.prepare()
            try:
                return self._dispatched(request)
            except (obstore.exceptions.BaseError, OSError) as error:
                may_help = failure_of(error).cause.may_be_renewed
                if not may_help or not credentials.renewed(credential):
                    raise
        return self._dispatched(request)

    def _dispatched(self, request: Callable[[], _T]) -> _T:
        """Send a request and return its response; Ctrl-C interrupts the wait.

        obstore blocks without checking for signals, which only the main thread handles. So the main
        thread sends the request from another thread and waits for it.
        """
        if self._overlaps and threading.current_thread() is threading.main_thread():
            return begin(request).result()
        return request()

    def _readable(self, path: str) -> str:
        """The key of an object of the table, or of a file of the same bucket by its URI."""
        if (other := in_place(path)) is None:
            return self._full(path)
        bucket = self._uri.split("/", 3)[:3]
        if other.uri.split("/", 3)[:3] != bucket or other.scheme == "memory":
            raise InvalidInput(
                f"cannot read {other.uri}: a table at {self._uri} can refer to files of the same "
                "bucket only"
            )
        return other.path

    def _full(self, path: str) -> str:
        return f"{self._prefix}{checked_path(path)}"

    def _folder(self, prefix: str) -> str:
        return self._full(prefix) if prefix else self._prefix.rstrip("/")

    def _failing(self, action: str, path: str) -> Converting:
        """Convert errors of a block's requests to errors of the store, without their secrets."""
        if self._overlaps:
            _check_process(self._uri)
        return Converting(partial(self._convert, action, path))

    def _convert(self, action: str, path: str, error: Exception) -> None:
        if isinstance(error, _ABSENT) and failure_of(error).cause is not Cause.NO_BUCKET:
            raise ObjectNotFound(f"no object {path} in {self.uri}", path=path) from None
        if isinstance(error, obstore.exceptions.AlreadyExistsError):
            raise ObjectExists(f"{path} already exists in {self.uri}", path=path) from None
        if isinstance(error, obstore.exceptions.BaseError | OSError):
            raise self._failure(action, path, error) from None

    def _failure(self, action: str, path: str, error: Exception) -> StoreError:
        secrets = self._secrets
        if self._credentials is not None:
            secrets = (*secrets, *self._credentials.secrets)
        return StoreError(
            f"cannot {action} {path or 'the table'} in {self.uri}: "
            f"{describe(error, secrets, self._host)}",
            operation=action,
            path=path,
            cause=failure_of(error).cause.name.lower(),
        )


def _last_name(page: Paths) -> str:
    """The name that no later page precedes: the last one of a sorted page, else the first."""
    return page[-1] if page == sorted(page) else min(page)


def _delete_present(store: Any, paths: Paths) -> None:
    """Delete objects; if the store refuses because one is absent, the others one by one."""
    try:
        obstore.delete(store, paths)
    except _ABSENT:
        if len(paths) == 1:
            raise
        for path in paths:
            with suppress(*_ABSENT):
                obstore.delete(store, path)


def _check_process(uri: str) -> None:
    """Raise UnsupportedOperation in a fork of the process that sent the first request.

    The threads of obstore's client do not survive a fork, so a request would wait for ever.
    """
    if not _requesting:
        _requesting.append(os.getpid())
    if _requesting[0] != os.getpid():
        raise UnsupportedOperation(
            f"{uri} cannot be used in process {os.getpid()}, a fork of process {_requesting[0]} "
            "that already used an object store: the client's threads do not survive a fork; start "
            "worker processes with 'spawn' (multiprocessing.get_context('spawn')) and open the "
            "table again in each"
        )
