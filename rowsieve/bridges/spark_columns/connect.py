"""A Spark Connect column as SQL text: each expression of the client in the words of Spark's SQL.

Nothing is resolved here. The text is read as any of the dialect is, so what a name means, and which
types meet, is said in one place. Soundness: an expression that is not one of these kinds is refused
by its name; SQL text inside a column is read alone first, so that no parenthesis in it reaches
beyond it.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rowsieve.bridges.spark_columns.connect_times import check_moments
from rowsieve.bridges.spark_columns.types import cast_target, ddl_of, type_named
from rowsieve.bridges.sql import parse_expression
from rowsieve.bridges.sql.dialects import SPARK
from rowsieve.bridges.sql.render_lists import list_texts
from rowsieve.bridges.sql.render_literals import literal_text, quoted
from rowsieve.bridges.sql.stand_ins import StandIns
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.predicate.functions.registry import BUILT_IN
from rowsieve.predicate.ir import Literal
from rowsieve.predicate.limits import MAX_DEPTH
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, Decimal, Float, Int, LogicalType, String
from rowsieve.types.schema import Schema

_DEEP = 12  # levels of a text, within which a condition deeper down has a name
_PART = re.compile(r"(?:`((?:[^`]|``)+)`|([^.`]+))(?:\.(?!$)|$)")
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_SIGNS = ("=", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "&", "|", "^", "div")
_INFIX: Mapping[str, str] = {
    **{
        name: name
        for name in [
            "=",
            "<=>",
            "<",
            "<=",
            ">",
            ">=",
            "+",
            "-",
            "*",
            "/",
            "%",
            "&",
            "|",
            "^",
            "div",
        ]
    },
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
_LISTED: Mapping[str, LogicalType] = {
    "ByteType": Int(64),
    "ShortType": Int(64),
    "IntegerType": Int(64),
    "LongType": Int(64),
    "DoubleType": Float(64),
    "StringType": String(),
    "DateType": Date(),
}


def conditions(expression: Any) -> Iterator[Any]:
    """The conditions of the AND at the top of a client's expression."""
    stack = [expression]
    while stack:
        item = stack.pop()
        if _chained(item) == "and":
            stack.extend(reversed(item._args))
        else:
            yield item


