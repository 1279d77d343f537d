"""The schema elements of a footer: checked as a tree, with its leaf columns.

A decoder walks the list as a tree and trusts its counts. Soundness: a list that is no tree, an
unknown physical type or repetition, a leaf without a length that it needs, and a field of another
Thrift kind, which a decoder would skip, are `MalformedThrift` before a decoder sees them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rowsieve.parquet.foreign_footer.footer_fields import BOOL_KINDS, I32_KIND, PHYSICAL
from rowsieve.parquet.foreign_footer.struct_shapes import BINARY, STRUCT
from rowsieve.parquet.spans import Span
from rowsieve.parquet.statistics.known_faults import Claim, LeafKind, dictionary_leaves, doubted
from rowsieve.parquet.thrift import (
    MalformedThrift,
    ThriftStruct,
    decoded_fields,
    read_list_head,
    zigzag,
)
from rowsieve.varints import decode_varint

TYPE, WIDTH, REPETITION, NAME, CHILDREN, CONVERTED, SCALE, PRECISION, FIELD_ID, LOGICAL = range(
    1, 11
)
BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTES, FIXED = range(8)
LENGTHS: Final = {BOOLEAN: 1, INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8}
_REQUIRED, _OPTIONAL, _REPEATED = range(3)
_UNSIGNED: Final = range(11, 15)  # converted types
_NO_ORDER: Final = 21  # the converted type of intervals
_ENUM_CONVERTED, DECIMAL_CONVERTED = 4, 5
WIDE_DIGITS: Final = 39  # the smallest precision that pyarrow decodes as 256 bits
_TIMES_CONVERTED: Final = range(6, 11)
_MAPS_CONVERTED: Final = (1, 2)
_MAP, _ENUM, _DECIMAL, _TIMES = 2, 4, 5, (6, 7, 8)  # logical types
_TIMESTAMP, _UNIT, _NANOS = 8, 2, 3  # a logical type, its field, and a member of that
_INTEGER, _IS_SIGNED = 10, 2  # a logical type, and its field
_WITHOUT_ORDER: Final = (15, 16, 17, 18)  # half floats, variants, geometry, geography
_KINDS: Final[Mapping[int, int]] = {
    **dict.fromkeys((TYPE, WIDTH, REPETITION, CHILDREN, CONVERTED, SCALE, PRECISION), I32_KIND),
    FIELD_ID: I32_KIND,
    NAME: BINARY,
    LOGICAL: STRUCT,
}
_SCALE, _PRECISION = 1, 2  # fields of the logical type of decimals
_NARROW_BYTES, _WIDE_BYTES = 16, 32  # of decimals of 128 and 256 bits
_NARROW_DIGITS: Final = 38
_DEEPEST: Final = 100
_LONGEST_SHARED: Final = 127  # bytes of a name whose length takes one byte
_MAX_FORMS: Final = 16  # that an element is compared with
_WIDEST: Final = 2**24  # bytes of a fixed-length value


class Leaf(NamedTuple):
    """A leaf column: its physical type, the bytes of a fixed-length value, and what orders it.

    `path`: the names from the top-level column on. `definitions`, `repetitions`: its highest
    levels. `doubts`: the claims that its writer is known to make wrongly. `is_enum`: whether its
    bytes are the text of an enum. `has_nanoseconds`: whether it has timestamps in nanoseconds.
    `digits`: the precision and scale of a decimal in more bytes than it needs (`wide_decimal`).
    """

    physical: int
    width: int
    is_signed: bool
    has_order: bool
    path: tuple[str, ...] = ()
    definitions: int = 0
    repetitions: int = 0
    doubts: Claim = Claim.NOTHING
    is_enum: bool = False
    has_nanoseconds: bool = False
    digits: tuple[int, int] | None = None

    @property
    def decoded(self) -> int:
        """The physical type that a decoder is told: INT96 is read as fixed bytes (`int96`)."""
        return FIXED if self.physical == INT96 else self.physical


_PLACE: Final = Leaf._fields.index("path")
"""The first of three fields of a leaf that say where it is, not what it is."""


class Element(NamedTuple):
    """A schema element, and the number of elements above it.

    `values`: its fields but for the name and the field id; elements of one form share them.
    `field_id`: None also for one beyond 32 bits. `span`: where its bytes lie. `is_known`: whether a
    decoder may see them as they are.
    """

    name: str
    values: ThriftStruct
    depth: int
    field_id: int | None
    span: Span
    is_known: bool


class _Form(NamedTuple):
    """The bytes of an element around its name and its field id, and what they decode to.

    Soundness: the fields of a struct are read one after another, so equal bytes around a name are
    the same fields. `after` is what follows a field id; empty without one.
    """

    before: bytes
    between: bytes
    after: bytes
    values: ThriftStruct
    children: int
    is_known: bool


def wide_decimal(values: ThriftStruct) -> tuple[int, int] | None:
    """The precision and scale of a decimal of at most 38 digits in 17 to 32 fixed bytes.

    pyarrow takes the number of bytes that it decodes from the precision, and fails at more. So it
    is told a precision of 39 digits (`WIDE_DIGITS`). None for other elements.
    """
    if values.get(TYPE) != FIXED or not _NARROW_BYTES < values.get(WIDTH, 0) <= _WIDE_BYTES:
        return None
    logical = values.get(LOGICAL, {}).get(_DECIMAL)
    if isinstance(logical, dict):
        digits = logical.get(_PRECISION), logical.get(_SCALE, 0)
    elif values.get(CONVERTED) == DECIMAL_CONVERTED:
        digits = values.get(PRECISION), values.get(SCALE, 0)
    else:
        return None
    precision, scale = digits
    if not isinstance(precision, int) or not isinstance(scale, int):
        return None
    return (precision, scale) if 0 <= scale <= precision <= _NARROW_DIGITS and precision else None


def read_schema(footer: bytes, start: int) -> tuple[list[Element], int]:
    """Read the list of schema elements; also returns its end.

    MalformedThrift if it is not a tree of known elements.
    """
    count, position = read_list_head(footer, start)
    elements: list[Element] = []
    open_: list[int] = []  # missing children of each ancestor
    reader = _ElementReader(footer)
    for number in range(count):
        while open_ and not open_[-1]:
            open_.pop()
        element, children = reader.read(position, len(open_))
        position = element.span[1]
        if number and not open_:
            raise MalformedThrift("its schema has elements that belong to no column")
        if open_:
            open_[-1] -= 1
        elements.append(element)
        if children < 0 or children > count or len(open_) > _DEEPEST:
            raise MalformedThrift(f"its schema has more than {_DEEPEST} levels, or false counts")
        open_.append(children)
    if not elements or any(open_):
        raise MalformedThrift("its schema is cut off")
    return _without_empty_groups(elements), position


class _ElementReader:
    """Reads elements; one of a known form is compared byte by byte instead of decoded."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._forms: list[_Form] = []

    def read(self, position: int, depth: int) -> tuple[Element, int]:
        """The element at `position`, and the number of its children."""
        data = self._data
        for form in self._forms if depth else ():
            start = position + len(form.before) + 1
            if not data.startswith(form.before, position):
                continue
            length = data[start - 1]
            end = start + length
            if length > _LONGEST_SHARED or not data.startswith(form.between, end):
                continue
            end += len(form.between)
            number = None
            if form.after:
                encoded, end = decode_varint(data, end)
                if not data.startswith(form.after, end):
                    continue
                number, end = zigzag(encoded), end + len(form.after)
            if end < len(data):
                name = _decoded_name(data[start : start + length])
                return _element(name, form, depth, number, (position, end)), form.children
        return self._decoded(position, depth)

    def _decoded(self, position: int, depth: int) -> tuple[Element, int]:
        data, is_root = self._data, not depth
        values, fields, stop = decoded_fields(data, position)
        as_bool = False
        for each in fields:  # readers would skip it, and what they assume instead may differ
            if each.number == REPETITION and each.kind in BOOL_KINDS:
                as_bool = True  # fastparquet's has_nulls="infer": optional if true, else required
                values[REPETITION] = int(values[REPETITION])
            elif each.kind != _KINDS.get(each.number, each.kind):
                raise MalformedThrift(f"field {each.number} of a schema element has a false kind")
        numbers = [each.number for each in fields]
        values = {number: value for number, value in values.items() if number in _KINDS}
        if is_root:
            values.pop(TYPE, None)  # some writers give one to the whole row, which readers ignore
        is_other = values.get(TYPE) == INT96 or wide_decimal(values) is not None
        is_known = not is_root and numbers == list(values) and not is_other and not as_bool
        children = _checked(values, is_root=is_root)
        name, number = _decoded_name(values.pop(NAME)), values.pop(FIELD_ID, None)
        places = {each.number: each for each in fields}
        text, id_ = places[NAME], places.get(FIELD_ID)
        between, after = data[text.stop : stop], b""
        if id_ is not None:
            between, after = data[text.stop : id_.start], data[id_.stop : stop]
        length = text.stop - text.start - 1
        form = _Form(
            data[position : text.start], between, after, values, children, is_known
        )  # fmt: skip
        if is_known and length <= _LONGEST_SHARED and (id_ is None or id_.start > text.stop):
            self._forms = [form, *self._forms[: _MAX_FORMS - 1]]
        return _element(name, form, depth, number, (position, stop)), children


