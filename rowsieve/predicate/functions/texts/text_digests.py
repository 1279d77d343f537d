"""Text as numbers and digests: byte and bit lengths, code points, md5, sha256, hexadecimal.

Digests are computed once per distinct text, by a library call each; they have no bounds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Computed, filled, null_mask, without
from rowsieve.predicate.functions.row import (
    Argument,
    BoundsRule,
    Direction,
    Function,
    NullRule,
    Range,
    Resolver,
    Signature,
    never_fails,
)
from rowsieve.predicate.interpretation.abstract import AbstractValue, known
from rowsieve.predicate.interpretation.prefixes import common_prefix
from rowsieve.predicate.ir import ComparisonOp
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Int, LogicalType, String

_DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)


def _resolve(taken: type, result: LogicalType) -> Resolver:
    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        if len(arguments) != 1:
            return None
        argument_type = arguments[0].type
        if taken is String and isinstance(argument_type, String | None):
            return Signature((String(),), result)
        signed = isinstance(argument_type, Int) and argument_type.signed
        return Signature((Int(64),), result) if taken is Int and signed else None

    return resolve


def _sized(bits_per_byte: int) -> tuple[Callable[..., Computed], BoundsRule]:
    def size(text: pa.Array) -> pa.Array:
        factor = pa.scalar(bits_per_byte, pa.int32())  # at import, it would import pandas
        return pc.multiply(pc.binary_length(text).cast(pa.int32()), factor)

    def evaluate(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
        return Computed(size(arguments[0]))

    def bounds(arguments: Sequence[AbstractValue], _: Signature, __: Semantics) -> Range:
        """At least the length of the common prefix of all texts."""
        (value,) = arguments
        same = known(ComparisonOp.EQ, value.lower, value.upper)
        exact = size(without(value.lower, ~same))
        least = size(common_prefix(value.lower, value.upper))
        return Range(pc.coalesce(exact, least, pa.scalar(0, pa.int32())), exact)

    return evaluate, bounds


def _ascii(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    """Return the first code point, 0 for empty text: text sorts by it first."""
    first = pc.utf8_slice_codeunits(arguments[0], start=0, stop=1).dictionary_encode()
    codes = [ord(character) if character else 0 for character in first.dictionary.to_pylist()]
    return Computed(pa.array(codes, pa.int32()).take(first.indices))


def _digest(name: str) -> Callable[..., Computed]:
    def evaluate(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
        distinct = arguments[0].dictionary_encode()
        texts = (text.encode() for text in distinct.dictionary.to_pylist())
        digests = [hashlib.new(name, text, usedforsecurity=False).hexdigest() for text in texts]
        return Computed(pa.array(digests, pa.string()).take(distinct.indices))

    return evaluate


def _hex(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    """Return the hexadecimal digits of 64 bits, upper-case, without leading zeros."""
    numbers = filled(arguments[0]).astype(">i8").view(np.uint8).reshape(-1, 8)
    digits = np.empty((len(numbers), 16), np.uint8)
    digits[:, 0::2], digits[:, 1::2] = _DIGITS[numbers >> 4], _DIGITS[numbers & 15]
    places = pa.py_buffer(np.arange(0, 16 * len(digits) + 1, 16, dtype=np.int32))
    whole = pa.Array.from_buffers(
        pa.string(), len(digits), [None, places, pa.py_buffer(digits.tobytes())]
    )
    short = pc.utf8_ltrim(whole, characters="0")
    return Computed(without(pc.if_else(pc.equal(short, ""), "0", short), null_mask(arguments[0])))


def _row(usage: str, taken: type, result: LogicalType, evaluate: Any, **claims: Any) -> Function:
    return Function(
        usage,
        _resolve(taken, result),
        evaluate,
        can_fail=never_fails,
        nulls=NullRule.STRICT,
        **claims,
    )


_BYTES, _BITS = _sized(1), _sized(8)

ROWS: tuple[Function, ...] = (
    _row(
        "octet_length(text)",
        String,
        Int(32),
        _BYTES[0],
        bounds=_BYTES[1],
    ),
    _row(
        "bit_length(text)",
        String,
        Int(32),
        _BITS[0],
        bounds=_BITS[1],
    ),
    _row(
        "ascii(text)",
        String,
        Int(32),
        _ascii,
        direction=lambda _: (Direction.INCREASING,),
    ),
    _row("md5(text)", String, String(), _digest("md5")),
    _row(
        "sha256_hex(text)",
        String,
        String(),
        _digest("sha256"),
    ),
    _row("sha1_hex(text)", String, String(), _digest("sha1")),
    _row("sha512_hex(text)", String, String(), _digest("sha512")),
    _row(
        "hex_digits(whole)",
        Int,
        String(),
        _hex,
    ),
)