class Words:
    """Says a client's expressions in SQL, over the columns of one schema.

    `size_of_null`, `null_in_empty_list`: settings of the session.
    """

    def __init__(self, schema: Schema, *, size_of_null: bool, null_in_empty_list: bool) -> None:
        self._schema = schema
        self._size = "size" if size_of_null else "array_size"
        self._empty = "({0} IS NULL AND NULL)" if null_in_empty_list else "FALSE"
        self._above = self._depth = 0
        self.stand_ins = StandIns(schema, SPARK)

    def term(self, expression: Any) -> str:
        """Spell a term of AND, OR or NOT; where the text nests deeply, a name replaces it."""
        depth = self._depth
        if depth - self._above < _DEEP or _joins(expression) is None:
            return self.text(expression)

        def spell() -> str:
            self._above = self._depth = depth
            return self.text(expression)

        return self.stand_ins.condition(spell)

    def text(self, expression: Any) -> str:
        """The text of an expression, atomic or in parentheses."""
        self._depth += 1
        try:
            if self._depth > MAX_DEPTH:
                raise UnsupportedOperation(f"it nests deeper than {MAX_DEPTH} levels")
            handler = _KINDS.get(type(expression).__name__)
            if handler is None:
                kind = type(expression).__name__
                raise UnsupportedOperation(f"{kind} has no counterpart here")
            return handler(self, expression)
        finally:
            self._depth -= 1

    def column(self, expression: Any) -> str:
        """A column by its name, or a member of it."""
        identifier = str(expression._unparsed_identifier)
        parts = [quoted.replace("``", "`") or bare for quoted, bare in _PART.findall(identifier)]
        if _PART.sub("", identifier) or not parts:
            raise InvalidPredicate(f"{identifier!r} names no column; put odd names in backticks")
        exact = [name for name in self._schema.names if name == parts[0]]
        alike = [name for name in self._schema.names if name.lower() == parts[0].lower()]
        found = exact if len(exact) == len(alike) else alike
        if len(found) != 1:
            which = "no column" if not found else "no single column"
            raise UnknownColumn(f"{which} {parts[0]!r}", name=parts[0])
        text = _identifier(found[0])
        for part in parts[1:]:
            text = f"({text}).{_identifier(part)}"
        return text

    def call(self, expression: Any) -> str:
        """A function, or an operator."""
        name, given = str(expression._name).lower().strip("`"), expression._args
        if getattr(expression, "_is_distinct", False) or (not given and name in _CHAINS):
            raise UnsupportedOperation(f"{name} of distinct values has no counterpart here")
        if (chain := _chained(expression)) is not None:
            terms = [self.term(each) for each in _terms(expression, chain)]
            return f"({_CHAINS[chain].join(terms)})"
        if name == "in" and given:
            return self._among(given[0], given[1:])
        said = self.term if _joins(expression) is not None else self.text
        arguments = [said(each) for each in given]
        if (form := _FORMS.get((name, len(arguments)))) is not None:
            return form.format(*arguments)
        if len(arguments) == 2 and (sign := _INFIX.get(name)) is not None:
            return f"({arguments[0]} {sign} {arguments[1]})"
        if name in ("extract", "date_part", "datepart") and len(arguments) == 2:
            part = re.fullmatch(r"'([a-zA-Z]+)'", arguments[0])
            if part is not None:
                return f"EXTRACT({part[1].upper()} FROM {arguments[1]})"
        if name == "locate" and arguments[2:] == ["1"]:
            return f"position({arguments[0]}, {arguments[1]})"
        if not _NAME.fullmatch(name) or _is_ours_alone(name):
            raise UnsupportedOperation(f"a function {name} is not resolved here")
        name = self._size if name in ("size", "cardinality") else name
        return f"{name}({', '.join(arguments)})"

    def _among(self, operand: Any, members: Sequence[Any]) -> str:
        value = self.text(operand)
        if not members:
            return self._empty.format(value)
        texts = _plain_members(members)
        if texts is None:
            texts = [self.text(each) for each in members]
        return f"({value} IN ({', '.join(texts)}))"

    def cast(self, expression: Any) -> str:
        """A cast, tried or not."""
        mode = expression._eval_mode
        word = "CAST" if mode is None else "TRY_CAST" if mode == "try" else ""
        if not word:
            raise UnsupportedOperation(f"a cast in the mode {mode} has no counterpart here")
        type_ = cast_target(expression._data_type)
        return f"{word}({self.text(expression._expr)} AS {ddl_of(type_).upper()})"

    def case(self, expression: Any) -> str:
        """CASE with conditions."""
        branches = "".join(
            f" WHEN {self.text(when)} THEN {self.text(then)}" for when, then in expression._branches
        )
        last = expression._else_value
        return f"(CASE{branches}{'' if last is None else f' ELSE {self.text(last)}'} END)"

    def member(self, expression: Any) -> str:
        """A member of a struct, an item of a list, a value of a map."""
        key = expression._extraction
        return f"{self.text(expression._child)}[{self.text(key)}]"

    def sql(self, expression: Any) -> str:
        """SQL text inside a column."""
        text = str(expression._expr)
        if self.stand_ins.may_stand_in(text):
            raise UnsupportedOperation("text that names something else than a column")
        try:
            parse_expression(text, "spark")  # it is whole by itself
        except InvalidPredicate as error:
            raise UnsupportedOperation(str(error)) from error
        return f"({text}\n)"


def _is_ours_alone(name: str) -> bool:
    """Whether a name is a function here and none of Spark's: there it is a user's."""
    from pyspark.sql.connect import functions  # noqa: PLC0415 - an extra

    ours = name in BUILT_IN or name.startswith("extract_")
    return ours and not hasattr(functions, name)


