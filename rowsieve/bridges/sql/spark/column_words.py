"""Format an expression of a classic or Connect column as Spark SQL text.

A bridge converts each node to a `Form`, and `Words` formats the forms. The text is then read by the
rules of the dialect.

Soundness: a node without a form is refused by name. Constants are written with their types, and
long lists as names, so the text has the meaning of the tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from rowsieve.bridges.chains import flattened
from rowsieve.bridges.sql.constructs.render_literals import literal_text, quoted
from rowsieve.bridges.sql.dialects import SPARK
from rowsieve.bridges.sql.placeholders import StandIns, TextDepth
from rowsieve.bridges.sql.spark.type_names import ddl_of, type_named
from rowsieve.errors import UnknownColumn, UnsupportedOperation
from rowsieve.predicate.functions.registry import BUILT_IN
from rowsieve.predicate.ir import Literal, ValueSet
from rowsieve.types.days import DAY_US
from rowsieve.types.logical import Int, LogicalType, String
from rowsieve.types.schema import Schema

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_COMPARISONS = ("=", "<=>", "<", "<=", ">", ">=")
_INFIX: Mapping[str, str] = {
    **{sign: sign for sign in (*_COMPARISONS, "+", "-", "*", "/", "%", "&", "|", "^", "div")},
    "==": "=",
    "mod": "%",
    "like": "LIKE",
    "ilike": "ILIKE",
    "rlike": "RLIKE",
}
_CHAINS: Mapping[str, str] = {"and": " AND ", "or": " OR "}
_FORMS: Mapping[tuple[str, int], str] = {
    ("not", 1): "(NOT {0})",
    ("!", 1): "(NOT {0})",
    ("negative", 1): "(- {0})",
    ("positive", 1): "(+ {0})",
    ("isnull", 1): "({0} IS NULL)",
    ("isnotnull", 1): "({0} IS NOT NULL)",
    ("between", 3): "({0} BETWEEN {1} AND {2})",
    ("like", 3): "({0} LIKE {1} ESCAPE {2})",
    ("ilike", 3): "({0} ILIKE {1} ESCAPE {2})",
    (">>", 2): "shiftright({0}, {1})",
    ("<<", 2): "shiftleft({0}, {1})",
    ("trim", 2): "trim(BOTH {0} FROM {1})",
    ("ltrim", 2): "trim(LEADING {0} FROM {1})",
    ("rtrim", 2): "trim(TRAILING {0} FROM {1})",
    ("btrim", 2): "trim(BOTH {1} FROM {0})",
}
# Names that are calls without parentheses in Spark unless a column has the name.
_BARE_CALLS = frozenset({"current_date", "current_timestamp", "localtimestamp"})


@dataclass(frozen=True, slots=True)
class Name:
    """A column, or a member of one."""

    parts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Spelled:
    """Text that is copied: a constant, or SQL in parentheses."""

    text: str


@dataclass(frozen=True, slots=True)
class SparkCall:
    """A function or an operator by its name in Spark's registry."""

    name: str
    arguments: Sequence[Any]


@dataclass(frozen=True, slots=True)
class CastTo:
    """CAST, or TRY_CAST."""

    operand: Any
    type: LogicalType
    is_try: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """CASE with conditions; without `last` it ends in NULL."""

    branches: Sequence[tuple[Any, Any]]
    last: Any | None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a struct, an item of a list, or a value of a map."""

    value: Any
    key: Any


@dataclass(frozen=True, slots=True)
class SparkList:
    """IN a list of constants; `typed`: compared only with values of the same type."""

    operand: Any
    values: ValueSet
    typed: bool = False


Form: TypeAlias = Name | Spelled | SparkCall | CastTo | Choice | Member | SparkList


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a schema's columns, as a session resolves them."""

    schema: Schema
    is_case_sensitive: bool = False

    def column_of(self, name: str) -> str | None:
        """Return the column's name as declared; None if missing, `UnknownColumn` if ambiguous."""
        exact = [column for column in self.schema.names if column == name]
        if self.is_case_sensitive:
            return exact[0] if exact else None
        alike = [column for column in self.schema.names if column.lower() == name.lower()]
        if len(alike) > 1:
            raise UnknownColumn(f"no single column {name!r}: it is ambiguous", name=name)
        return alike[0] if alike else None


