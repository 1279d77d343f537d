"""Looks up classes of Spark's JVM by their full names.

The JVM is asked once for a class. `jvm.org.apache.spark.sql.Column` asks about each package, too,
and for each the JVM looks for a class of that name in all archives of its class path.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

_FOUND: Final[WeakKeyDictionary[Any, dict[str, Any]]] = WeakKeyDictionary()
"""Classes by the JVM, which lives as long as its sessions, and by their names."""


def java_class(jvm: Any, name: str) -> Any:
    """Return a class by its full name; py4j's `JavaPackage` if there is none."""
    from py4j.java_gateway import JavaClass  # noqa: PLC0415 - an extra

    found = _FOUND.setdefault(jvm, {})
    if name not in found:
        made = getattr(jvm, name)
        if not isinstance(made, JavaClass):  # an archive with it may be added later
            return made
        found[name] = made
    return found[name]


def spark_class(session: Any, name: str) -> Any:
    """Return a class of Spark's package of SQL, in the JVM of a classic session."""
    return java_class(session._jvm, f"org.apache.spark.sql.{name}")


def scala_seq(session: Any, items: list[Any]) -> Any:
    """Return a sequence of Scala's."""
    return java_class(session._jvm, "org.apache.spark.api.python.PythonUtils").toSeq(items)
