"""Credentials that are renewed while a store is used: the storage option `credential_provider`.

    a function without arguments      its result, as obstore's providers return it
    "package.module:name"             that function, or an instance of that class
    "profile:name"                    a profile of AWS, by boto3
    "environment"                     variables of this process, read at each renewal

Only the text forms, and functions that a module has under their own name, travel to other
processes: there the name is resolved again. A secret never travels.

A credential is kept until shortly before it expires. When a server refuses it, the provider is
called again, once for all requests that used it; they are sent again if it differs.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from rowsieve import clock
from rowsieve.errors import InvalidInput, MissingExtra, RowsieveError, StoreError
from rowsieve.locks import ForkSafeLock
from rowsieve.objects.durable import Patience

OPTION: Final = "credential_provider"
_ENVIRONMENT: Final = "environment"
_PROFILE: Final = "profile:"
_VARIABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "AWS_ACCESS_KEY_ID": {
        "access_key_id": "AWS_ACCESS_KEY_ID",
        "secret_access_key": "AWS_SECRET_ACCESS_KEY",
        "token": "AWS_SESSION_TOKEN",
    },
    "AZURE_STORAGE_ACCOUNT_KEY": {"access_key": "AZURE_STORAGE_ACCOUNT_KEY"},
    "AZURE_STORAGE_SAS_TOKEN": {"sas_token": "AZURE_STORAGE_SAS_TOKEN"},
    "AZURE_STORAGE_TOKEN": {"token": "AZURE_STORAGE_TOKEN"},
    "CLOUDSDK_AUTH_ACCESS_TOKEN": {"token": "CLOUDSDK_AUTH_ACCESS_TOKEN"},
}
"""By the variable that must be set: the fields of a credential, by the variable that has each."""
_KINDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "s3": ("AWS_", ("access_key_id+secret_access_key",)),
    "s3a": ("AWS_", ("access_key_id+secret_access_key",)),
    "gs": ("CLOUDSDK_", ("token",)),
}
_AZURE: Final = ("AZURE_", ("access_key", "sas_token", "token"))
"""By scheme: variables of the environment, and the fields that a credential must have."""
_STATIC: Final = {
    "access_key_id": "access_key_id",
    "secret_access_key": "secret_access_key",
    "access_key": "account_key",
    "sas_token": "sas_token",
}
_ATTEMPTS: Final = 3  # to call a provider that raises
_EXPIRES_BEFORE_S: Final = 30.0  # a credential is renewed so long before its end
_LONGEST_CALL_S: Final = 120.0  # other threads wait so long for a provider

_PAST: Final = datetime(2000, 1, 1, tzinfo=UTC)

Credential = dict[str, Any]
Provider = Callable[[], Any]


class _Renewal(NamedTuple):
    """A call of the provider that has not ended, and what waits for its credential."""

    process: int
    result: Future[Credential]


_CALLING: ContextVar[tuple[_Renewal, ...]] = ContextVar("rowsieve_renewals", default=())
"""The renewals inside which this code runs: also in our threads, which take their context along."""


class Credentials:
    """The credential that a provider returned last. Thread-safe.

    obstore calls it for each request, because what it returns expires at once.
    """

    def __init__(self, provider: Any, scheme: str) -> None:
        self._scheme = scheme
        self._name = shown(provider)
        self._provider = resolved(provider, scheme)
        self._lock = ForkSafeLock()
        self._renewal: _Renewal | None = None
        self._credential: Credential | None = None
        self._ends_s: float | None = None
        self._former: tuple[str, ...] = ()
        self.config = dict(getattr(self._provider, "config", None) or {})

    def __call__(self) -> Credential:
        """The credential, in the form and with the expiry that obstore expects."""
        with self._lock:
            credential = self._credential or {}
        return {**credential, "expires_at": _PAST}

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that no message may show, of this credential and the one before."""
        with self._lock:
            return (*_values(self._credential), *self._former)

    def prepare(self) -> Credential:
        """Call the provider if there is no credential, or if its end is near; return it.

        StoreError if the provider raises or returns something else.
        """
        now_s = clock.now_us() / 1e6
        with self._lock:
            credential, ends_s = self._credential, self._ends_s
        if credential is not None and (ends_s is None or now_s <= ends_s - _EXPIRES_BEFORE_S):
            return credential
        try:
            return self._renewed_once(credential)
        except StoreError:
            if credential is None or ends_s is None or now_s > ends_s:
                raise
            return credential  # the old one still holds

    def renewed(self, refused: Credential) -> bool:
        """Return whether there is another credential than the refused one."""
        return _values(self._renewed_once(refused)) != _values(refused)

    def _renewed_once(self, former: Credential | None) -> Credential:
        """Return the credential after the former one; of several callers, one calls the provider.

        No lock is held meanwhile (invariant 21): a provider takes as long as it likes.
        """
        with self._lock:
            if self._credential is not None and self._credential is not former:
                return self._credential
            renewal = self._renewal
            is_mine = renewal is None or renewal.process != os.getpid()  # it ended with a fork
            if renewal is None or is_mine:
                renewal = self._renewal = _Renewal(os.getpid(), Future())
        if not is_mine:
            return self._awaited(renewal)
        before = _CALLING.set((*_CALLING.get(), renewal))
        try:
            credential = self._taken(self._checked(self._called()))
        except BaseException as error:
            with self._lock:
                self._renewal = None
            renewal.result.set_exception(error if isinstance(error, Exception) else _interrupted())
            raise
        finally:
            _CALLING.reset(before)
        renewal.result.set_result(credential)
        return credential

    def _awaited(self, renewal: _Renewal) -> Credential:
        """The credential that another thread is renewing; StoreError if it waits for this one."""
        if any(each is renewal for each in _CALLING.get()):
            raise StoreError(
                f"{OPTION} {self._name} reads the store whose credential it is asked for; let it "
                "use another one",
                operation="renew credentials",
            )
        if not wait((renewal.result,), timeout=_LONGEST_CALL_S).done:
            raise StoreError(
                f"{OPTION} {self._name} did not return within {_LONGEST_CALL_S:.0f} s; it may be "
                "slow, or wait for a thread of its own that reads the store whose credential it "
                "is asked for: let that use another one",
                operation="renew credentials",
            )
        return renewal.result.result()

    def _taken(self, credential: Credential) -> Credential:
        """Use a credential from now on; return it."""
        expires_at = credential.pop("expires_at", None)
        with self._lock:
            self._former = _values(self._credential)
            self._credential = credential
            self._ends_s = None if expires_at is None else expires_at.timestamp()
            self._renewal = None
        return credential

    def _called(self) -> Any:
        patience = Patience(_ATTEMPTS)
        while True:
            try:
                return self._provider()
            except RowsieveError:
                raise
            except Exception as error:
                if not patience.again():
                    raise StoreError(
                        f"{OPTION} {self._name} raised {type(error).__name__} in "
                        f"{patience.attempts} calls; call it by itself to see why",
                        operation="renew credentials",
                    ) from None  # its text may have secrets

    def _checked(self, credential: Any) -> Credential:
        if inspect.iscoroutine(credential):
            credential.close()
        alternatives = _KINDS.get(self._scheme, _AZURE)[1]
        is_mapping = isinstance(credential, Mapping)
        if not is_mapping or not any(
            all(credential.get(field) for field in alternative.split("+"))
            for alternative in alternatives
        ):
            description = f"fields {sorted(map(str, credential))}" if is_mapping else "no mapping"
            raise StoreError(
                f"{OPTION} {self._name} returned {description}"
                f"{' (it is asynchronous)' if inspect.iscoroutine(credential) else ''}; a "
                f"credential for {self._scheme}:// is a mapping with "
                f"{' or '.join(each.replace('+', ' and ') for each in alternatives)}, and with "
                "expires_at, a datetime with a zone, or None",
                operation="renew credentials",
            )
        expires_at = credential.get("expires_at")
        if expires_at is not None and getattr(expires_at, "tzinfo", None) is None:
            raise StoreError(
                f"{OPTION} {self._name} returned an expires_at that is not a datetime with a "
                "zone; give one, or None",
                operation="renew credentials",
            )
        return dict(credential)


