"""Names of tables in a catalog: `namespace.name`.

`namespace.name@v12` is one version of a table, `namespace.name@audit` a branch or tag of it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from rowsieve.errors import InvalidInput

_RESERVED: Final = "information_schema"
_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_VERSION: Final = re.compile(r"(.+)@v(\d{1,18})")
_REF: Final = re.compile(r"([^@]+)@([^@]+)")


class TableName(NamedTuple):
    """The name of a table, and the version or the branch or tag that it asks for, if any."""

    namespace: str
    table: str
    version: int | None = None
    ref: str | None = None

    @property
    def plain(self) -> str:
        """The name without a version."""
        return f"{self.namespace}.{self.table}"

    @property
    def folder(self) -> str:
        """The folder of a table that was neither moved nor created again."""
        return f"{self.namespace}/{self.table}"


def table_name(text: str, *, versioned: bool = False) -> TableName:
    """Read a name; InvalidInput says what is wrong with it."""
    plain, version, ref = text, None, None
    if versioned and (match := _VERSION.fullmatch(text)):
        plain, version = match[1], int(match[2])
    elif versioned and (match := _REF.fullmatch(text)):
        plain, ref = match[1], match[2]
    namespace, dot, table = plain.partition(".")
    if not dot:
        raise InvalidInput(
            f"the table name {text!r} has no namespace; give it as namespace.name, such as "
            "'db.events'"
        )
    return TableName(identifier(namespace), identifier(table), version, ref)


def identifier(name: str) -> str:
    """Return a valid name of a namespace or table; InvalidInput otherwise."""
    if not is_identifier(name):
        raise InvalidInput(
            f"{name!r} is not a name of a namespace or table: use 1 to 128 of A-Z, a-z, 0-9, _ "
            "and -, and begin with a letter or digit"
        )
    return name


def new_namespace(name: str) -> str:
    """Return a valid name of a new namespace; InvalidInput for one in which engines list tables."""
    if name.lower() == _RESERVED:
        raise InvalidInput(
            f"{name!r} cannot name a namespace: engines list tables and columns in the schema of "
            "this name; choose another one"
        )
    return identifier(name)


def new_table_name(text: str) -> TableName:
    """Read the name of a new table; InvalidInput says what is wrong with it."""
    wanted = table_name(text)
    new_namespace(wanted.namespace)
    return wanted


def is_identifier(name: str) -> bool:
    """Return whether a folder of this name may be a namespace or a table."""
    return _IDENTIFIER.fullmatch(name) is not None
