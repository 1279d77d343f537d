r"""Regular expressions in SQL text: `~`, `RLIKE`, `regexp_like`, `SIMILAR TO`, by dialect.

The pattern must be constant. `regexes` translates it to RE2; a construct that is not known to be
equivalent is rejected by name. In PostgreSQL, classes (`\w`) and the case of letters depend on the
database's locale: here they are those of the collation "C", and such calls are marked, so that no
translation is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from rowsieve.bridges.constant_values import text_of
from rowsieve.bridges.sql.constructs.found_regexes import (
    finding,
    found_by,
    from_re2_replacement,
    to_re2_replacement,
)
from rowsieve.bridges.sql.constructs.regexes import Flavour, similar_to_re2, to_re2
from rowsieve.bridges.sql.dialect_rules import SimilarTo
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.predicate import ir
from rowsieve.predicate.functions.texts.found_patterns import group_count
from rowsieve.predicate.functions.texts.patterns import BY_LOCALE
from rowsieve.types.logical import Int, String

_FLAVOURS = {flavour.value: flavour for flavour in Flavour}
# Trino's two libraries may find different matches, so calls that return matches are refused.
_FINDING = {name: flavour for name, flavour in _FLAVOURS.items() if flavour is not Flavour.TRINO}


def null_match(reader: Reads, text: Any, pattern: Any) -> ir.Predicate | None:
    """Read a match with the pattern NULL, which is NULL for every text; None for other patterns."""
    constant = reader.operand(pattern) if isinstance(pattern, exp.Null | exp.Cast) else None
    if not isinstance(constant, ir.Literal) or constant.value is not None:
        return None
    return ir.Comparison(ir.ComparisonOp.EQ, reader.side(text), ir.Literal(None, String()))


def regex(reader: Reads, node: Any) -> ir.Predicate:
    """Read a match anywhere in the text, or of the whole text for `regexp_full_match`."""
    reader.only(node, "this", "expression", "flag", "full_match")
    if (null := null_match(reader, node.this, node.expression)) is not None:
        return null
    whole = type(node) is exp.RegexpFullMatch
    ignore_case = type(node) is exp.RegexpILike
    flag = node.args.get("flag") or node.args.get("options")
    if flag is not None:
        if not (isinstance(flag, exp.Literal) and flag.this in ("", "c", "i")):
            raise reader.source.refusal(node, "the only flags are 'i' and 'c'")
        ignore_case = flag.this == "i"
    text = _pattern(reader, node.expression)
    return _call(
        reader, node, lambda flavour: to_re2(text, flavour, ignore_case=ignore_case), whole=whole
    )


def similar(reader: Reads, node: Any) -> ir.Predicate:
    """Read `SIMILAR TO`: a pattern of the SQL standard, or a regular expression, by dialect."""
    escape: str | None = "\\"
    escaped = isinstance(node, exp.Escape)
    if escaped:
        reader.only(node, "this", "expression")
        escape, node = _pattern(reader, node.expression) or None, node.this
        if escape is not None and len(escape) > 1:
            raise reader.source.refusal(node, "an escape is one character")
    reader.only(node, "this", "expression")
    if (null := null_match(reader, node.this, node.expression)) is not None:
        return null
    text, kind = _pattern(reader, node.expression), reader.dialect.texts.similar_to
    if kind is SimilarTo.WHOLE_REGEX and escape == "\\":
        return _call(reader, node, lambda flavour: to_re2(text, flavour), whole=True)
    if kind is SimilarTo.PART_REGEX and not escaped:
        return _call(reader, node, lambda flavour: to_re2(text, flavour), whole=False)
    if kind is not SimilarTo.PATTERN:
        raise reader.source.refusal(
            node, "SIMILAR TO is read in postgres, and without ESCAPE in duckdb and datafusion"
        )
    return _call(reader, node, lambda _: similar_to_re2(text, escape), whole=False)


def _pattern(reader: Reads, node: Any) -> str:
    if (pattern := text_of(reader.operand(node))) is not None:
        return pattern
    raise reader.source.refusal(node, "a pattern must be a quoted constant")


def _call(
    reader: Reads, node: Any, translate: Callable[[Flavour], str], *, whole: bool
) -> ir.Predicate:
    flavour = _FLAVOURS.get(reader.dialect.name)
    if flavour is None:
        raise reader.source.refusal(
            node, f"regular expressions of {reader.dialect.name} are not read; write LIKE"
        )
    try:
        pattern = translate(flavour)
    except ValueError as error:
        raise reader.source.refusal(
            node, f"in regular expressions of {reader.dialect.name} this is not read: {error}"
        ) from error
    inner = (
        node.this.unnest()
    )  # after NOT BETWEEN the grammar adds parentheses that are not in the text
    if isinstance(inner, exp.Not):
        raise reader.source.refusal(node, "cast the condition before it to text, in parentheses")
    arguments = [reader.side(node.this), ir.Literal(f"^(?:{pattern})$" if whole else pattern)]
    if flavour is Flavour.POSTGRES and _by_locale(node):
        arguments.append(ir.Literal(BY_LOCALE))
    return ir.BooleanOperand(ir.Call("regex_matches", tuple(arguments)))


def _by_locale(node: Any) -> bool:
    """Whether it depends on the database's locale: letters of both cases, classes of letters."""
    text = node.expression.this if isinstance(node.expression, exp.Literal) else ""
    flag = node.args.get("flag")
    return (
        type(node) is exp.RegexpILike
        or (flag is not None and flag.this == "i")
        or text.startswith("(?i)")
        or _has_classes(text)
    )


