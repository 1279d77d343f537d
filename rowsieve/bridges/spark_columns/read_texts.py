"""Spark's functions of text as calls of ours.

Soundness: where Spark takes a place from the end, or counts below 0, arguments are refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.spark_columns.patterns import check_pattern
from rowsieve.bridges.spark_columns.read import Handler, Reader
from rowsieve.bridges.spark_columns.tree import Node
from rowsieve.bridges.spark_columns.values import Value, constant_of
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.types.logical import (
    Int,
    LogicalType,
    String,
)


def _text_call(name: str, type_: LogicalType = String(), *, least: int = 1) -> Handler:  # noqa: B008
    """A function of one text and constant texts."""

    def handler(reader: Reader, node: Node) -> Value:
        first, *others = (reader.text(child) for child in node.children)
        if len(others) + 1 < least or not all(isinstance(other, ir.Literal) for other in others):
            raise UnsupportedOperation(f"{node.kind} takes constants after the text here")
        return Value(ir.Call(name, (first, *others)), type_)

    return handler


def _part_test(name: str) -> Handler:
    def handler(reader: Reader, node: Node) -> ir.Predicate:
        text, part = node.children
        found = reader.text(part)
        if not isinstance(found, ir.Literal) and name != "starts_with":
            raise UnsupportedOperation(f"{node.kind} takes a constant part here")
        return ir.BooleanOperand(ir.Call(name, (reader.text(text), found)))

    return handler


def _length(reader: Reader, node: Node) -> Value:
    return Value(ir.Call("length", (reader.exact(node.children[0]),)), Int(32))


def _concat(reader: Reader, node: Node) -> Value:
    return Value(ir.Call("concat_strict", tuple(map(reader.text, node.children))), String())


def _substring(reader: Reader, node: Node) -> Value:
    text = reader.text(node.children[0])
    start, count = (constant_of(reader.value(child)) for child in node.children[1:])
    if not isinstance(start, int) or not isinstance(count, int) or start < 0:
        raise UnsupportedOperation("substring takes a constant start from 0 and a constant count")
    arguments = (text, ir.Literal(max(start, 1), Int(64)), ir.Literal(max(count, 0), Int(64)))
    return Value(ir.Call("substr", arguments[:2] if count == 2**31 - 1 else arguments), String())


def _side(name: str) -> Handler:
    def handler(reader: Reader, node: Node) -> Value:
        count = constant_of(reader.value(node.children[1]))
        if not isinstance(count, int):
            raise UnsupportedOperation(f"{name} takes a constant count here")
        arguments = (reader.text(node.children[0]), ir.Literal(max(count, 0), Int(64)))
        return Value(ir.Call(name, arguments), String())

    return handler


def _locate(reader: Reader, node: Node) -> Value:
    part, text, start = node.children
    found = reader.text(part)
    if not isinstance(found, ir.Literal) or constant_of(reader.value(start)) != 1:
        raise UnsupportedOperation("locate takes a constant part and starts at 1 here")
    return Value(ir.Call("position", (reader.text(text), found)), Int(32))


def _like_any(reader: Reader, node: Node) -> ir.Predicate:
    if node.source is None:
        raise UnsupportedOperation("LIKE ANY")
    text, patterns = reader.text(node.children[0]), node.source().patterns()
    found = [patterns.apply(place) for place in range(patterns.length())]
    if None in found:
        raise UnsupportedOperation("LIKE ANY with NULL")
    spelled = [item if isinstance(item, str) else str(item.toString()) for item in found]
    for pattern in spelled:
        check_pattern(pattern, "\\")
    return ir.Or(tuple(ir.Like(text, item, "\\" if "\\" in item else None) for item in spelled))


def _one_text(name: str, type_: LogicalType = String()) -> Handler:  # noqa: B008 - frozen
    """A function of text that Spark has of its bytes too, or of nothing else."""

    def handler(reader: Reader, node: Node) -> Value:
        (text,) = node.children
        if text.kind == "Cast" and text.fields["dataType"] == "binary":
            (text,) = text.children
        return Value(ir.Call(name, (reader.text(text),)), type_)

    return handler


def _sha2(reader: Reader, node: Node) -> Value | ir.Predicate:
    text, bits = node.children
    if constant_of(reader.value(bits)) not in (0, 256):
        raise UnsupportedOperation("of SHA-2 there is only the one of 256 bits here")
    return _one_text("sha256_hex")(reader, Node(node.kind, node.fields, (text,)))


def _hex(reader: Reader, node: Node) -> Value:
    value = reader.value(node.children[0])
    if not isinstance(value.type, Int):
        raise UnsupportedOperation("hex of something that is no whole number")
    return Value(ir.Call("hex_digits", (value.exact,)), String())


def _made_text(name: str, *numbers: int) -> Handler:
    """A function of text and constants, those at the places given whole numbers."""

    def handler(reader: Reader, node: Node) -> Value:
        arguments: list[ir.Operand] = []
        for place, child in enumerate(node.children):
            operand = reader.exact(child) if place in numbers else reader.text(child)
            if place and name != "concat_ws" and not isinstance(operand, ir.Literal):
                raise UnsupportedOperation(f"{node.kind} takes constants after the text here")
            arguments.append(operand)
        return Value(ir.Call(name, tuple(arguments)), String())

    return handler


TEXTS: Mapping[str, Handler] = {
    "Lower": _one_text("lower"),
    "Upper": _one_text("upper"),
    "OctetLength": _one_text("octet_length", Int(32)),
    "BitLength": _one_text("bit_length", Int(32)),
    "Ascii": _one_text("ascii", Int(32)),
    "Md5": _one_text("md5"),
    "Sha2": _sha2,
    "Hex": _hex,
    "StringRepeat": _made_text("repeat", 1),
    "StringLPad": _made_text("lpad", 1),
    "StringRPad": _made_text("rpad", 1),
    "SplitPart": _made_text("split_part", 2),
    "ConcatWs": _made_text("concat_ws"),
    "StringTranslate": _made_text("translate"),
    "Length": _length,
    "Concat": _concat,
    "Substring": _substring,
    "Left": _side("left"),
    "Right": _side("right"),
    "StringTrim": _text_call("trim"),
    "StringTrimLeft": _text_call("ltrim"),
    "StringTrimRight": _text_call("rtrim"),
    "StringReplace": _text_call("replace", least=3),
    "StringInstr": _text_call("position", Int(32), least=2),
    "StringLocate": _locate,
    "Reverse": _text_call("reverse"),
    "StartsWith": _part_test("starts_with"),
    "EndsWith": _part_test("ends_with"),
    "Contains": _part_test("contains"),
    "LikeAny": _like_any,
}
