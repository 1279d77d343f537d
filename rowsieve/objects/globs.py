"""Globs of paths with slashes: `*` and `?` within a name, `**` for any folders, `[…]` for letters.

A store has no folders: its names are matched against the expression of a glob.
"""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from rowsieve.errors import InvalidInput
from rowsieve.objects.location import REMOTE

_USER: Final = re.compile(r"://[^/]*@")
_QUERY: Final = re.compile(r"\?[^/]*=")
_WILDCARD: Final = re.compile(r"[*?\[]")
_ENCODED: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_SPECIAL_IN_CLASS: Final = re.compile(r"[\\\[&~|]")  # to Python, or in a later version of it
_PIECES: Final = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)


def has_wildcard(path: str) -> bool:
    """Return whether a path has a character that globs have; a file may have that name, too."""
    return _WILDCARD.search(path) is not None


def without_secrets(uri: str) -> str:
    """A URI without its user, password and query, for messages."""
    return _USER.sub("://…@", uri.partition("?")[0])


def split_glob(pattern: str) -> tuple[str, str]:
    """The folder before the first wildcard, and the rest, without the slash between them.

    The folder stays percent-encoded in a URI. The rest is decoded as a path is; in it, an encoded
    wildcard is `[*]`, which matches itself alone.

    InvalidInput for a store's URI with wildcards in its bucket, or with a query, which may hold
    secrets and would be read as a wildcard.
    """
    scheme, is_uri, rest = pattern.partition("://")
    if is_uri and scheme.lower() in REMOTE:
        bucket = rest.partition("/")[0]
        if has_wildcard(bucket) or _QUERY.search(rest):
            raise InvalidInput(
                f"{without_secrets(pattern)}: a glob of a store has wildcards in its path only, "
                "and no query; name one bucket, and pass credentials in storage_options"
            )
    match = _WILDCARD.search(pattern)
    fixed = pattern[: match.start() if match else len(pattern)].rpartition("/")[0]
    below = pattern[len(fixed) + 1 :] if fixed or pattern.startswith("/") else pattern
    return fixed, _ENCODED.sub(_decoded, below) if is_uri else below


def glob_expression(pattern: str) -> re.Pattern[str]:
    """Translate a glob to a regular expression, which a whole path must match.

    InvalidInput for letters in brackets that are no range, such as `[z-a]`.
    """
    written = ""
    for piece in _PIECES.findall(pattern):
        match piece:
            case "**/":
                written += "(?:[^/]+/)*"
            case "**":
                written += ".*"
            case "*":
                written += "[^/]*"
            case "?":
                written += "[^/]"
            case _ if len(piece) > 1:
                inner = _SPECIAL_IN_CLASS.sub(r"\\\g<0>", piece[1:-1])
                written += f"[{'^' + inner[1:] if inner.startswith('!') else inner}]"
            case _:
                written += re.escape(piece)
    try:
        return re.compile(written, re.DOTALL)
    except re.error as error:
        raise InvalidInput(f"the glob {pattern!r} cannot be read: {error}") from error


def _decoded(escapes: re.Match[str]) -> str:
    text = os.fsdecode(unquote_to_bytes(escapes[0]))
    return _WILDCARD.sub(r"[\g<0>]", text)
