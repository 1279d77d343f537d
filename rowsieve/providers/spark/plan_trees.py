"""Replaces nodes anywhere in Spark's plans and expressions: in arguments and subqueries, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from rowsieve.bridges.spark_columns.java_classes import java_class
from rowsieve.providers.spark.plans import arguments_of, class_of, items, sequence, some

_NODE: Final = "org.apache.spark.sql.catalyst.trees.TreeNode"
_TUPLE: Final = "scala.Tuple"


class TreeChanger:
    """Changes the nodes of trees that contain one of some patterns of Spark's.

    `change` returns what is to stand in place of a node; None: its arguments are changed.
    """

    def __init__(
        self, session: Any, patterns: Sequence[Any], change: Callable[[Any], Any | None]
    ) -> None:
        self._session = session
        self._patterns = patterns
        self._change = change
        self._class_named = java_class(session._jvm, "java.lang.Class").forName
        self._node, self._sequence, self._option = (
            self._class_named(name) for name in (_NODE, "scala.collection.Seq", "scala.Option")
        )

    def changed(self, node: Any) -> Any:
        """The tree with changed nodes; the same object if it contains no pattern."""
        if not any(node.containsPattern(pattern) for pattern in self._patterns):
            return node
        if (changed := self._change(node)) is not None:
            return changed
        return self.inside(node)

    def inside(self, node: Any) -> Any:
        """The node with changed arguments; the same object if it has none."""
        if not (arguments := arguments_of(self._session, node)):
            return node
        for place in range(len(arguments)):
            if (argument := arguments[place]) is not None:
                arguments[place] = self._argument(argument)
        return node.makeCopy(arguments)

    def _argument(self, argument: Any) -> Any:
        """The argument of a node: a node, some of them, or anything else."""
        if not hasattr(argument, "getClass"):  # a number or a text, which Python has as its own
            return argument
        if self._node.isInstance(argument):
            return self.changed(argument)
        if self._sequence.isInstance(argument):
            return sequence(self._session, [self._argument(each) for each in items(argument)])
        if self._option.isInstance(argument) and argument.isDefined():
            return some(self._session, self._argument(argument.get()))
        if (name := class_of(argument)).startswith(_TUPLE):  # of a common table expression
            parts = [
                self._argument(argument.productElement(i)) for i in range(argument.productArity())
            ]
            return java_class(self._session._jvm, name)(*parts)
        return argument
