"""Open the store at a URI.

`location.py` parses the URI. `file:///dir` and plain paths are local. `memory:///name` lives as
long as the process and is shared by name. `s3://`, `gs://`, `az://` and their variants use obstore,
with `storage_options` as its settings (keys, region, endpoint, ...). Credentials belong in
`storage_options`, whose values never appear in a message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache, partial
from typing import Any, Final
from urllib.parse import urlsplit

import obstore.exceptions
from obstore.store import MemoryStore, from_url

from rowsieve.errors import InvalidInput, did_you_mean
from rowsieve.locks import ForkSafeLock
from rowsieve.objects.cached_store import with_cache
from rowsieve.objects.credentials import Credentials
from rowsieve.objects.hedged_reads import hedging_of
from rowsieve.objects.local import LocalStore
from rowsieve.objects.location import REMOTE, Location
from rowsieve.objects.ref_store import RefStore, member_place, member_uri, ref_place, table_uri_of
from rowsieve.objects.remote import RemoteStore
from rowsieve.objects.shared.shared_tables import member_of, shared_tables
from rowsieve.objects.storage_options import provider_of, secrets_of, split_options
from rowsieve.objects.store import ObjectStore

_COMMON_SETTINGS: Final = (
    *("endpoint", "access_key_id", "secret_access_key", "session_token", "region", "account_name"),
    *("account_key", "sas_token", "service_account_path", "allow_http", "timeout"),
)

_from_url: Any = from_url  # its overloads are typed per cloud; we pass one mapping
_RETRIES: Final = {
    "max_retries": 8,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {
        "init_backoff": timedelta(milliseconds=50),
        "max_backoff": timedelta(seconds=5),
        "base": 2,
    },
}

_ONE_RETRY: Final = {"max_retries": 1}  # of requests that a server may refuse for good
_PROBING: Final = {"max_retries": 2, "retry_timeout": timedelta(seconds=3)}
_S3: Final = ("s3", "s3a")
_SINGLE_DELETES: Final = "disable_bulk_delete"  # the others delete many without such a setting
_HOSTS: Final = (
    "endpoint",
    "base_url",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_ENDPOINT",
    "GOOGLE_BASE_URL",
)
_ACCOUNTS: Final = ("account_name", "AZURE_STORAGE_ACCOUNT_NAME")
"""Settings of a client, then variables of the environment, which its settings do not include."""
_NO_ENDPOINT: Final = re.compile(r"[^!-~]")  # spaces, control characters, text beyond ASCII

_memory_lock = ForkSafeLock()
_memory: list[Any] = []  # the single store of this process, once created


def open_store(
    uri: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> ObjectStore:
    """Open the store at `uri` without any I/O; InvalidInput for a bad URI or bad options.

    The place of a branch, or of a table in a database, opens with the log that is there.
    """
    location = Location.parse(uri)
    if (place := ref_place(location.uri)) is not None:
        return RefStore(open_store(place.table_uri, storage_options), place.folder)
    if (moved := member_place(location.uri)) is not None:
        inner = open_store(moved.table_uri, storage_options)
        database = _open(Location.parse(moved.database_uri), storage_options)
        uri = member_uri(inner.uri, database.uri, moved.table)
        return shared_tables(database, storage_options).member(inner, moved.table, uri=uri)
    store = _open(location, storage_options)
    if (member := member_of(store.uri)) is None:
        return store
    database = _open(Location.parse(member[0]), storage_options)
    return shared_tables(database, storage_options).member(store, member[1])


def open_probe(uri: str, storage_options: Mapping[str, Any] | None = None) -> ObjectStore | None:
    """Open a store across a network with a client that soon gives up; None for other stores."""
    location = Location.parse(table_uri_of(uri))
    if location.scheme not in REMOTE:
        return None
    return _open_remote(location, storage_options or {}, _PROBING)


def _open(location: Location, storage_options: Mapping[str, Any] | None) -> ObjectStore:
    if location.scheme in REMOTE:
        return _open_remote(location, storage_options or {})
    if storage_options:
        raise InvalidInput(
            f"storage_options ({', '.join(sorted(storage_options))}) are settings of remote "
            f"stores; {location.scheme} tables take none"
        )
    if location.scheme == "memory":
        return _open_memory(location)
    return LocalStore(location.path)


def _open_memory(location: Location) -> ObjectStore:
    """Open a folder of the process's store; its name stays encoded (keys reject newlines)."""
    with _memory_lock:
        if not _memory:
            _memory.append(MemoryStore())
    name = location.uri.removeprefix("memory:///")
    return RemoteStore(_memory[0], location.uri, prefix=name)


