"""The Spark session that columns belong to: classic ones are made and resolved in a running one.

A Connect column is made without a session; what its tree does not say is asked of the client's, if
there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rowsieve.errors import InvalidInput

_NONE = "a Spark column belongs to a session, and none is running: start one first"


@dataclass(frozen=True, slots=True)
class ClientSession:
    """The mode and the time zone of a Connect session; no zone is an unknown one."""

    ansi: bool = True
    time_zone: str | None = None
    session: Any = None  # of the client, for the settings that few columns hang on

    @property
    def null_in_empty_list(self) -> bool:
        """Whether IN of nothing is NULL for NULL, and not FALSE."""
        return self._is_on("spark.sql.legacy.nullInEmptyListBehavior", unset=not self.ansi)

    @property
    def size_of_null(self) -> bool:
        """Whether the size of a NULL is -1, and not NULL."""
        return not self.ansi and self._is_on("spark.sql.legacy.sizeOfNull", unset=True)

    def _is_on(self, name: str, *, unset: bool) -> bool:
        if self.session is None:
            return unset
        return str(self.session.conf.get(name, str(unset).lower())).lower() == "true"


def client_session(*, ansi: bool | None, time_zone: str | None) -> ClientSession:
    """What is given, and the rest as the client's session has it; Spark's default without one."""
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415 - an extra

    session = SparkSession.getActiveSession()
    if session is not None and time_zone is None:
        time_zone = str(session.conf.get("spark.sql.session.timeZone"))
    if session is not None and ansi is None:
        ansi = session.conf.get("spark.sql.ansi.enabled") == "true"
    return ClientSession(ansi=ansi is not False, time_zone=time_zone, session=session)


def active_session() -> Any:
    """The session of this thread, or the one that there is; `InvalidInput` without one."""
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415 - an extra, at its first use
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    try:
        return SparkSession.active()
    except PySparkRuntimeError as error:
        raise InvalidInput(_NONE) from error


def is_client() -> bool:
    """Whether this process makes columns of a Connect client."""
    from pyspark.sql.utils import is_remote  # noqa: PLC0415 - an extra, at its first use

    return is_remote()


def check_session() -> None:
    """Refuse to make columns where PySpark cannot: a Connect client needs no session for it."""
    if not is_client():
        active_session()
