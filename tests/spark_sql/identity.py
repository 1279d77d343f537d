"""The function `udf` of Spark's own test files: gives what it gets, by way of a Python worker.

Spark makes text of the argument, has Python return it, and casts it back to the argument's type.
"""

from __future__ import annotations

from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql.udf import UserDefinedFunction


def register_identity(session: Any) -> None:
    """Give the session a function `udf` of one value of any type."""
    gateway = session.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    registry = session._jsparkSession.sessionState().functionRegistry()
    registry.createOrReplaceTempFunction("udf", _Builder(gateway.jvm), "python_udf")


class _Builder:
    """A Scala function from arguments to an expression; Spark calls it when it resolves a call.

    Of NULL without a type it makes text: nothing can be cast back to that type.
    """

    def __init__(self, jvm: Any) -> None:
        self._casts = getattr(
            getattr(jvm.org.apache.spark.sql.catalyst.expressions, "Cast$"), "MODULE$"
        )
        self._text = jvm.org.apache.spark.sql.types.DataTypes.StringType
        self._list = jvm.PythonUtils.toSeq
        self._python = UserDefinedFunction(lambda text: text, "string", "udf")._judf

    def apply(self, arguments: Any) -> Any:
        if arguments.length() != 1:
            raise TypeError(f"udf takes one argument, not {arguments.length()}")
        value = arguments.head()
        called = self._python.builder(self._list([self._cast(value, self._text)]))
        to = value.dataType()
        return called if to.typeName() == "void" else self._cast(called, to)

    def _cast(self, value: Any, to: Any) -> Any:
        is_ansi = False
        return self._casts.apply(value, to, is_ansi)

    class Java:
        implements = ("scala.Function1",)
