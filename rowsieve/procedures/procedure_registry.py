"""The procedures that a catalog knows, by name. Thread-safe."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from threading import Lock

from rowsieve.errors import InvalidInput, NotFound, UnsupportedOperation
from rowsieve.procedures.procedure import AnyProcedure, DistributedProcedure, check_parameters

_NAME = re.compile(r"[a-z][a-z0-9_]{0,127}")


class ProcedureRegistry:
    """Procedures by name; names are lower case."""

    def __init__(self, procedures: Iterable[AnyProcedure] = ()) -> None:
        self._lock = Lock()
        self._procedures: dict[str, AnyProcedure] = {}
        for procedure in procedures:
            self.add(procedure)

    def __iter__(self) -> Iterator[AnyProcedure]:
        """The procedures, by name."""
        with self._lock:
            return iter([self._procedures[name] for name in sorted(self._procedures)])

    def add(self, procedure: AnyProcedure) -> None:
        """Add a procedure; InvalidInput if its name is taken or its parameters are wrong."""
        name = procedure.name
        if _NAME.fullmatch(name) is None:
            raise InvalidInput(
                f"a procedure's name consists of a-z, 0-9 and _, and begins with a letter: {name!r}"
            )
        check_parameters(procedure)
        with self._lock:
            if name in self._procedures:
                raise InvalidInput(f"a procedure {name} exists already; remove it first")
            self._procedures[name] = procedure

    def remove(self, name: str) -> None:
        """Remove a procedure; NotFound if there is none of the name."""
        self.resolve(name)
        with self._lock:
            self._procedures.pop(name.lower(), None)

    def resolve(self, name: str) -> AnyProcedure:
        """Return the procedure; NotFound with the nearest name if there is none."""
        with self._lock:
            found, names = self._procedures.get(name.lower()), sorted(self._procedures)
        if found is None:
            near = difflib.get_close_matches(name.lower(), names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names) or 'none'}"
            raise NotFound(f"there is no procedure {name!r}; {hint}")
        return found

    def resolve_distributed(self, name: str) -> DistributedProcedure:
        """Return a distributed procedure; UnsupportedOperation if it is another kind."""
        found = self.resolve(name)
        if not isinstance(found, DistributedProcedure):
            raise UnsupportedOperation(f"{found.name} is not a distributed procedure")
        return found

    def is_distributed(self, name: str) -> bool:
        """Whether the name is that of a distributed procedure; False if there is none."""
        with self._lock:
            return isinstance(self._procedures.get(name.lower()), DistributedProcedure)
