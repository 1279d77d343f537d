"""The location of a store: the only parser and the only formatter of paths and URIs.

Text with a scheme before `://` is a URI: its path is percent-encoded and decoded exactly once. Any
other text is a literal local path: `%20` in it is three characters. A `pathlib.Path` is always a
local path. `Location.uri` is ASCII, and `Location.parse` reads it back as an equal location
(decision 18).

Soundness: two locations never share a URI, so a URI that was printed, stored in a plan or sent to
another process still names the same table. Ambiguous text is rejected: a stray `%`, `?` or `#`, a
control character, a scheme with one slash.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from rowsieve.errors import InvalidInput

REMOTE: Final = ("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss")
SCHEMES: Final = ("file", "memory", *REMOTE)
_WITH_CONTAINER_AS_USER: Final = ("abfs", "abfss")  # abfss://container@account/...
_NOT_ENCODED: Final = "/=:@,"  # legal in a URI's path and common: day=1, 12:30
_URI: Final = re.compile(r"([^/\\]*)://([^/?#]*)(.*)", re.DOTALL)
_ONE_SLASH: Final = re.compile(rf"({'|'.join(SCHEMES)}):/(?!/)", re.IGNORECASE)
_STRAY_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ASCII_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")  # obstore rejects these in keys
_AUTHORITY: Final = re.compile(r"[A-Za-z0-9._~$-]+(@[A-Za-z0-9._~-]+)?(:[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Location:
    """The decoded location of a table.

    `path`: for the local disk, an absolute path without symbolic links; bytes that are not UTF-8
    are surrogates, as in all Python paths. For other schemes, a key without a leading or trailing
    slash.
    """

    scheme: str
    authority: str  # a bucket or container; empty for local disk and memory
    path: str

    @classmethod
    def parse(cls, uri: str | os.PathLike[str]) -> Location:
        """Parse a path or URI; InvalidInput for text that is invalid or ambiguous."""
        text = os.fspath(uri) if isinstance(uri, str | os.PathLike) else uri
        if not isinstance(text, str):
            raise InvalidInput(
                f"a table's path is text, not a value of type {type(text).__name__}; give text or "
                "a pathlib.Path"
            )
        if not text:
            raise InvalidInput("the table's URI is empty; give a directory or a URI such as s3://…")
        if one_slash := _ONE_SLASH.match(text):
            scheme = one_slash[1]
            raise InvalidInput(
                f"the URI '{scheme}:/…' has one slash, as pathlib writes it: pass '{scheme}://…' "
                f"as text; for a local folder named '{scheme}:' give its absolute path"
            )
        if not isinstance(uri, str):
            return cls.local(text)
        if (match := _URI.fullmatch(text)) is None:
            home = text == "~" or text.startswith("~/")
            return cls.local(os.path.expanduser(text) if home else text)  # noqa: PTH111
        return _parse_uri(match[1].lower(), match[2], match[3])

    @classmethod
    def local(cls, path: str) -> Location:
        """Resolve a local path; InvalidInput if no file can have that name."""
        try:
            os.fsencode(path)
            if "\0" in path:
                raise InvalidInput(f"{path!r} has a NUL character, which a path cannot contain")
            resolved = os.path.realpath(path)
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"{path!r} has a lone surrogate, which a path cannot contain"
            ) from error
        except OSError as error:  # the working directory is gone
            raise InvalidInput(f"{path!r} cannot be resolved: {error.strerror}") from error
        return cls("file", "", f"/{resolved.lstrip('/')}")  # POSIX keeps a leading double slash

    @property
    def uri(self) -> str:
        """The percent-encoded URI: ASCII, without user name or password."""
        encoded = quote_from_bytes(os.fsencode(self.path), safe=_NOT_ENCODED)
        if self.scheme == "file":
            return f"file://{encoded}"
        return f"{self.scheme}://{self.authority}/{encoded}".rstrip("/")

    @property
    def name(self) -> str:
        """The last segment of the path."""
        return self.path.rpartition("/")[2]


def in_place(path: str) -> Location | None:
    """Parse an object path that is a URI: a file outside the table, read in place; else None."""
    return Location.parse(path) if "://" in path else None


def local_folder(uri: str) -> Path:
    """Return the folder of a local table's URI; InvalidInput if the table is not local."""
    location = Location.parse(uri)
    if location.scheme != "file":
        raise InvalidInput(f"{location.uri} is not on the local disk; give a local folder")
    return Path(location.path)


