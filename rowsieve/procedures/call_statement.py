"""Statements that call procedures: `CALL …`, `ALTER TABLE … EXECUTE …`, EXPLAIN, SHOW, DESCRIBE.

`classify` decides the type of a statement before anything is planned. Arguments are literals only:
texts in single quotes, numbers, TRUE, FALSE, NULL, `MAP(ARRAY[…], ARRAY[…])`, `map('k', 'v')`.
A text is one statement: a second one after a semicolon is an error, and never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.dialects.trino import Trino
from sqlglot.tokenizer_core import Token

from rowsieve.bridges.sql.grammars import damage_as_parse_error
from rowsieve.errors import InvalidInput
from rowsieve.procedures.parameters import Value

_LONGEST: Final = 1_000_000  # characters of a statement
_ENDS: Final = "; \t\r\n"
_COMMENT = re.compile(r"\s*(?:--[^\n]*(?:\n|$)|/\*.*?\*/)", re.DOTALL)
_CALL = re.compile(r"CALL\b(.*)", re.DOTALL | re.IGNORECASE)
_NAME = r'(?:"(?:[^"]|"")+"|`(?:[^`]|``)+`|[\w-]+)'
_NAMES = re.compile(rf"{_NAME}(?:\.{_NAME})*")
_EXECUTE = re.compile(
    rf"ALTER\s+TABLE\s+({_NAMES.pattern})\s+EXECUTE\s+(\w+)\s*+"  # *+: no backtracking
    r"(\(.*?\))?\s*+(?:WHERE\s++(.+))?",
    re.DOTALL | re.IGNORECASE,
)
_EXPLAIN = re.compile(r"EXPLAIN\s+(?=CALL\s|ALTER\s+TABLE\s)(.+)", re.DOTALL | re.IGNORECASE)
_SHOW = re.compile(r"SHOW\s+PROCEDURES", re.IGNORECASE)
_DESCRIBE = re.compile(rf"(?:DESCRIBE|DESC)\s+PROCEDURE\s+({_NAMES.pattern})", re.IGNORECASE)
_TIMES: Final = exp.DataType.TEMPORAL_TYPES
_PROCEDURES_OF_TABLES: Final[Mapping[str, str]] = {"optimize": "rewrite_data_files"}
"""Procedures by the name that `ALTER TABLE … EXECUTE` uses."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a procedure by name, with its arguments as plain values.

    `catalog` is the name in front of it, `CALL lake.system.name(…)`; None if there is none.
    """

    procedure: str
    positional: tuple[Value, ...] = ()
    named: Mapping[str, Value] = field(default_factory=dict)
    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class ShowProcedures:
    """`SHOW PROCEDURES`."""


@dataclass(frozen=True, slots=True)
class DescribeProcedure:
    """`DESCRIBE PROCEDURE name`."""

    procedure: str


@dataclass(frozen=True, slots=True)
class Explain:
    """`EXPLAIN CALL …`: the plan of a call, which does not run."""

    call: Call


Statement: TypeAlias = Call | Explain | ShowProcedures | DescribeProcedure


def classify(text: str) -> Statement | None:
    """Read a statement; None for one that does not concern procedures.

    InvalidInput for a call that cannot be read.
    """
    text = _without_comments(text)
    if found := _CALL.fullmatch(text):
        return _call(found[1])
    if found := _EXPLAIN.fullmatch(text):
        explained = classify(found[1])
        return Explain(explained) if isinstance(explained, Call) else None
    text = text.rstrip(_ENDS)
    if _SHOW.fullmatch(text):
        return ShowProcedures()
    if found := _DESCRIBE.fullmatch(text):
        return DescribeProcedure(name_parts(found[1])[-1].lower())
    if found := _EXECUTE.fullmatch(text):
        return _execution(*found.groups())
    return None


def name_parts(text: str) -> Sequence[str]:
    """The identifiers of a dotted name without their quotes; empty if the text is not a name."""
    if _NAMES.fullmatch(text) is None:
        return ()
    return [_unquoted(found) for found in re.findall(_NAME, text)]


def _unquoted(name: str) -> str:
    if (quote := name[0]) not in '"`':
        return name
    return name[1:-1].replace(quote * 2, quote)


def statement_of(text: str) -> str:
    """Return the text without leading comments and without a semicolon at its end."""
    return _without_comments(text).rstrip(_ENDS)


def _without_comments(text: str) -> str:
    if len(text) > _LONGEST:
        raise InvalidInput(
            f"the statement has {len(text):,} characters; the limit is {_LONGEST:,}; shorten it"
        )
    place = 0
    while found := _COMMENT.match(text, place):
        place = found.end()
    return text[place:].strip()


def _call(text: str) -> Call:
    node, catalog = _parsed(text), None
    if isinstance(node, exp.Dot):  # [catalog.][system.]name(…)
        first, node = node.parts[0], node.parts[-1]
        if first is not node and first.name.lower() != "system":
            catalog = first.name
    if not isinstance(node, exp.Anonymous):
        raise InvalidInput(
            f"CALL {_shown(text)}: name a procedure and its arguments, as in "
            "CALL system.rewrite_data_files('db', 'table')"
        )
    positional: list[Value] = []
    named: dict[str, Value] = {}
    name = str(node.this).strip('"').lower()
    for argument in node.expressions:
        if isinstance(argument, exp.Kwarg):
            key = str(argument.this.name)
            if key.lower() in named:
                raise InvalidInput(f"{name}: the argument {key} is given twice; remove one")
            named[key.lower()] = _value(name, argument.expression)
        elif named:
            raise InvalidInput(
                f"{name}: a positional argument follows a named one; name it, or move it first"
            )
        else:
            positional.append(_value(name, argument))
    return Call(name, tuple(positional), named, catalog)


def _execution(table: str, command: str, arguments: str | None, where: str | None) -> Call:
    """Convert `ALTER TABLE … EXECUTE command(arguments) WHERE …` to the equivalent call."""
    if (procedure := _PROCEDURES_OF_TABLES.get(command.lower())) is None:
        raise InvalidInput(
            f"ALTER TABLE … EXECUTE {command}: only {', '.join(_PROCEDURES_OF_TABLES)} can be "
            "executed; call other procedures with CALL system.name(…)"
        )
    inner = _call(f"{command}{arguments or '()'}")
    if inner.positional:
        raise InvalidInput(
            f"EXECUTE {command}: name the arguments, as in (file_size_threshold => …)"
        )
    options = {name.replace("_", "-"): str(value) for name, value in inner.named.items()}
    named: dict[str, Value] = {"table": table}
    if where is not None:
        named["where"] = where
    if options:
        named["options"] = options
    names = name_parts(table)
    return Call(procedure, (), named, names[0] if len(names) > 2 else None)


def _parsed(text: str) -> Any:
    """Parse a call to a tree; its name gets the prefix `system`: alone it may be a keyword."""
    try:
        whole = f"system.{text.lstrip()}"
        tokens = Trino().tokenize(whole)
        while tokens and tokens[-1].token_type is sqlglot.TokenType.SEMICOLON:
            tokens.pop()
        if any(token.token_type is sqlglot.TokenType.SEMICOLON for token in tokens):
            raise InvalidInput(
                f"CALL {_shown(text)}: a second statement follows after a semicolon; run one "
                "statement at a time"
            )
        tokens = _with_varied_maps(tokens)
        with damage_as_parse_error():
            return Trino().parser().parse(tokens, whole)[0]
    except sqlglot.errors.ParseError as error:
        if isinstance(error.__cause__, IndexError):  # a map with an odd number of arguments
            raise InvalidInput(
                f"CALL {_shown(text)}: a map has a key without a value; give each key a value"
            ) from error
        raise InvalidInput(
            f"CALL {_shown(text)} cannot be read: a part is missing or too many; a call looks "
            "like CALL system.compact('db', 'table')"
        ) from error
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise InvalidInput(f"CALL {_shown(text)} cannot be read: {error}") from error


def _shown(text: str) -> str:
    """Return the beginning of a text, for a message."""
    return repr(text.strip()[:60])


def _with_varied_maps(tokens: Sequence[Any]) -> list[Any]:
    """Replace the token `map` by VAR_MAP, sqlglot's map of alternating keys and values.

    The function of Trino takes two arrays only. A subclass of its parser could change that, but the
    classes of sqlglot's compiled build (`sqlglot[c]`) cannot be subclassed.
    """
    found = list(tokens)
    for place, (token, after) in enumerate(pairwise(tokens)):
        kinds = (token.token_type, after.token_type)
        if kinds == (sqlglot.TokenType.MAP, sqlglot.TokenType.L_PAREN):
            span = (token.line, token.col, token.start, token.end)
            found[place] = Token(sqlglot.TokenType.VAR, "VAR_MAP", *span)
    return found


def _value(procedure: str, node: Any) -> Value:
    """Return the value of a literal."""
    match node:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal() if node.is_string:
            return str(node.this)
        case exp.Literal() | exp.Neg(this=exp.Literal()):
            if re.fullmatch(r"-?\d{1,38}", whole := node.sql(), re.ASCII):
                return int(whole)
        case exp.Cast(this=exp.Literal(), to=exp.DataType(this=kind)) if kind in _TIMES:
            return str(node.this.this)  # TIMESTAMP '…': its text
        case exp.VarMap() | exp.Map():
            return _map(procedure, node)
    raise InvalidInput(
        f"{procedure}: the argument {node.sql(dialect='trino')} is not a literal; give a text in "
        "single quotes, a whole number, TRUE, FALSE, NULL or a map"
    )


def _map(procedure: str, node: Any) -> Mapping[str, str]:
    keys, values = _items(node.args["keys"]), _items(node.args["values"])
    if len(keys) == len(values) == 1 and isinstance(keys[0], exp.Array):  # MAP(ARRAY[…], ARRAY[…])
        keys, values = _items(keys[0]), _items(values[0])
    if len(keys) != len(values):
        raise InvalidInput(
            f"{procedure}: a map has {len(keys)} keys and {len(values)} values; give as many of "
            "each"
        )
    found = [
        (_option(procedure, key), _option(procedure, value))
        for key, value in zip(keys, values, strict=True)
    ]
    if len(dict(found)) < len(found):
        raise InvalidInput(f"{procedure}: a map has a key twice; remove one")
    return dict(found)


def _items(node: Any) -> Sequence[Any]:
    return node.expressions if isinstance(node, exp.Array) else [node]


def _option(procedure: str, node: Any) -> str:
    match _value(procedure, node):
        case bool(value):
            return str(value).lower()
        case str() | int() as value:
            return str(value)
    raise InvalidInput(
        f"{procedure}: {node.sql()} in a map is not a text; write it in single quotes"
    )
