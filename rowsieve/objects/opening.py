"""From a URI to a store.

`file:///dir` and plain paths are local; `memory:///name` lives as long as the process and is found
again by its name; `s3://`, `gs://`, `az://` and their relatives go to obstore, with
`storage_options` as its settings (keys, region, endpoint, ...). Credentials belong there: a URI
with a password or a query is refused, and options never appear in a message.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import obstore.exceptions
from obstore.store import MemoryStore, from_url

from rowsieve.errors import InvalidInput
from rowsieve.locks import ForkSafeLock
from rowsieve.objects.local import LocalStore
from rowsieve.objects.remote import RemoteStore
from rowsieve.objects.store import ObjectStore

_REMOTE: Final = ("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss")
_WITH_CONTAINER_AS_USER: Final = ("abfs", "abfss")  # abfss://container@account/...
_from_url: Any = from_url  # typed per cloud; ours is one mapping of options
_RETRIES: Final = {
    "max_retries": 8,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {
        "init_backoff": timedelta(milliseconds=50),
        "max_backoff": timedelta(seconds=5),
        "base": 2,
    },
}

_CLIENT_OPTIONS: Final = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "default_headers",
        "http1_only",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_url",
        "proxy_ca_certificate",
        "proxy_excludes",
        "timeout",
        "user_agent",
    }
)
"""Options of the HTTP client, which may stand among the others, as users of Delta write them."""

_memory_lock = ForkSafeLock()
_memory: list[Any] = []  # the one store of this process, once something asked for it


def open_store(
    uri: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> ObjectStore:
    """Open the store at `uri`; nothing is read or written yet."""
    text = os.fspath(uri)
    scheme = urlsplit(text).scheme.lower() if "://" in text else ""
    if not text:
        raise InvalidInput("the table's URI is empty; give a directory or a URI such as s3://…")
    if scheme in ("", "file", "memory") and storage_options:
        raise InvalidInput(
            f"storage_options ({', '.join(sorted(storage_options))}) are settings of remote "
            f"stores; {scheme or 'local'} tables take none"
        )
    if scheme == "":
        return LocalStore(Path(text).expanduser())
    if scheme == "file":
        return LocalStore(_local_path(text))
    if scheme == "memory":
        return _open_memory(text)
    if scheme in _REMOTE:
        return _open_remote(text, scheme, storage_options or {})
    raise InvalidInput(
        f"no store for scheme {scheme!r}; use a local path, file://, memory:///name, or one of "
        f"{', '.join(f'{known}://' for known in _REMOTE)}"
    )


def _local_path(uri: str) -> str:
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost"):
        raise InvalidInput(
            f"file URI names the host {parts.netloc!r}; a local URI has three slashes: "
            "file:///directory"
        )
    return unquote(parts.path)


def _open_memory(uri: str) -> ObjectStore:
    parts = urlsplit(uri)
    name = "/".join(segment for segment in (parts.netloc + parts.path).split("/") if segment)
    if not name:
        raise InvalidInput("a table in memory needs a name: memory:///name")
    with _memory_lock:
        if not _memory:
            _memory.append(MemoryStore())
    return RemoteStore(_memory[0], f"memory:///{name}", prefix=name)


def _open_remote(uri: str, scheme: str, options: Mapping[str, Any]) -> ObjectStore:
    parts = urlsplit(uri)
    user, at, host = parts.netloc.rpartition("@")
    public = f"{scheme}://{host}{parts.path}"
    if parts.query or parts.fragment or (at and scheme not in _WITH_CONTAINER_AS_USER):
        raise InvalidInput(
            f"the URI of {public} carries a user, a password or a query; pass credentials in "
            "storage_options instead"
        )
    if at and ":" in user:
        raise InvalidInput(f"the URI of {public} carries a password; use storage_options")
    config = {
        key: value
        for key, value in options.items()
        if key != "client_options" and key not in _CLIENT_OPTIONS
    }
    client = {
        **{key: _flag(value) for key, value in options.items() if key in _CLIENT_OPTIONS},
        **(options.get("client_options") or {}),
    }
    try:
        store = _from_url(
            uri, config=config or None, client_options=client or None, retry_config=_RETRIES
        )
    except BaseException as error:
        if not _is_refusal(error):
            raise
        # Its text may repeat the value of an option.
        raise InvalidInput(
            f"cannot use {public} with storage_options ({', '.join(sorted(config)) or 'none'}): "
            f"{type(error).__name__}; check their names and values"
        ) from None
    return RemoteStore(
        store,
        f"{scheme}://{user}{at}{host}{parts.path}".rstrip("/"),
        secrets=tuple(str(value) for value in config.values() if isinstance(value, str)),
        overlaps=True,
    )


def _flag(value: Any) -> Any:
    """Text of a boolean as one; anything else as it is."""
    return (
        {"true": True, "false": False}.get(value.lower(), value)
        if isinstance(value, str)
        else value
    )


def _is_refusal(error: BaseException) -> bool:
    """Whether obstore says no; some options make it panic, which is no `Exception`."""
    refusals = (obstore.exceptions.BaseError, ValueError, TypeError)
    return isinstance(error, refusals) or type(error).__name__ == "PanicException"