def private_store() -> ObjectStore:
    """Return an empty store in memory that nothing else can open."""
    return RemoteStore(MemoryStore(), "memory:///private")


def _open_remote(
    location: Location, options: Mapping[str, Any], patience: Mapping[str, Any] | None = None
) -> ObjectStore:
    public = location.uri
    config, client = split_options(options)
    provider = provider_of(options)
    credentials = None if provider is None else Credentials(provider, location.scheme)

    def connect(retries: Mapping[str, Any], more: Mapping[str, str]) -> Any:
        return _from_url(  # the bucket alone: only Location decodes URIs
            f"{location.scheme}://{location.authority}",
            config={**config, **more} or None,
            client_options=client or None,
            retry_config={**_RETRIES, **(patience or {}), **retries},
            **({} if credentials is None else {"credential_provider": credentials}),
        )

    try:
        store = connect({}, {})
    except BaseException as error:
        if not _is_refusal(error):
            raise
        # Do not chain: its text may contain the value of an option.
        raise _refused_options(location, config, client, error) from None
    _check_endpoints(public, {**config, **store.config})
    may_be_refused = location.scheme in _S3 and _SINGLE_DELETES not in store.config
    remote = RemoteStore(
        store,
        public,
        prefix=location.path,
        secrets=secrets_of(options),
        host=_configured(store.config, _HOSTS),
        account=_configured(store.config, _ACCOUNTS),
        credentials=credentials,
        overlaps=True,
        hedged=hedging_of(options),
        bulk_deletes=cache(partial(connect, _ONE_RETRY, {})) if may_be_refused else None,
        single_deletes=cache(partial(connect, {}, {_SINGLE_DELETES: "true"})),
    )
    return with_cache(remote)


def _refused_options(
    location: Location, config: Mapping[str, Any], client: Mapping[str, Any], error: BaseException
) -> InvalidInput:
    """Build the error for options that obstore rejects; it names those that no store has."""
    if unknown := [name for name in sorted(config) if _is_unknown(location, name)]:
        names = ", ".join(map(repr, unknown))
        return InvalidInput(
            f"cannot use {location.uri}: the storage_options {names} are not settings of this "
            f"store{did_you_mean(unknown[0], _COMMON_SETTINGS)}; leave them out, or write them as "
            f"obstore does, such as {', '.join(_COMMON_SETTINGS[:3])}"
        )
    return InvalidInput(
        f"cannot use {location.uri} with storage_options ({_names(config, client)}): "
        f"{type(error).__name__}; check their names and values"
    )


def _is_unknown(location: Location, name: str) -> bool:
    try:
        _from_url(f"{location.scheme}://{location.authority}", config={name: ""})
    except obstore.exceptions.UnknownConfigurationKeyError:
        return True
    except BaseException as error:
        if not _is_refusal(error):
            raise
    return False


def _configured(config: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first of these that a client's settings or the environment have, or nothing."""
    return next((str(value) for name in names if (value := _value(config, name))), "")


def _value(config: Mapping[str, Any], name: str) -> Any:
    return os.environ.get(name) if name.isupper() else config.get(name)


def _check_endpoints(public: str, config: Mapping[str, Any]) -> None:
    for name, value in config.items():
        if "endpoint" in name.lower() and not _is_endpoint(value):
            raise InvalidInput(
                f"cannot use {public}: the setting {name} is not the URL of a server, such as "
                "http://localhost:9000"
            )


def _is_endpoint(value: Any) -> bool:
    """Return whether obstore's client accepts a URL; it panics at the first request otherwise."""
    if not isinstance(value, str) or _NO_ENDPOINT.search(value):
        return False
    try:
        parts = urlsplit(value)
        is_server = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        # The client appends the path to the URL: after a ? or # it would not be part of the path,
        # and every request would go to the server's root.
        return is_server and "?" not in value and "#" not in value
    except ValueError:
        return False


def _names(*settings: Mapping[str, Any]) -> str:
    return ", ".join(sorted(name for each in settings for name in each)) or "none"


def _is_refusal(error: BaseException) -> bool:
    """Return whether obstore rejected the options; a panic of it is not an `Exception`."""
    refusals = (obstore.exceptions.BaseError, ValueError, TypeError)
    return isinstance(error, refusals) or type(error).__name__ == "PanicException"
