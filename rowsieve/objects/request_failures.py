"""Why a request to a store failed, and what to do: a row for each cause.

The client reports an error as text: a line with the server's answer, then its own structure. The
server chooses the answer, so an error with a status is classified by status and code alone, and any
other by the client's structure alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, NamedTuple

_QUERY: Final = re.compile(r"\?[^\s\"')]*")
_ANSWER: Final = re.compile(r"(status code: \d+[^:<{]*).*")  # the rest is the server's text
_CODE: Final = re.compile(r"<Code>(\w{1,64})</Code>")
_STATUS: Final = re.compile(r"inner: Status \{\s*status: (\d{3})")
_RETRIES: Final = re.compile(r"^\s*retries: (\d+),", re.MULTILINE)
_HOST: Final = re.compile(r"https?://[^/\s\"'?)]+")
_PARAMETER: Final = re.compile(
    r"\b(\w*(?:sig|signature|token|key|secret|password|credential|authorization))[=:]\s*"
    r"(?:(?:Bearer|Basic) )?[^\s&,;\"')]+",
    re.IGNORECASE,
)
_USER: Final = re.compile(r"//[^\s/@\"']*@")
_STRUCTURE: Final = "Debug source:"
_METADATA_SERVICES: Final = ("169.254.", "metadata.google.internal")


class _Row(NamedTuple):
    what: str
    remedy: str
    is_lasting: bool  # another try would fail too
    concerns_machine: bool = False  # every request of this machine would fail
    codes: frozenset[str] = frozenset()
    statuses: frozenset[int] = frozenset()
    structure: tuple[str, ...] = ()  # words of the client's structure


def _codes(*codes: str) -> frozenset[str]:
    return frozenset(codes)


class Cause(Enum):
    """A cause: codes are looked up first, then statuses, then the client's structure."""

    NO_CREDENTIALS = _Row(
        "no credentials: neither options nor environment have any, and the machine's metadata "
        "service does not answer",
        "pass them in storage_options, or a credential_provider",
        is_lasting=True,
        concerns_machine=True,
    )
    EXPIRED = _Row(
        "the credentials have expired",
        "renew them; a credential_provider in storage_options renews them during reads",
        is_lasting=True,
        concerns_machine=True,
        codes=_codes(
            "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"
        ),
    )
    SKEWED_CLOCK = _Row(
        "this machine's clock differs too much from the server's",
        "set the clock",
        is_lasting=True,
        concerns_machine=True,
        codes=_codes("RequestTimeTooSkewed", "RequestNotInTimeRange"),
    )
    UNKNOWN_KEY = _Row(
        "the server does not accept the credentials",
        "check access key, secret and token, and that they belong to this server",
        is_lasting=True,
        concerns_machine=True,
        codes=_codes(
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "InvalidToken",
            "AuthenticationFailed",
            "InvalidAuthenticationInfo",
            "NoAuthenticationInformation",
        ),
        statuses=frozenset({401}),
    )
    NO_BUCKET = _Row(
        "the bucket or container does not exist",
        "check its name, or create it",
        is_lasting=True,
        concerns_machine=True,
        codes=_codes("NoSuchBucket", "ContainerNotFound", "BucketNotFound"),
    )
    REGION = _Row(
        "the bucket is in another region",
        "set region in storage_options",
        is_lasting=True,
        concerns_machine=True,
        codes=_codes(
            "PermanentRedirect",
            "AuthorizationHeaderMalformed",
            "IllegalLocationConstraintException",
        ),
        structure=("BareRedirect",),
    )
    THROTTLED = _Row(
        "the server asks its clients to slow down",
        "try again later, or with fewer requests at a time",
        is_lasting=False,
        codes=_codes("SlowDown", "ServerBusy", "TooManyRequests", "RequestLimitExceeded"),
        statuses=frozenset({429, 503}),
    )
    UNSUPPORTED = _Row(
        "the server does not know such a request",
        "use a server or a setting that has it",
        is_lasting=True,
        codes=_codes("NotImplemented", "MethodNotAllowed"),
        statuses=frozenset({405, 501}),
    )
    DENIED = _Row(
        "access denied",
        "grant the permission to these credentials, or use others",
        is_lasting=True,
        codes=_codes("AccessDenied", "AuthorizationFailure", "AuthorizationPermissionMismatch"),
        statuses=frozenset({403}),
    )
    SERVER = _Row(
        "the server failed",
        "try again later",
        is_lasting=False,
        statuses=frozenset({500, 502, 504}),
    )
    PLAIN_HTTP = _Row(
        "the endpoint has http://, which needs permission",
        'pass allow_http="true" in storage_options, or use https://',
        is_lasting=True,
        concerns_machine=True,
        structure=("BadScheme",),
    )
    UNKNOWN_HOST = _Row(
        "the name of the host is unknown (DNS)",
        "check endpoint, region and network",
        is_lasting=False,
        concerns_machine=True,
        structure=('"dns error"',),
    )
    CONNECTION_REFUSED = _Row(
        "connection refused",
        "check the endpoint, and that a server listens there",
        is_lasting=False,
        concerns_machine=True,
        structure=("kind: ConnectionRefused",),
    )
    CERTIFICATE = _Row(
        "the server's certificate is not trusted",
        "pass root_certificate in storage_options, or use the host's name that it is issued for",
        is_lasting=True,
        concerns_machine=True,
        structure=("InvalidCertificate", "UnknownIssuer"),
    )
    NOT_TLS = _Row(
        "the server does not speak TLS",
        'use an endpoint with http://, and allow_http="true"',
        is_lasting=True,
        concerns_machine=True,
        structure=("InvalidContentType",),
    )
    TIMEOUT = _Row(
        "no response in time",
        "check the network, or raise timeout in storage_options",
        is_lasting=False,
        concerns_machine=True,
        structure=("TimedOut", "kind: Timeout"),
    )
    RESET = _Row(
        "the connection broke off",
        "check the network and the server",
        is_lasting=False,
        structure=("ConnectionReset", "IncompleteMessage", "BrokenPipe", "UnexpectedEof"),
    )
    UNREACHABLE = _Row(
        "the host cannot be reached",
        "check endpoint and network",
        is_lasting=False,
        concerns_machine=True,
        structure=("NetworkUnreachable", "HostUnreachable"),
    )
    OTHER = _Row("", "", is_lasting=False)

    @property
    def is_lasting(self) -> bool:
        """Whether another try would fail too."""
        return self.value.is_lasting

    @property
    def concerns_machine(self) -> bool:
        """Whether every request of this machine to the store fails, while the cause is there."""
        return self.value.concerns_machine

    @property
    def may_be_renewed(self) -> bool:
        """Whether other credentials may help."""
        return self in (Cause.EXPIRED, Cause.UNKNOWN_KEY, Cause.DENIED)