def _parse_uri(scheme: str, authority: str, rest: str) -> Location:
    if scheme not in SCHEMES:
        raise InvalidInput(
            f"no store for scheme {scheme!r}; use a local path, file://, memory:///name, or one of "
            f"{', '.join(f'{known}://' for known in REMOTE)}"
        )
    if scheme == "file":
        if authority not in ("", "localhost"):
            raise InvalidInput(
                f"file URI names the host {authority!r}; a local URI has three slashes: "
                "file:///directory"
            )
        if not rest:
            raise InvalidInput("file:// names no directory; a local URI is file:///directory")
        return Location.local(os.fsdecode(_decoded(f"file://{_before_query(rest)}", rest)))
    if scheme == "memory":
        name = "/".join(segment for segment in f"{authority}{rest}".split("/") if segment)
        if not name:
            raise InvalidInput("a table in memory needs a name: memory:///name")
        public = f"memory:///{name}"
        return Location(scheme, "", _key(public, _decoded(public, name)))
    return _parse_remote(scheme, authority, rest)


def _parse_remote(scheme: str, authority: str, rest: str) -> Location:
    user, at, host = authority.rpartition("@")
    public = f"{scheme}://{host}{_before_query(rest)}"
    if ":" in authority and "@" in rest:  # a password with a slash, or a port and an odd key
        public = f"{scheme}://…@{_before_query(rest.rpartition('@')[2])}"
    if "?" in rest or (at and scheme not in _WITH_CONTAINER_AS_USER):
        raise InvalidInput(
            f"the URI of {public} carries a user, a password or a query; pass credentials in "
            "storage_options instead"
        )
    if at and ":" in user:
        raise InvalidInput(f"the URI of {public} carries a password; use storage_options")
    if not _AUTHORITY.fullmatch(authority):
        raise InvalidInput(
            f"the URI of {public!r} names no bucket or container, which is made of letters, "
            "digits, '.', '_', '-' and '$'"
        )
    key = _key(public, _decoded(public, rest))
    if _ASCII_CONTROL.search(key):
        raise InvalidInput(
            f"the key of {public!r} has a control character, which {scheme} rejects; use another "
            "name"
        )
    return Location(scheme, authority, key)


def _before_query(rest: str) -> str:
    """Return the part of a URI that is safe to print."""
    return rest.partition("?")[0].partition("#")[0]


def _decoded(public: str, encoded: str) -> bytes:
    if "?" in encoded or "#" in encoded:
        raise InvalidInput(
            f"the URI {public!r} has a query or a fragment, which are not part of a table's URI; "
            "write ? and # in a name as %3F and %23, or pass an unencoded local path"
        )
    if _CONTROL.search(encoded):
        raise InvalidInput(
            f"the URI {public!r} has a control character; write a newline as %0A, a tab as %09"
        )
    if _STRAY_PERCENT.search(encoded):
        raise InvalidInput(
            f"the URI {public!r} has a % without two hexadecimal digits after it; write % in a "
            "name as %25, or pass an unencoded local path"
        )
    try:
        return unquote_to_bytes(encoded)
    except UnicodeEncodeError as error:
        raise InvalidInput(f"the URI {public!r} has a lone surrogate") from error


def _key(public: str, decoded: bytes) -> str:
    """Return a store's key: without `.` or `..` segments, without a slash at either end."""
    try:
        key = decoded.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"the URI {public!r} has bytes that are not UTF-8 after decoding: {error.reason}"
        ) from error
    segments = key.strip("/").split("/")
    if {".", ".."} & set(segments):
        raise InvalidInput(
            f"the URI {public!r} has a segment '.' or '..', which a key cannot have; remove it"
        )
    if len(segments) > 1 and "" in segments:
        raise InvalidInput(
            f"the URI {public!r} has two slashes in a row, which a key cannot have; remove one"
        )
    return "/".join(segments)