def _interrupted() -> StoreError:
    return StoreError(
        f"{OPTION}: the call that renewed the credential was interrupted; try again",
        operation="renew credentials",
    )


def resolved(provider: Any, scheme: str) -> Provider:
    """The function that a provider is or names; InvalidInput if there is none."""
    if not isinstance(provider, str):
        if callable(provider):
            return provider  # type: ignore[no-any-return]
        raise InvalidInput(
            f"storage option {OPTION} is a function or its name, not a value of type "
            f"{type(provider).__name__}"
        )
    if provider == _ENVIRONMENT:
        return _Environment(_KINDS.get(scheme, _AZURE)[0])
    if provider.startswith(_PROFILE):
        if scheme not in ("s3", "s3a"):
            raise InvalidInput(f"{OPTION}={provider!r} is a profile of AWS, not for {scheme}://")
        return _Profile(provider.removeprefix(_PROFILE))
    return _imported(provider)


def travelling(provider: Any) -> str:
    """The name by which another process finds a provider; InvalidInput if it has none."""
    if isinstance(provider, str):
        return provider
    module, name = getattr(provider, "__module__", None), getattr(provider, "__qualname__", None)
    if module not in (None, "__main__", "__mp_main__"):
        named = f"{module}:{name}"
        try:
            if _attribute(named) is provider:
                return named
        except (ImportError, AttributeError, ValueError):
            pass
    raise InvalidInput(
        f"the {OPTION} {shown(provider)} has no name that another process could import; define it "
        f"as a function of a module, and pass {OPTION}='package.module:function', "
        f"'{_PROFILE}NAME' or '{_ENVIRONMENT}'"
    )


