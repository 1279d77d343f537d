"""The options `storage.*` of the source: none of them shows a secret in Spark's event log.

Spark writes the options of a temporary view to its event log, with `*********(redacted)` for names
that match `spark.redaction.regex`. No source can see this setting. So a secret whose name Spark's
default does not match is refused; `storage.secret.NAME` is the same option by a name that matches.
Python's functions with a session pass all secrets on by such names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.objects.storage_options import flat_options

STORAGE: Final = "storage."
_HIDDEN: Final = "secret."
_SPARKS_DEFAULT: Final = re.compile(r"secret|password|token|access[.]?key", re.IGNORECASE)
"""Spark's default of `spark.redaction.regex`."""
_KEYS: Final = re.compile(r"(?<!bucket_)key(?!_id$)|sas|^default_headers$", re.IGNORECASE)
"""Names of secrets that the default does not match; the id of a key, or a switch, is none."""


def storage_of(options: Mapping[str, str]) -> dict[str, str]:
    """The storage options by the names of obstore.

    UnsupportedOperation for a secret that Spark's event log would show.
    """
    storage: dict[str, str] = {}
    for name, value in options.items():
        if not (lowered := name.lower()).startswith(STORAGE):
            continue
        _refuse_shown(lowered)
        plain = lowered.removeprefix(STORAGE).removeprefix(_HIDDEN)
        if plain in storage:
            raise InvalidInput(
                f"options {STORAGE}{plain} and {STORAGE}{_HIDDEN}{plain} mean the same; give the "
                "latter"
            )
        storage[plain] = value
    return storage


def passed_on(storage_options: Mapping[str, Any]) -> dict[str, str]:
    """The options of a read or write that pass on those of a table, secrets by redacted names."""
    return {
        f"{STORAGE}{_HIDDEN if _is_shown(name) else ''}{name}": value
        for name, value in flat_options(storage_options).items()
    }


def _is_shown(name: str) -> bool:
    """Return whether the name is of a secret, and Spark's default does not match it."""
    bare = name.lower().rpartition(".")[2]
    return _KEYS.search(bare) is not None and _SPARKS_DEFAULT.search(name) is None


def _refuse_shown(name: str) -> None:
    if not _is_shown(name):
        return
    plain = name.removeprefix(STORAGE)
    raise UnsupportedOperation(
        f"option {name} would stand in clear in Spark's event log, because the default of "
        f"spark.redaction.regex does not match its name: give it as {STORAGE}{_HIDDEN}{plain}, or "
        "give the name of a function or profile by storage.credential_provider. If the option was "
        "in a statement (CREATE TEMPORARY VIEW, CREATE TABLE), Spark has already logged its value; "
        "renew that credential"
    )
