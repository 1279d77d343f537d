"""Look up classes of Spark's JVM by their full names, once each.

`jvm.org.apache.spark.sql.Column` makes a request for each package, too, for which the JVM searches
a class of that name in all archives of its class path.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

_FOUND: Final[WeakKeyDictionary[Any, dict[str, Any]]] = WeakKeyDictionary()
"""Classes by JVM and name; an entry lives as long as its JVM."""


def java_class(jvm: Any, name: str) -> Any:
    """Return a class by its full name; py4j's `JavaPackage` if there is none."""
    from py4j.java_gateway import JavaClass  # noqa: PLC0415 - an extra

    classes = _FOUND.setdefault(jvm, {})
    if name not in classes:
        java = getattr(jvm, name)
        if not isinstance(java, JavaClass):  # an archive with it may be added later
            return java
        classes[name] = java
    return classes[name]


def spark_class(session: Any, name: str) -> Any:
    """Return a class of the package `org.apache.spark.sql`, in the JVM of a classic session."""
    return java_class(session._jvm, f"org.apache.spark.sql.{name}")


def scala_seq(session: Any, items: list[Any]) -> Any:
    """Convert a list to a Scala sequence."""
    return java_class(session._jvm, "org.apache.spark.api.python.PythonUtils").toSeq(items)