def shown(provider: Any) -> str:
    """A provider's name in messages."""
    if isinstance(provider, str):
        return repr(provider)
    return str(getattr(provider, "__qualname__", type(provider).__qualname__))


def as_options(provider: Any, scheme: str) -> dict[str, str]:
    """What a provider returns now as options of a store, for a reader that has no providers."""
    credential = Credentials(provider, scheme).prepare()
    tokens = {"s3": "session_token", "s3a": "session_token"}
    names = {**_STATIC, "token": tokens.get(scheme, "bearer_token")}
    return {name: str(value) for field, name in names.items() if (value := credential.get(field))}


class _Environment:
    """Reads the variables of this process."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __call__(self) -> Credential:
        fields = {
            name: variables
            for name, variables in _VARIABLES.items()
            if name.startswith(self._prefix)
        }
        for name, variables in fields.items():
            if os.environ.get(name):
                return {
                    field: value
                    for field, variable in variables.items()
                    if (value := os.environ.get(variable))
                }
        raise StoreError(
            f"{OPTION}: none of {', '.join(fields)} is set in the environment; set it",
            operation="renew credentials",
        )


class _Profile:
    """Reads a profile of AWS anew at each renewal; its region counts unless one is given."""

    def __init__(self, name: str) -> None:
        self._name = name
        try:
            self.config = self._provider().config
        except ImportError:
            raise MissingExtra(
                f"{OPTION}='{_PROFILE}{name}' needs boto3; install it: pip install boto3"
            ) from None
        except Exception as error:
            raise InvalidInput(
                f"{OPTION}='{_PROFILE}{name}': {type(error).__name__}; there is no such profile "
                "with credentials in the configuration of AWS"
            ) from None

    def __call__(self) -> Any:
        return self._provider()()

    def _provider(self) -> Any:
        boto3: Any = importlib.import_module("boto3")
        providers: Any = importlib.import_module("obstore.auth.boto3")
        return providers.Boto3CredentialProvider(boto3.Session(profile_name=self._name))


def _imported(name: str) -> Provider:
    try:
        provider = _attribute(name)
        if inspect.isclass(provider):
            provider = provider()
    except ValueError:
        raise InvalidInput(
            f"storage option {OPTION}={name!r} is neither 'package.module:function' nor "
            f"'{_PROFILE}NAME' nor '{_ENVIRONMENT}'"
        ) from None
    except Exception as error:
        raise InvalidInput(
            f"storage option {OPTION}={name!r} cannot be imported: {type(error).__name__}; the "
            "module must be importable in each process that reads the store"
        ) from None
    if not callable(provider):
        raise InvalidInput(f"storage option {OPTION}={name!r} is not a function")
    return provider  # type: ignore[no-any-return]


def _attribute(name: str) -> Any:
    """Import `package.module:name`; ValueError for text of another form."""
    module, separator, path = name.partition(":")
    steps = path.split(".")
    if not separator or not all(step.isidentifier() for step in (*module.split("."), *steps)):
        raise ValueError(name)
    target: Any = importlib.import_module(module)
    for step in steps:
        target = getattr(target, step)
    return target


def _values(credential: Credential | None) -> tuple[str, ...]:
    values = {str(value) for value in (credential or {}).values() if value}
    return tuple(sorted(values, key=lambda each: (-len(each), each)))
