"""Unbounded numbers: an approximate float and exact bytes that sort like the numbers.

A number has at most 131,072 digits before the point and 16,383 after it, as in PostgreSQL; NaN and
the infinities are numbers too. `exact` is canonical: equal numbers have equal bytes, and 1.0 is 1.

    class, 1 byte      0 -infinity, 1 negative, 2 zero, 3 positive, 4 infinity, 5 NaN
    exponent, 4 bytes  e of 0.d1d2d3… * 10^e with d1 > 0, signed, big-endian, sign bit inverted
    digits             a byte 0 to 99 for each two, without zeros at the end

A negative number has the exponent's bits inverted, 254 minus each pair of digits, and a byte 255 at
the end. Soundness: unsigned bytes in this form sort as PostgreSQL sorts numbers, NaN last.
`approx` is the nearest float64, infinite beyond its range: it sorts alike, but not strictly.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

STORAGE: Final = pa.struct([pa.field("approx", pa.float64()), pa.field("exact", pa.binary())])

_NEGATIVE_INFINITY, _NEGATIVE, _ZERO, _POSITIVE, _INFINITY, _NAN = range(6)
_NAMED: Final = {_NEGATIVE_INFINITY: b"-Infinity", _INFINITY: b"Infinity", _NAN: b"NaN"}
_MAX_WHOLE: Final = 131_072
_MAX_FRACTION: Final = 16_383
_NUMBER: Final = (
    r"^(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,6}))?$"
)
_HEAD: Final = 5
_SIGN_32: Final = 1 << 31
_LOW_32: Final = (1 << 32) - 1
_PAIRS: Final = np.array([list(f"{pair:02}".encode()[-2:]) for pair in range(256)], np.uint8)
_MAX_BYTES: Final = np.iinfo(np.int32).max

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def is_stored(type_: pa.DataType) -> bool:
    """Return whether it is the storage type, or differs only in what may be NULL."""
    if not pa.types.is_struct(type_):
        return False
    return [(field.name, field.type) for field in type_] == [
        (field.name, field.type) for field in STORAGE
    ]


def parsed(texts: pa.Array) -> tuple[pa.Array, Mask]:
    """Encode texts such as `-1.50`, `1e3`, `NaN`; also return the mask of texts that are numbers.

    Numbers are NULL where the text is NULL or not a number.
    """
    text = pc.fill_null(pc.ascii_trim_whitespace(texts.cast(pa.string())), "x")
    parts = pc.extract_regex(text, pattern=_NUMBER)
    sign, whole, fraction, exponent = (
        pc.fill_null(pc.struct_field(parts, [place]), "") for place in range(4)
    )
    finite = _mask(pc.is_valid(parts)) & _mask(
        pc.not_equal(pc.add(_size(whole), _size(fraction)), 0)
    )
    negative = _mask(pc.equal(sign, "-"))
    whole = pc.utf8_ltrim(whole, "0")
    digits = pc.utf8_ltrim(pc.binary_join_element_wise(whole, fraction, ""), "0")
    zeros = _ints(_size(whole)) + _ints(_size(fraction)) - _ints(_size(digits))
    digits = pc.utf8_rtrim(digits, "0")
    moved = _ints(pc.if_else(pc.equal(exponent, ""), "0", _unsigned(exponent)).cast(pa.int64()))
    exponents = _ints(_size(whole)) - zeros + moved
    classes = np.where(negative, _NEGATIVE, _POSITIVE)
    classes[_ints(_size(digits)) == 0] = _ZERO
    named, classes = _named_classes(text, classes)
    fits = (exponents <= _MAX_WHOLE) & (_ints(_size(digits)) - exponents <= _MAX_FRACTION)
    fine = named | (finite & (fits | (classes == _ZERO)))
    valid = fine & _mask(texts.is_valid())
    exact = _packed(classes, exponents, pc.if_else(pa.array(valid), digits, ""), valid)
    return _struct(_floats(text, named, valid), exact, valid), fine | ~_mask(texts.is_valid())


def from_text(texts: pa.Array) -> pa.Array:
    """Encode texts; ValueError names the first that is not a number."""
    numbers, fine = parsed(texts)
    if not fine.all():
        wrong = texts[int(np.argmin(fine))].as_py()
        shown = wrong if len(wrong) <= 60 else f"{wrong[:60]}…"
        raise ValueError(
            f"{shown!r} is not a number with at most {_MAX_WHOLE:,} digits before the point and "
            f"{_MAX_FRACTION:,} after it, NaN or Infinity"
        )
    return numbers


def from_numbers(values: pa.Array) -> pa.Array:
    """Encode integers or decimals of any width; ValueError for a number with too many digits."""
    return from_text(values.cast(pa.string()))


def to_text(values: pa.Array) -> pa.Array:
    """Write numbers with all digits and without an exponent; ValueError beyond 2 GiB of text."""
    exact = exact_of(values)
    starts, lengths, data = _spans(exact)
    classes = np.where(lengths > 0, data[np.minimum(starts, len(data) - 1)], _ZERO)
    negative, finite = classes == _NEGATIVE, (classes == _NEGATIVE) | (classes == _POSITIVE)
    exponents = _exponents(starts, data, finite, negative)
    pairs = np.where(finite, lengths - _HEAD - negative, 0)
    digits, counts = _digits(data, starts + _HEAD, pairs, negative)
    sizes = _text_sizes(classes, exponents, counts)
    sizes[_mask(values.is_null())] = 0
    offsets = _offsets(sizes)
    text = np.full(offsets[-1], ord("0"), np.uint8)
    firsts = offsets[:-1] + negative
    _put_digits(text, firsts, digits, exponents, counts)
    small, middle = finite & (exponents <= 0), finite & (exponents > 0) & (exponents < counts)
    text[firsts[small] + 1] = ord(".")
    text[(firsts + exponents)[middle]] = ord(".")
    text[offsets[:-1][negative]] = ord("-")
    for kind, name in _NAMED.items():
        at = offsets[:-1][(classes == kind) & (sizes > 0)]
        text[at[:, None] + np.arange(len(name))] = np.frombuffer(name, np.uint8)
    return _binary(pa.string(), offsets, text, _mask(values.is_valid()))


def checked(values: pa.Array) -> pa.Array:
    """Return stored numbers; ValueError for bytes that are not canonical or another `approx`."""
    exact = exact_of(values)
    if _mask(pc.and_(values.is_valid(), exact.is_null())).any():
        raise ValueError("a number has no exact bytes")
    _check_layout(exact)
    wanted = from_text(to_text(values))
    same = pc.equal(exact_of(wanted), exact)
    if not pc.all(same, min_count=0).as_py():
        wrong = exact.filter(pc.invert(same))[0].as_py()
        raise ValueError(f"the exact bytes {wrong[:40].hex()} of a number are not canonical")
    approx, nearest = approx_of(values), approx_of(wanted)
    alike = pc.or_(pc.equal(approx, nearest), pc.and_(pc.is_nan(approx), pc.is_nan(nearest)))
    if approx.null_count != nearest.null_count or not pc.all(alike, min_count=0).as_py():
        raise ValueError("the approximate float of a number is not the nearest one")
    return wanted


def fit(values: pa.Array, whole: int, fraction: int) -> Mask:
    """Return the mask of finite numbers with at most so many digits before and after the point.

    Digits are counted in pairs, so a number with exactly the last digit may be left out.
    """
    exact = exact_of(values)
    starts, lengths, data = _spans(exact)
    classes = np.where(lengths > 0, data[np.minimum(starts, len(data) - 1)], _NAN)
    negative = classes == _NEGATIVE
    finite = negative | (classes == _POSITIVE)
    exponents = _exponents(starts, data, finite, negative)
    digits = 2 * np.where(finite, lengths - _HEAD - negative, 0)
    short: Mask = finite & (exponents <= whole) & (digits - exponents <= fraction)
    return short | np.equal(classes, _ZERO)


def exact_of(values: pa.Array) -> pa.Array:
    """Return the exact bytes; they sort like the numbers."""
    return pc.struct_field(values, [1])


def approx_of(values: pa.Array) -> pa.Array:
    """Return the nearest floats; infinite for numbers beyond float64."""
    return pc.struct_field(values, [0])


def from_exact(exact: list[bytes | None]) -> pa.Array:
    """Build numbers of canonical bytes; ValueError for bytes that are not a number."""
    return of_exact(pa.array(exact, pa.binary()))


def of_exact(exact: pa.Array) -> pa.Array:
    """Build numbers of their exact bytes; ValueError for bytes that are not a number."""
    _check_layout(exact)
    floats = pa.nulls(len(exact), pa.float64())
    numbers = from_text(to_text(_struct(floats, exact, _mask(exact.is_valid()))))
    if not exact_of(numbers).equals(exact):
        raise ValueError("the exact bytes of a number are not canonical")
    return numbers


def encoded(number: Decimal | int | str) -> bytes:
    """Return the exact bytes of one number; ValueError for a value that is not a number."""
    encoding = exact_of(from_text(pa.array([str(number)], pa.string())))[0].as_py()
    assert isinstance(encoding, bytes)
    return encoding


def spelled(exact: bytes) -> str:
    """Write one number with all digits; ValueError for bytes without the layout of a number."""
    valid = np.ones(1, np.bool_)
    values = pa.array([exact], pa.binary())
    _check_layout(values)  # an exponent that is damaged could mean billions of digits
    one = _struct(pa.nulls(1, pa.float64()), values, valid)
    return str(to_text(one)[0].as_py())


def _named_classes(text: pa.Array, classes: Ints) -> tuple[Mask, Ints]:
    lower = pc.utf8_lower(text)
    named = np.zeros(len(classes), np.bool_)
    for pattern, kind in (
        (r"^nan$", _NAN),
        (r"^\+?inf(inity)?$", _INFINITY),
        (r"^-inf(inity)?$", _NEGATIVE_INFINITY),
    ):
        hits = _mask(pc.match_substring_regex(lower, pattern))
        classes, named = np.where(hits, kind, classes), named | hits
    return named, classes


def _floats(text: pa.Array, named: Mask, valid: Mask) -> pa.Array:
    """Return the nearest floats; NULL where not `valid`."""
    bare = _unsigned(pc.if_else(pa.array(named), pc.utf8_lower(text), text))
    floats = pc.if_else(pa.array(valid), bare, "0").cast(pa.float64())
    numbers = floats.to_numpy(zero_copy_only=False) + 0.0  # -0.0 becomes 0.0
    numbers = np.where(np.isnan(numbers), np.nan, numbers)
    return pa.array(numbers, mask=~valid)


def _unsigned(text: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(text, r"^\+", "")


def _packed(classes: Ints, exponents: Ints, digits: pa.Array, valid: Mask) -> pa.Array:
    """Return the exact bytes; `digits` are without zeros at both ends."""
    finite = valid & ((classes == _NEGATIVE) | (classes == _POSITIVE))
    negative = valid & (classes == _NEGATIVE)
    odd = pc.equal(pc.bit_wise_and(_size(digits), 1), 1)
    digits = pc.binary_join_element_wise(digits, pc.if_else(odd, "0", ""), "")
    pairs = np.where(finite, _ints(_size(digits)) // 2, 0)
    offsets = _offsets(np.where(valid, 1 + finite * (_HEAD - 1) + pairs + negative, 0))
    data = np.zeros(offsets[-1], np.uint8)
    starts = offsets[:-1]
    data[starts[valid]] = classes[valid]
    heads = (exponents[finite] + _SIGN_32) & _LOW_32
    heads = np.where(negative[finite], heads ^ _LOW_32, heads)
    big_endian = heads.astype(">u4").view(np.uint8).reshape(-1, 4)
    data[starts[finite][:, None] + np.arange(1, _HEAD)] = big_endian
    owners, places = _runs(pairs)
    first, _, content = _spans(pc.cast(digits, pa.binary()))
    at = first[owners] + 2 * places
    packed = (content[at] - ord("0")) * 10 + (content[at + 1] - ord("0"))
    data[starts[owners] + _HEAD + places] = np.where(negative[owners], 254 - packed, packed)
    data[offsets[1:][negative] - 1] = 255
    return _binary(pa.binary(), offsets, data, valid)


def _exponents(starts: Ints, data: npt.NDArray[np.uint8], finite: Mask, negative: Mask) -> Ints:
    exponents: Ints = np.zeros(len(starts), np.int64)
    heads = np.ascontiguousarray(data[starts[finite][:, None] + np.arange(1, _HEAD)])
    numbers = heads.view(">u4").reshape(-1).astype(np.int64)
    exponents[finite] = np.where(negative[finite], numbers ^ _LOW_32, numbers) - _SIGN_32
    return exponents


def _text_sizes(classes: Ints, exponents: Ints, counts: Ints) -> Ints:
    sizes: Ints = np.where(exponents >= counts, exponents, counts + 1)
    sizes = np.where(exponents <= 0, counts + 2 - exponents, sizes) + (classes == _NEGATIVE)
    sizes[classes == _ZERO] = 1
    for kind, name in _NAMED.items():
        sizes[classes == kind] = len(name)
    return sizes


def _digits(
    data: npt.NDArray[np.uint8], starts: Ints, pairs: Ints, negative: Mask
) -> tuple[npt.NDArray[np.uint8], Ints]:
    """Return the digits of all numbers as text, without zeros at the end, and their counts."""
    ends = np.cumsum(pairs)
    at = np.arange(pairs.sum()) + np.repeat(starts - ends + pairs, pairs)
    packed = data[at]
    packed = np.where(np.repeat(negative, pairs), 254 - packed, packed)
    counts, last = 2 * pairs, ends[pairs > 0] - 1
    is_half = packed[last] % 10 == 0
    counts[pairs > 0] -= is_half
    is_digit = np.ones(2 * len(packed), np.bool_)
    is_digit[2 * last[is_half] + 1] = False
    return _PAIRS[packed].reshape(-1)[is_digit], counts


def _put_digits(
    text: npt.NDArray[np.uint8],
    firsts: Ints,
    digits: npt.NDArray[np.uint8],
    exponents: Ints,
    counts: Ints,
) -> None:
    """Write the digits of all numbers, whose texts begin at `firsts`, around their points."""
    small = exponents <= 0
    before = np.cumsum(counts) - counts
    places = np.arange(len(digits), dtype=np.int32)
    points = np.where(small, len(digits), before + exponents).astype(np.int32)
    moves = (firsts + np.where(small, 2 - exponents, 0) - before).astype(np.int32)
    moved = np.repeat(moves, counts) + (places >= np.repeat(points, counts))
    text[places + moved] = digits


def _check_layout(exact: pa.Array) -> None:
    """Raise ValueError for bytes that do not have the layout of a number."""
    starts, lengths, data = _spans(exact)
    valid = _mask(exact.is_valid())
    if (valid & (lengths == 0)).any():
        raise ValueError("the exact bytes of a number are empty")
    classes = data[np.minimum(starts, len(data) - 1)]
    finite = valid & ((classes == _NEGATIVE) | (classes == _POSITIVE))
    negative = valid & (classes == _NEGATIVE)
    wrong = valid & (classes > _NAN)
    wrong |= valid & ~finite & (lengths != 1)
    wrong |= finite & (lengths < _HEAD + 1 + negative)
    if not wrong.any():
        exponents = _exponents(starts, data, finite, negative)
        wrong = finite & ((exponents > _MAX_WHOLE) | (exponents < -_MAX_FRACTION))
        owners, places = _runs(np.where(finite, lengths - _HEAD - negative, 0))
        packed = data[starts[owners] + _HEAD + places]
        packed = np.where(negative[owners], 254 - packed, packed)
        wrong[owners[packed > 99]] = True
    if wrong.any():
        wrong_bytes = exact[int(np.argmax(wrong))].as_py()
        raise ValueError(f"the exact bytes {wrong_bytes[:40].hex()} are not those of a number")


def _spans(values: pa.Array) -> tuple[Ints, Ints, npt.NDArray[np.uint8]]:
    """Return the starts and lengths of binary values, 0 for NULL, and the bytes; never no bytes."""
    _, positions, content = values.buffers()
    data = np.frombuffer(content or b"", np.uint8)
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(1, np.uint8)
    ends = np.frombuffer(positions, np.int32, len(values) + 1, values.offset * 4).astype(np.int64)
    lengths = np.where(_mask(values.is_valid()), np.diff(ends), 0)
    return ends[:-1], lengths, data if len(data) else np.zeros(1, np.uint8)


def _runs(counts: Ints) -> tuple[Ints, Ints]:
    """Return, for each item of all runs, the number of its run and its place in it."""
    owners = np.repeat(np.arange(len(counts)), counts)
    firsts = np.cumsum(counts) - counts
    places: Ints = np.arange(len(owners)) - firsts[owners]
    return owners, places


def _offsets(sizes: Ints) -> Ints:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > _MAX_BYTES:
        raise ValueError("numbers of one batch have more than 2 GiB of digits")
    return offsets


def _binary(type_: pa.DataType, offsets: Ints, data: npt.NDArray[np.uint8], valid: Mask) -> Any:
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [bits, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(type_, len(valid), buffers)


def _struct(approx: pa.Array, exact: pa.Array, valid: Mask) -> pa.Array:
    mask = None if valid.all() else pa.array(~valid)
    return pa.StructArray.from_arrays([approx, exact], fields=list(STORAGE), mask=mask)


def _size(values: pa.Array) -> pa.Array:
    return pc.binary_length(values)


def _ints(values: pa.Array) -> Ints:
    return np.asarray(values.to_numpy(zero_copy_only=False), np.int64)


def _mask(values: pa.Array) -> Mask:
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), np.bool_)  # noqa: FBT003
