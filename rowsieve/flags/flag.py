"""The table of flags: switches that change how tables are read and written, never which rows.

A flag is a table property, a field of `rs.Config` and, if reads have it, an argument of `scan`.
A new one is a row of `FLAGS`, a field of `Config` and a row of the docs.

Soundness: no row may change what a read returns. Both values of a flag of writes must be readable
in one table, so it can be turned on and back while the table is in use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from rowsieve.errors import InvalidInput, did_you_mean, repr_of


class FlaggedTable(Protocol):
    """What a rule can know of a table: it is the same in every process."""

    @property
    def uuid(self) -> str:
        """The table's id, which never changes."""

    @property
    def key(self) -> tuple[str, ...]:
        """The key columns; empty without a key."""

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""

    @property
    def writer_version(self) -> int:
        """The protocol that writers of the table must know."""


def _anywhere(_table: FlaggedTable) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Flag:
    """One switch; `name` is that of the property and of the field of `Config`.

    `form` says which texts `pattern` accepts. `argument` is the argument of reads that sets it,
    for a flag of reads; a flag without one is of writes. `refusal` says why a table cannot have
    other values than `fallback`, or ""; without `fallback`, that is the default.
    """

    name: str
    default: str | int | float
    form: str
    pattern: re.Pattern[str]
    argument: str = ""
    refusal: Callable[[FlaggedTable], str] = _anywhere
    fallback: str | int | float | None = None

    @property
    def is_of_reads(self) -> bool:
        """True if reads have the flag, not writes."""
        return bool(self.argument)

    @property
    def unset(self) -> str | int | float:
        """The value of tables that refuse the others, which settings without the name mean."""
        return self.default if self.fallback is None else self.fallback

    def check(self, what: str, value: object) -> None:
        """Raise InvalidInput for a value that the flag cannot have; `what` begins the message."""
        if isinstance(value, bool) or not self.pattern.fullmatch(text_of(value)):
            words = self.form.replace(",", " ").split()
            near = did_you_mean(value, words) if isinstance(value, str) else ""
            raise InvalidInput(f"{what} must be {self.form}, not {repr_of(value)}{near}")

    def value_of(self, value: str | float) -> str | int | float:
        """The value as the type of the default; `value` may be a property's text.

        A text that is no number stays text, which `check` refuses.
        """
        try:
            return type(self.default)(value)
        except ValueError:
            return value


def text_of(value: object) -> str:
    """The text that a property has for the value; "" for one that no flag can have."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.9f}".rstrip("0").rstrip(".")
    return str(value) if isinstance(value, int) and abs(value) < 10**18 else ""


def _words(*words: str) -> tuple[str, re.Pattern[str]]:
    return f"{', '.join(words[:-1])} or {words[-1]}", re.compile("|".join(words))


def _no_opaque(table: FlaggedTable) -> str:
    return "the table has json_shredding" if "json_shredding" in table.properties else ""


def _no_codec(table: FlaggedTable) -> str:
    return "" if "row_codec" in table.properties else "the table has no row_codec"


def _protocol(version: int) -> Callable[[FlaggedTable], str]:
    def refusal(table: FlaggedTable) -> str:
        if table.writer_version >= version:
            return ""
        return f"the table has writer protocol {table.writer_version}, and this needs {version}"

    return refusal


PERCENTAGE: Final = (
    "a percentage from 0 to 100",
    re.compile(r"\d{1,2}(\.\d{1,9})?|100", re.ASCII),
)
BYTES_OF_ENTRY: Final = "a count of bytes from 0 to 999999", re.compile(r"\d{1,6}", re.ASCII)

FLAGS: Final[Mapping[str, Flag]] = {
    flag.name: flag
    for flag in (
        Flag("pruning", "on", *_words("on", "soft", "off"), argument="pruning"),
        Flag("audit_percent", 0.0, *PERCENTAGE, argument="audit"),
        Flag("audit_on_violation", "raise", *_words("raise", "report"), argument="on_violation"),
        Flag("statistics", "on", *_words("on", "off")),
        Flag("inline_bytes", 16 * 1024, *BYTES_OF_ENTRY, refusal=_protocol(7), fallback=0),
        Flag("visibility", "lazy", *_words("lazy", "eager"), refusal=_protocol(4)),
        Flag("value_forms", "structured", *_words("structured", "opaque"), refusal=_no_opaque),
        Flag("compaction", "leveled", *_words("leveled", "tiered")),
        Flag("write_encoding", "columns", *_words("columns", "both", "codec"), refusal=_no_codec),
        Flag(
            "read_encoding",
            "columns",
            *_words("columns", "codec", "shadow"),
            argument="read_encoding",
        ),
        Flag(
            "on_encoding_difference",
            "report",
            *_words("report", "raise"),
            argument="on_encoding_difference",
        ),
    )
}


def flag_named(name: object, what: str) -> Flag:
    """The flag of this name; InvalidInput with near names if there is none."""
    if isinstance(name, str) and name in FLAGS:
        return FLAGS[name]
    raise InvalidInput(
        f"{what}: there is no flag {repr_of(name)}; flags are {', '.join(FLAGS)}"
        f"{did_you_mean(name, FLAGS) if isinstance(name, str) else ''}"
    )