_BY_CODE: Final = {code: cause for cause in Cause for code in cause.value.codes}
_BY_STATUS: Final = {status: cause for cause in Cause for status in cause.value.statuses}


def concerns_machine(cause: str | None) -> bool:
    """Return whether a cause, as StoreError names it, fails every request of this machine."""
    return any(each.concerns_machine for each in Cause if each.name.lower() == cause)


class Failure(NamedTuple):
    """What is known of a failed request."""

    cause: Cause
    status: int | None
    code: str | None
    retries: int


def failure_of(error: BaseException) -> Failure:
    """Classify an error of the client."""
    line, _, structure = str(error).partition(_STRUCTURE)
    status = _STATUS.search(structure)
    code = _CODE.search(line)
    retries = _RETRIES.search(structure)
    return Failure(
        _cause(line, structure, int(status[1]) if status else None, code[1] if code else None),
        int(status[1]) if status else None,
        code[1] if code else None,
        int(retries[1]) if retries else 0,
    )


def _cause(line: str, structure: str, status: int | None, code: str | None) -> Cause:
    host = _HOST.search(line)
    if host is not None and any(service in host[0] for service in _METADATA_SERVICES):
        return Cause.NO_CREDENTIALS
    if status is not None:
        return _BY_CODE.get(code or "") or _BY_STATUS.get(status, Cause.OTHER)
    for cause in Cause:
        if any(word in structure for word in cause.value.structure):
            return cause
    return Cause.OTHER


def describe(error: BaseException, secrets: Iterable[str], host: str) -> str:
    """Describe an error: its cause, host and remedy, without secrets.

    Servers repeat the signed request in their error text, so only its code and status are included.
    """
    failure = failure_of(error)
    if failure.cause is Cause.OTHER:
        return _plain(error, failure, secrets, host)
    named = _HOST.search(_USER.sub("//", str(error).partition(_STRUCTURE)[0]))
    details = [failure.code, f"status {failure.status}" if failure.status else None]
    if failure.retries:
        details.append(f"after {failure.retries} retries")
    known = ", ".join(detail for detail in details if detail)
    where = named[0] if named else host
    source = f", from {where}" if where else ""
    text = failure.cause.value.what + (f" ({known})" if known else "")
    return _hidden(f"{text}{source}; {failure.cause.value.remedy}", secrets)


def _plain(error: Any, failure: Failure, secrets: Iterable[str], host: str) -> str:
    text = _ANSWER.sub(r"\1", (str(error).splitlines() or [""])[0])
    text = _hidden(_PARAMETER.sub(r"\1=***", without_user(text)), secrets)
    if host and host not in text:
        text = f"{text}, from {host}"
    code = f" ({failure.code})" if failure.code else ""
    return f"{type(error).__name__}: {text}{code}"


def without_user(url: str) -> str:
    """The text without users, passwords and queries of URLs."""
    return _USER.sub("//", _QUERY.sub("", url))


def _hidden(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return text
