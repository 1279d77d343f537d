"""A tree of Spark's expressions as plain data, whichever side of Spark it was taken from.

A node is named for its class in Catalyst. `source` gives its Java object, for what the data does
not tell; there is none where no JVM is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rowsieve.errors import UnsupportedOperation


@dataclass(frozen=True, slots=True)
class Node:
    """One expression: its class, its options, and the expressions below it."""

    kind: str
    fields: Mapping[str, Any]
    children: tuple[Node, ...] = ()
    source: Callable[[], Any] | None = field(default=None, compare=False)
    constant: bool = False  # there are only literals below

    def option(self, name: str) -> Any:
        """An option by name; asked of the Java object where the data lacks it."""
        value = self.fields.get(name)
        if value is None and self.source is not None:
            value = getattr(self.source(), name)()
            if not isinstance(value, bool | int | str | None):
                value = value.toString()
        return value

    def mode(self) -> str:
        """What happens on failure: `ANSI` (an error), `TRY` (NULL) or `LEGACY` (it depends)."""
        if "evalContext" in self.fields and self.source is not None:
            return str(self.source().evalContext().evalMode().toString())
        return str(self.option("evalMode"))


@dataclass(frozen=True, slots=True)
class Junction:
    """AND or OR of columns, as they were written: what is apart before Spark resolves anything."""

    all_of: bool
    terms: tuple[Junction | Leaf, ...]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column of its own, with its tree, or with the reason why it has none here."""

    column: Any
    node: Node | UnsupportedOperation


def of_json(found: Sequence[Mapping[str, Any]], java: Any, names: Mapping[str, str]) -> Node:
    """The tree that Spark writes as a list, parents first; `names` are the columns by their ids."""
    stack: list[Node] = []
    for index in range(len(found) - 1, -1, -1):
        fields = found[index]
        kind = str(fields["class"]).rpartition(".")[2]
        count = int(fields["num-children"])
        children = tuple(stack.pop() for _ in range(count))
        if kind == "AttributeReference":
            name = names.get(str(fields["exprId"]["id"]))
            if name is None:
                raise UnsupportedOperation(f"{fields['name']} is no column of this table")
            stack.append(Node(kind, {"name": name}))
            continue
        constant = kind == "Literal" or (count > 0 and all(child.constant for child in children))
        stack.append(Node(kind, fields, children, _at(java, index), constant))
    (root,) = stack
    return root


def _at(java: Any, index: int) -> Callable[[], Any]:
    return lambda: java.apply(index)