def _joins(expression: Any) -> str | None:
    """The name of an AND, OR or NOT."""
    name = getattr(expression, "_name", None)
    is_not = type(expression).__name__ == "UnresolvedFunction" and name in ("not", "!")
    return name if is_not and len(expression._args) == 1 else _chained(expression)


def _chained(expression: Any) -> str | None:
    name = getattr(expression, "_name", None)
    is_call = type(expression).__name__ == "UnresolvedFunction"
    return name if is_call and name in _CHAINS and len(expression._args) == 2 else None


def _terms(expression: Any, chain: str) -> Iterator[Any]:
    stack = [expression]
    while stack:
        item = stack.pop()
        if _chained(item) == chain:
            stack.extend(reversed(item._args))
        else:
            yield item


def _identifier(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _plain_members(members: Sequence[Any]) -> list[str] | None:
    """The texts of constants of few types all at once; None where they have to be said alone."""
    values: dict[str, list[Any]] = {}
    for member in members:
        if type(member).__name__ != "LiteralExpression":
            return None
        kind = type(member._dataType).__name__
        if kind != "NullType" and kind not in _LISTED:
            return None
        values.setdefault(kind, []).append(member._value)
    texts = ["NULL"] if values.pop("NullType", None) else []
    for kind, several in values.items():
        type_ = _LISTED[kind]
        check_moments("date" if type_ == Date() else "", [n for n in several if n is not None])
        plain = pa.int32() if type_ == Date() else arrow_type(type_)
        array = pa.array(several, plain).view(arrow_type(type_))
        made = list_texts(array, None if type_ == String() else type_, SPARK)
        if made is None:
            return None
        texts += made
    return texts


def _literal(_: Words, expression: Any) -> str:
    value, spelled = expression._value, str(expression._dataType.jsonValue())
    if hasattr(value, "as_tuple"):  # the server widens the type that the client says
        _, digits, exponent = value.as_tuple()
        scale = max(-exponent, expression._dataType.scale)
        precision = max(len(digits) + max(exponent, 0), scale, expression._dataType.precision)
        if precision > 38:
            raise UnsupportedOperation("a constant of more than 38 digits")
        with decimal.localcontext(prec=60):
            value = value.quantize(decimal.Decimal(1).scaleb(-scale))
        return literal_text(Literal(value, Decimal(precision, scale)), SPARK)[0]
    if spelled == "void":
        return "NULL"
    if spelled.startswith("interval "):
        unit = "months" if spelled.rsplit(maxsplit=1)[-1] in ("year", "month") else "microseconds"
        return f"INTERVAL '{int(value)} {unit}'"
    type_ = type_named(spelled)
    if type_ is None:
        raise UnsupportedOperation(f"a constant of type {spelled} has no type here")
    if value is None:
        return f"CAST(NULL AS {ddl_of(type_).upper()})"
    if isinstance(value, int):
        check_moments(spelled, [value])
    if type_ == String():
        return quoted(str(value), SPARK)
    if isinstance(type_, Int):
        bare = str(value) if type_ == Int(32) else f"CAST('{value}' AS {ddl_of(type_).upper()})"
        return f"({bare})" if value < 0 else bare
    if isinstance(value, bytearray):
        value = bytes(value)
    text, signed = literal_text(Literal(value, type_), SPARK)
    return f"({text})" if signed else text


_KINDS: Mapping[str, Callable[[Words, Any], str]] = {
    "ColumnReference": Words.column,
    "LiteralExpression": _literal,
    "ColumnAlias": lambda words, expression: words.text(expression._child),
    "CastExpression": Words.cast,
    "CaseWhen": Words.case,
    "UnresolvedExtractValue": Words.member,
    "CallFunction": Words.call,
    "UnresolvedFunction": Words.call,
    "SQLExpression": Words.sql,
}
