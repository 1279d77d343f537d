"""The Spark session that columns belong to: classic ones are made and resolved in a running one."""

from __future__ import annotations

from typing import Any

from rowsieve.errors import InvalidInput

_NONE = "a Spark column belongs to a session, and none is running: start one first"


def active_session() -> Any:
    """The session of this thread, or the one that there is; `InvalidInput` without one."""
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415 - an extra, at its first use
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    try:
        return SparkSession.active()
    except PySparkRuntimeError as error:
        raise InvalidInput(_NONE) from error


def check_session() -> None:
    """Refuse to make columns where PySpark cannot: a Connect client needs no session for it."""
    from pyspark.sql.utils import is_remote  # noqa: PLC0415 - an extra, at its first use

    if not is_remote():
        active_session()