FOUND = frozenset(
    {"regex_extract", "regex_substr", "regex_replace", "regex_replace_first"}
    | {"regex_count", "regex_position"}
)
_REPLACES = ("regex_replace", "regex_replace_first")


def found(reader: Reads, node: Any, call: ir.Call) -> ir.Call:
    """Read a call that returns matches, with its pattern translated to RE2."""
    name, arguments = reader.dialect.name, list(call.arguments)
    if (flavour := _FINDING.get(name)) is None:
        raise reader.source.refusal(node, f"regular expressions of {name} are not read")
    texts = [text_of(item) for item in arguments]
    if texts[1] is None or (call.function in _REPLACES and texts[2] is None):
        raise reader.source.refusal(node, "write a pattern and its replacement as quoted constants")
    try:
        pattern = found_by(texts[1], flavour)
        if call.function in _REPLACES:
            arguments[2] = ir.Literal(to_re2_replacement(texts[2] or "", pattern, flavour))
    except ValueError as error:
        raise reader.source.refusal(
            node, f"{name} may find another text by this pattern: {error}"
        ) from error
    arguments[1] = ir.Literal(pattern)
    if flavour is Flavour.POSTGRES and _has_classes(texts[1]):
        arguments.append(ir.Literal(BY_LOCALE))
    return ir.Call(call.function, tuple(arguments))


def in_flavour(call: ir.Call, dialect: str) -> ir.Call | None:
    """Translate the pattern of a call to the dialect's syntax; None if impossible."""
    flavour = _FINDING.get(dialect)
    texts = [text_of(item) for item in call.arguments]
    if flavour is None or texts[1] is None or texts[-1] == BY_LOCALE:
        return None
    arguments = list(call.arguments)
    try:
        arguments[1] = ir.Literal(finding(texts[1], flavour))
        if call.function in _REPLACES:
            arguments[2] = ir.Literal(from_re2_replacement(texts[2] or "", flavour))
    except ValueError:
        return None
    return ir.Call(call.function, tuple(arguments))


def substring(reader: Reads, node: Any) -> ir.Operand | None:
    """Read PostgreSQL's `substring(text FROM pattern)`: the first group, or the whole match."""
    start = node.args.get("start")
    if not reader.dialect.texts.substring_by_regex or not isinstance(start, exp.Literal):
        return None
    if not start.is_string or node.args.get("length") is not None:
        return None
    call = ir.Call("regex_substr", (reader.operand(node.this), reader.operand(start)))
    operand = found(reader, node, call)
    pattern = str(text_of(operand.arguments[1]))
    group = ir.Literal(min(group_count(pattern), 1), Int(64))
    return ir.Call("regex_substr", (*operand.arguments[:2], group, *operand.arguments[2:]))


def _has_classes(text: str) -> bool:
    return any(f"\\{letter}" in text for letter in "dwsDWS")


PREDICATES: Mapping[type[Any], Callable[[Reads, Any], ir.Predicate]] = {
    exp.RegexpLike: regex,
    exp.RegexpILike: regex,
    exp.RegexpFullMatch: regex,
    exp.SimilarTo: similar,
}
