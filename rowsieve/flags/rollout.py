"""Rules that give a flag another value for some tables: a share of them, or those a function names.

Soundness: a rule decides by facts that are the same in every process, and by a named hash, so that
two processes with the same rules agree. A rule whose function fails is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import xxhash

from rowsieve.arguments import checked_names
from rowsieve.errors import InvalidInput, repr_of
from rowsieve.flags.flag import Flag, FlaggedTable, flag_named

ACCOUNT: Final = "account"
"""The property that names whose table it is."""
_HASHES: Final = 2**64


@checked_names
@dataclass(frozen=True, slots=True)
class Rollout:
    """A rule: this flag has this value for a share of the tables, or for those of a function.

    `percent` selects that share of tables by their uuid, or of accounts by the table property
    `account`: one whose XXH3 hash (64 bits) of "<salt>/<uuid or account>" is below `percent` of
    2**64. A larger percentage therefore selects the same tables and more. `salt` is the flag's name
    unless given: rules with one salt select the same tables. With `accounts`, tables without the
    property are not selected. `when` is called with facts of the table (`uuid`, `key`, `mode`,
    `properties`) and returns True for those to select; it must decide the same each time. With
    both, both must select the table; with neither, the rule is for all tables.
    """

    flag: str
    value: str | int | float
    percent: float | None = None
    of: Literal["tables", "accounts"] = "tables"
    when: Callable[[FlaggedTable], bool] | None = None
    salt: str | None = None

    def __post_init__(self) -> None:
        flag = flag_named(self.flag, "Rollout")
        flag.check(f"Rollout: the value of {self.flag!r}", self.value)
        percent = self.percent
        if percent is not None and (
            isinstance(percent, bool)
            or not isinstance(percent, int | float)
            or not 0 <= percent <= 100
        ):
            raise InvalidInput(
                f"Rollout: percent must be a percentage from 0 to 100, not {repr_of(percent)}"
            )
        if self.of not in ("tables", "accounts"):
            raise InvalidInput(
                f"Rollout: of must be 'tables' or 'accounts', not {repr_of(self.of)}"
            )
        if self.of == "accounts" and percent is None:
            raise InvalidInput("Rollout: of='accounts' needs percent=, the share of accounts")
        if self.when is not None and not callable(self.when):
            raise InvalidInput(
                f"Rollout: when must be a function of a table, not {repr_of(self.when)}"
            )
        if self.salt is not None and not isinstance(self.salt, str):
            raise InvalidInput(f"Rollout: salt must be text, not {repr_of(self.salt)}")

    def selects(self, table: FlaggedTable) -> bool:
        """Return whether the rule is for this table; InvalidInput if its function fails."""
        return self._is_in_share(table) and self._is_named(table)

    def __str__(self) -> str:
        share = "all tables" if self.percent is None else f"{self.percent:g}% of {self.of}"
        return share if self.when is None else f"{share}, by a function"

    def _is_in_share(self, table: FlaggedTable) -> bool:
        if self.percent is None:
            return True
        who = table.uuid if self.of == "tables" else table.properties.get(ACCOUNT)
        if who is None:
            return False
        salt = self.flag if self.salt is None else self.salt
        digest = xxhash.xxh3_64_intdigest(f"{salt}/{who}".encode())
        return digest < self.percent / 100 * _HASHES

    def _is_named(self, table: FlaggedTable) -> bool:
        if self.when is None:
            return True
        try:
            selected = self.when(table)
        except Exception as error:
            raise InvalidInput(
                f"the function of a rollout of {self.flag!r} failed on table {table.uuid}: "
                f"{type(error).__name__}: {error}; it must return True or False for every table"
            ) from error
        if not isinstance(selected, bool):
            raise InvalidInput(
                f"the function of a rollout of {self.flag!r} returned {repr_of(selected)} for "
                f"table {table.uuid}; it must return True or False for every table"
            )
        return selected


@checked_names
@dataclass(frozen=True, slots=True)
class Flags:
    """The rollout rules of a process, for `Config(flags=…)`.

    Of the rules of a flag, the first that selects a table counts.
    """

    rollouts: Sequence[Rollout] = ()

    def __post_init__(self) -> None:
        rules = self.rollouts
        if not isinstance(rules, list | tuple):
            raise InvalidInput(f"Flags: rollouts must be a list of Rollout, not {repr_of(rules)}")
        for rule in rules:
            if not isinstance(rule, Rollout):
                raise InvalidInput(f"Flags: rollouts must be Rollout objects, not {repr_of(rule)}")
        object.__setattr__(self, "rollouts", tuple(rules))

    def rule_for(self, flag: Flag, table: FlaggedTable) -> tuple[int, Rollout] | None:
        """The number, from 1, and the first rule of the flag that selects the table."""
        for number, rule in enumerate(self.rollouts, start=1):
            if rule.flag == flag.name and rule.selects(table):
                return number, rule
        return None