class Words:
    """Formats expressions over columns by their names.

    `form_of` returns the form of a node, or raises. `functions`: the module with Spark's functions.
    `check` raises for names and texts whose meaning the session changes.
    `size_of_null`, `null_in_empty_list`: settings of the session.
    """

    def __init__(
        self,
        names: Names,
        stand_ins: StandIns,
        form_of: Callable[[Any], Form],
        functions: object,
        check: Callable[[str], None],
        *,
        size_of_null: bool,
        null_in_empty_list: bool,
    ) -> None:
        self._names = names
        self._stand_ins = stand_ins
        self._form_of = form_of
        self._functions = functions
        self._check = check
        self._size = "size" if size_of_null else "array_size"
        self._empty = "({0} IS NULL AND NULL)" if null_in_empty_list else "FALSE"
        self._depth = TextDepth(stand_ins)

    def text(self, expression: Any) -> str:
        """Return the text of an expression, atomic or in parentheses."""
        return self._spell(self._form(expression))

    def _form(self, expression: Any) -> Form:
        """Return the form of a node, which may be a form already."""
        return expression if isinstance(expression, Form) else self._form_of(expression)

    def _term(self, form: Form) -> str:
        """Format a term of AND, OR or NOT; a name replaces it if the text nests too deeply."""
        name = self._depth.named(lambda: self._spell(form)) if _joins(form) else None
        return name or self._spell(form)

    def _spell(self, form: Form) -> str:
        with self._depth:
            match form:
                case Spelled(text=text):
                    self._check(text)
                    return text
                case Name(parts=parts):
                    return self._column(parts)
                case SparkCall():
                    return self._call(form)
                case CastTo():
                    word = "TRY_CAST" if form.is_try else "CAST"
                    return f"{word}({self.text(form.operand)} AS {ddl_of(form.type).upper()})"
                case Choice():
                    return self._case(form)
                case Member():
                    self._check_members()
                    return f"{self.text(form.value)}[{self.text(form.key)}]"
                case SparkList():
                    members = self._stand_ins.members(form.values, typed=form.typed)
                    return f"({self.text(form.operand)} IN {members})"
                case _:
                    assert_never(form)

    def _column(self, parts: Sequence[str]) -> str:
        column = self._names.column_of(parts[0])
        if column is None and len(parts) == 1 and parts[0].lower() in _BARE_CALLS:
            return f"{parts[0].lower()}()"
        if column is None:
            raise UnknownColumn(f"no column {parts[0]!r}", name=parts[0])
        if len(parts) > 1:
            self._check_members()
        text = _identifier(column)
        for part in parts[1:]:
            text = f"({text}).{_identifier(part)}"
        return text

    def _check_members(self) -> None:
        if self._names.is_case_sensitive:
            raise UnsupportedOperation(
                "members are not read in a session with spark.sql.caseSensitive=true"
            )

    def _call(self, call: SparkCall) -> str:
        name, operands = call.name, call.arguments
        self._check(name)
        if not operands and name in _CHAINS:
            raise UnsupportedOperation(f"{name} without terms has no counterpart in Rowsieve")
        if (chain := _chained(call)) is not None:
            return f"({_CHAINS[chain].join(self._term(each) for each in self._terms(call))})"
        if name == "in" and operands:
            value, members = self.text(operands[0]), [self.text(each) for each in operands[1:]]
            return f"({value} IN ({', '.join(members)}))" if members else self._empty.format(value)
        forms = [self._form(each) for each in operands]
        spell = self._term if _joins(call) else self._spell
        arguments = [spell(each) for each in forms]
        if (template := _FORMS.get((name, len(arguments)))) is not None:
            return template.format(*arguments)
        if len(arguments) == 2 and (sign := _INFIX.get(name)) is not None:
            return f"({arguments[0]} {sign} {arguments[1]})"
        if name in ("extract", "date_part", "datepart") and len(arguments) == 2:
            part = re.fullmatch(r"'([a-zA-Z]+)'", arguments[0])
            if part is not None:
                return f"EXTRACT({part[1].upper()} FROM {arguments[1]})"
        if name == "locate" and arguments[2:] == ["1"]:
            return f"position({arguments[0]}, {arguments[1]})"
        if not _NAME.fullmatch(name) or self._is_ours_alone(name):
            raise UnsupportedOperation(f"the function {name} has no counterpart in Rowsieve")
        name = self._size if name in ("size", "cardinality") else name
        return f"{name}({', '.join(arguments)})"

    def _terms(self, call: SparkCall) -> list[Form]:
        """Return the terms of a chain of AND or OR, in order."""

        def terms_of(form: Form) -> Sequence[Form] | None:
            if not isinstance(form, SparkCall) or _chained(form) != call.name:
                return None
            return [self._form(each) for each in form.arguments]

        return flattened(call, terms_of)

    def _case(self, choice: Choice) -> str:
        branches = "".join(
            f" WHEN {self.text(when)} THEN {self.text(then)}" for when, then in choice.branches
        )
        last = "" if choice.last is None else f" ELSE {self.text(choice.last)}"
        return f"(CASE{branches}{last} END)"

    def _is_ours_alone(self, name: str) -> bool:
        """Whether a name is a function of ours that Spark lacks; in Spark it is a user's."""
        ours = name in BUILT_IN or name.startswith("extract_")
        return ours and not hasattr(self._functions, name)