def _element(name: str, form: _Form, depth: int, number: int | None, span: Span) -> Element:
    if number is None or -(2**31) <= number < 2**31:
        return Element(name, form.values, depth, number, span, form.is_known)
    return Element(name, form.values, depth, None, span, is_known=False)


def _decoded_name(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise MalformedThrift("a column has no name in UTF-8") from error


def _without_empty_groups(elements: Sequence[Element]) -> list[Element]:
    """Leave out groups without a leaf: nothing is stored for them, not even NULL."""
    repaired: list[Element] = []
    counts: dict[int, int] = {}  # the kept elements of each depth since the last one above
    for element in reversed(elements):
        children = counts.pop(element.depth + 1, 0)
        if TYPE in element.values or children or not element.depth:
            if TYPE not in element.values and children != element.values.get(CHILDREN, 0):
                values = {**element.values, CHILDREN: children}
                repaired.append(element._replace(values=values, is_known=False))
            else:
                repaired.append(element)
            counts[element.depth] = counts.get(element.depth, 0) + 1
    return repaired[::-1]


def _checked(values: ThriftStruct, *, is_root: bool) -> int:
    """The number of children of an element; MalformedThrift if the element is not valid."""
    if NAME not in values:
        raise MalformedThrift("a column has no name")
    name = _decoded_name(values[NAME])
    children = int(values.get(CHILDREN, 0))
    physical = values.get(TYPE)
    if physical is not None and children:
        raise MalformedThrift(f"column {name!r} has a type and fields")
    if not is_root and values.get(REPETITION) not in (0, _OPTIONAL, _REPEATED):
        raise MalformedThrift(f"column {name!r} has no known repetition")
    if physical is not None and not 0 <= physical < len(PHYSICAL):
        raise MalformedThrift(f"column {name!r} has the unknown physical type {physical}")
    if physical == FIXED and not 0 < values.get(WIDTH, 0) <= _WIDEST:
        raise MalformedThrift(f"column {name!r} has values of {values.get(WIDTH, 0)} bytes")
    return children


def map_without_keys(elements: Sequence[Element]) -> str | None:
    """The path of the first map whose keys are not required; None if there is none."""
    path: list[Element] = []
    for element, entries, key in zip(elements, elements[1:], elements[2:], strict=False):
        path[element.depth :] = [element]
        logical, converted = element.values.get(LOGICAL, {}), element.values.get(CONVERTED)
        is_map = _MAP in logical or converted in _MAPS_CONVERTED
        if is_map and entries.depth < key.depth and key.values.get(REPETITION) != _REQUIRED:
            return ".".join(each.name for each in path[1:])
    return None


def leaves_in(
    elements: Sequence[Element], created_by: str, pairs: Mapping[bytes, bytes]
) -> list[Leaf]:
    """The leaf columns of a schema, in their order."""
    dictionaries: Sequence[bool] = ()
    if doubted(created_by, LeafKind.DICTIONARY):
        dictionaries = dictionary_leaves(pairs, sum(TYPE in each.values for each in elements))
    above: list[tuple[tuple[str, ...], int, int]] = [((), 0, 0)]  # path and levels, by depth
    leaves: list[Leaf] = []
    known: dict[tuple[int, bool], Leaf] = {}  # by the shared values of a form
    for element in elements[1:]:
        values, depth = element.values, element.depth
        path, definitions, repetitions = above[depth - 1]
        repetition = values[REPETITION]
        path = (*path, element.name)
        definitions += repetition != _REQUIRED
        repetitions += repetition == _REPEATED
        above[depth:] = [(path, definitions, repetitions)]
        if TYPE in values:
            may_be = bool(dictionaries) and dictionaries[len(leaves)] and values[TYPE] == BYTES
            if (form := known.get((id(values), may_be))) is None:
                form = known[id(values), may_be] = _leaf(values, created_by, may_be=may_be)
            place = path, definitions, repetitions
            leaves.append(Leaf._make(form[:_PLACE] + place + form[_PLACE + len(place) :]))
    return leaves


def _leaf(values: ThriftStruct, created_by: str, *, may_be: bool) -> Leaf:
    """A leaf of these fields, at no place; `may_be`: whether it may be a dictionary array."""
    physical, converted = int(values[TYPE]), values.get(CONVERTED)
    logical = values.get(LOGICAL, {})
    kind = _kind(values) | (LeafKind.DICTIONARY if may_be else LeafKind(0))
    integer = logical.get(_INTEGER)
    signed = not isinstance(integer, dict) or integer.get(_IS_SIGNED) is not False
    return Leaf(
        physical,
        int(values.get(WIDTH, 0)),
        physical not in (BYTES, FIXED) and converted not in _UNSIGNED and signed,
        physical != INT96
        and converted != _NO_ORDER
        and not any(each in logical for each in _WITHOUT_ORDER),
        doubts=doubted(created_by, kind),
        is_enum=converted == _ENUM_CONVERTED or _ENUM in logical,
        has_nanoseconds=_is_nanos(logical.get(_TIMESTAMP)),
        digits=wide_decimal(values),
    )


def _is_nanos(timestamp: object) -> bool:
    """Return whether the unit of this logical type is nanoseconds."""
    unit = timestamp.get(_UNIT) if isinstance(timestamp, dict) else None
    return isinstance(unit, dict) and _NANOS in unit


def is_decimal(values: ThriftStruct) -> bool:
    """Return whether a schema element declares decimals."""
    return values.get(CONVERTED) == DECIMAL_CONVERTED or _DECIMAL in values.get(LOGICAL, {})


def _kind(values: ThriftStruct) -> LeafKind:
    converted, logical = values.get(CONVERTED), values.get(LOGICAL, {})
    if values[TYPE] in (BYTES, FIXED):
        return LeafKind.DECIMAL_BYTES if is_decimal(values) else LeafKind.BYTES
    is_time = converted in _TIMES_CONVERTED or any(each in logical for each in _TIMES)
    return LeafKind.TIME if is_time else LeafKind.OTHER
