"""`storage_options`: one flat mapping of names to text, for Python, command line and Spark alike.

Settings of the store (`region`, `access_key_id`) and of its HTTP client (`allow_http`, `timeout`)
share one mapping, as in deltalake and Polars. A mapping under `client_options`, as in obstore, and
names such as `client_options.timeout` are equivalent. A value is a secret unless its name is on the
allow-list of harmless names; no message shows a secret. `credential_provider` and
`hedge_after_ms` are for us, see `credentials.py` and `hedged_reads.py`; other processes get the
provider's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from rowsieve.errors import InvalidInput
from rowsieve.objects.credentials import OPTION as PROVIDER
from rowsieve.objects.credentials import as_options, travelling
from rowsieve.objects.hedged_reads import HEDGE_AFTER

_NESTED: Final = "client_options"
_HEADERS: Final = "default_headers"
_CLIENT: Final = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "default_headers",
        "http1_only",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)
_CREDENTIALS: Final = frozenset(
    {
        "access_key",
        "access_key_id",
        "account_key",
        "bearer_token",
        "client_secret",
        "sas_key",
        "sas_token",
        "secret_access_key",
        "service_account",
        "service_account_key",
        "session_token",
        "skip_signature",
        "storage_account_key",
        "storage_sas_key",
        "storage_token",
        "token",
    }
)
_OURS: Final = (PROVIDER, HEDGE_AFTER)  # no client of a store knows them
_PREFIXES: Final = ("aws_", "azure_", "google_")  # optional in the setting names of obstore
_HARMLESS: Final = _CLIENT - {_HEADERS} | {
    "account_name",
    "azure_storage_account_name",
    "base_url",
    "bucket",
    "bucket_name",
    "container_name",
    *_OURS,
    "default_region",
    "endpoint",
    "endpoint_url",
    "region",
    "use_emulator",
    "virtual_hosted_style_request",
}


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options into the store's settings and its HTTP client's settings."""
    store, client = {}, {}
    for name, value in _unnested(options):
        if name in _OURS:
            continue
        if (known := _client_name(name)) is None:
            store[name] = value
        else:
            client[known] = _headers(value) if known == _HEADERS else _flag(value)
    return store, client


def flat_options(options: Mapping[str, Any]) -> dict[str, str]:
    """Flatten options into text by name, the form of Spark's options and the command line."""
    return {name: _text(value) for name, value in _unnested(options_elsewhere(options))}


def options_elsewhere(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for another process: with the name of a provider instead of a function."""
    provider = options.get(PROVIDER)
    return dict(options) if provider is None else {**options, PROVIDER: travelling(provider)}


def static_options(options: Mapping[str, Any], scheme: str) -> dict[str, str]:
    """Return the options as text for a reader in this process that knows no providers.

    It has the credentials of this moment, which nothing renews.
    """
    texts = {name: _text(value) for name, value in _unnested(options) if name not in _OURS}
    if (provider := provider_of(options)) is not None:
        texts |= as_options(provider, scheme)
    return texts


def provider_of(options: Mapping[str, Any]) -> Any:
    """Return the provider, or None; InvalidInput if the options have credentials, too."""
    provider = options.get(PROVIDER)
    if provider is not None:
        credentials = [
            name for name, _ in _unnested(options) if _without_prefix(name) in _CREDENTIALS
        ]
        if credentials:
            raise InvalidInput(
                f"storage_options have {PROVIDER} and {', '.join(sorted(credentials))}; pass "
                "either the provider or the credentials"
            )
    return provider


def secrets_of(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the values that no message may show, longest first."""
    secrets: set[str] = set()
    for name, value in _unnested(options):
        if _without_prefix(name) in _HARMLESS:
            continue
        secrets.add(_text(value))
        if _client_name(name) == _HEADERS:
            secrets.update(map(str, _headers(value).values()))
    return tuple(sorted((secret for secret in secrets if secret), key=lambda each: -len(each)))


def _unnested(options: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for name, value in options.items():
        if name == _NESTED:
            if not isinstance(value, Mapping):
                raise InvalidInput(
                    f"storage option {_NESTED} is not a mapping; pass its settings as a mapping or "
                    "among the other storage options, such as allow_http=true"
                )
            yield from value.items()
        else:
            yield name.removeprefix(f"{_NESTED}."), value


def _client_name(name: str) -> str | None:
    bare = _without_prefix(name)
    return bare if bare in _CLIENT else None


def _without_prefix(name: str) -> str:
    lowered = name.lower()
    for prefix in _PREFIXES:
        lowered = lowered.removeprefix(prefix)
    return lowered


def _flag(value: Any) -> Any:
    """Convert "true" and "false" to a boolean; return any other value unchanged."""
    return (
        {"true": True, "false": False}.get(value.lower(), value)
        if isinstance(value, str)
        else value
    )


def _headers(value: Any) -> dict[str, Any]:
    """Return headers as a mapping; decode them if they are JSON text."""
    if isinstance(value, str):
        try:
            return msgspec.json.decode(value, type=dict[str, str])
        except msgspec.MsgspecError:
            value = None  # rejected below; the text may be a secret
    if not isinstance(value, Mapping):
        raise InvalidInput(f"storage option {_HEADERS} is a mapping of text to text, or its JSON")
    return dict(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return msgspec.json.encode(value).decode()
    if isinstance(value, timedelta):
        return f"{value // timedelta(milliseconds=1)}ms"
    return str(value)