def constant(value: Any, spelled: str) -> Spelled:
    """Format a constant; `spelled` is the JSON name of its type, the value is as in `Literal`."""
    if spelled == "void":
        return Spelled("NULL")
    if spelled.startswith("interval "):
        is_months = spelled.rsplit(maxsplit=1)[-1] in ("year", "month")
        return Spelled(f"INTERVAL '{f'{int(value)} months' if is_months else _days(int(value))}'")
    type_ = type_named(spelled)
    if type_ is None:
        raise UnsupportedOperation(f"a constant of type {spelled} has no type in Rowsieve")
    if value is None:
        return Spelled(f"CAST(NULL AS {ddl_of(type_).upper()})")
    if type_ == String():
        return Spelled(quoted(str(value), SPARK))
    if isinstance(type_, Int):
        bare = str(value) if type_ == Int(32) else f"CAST('{value}' AS {ddl_of(type_).upper()})"
        return Spelled(f"({bare})" if value < 0 else bare)
    text, signed = literal_text(Literal(value, type_), SPARK)
    return Spelled(f"({text})" if signed else text)


def _days(interval_us: int) -> str:
    """Format an interval as days and a time of less than a day, which Spark adds one by one."""
    sign, (days, rest_us) = "-" if interval_us < 0 else "", divmod(abs(interval_us), DAY_US)
    seconds, microseconds = divmod(rest_us, 1_000_000)
    parts = {"days": days, "seconds": seconds, "microseconds": microseconds}
    return " ".join(f"{sign}{count} {unit}" for unit, count in parts.items())


def parse_name(identifier: str) -> Name:
    """Split a name as PySpark does, at dots outside backticks."""
    parts = [quoted.replace("``", "`") or bare for quoted, bare in _PART.findall(identifier)]
    if _PART.sub("", identifier) or not parts:
        why = f"{identifier!r} names no column; put odd names in backticks"
        raise UnknownColumn(why, name=identifier)
    return Name(parts)


_PART = re.compile(r"(?:`((?:[^`]|``)+)`|([^.`]+))(?:\.(?!$)|$)")


def _joins(form: Form) -> bool:
    """Whether this is an AND, OR or NOT."""
    if not isinstance(form, SparkCall):
        return False
    return _chained(form) is not None or (form.name in ("not", "!") and len(form.arguments) == 1)


def _chained(call: SparkCall) -> str | None:
    return call.name if call.name in _CHAINS and len(call.arguments) == 2 else None


def _identifier(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
