"""The procedures that a catalog knows, by name. Thread-safe.

A registry may have a group of entry points: a package offers its procedures there, each under the
procedure's name. A package is imported only when one of its procedures is first called or
described, or when all procedures are listed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from threading import Lock

from rowsieve.arguments import checked, checked_methods
from rowsieve.errors import InvalidInput, NotFound, UnsupportedOperation, did_you_mean, repr_of
from rowsieve.procedures.procedure import (
    AnyProcedure,
    CatalogProcedure,
    DistributedProcedure,
    Procedure,
    check_procedure,
)

_NAME = re.compile(r"[a-z][a-z0-9_]{0,127}")
_log = logging.getLogger(__name__)


@checked_methods
class ProcedureRegistry:
    """Procedures by name; names are lower case. `group`: also those of its entry points."""

    @checked
    def __init__(
        self, procedures: Sequence[AnyProcedure] = (), *, group: str | None = None
    ) -> None:
        self._lock = Lock()
        self._procedures: dict[str, AnyProcedure] = {}
        self._removed: set[str] = set()
        self._connectors: dict[str, tuple[AnyProcedure, ...]] = {}
        self._group = group
        self._add(procedures)

    def __iter__(self) -> Iterator[AnyProcedure]:
        """The procedures, by name. Skips and logs one that cannot be loaded."""
        for name in self._offered():
            try:
                self._load(name)
            except InvalidInput as error:
                _log.warning("%s", error)
        with self._lock:
            return iter([self._procedures[name] for name in sorted(self._procedures)])

    def add(self, procedure: AnyProcedure) -> None:
        """Add a procedure; InvalidInput if its name is taken or its parameters are wrong."""
        self._add((procedure,))

    def add_procedures(self, connector: str, procedures: Sequence[AnyProcedure]) -> None:
        """Add the procedures of a connector, all or none; `remove_procedures` takes its name.

        InvalidInput if one of them cannot be added, or if the connector has added some already.
        """
        self._add(procedures, connector)

    def remove_procedures(self, connector: str) -> None:
        """Remove all procedures that a connector has added; NotFound if it has added none.

        One that was removed by name, and perhaps replaced, is passed over.
        """
        with self._lock:
            if (owned := self._connectors.pop(connector, None)) is None:
                known = ", ".join(sorted(self._connectors)) or "none"
                raise NotFound(
                    f"the connector {connector!r} has added no procedures; others have: {known}"
                )
            for each in owned:
                if self._procedures.get(each.name) is each:
                    del self._procedures[each.name]

    def remove(self, name: str) -> None:
        """Remove a procedure; NotFound if there is none of the name."""
        self.resolve(name)
        with self._lock:
            self._procedures.pop(name.lower(), None)
            self._removed.add(name.lower())

    def resolve(self, name: str) -> AnyProcedure:
        """Return the procedure; NotFound with the nearest name if there is none.

        InvalidInput if a package offers it and it cannot be loaded.
        """
        wanted = name.lower()
        if wanted in self._offered():
            self._load(wanted)
        with self._lock:
            procedure, names = self._procedures.get(wanted), sorted(self._procedures)
        if procedure is None:
            names = sorted({*names, *self._offered()})
            hint = did_you_mean(wanted, names) or f"; there are {', '.join(names) or 'none'}"
            raise NotFound(f"the procedure {name!r} does not exist{hint}")
        return procedure

    def resolve_distributed(self, name: str) -> DistributedProcedure:
        """Return a distributed procedure; UnsupportedOperation if it is another kind."""
        procedure = self.resolve(name)
        if not isinstance(procedure, DistributedProcedure):
            raise UnsupportedOperation(
                f"{procedure.name} is not a distributed procedure; call it with Catalog.call"
            )
        return procedure

    def is_distributed(self, name: str) -> bool:
        """Return whether a distributed procedure has this name."""
        try:
            return isinstance(self.resolve(name), DistributedProcedure)
        except NotFound:
            return False

    def _add(self, procedures: Sequence[AnyProcedure], connector: str | None = None) -> None:
        """Add all of these or, if one of them cannot be added, none."""
        names = [_checked_name(each) for each in procedures]
        with self._lock:
            if connector in self._connectors:
                raise InvalidInput(
                    f"the connector {connector!r} has added procedures already; remove them first"
                )
            for place, name in enumerate(names):
                if name in self._procedures or name in names[:place]:
                    raise InvalidInput(f"a procedure {name} exists already; remove it first")
            self._procedures.update(zip(names, procedures, strict=True))
            if connector is not None:
                self._connectors[connector] = tuple(procedures)

    def _offered(self) -> list[str]:
        """The names of entry points that are not loaded; a procedure that was added comes first."""
        if self._group is None:
            return []
        with self._lock:
            return [
                name
                for name in _entry_points(self._group)
                if name not in self._procedures and name not in self._removed
            ]

    def _load(self, name: str) -> None:
        """Add the procedure of an entry point."""
        assert self._group is not None
        point = _entry_points(self._group)[name]
        where = f"the entry point {name} = {point.value} of group {self._group}"
        try:
            entry = point.load()
            procedure = entry() if isinstance(entry, type) else entry
        except Exception as error:
            raise InvalidInput(
                f"the procedure {name} cannot be loaded from {where}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not isinstance(procedure, Procedure | CatalogProcedure):
            raise InvalidInput(
                f"{where} is not a procedure but {type(procedure).__name__}; offer a Procedure, a "
                "CatalogProcedure or a DistributedProcedure"
            )
        if procedure.name != name:
            raise InvalidInput(
                f"{where} is a procedure with another name, {procedure.name!r}; name the entry "
                "point as the procedure"
            )
        try:
            self.add(procedure)
        except InvalidInput:
            with self._lock:
                if name not in self._procedures:  # otherwise another thread has added it
                    raise


def _checked_name(procedure: AnyProcedure) -> str:
    """The name of a procedure; InvalidInput if it, the parameters or the columns are wrong."""
    name = getattr(procedure, "name", None)
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise InvalidInput(
            "a procedure's name consists of a-z, 0-9 and _, and begins with a letter: "
            f"{repr_of(name)}"
        )
    check_procedure(procedure)
    return name


@cache
def _entry_points(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name; read once in a process."""
    return {point.name: point for point in entry_points(group=group)}
