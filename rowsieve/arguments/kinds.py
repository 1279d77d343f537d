"""Kinds of arguments: the values that an annotation allows, and their description in messages.

Values are passed on unchanged, except that NumPy numbers become Python numbers and sized
collections become lists. `True` is not accepted as a number, nor a set as a list, because it has no
order. Text with a lone surrogate is rejected, because it cannot be encoded. A message never shows
the content of a mapping: it may be a secret.
"""

from __future__ import annotations

import inspect
import numbers
import operator
import os
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import numpy as np

_SHOWN: Final = (bool, int, float, str, type(None), date, timedelta, np.generic)
_LONGEST_SHOWN: Final = 60
_EXAMPLE: Final = operator.attrgetter("example")
_NO_LISTS: Final = (str, bytes, bytearray, memoryview, Mapping, AbstractSet)


@dataclass(frozen=True, slots=True)
class Example:
    """Metadata of an annotation: an example of a valid value, and its description."""

    text: str
    shown: str = ""


@dataclass(frozen=True, slots=True)
class AnyText:
    """Metadata of an annotation: its text may hold lone surrogates, as paths do."""


ANY_TEXT: Final = AnyText()


@dataclass(frozen=True, slots=True)
class Verified:
    """Metadata of an annotation: `verify` raises InvalidInput for a value that the call refuses.

    So that each call refuses it, also one that does not use the value this time.
    """

    verify: Callable[[Any], object]


class Misfit(Exception):
    """A value, or its item at `place`, is not of the kind `wanted`."""

    def __init__(self, actual: str, wanted: str, place: str = "") -> None:
        super().__init__(actual, wanted, place)
        self.actual, self.wanted, self.place = actual, wanted, place


class ArgumentKind(ABC):
    """The values that an annotation allows; `shown` and `example` describe them in messages."""

    shown: str
    example: str

    @abstractmethod
    def fit(self, value: Any) -> Any:
        """Return the value in the form that the function takes; Misfit for another kind."""

    def refused(self, value: Any) -> Misfit:
        """Return the Misfit of a value that is not of this kind."""
        return Misfit(described(value), self.shown)


class Text(ArgumentKind):
    """Text that can be encoded as UTF-8."""

    def __init__(self, *, surrogates: bool = False) -> None:
        self.shown, self.example, self._surrogates = "text", "'name'", surrogates

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        if not isinstance(value, str):
            raise self.refused(value)
        if not (self._surrogates or value.isascii()):
            try:
                value.encode()
            except UnicodeEncodeError as error:
                description = f"text with a lone surrogate at position {error.start}"
                raise Misfit(description, "text that can be encoded as UTF-8") from None
        return value


class Number(ArgumentKind):
    """A Python or NumPy number of up to 64 bits, but not a boolean."""

    def __init__(self, *, whole: bool) -> None:
        self.shown, self.example = ("a whole number", "1") if whole else ("a number", "1.5")
        self._whole = whole

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        if isinstance(value, bool):
            raise self.refused(value)
        if isinstance(value, numbers.Integral):
            number = operator.index(value)
            if not -(2**63) <= number < 2**63:
                raise Misfit("a number of more than 64 bits", self.shown)
            return number
        if isinstance(value, numbers.Real) and not self._whole:
            return float(value)
        raise self.refused(value)


class Flag(ArgumentKind):
    """A Python or NumPy boolean."""

    shown, example = "True or False", "True"

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        if not isinstance(value, bool | np.bool_):
            raise self.refused(value)
        return bool(value)


class Nothing(ArgumentKind):
    """None."""

    shown, example = "None", ""

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        if value is not None:
            raise self.refused(value)


class Instance(ArgumentKind):
    """An object of a class."""

    def __init__(self, class_: type) -> None:
        module = class_.__module__.partition(".")[0]
        owner = "" if module in ("builtins", "rowsieve") else f"{module.lstrip('_')}."
        name = f"{owner}{class_.__qualname__}"
        self.shown, self.example, self._class = f"{_article(name)} {name}", "", class_

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        if not isinstance(value, self._class):
            raise self.refused(value)
        return value


class Bytes(ArgumentKind):
    """Bytes in any of Python's types."""

    shown, example = "bytes", ""

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        if not isinstance(value, bytes | bytearray | memoryview):
            raise self.refused(value)
        return value


class Having(ArgumentKind):
    """An object with the methods of a protocol."""

    def __init__(self, protocol: type) -> None:
        self._methods = [name for name in vars(protocol) if not name.startswith("_")]
        calls = ", ".join(f"{name}()" for name in self._methods)
        self.shown, self.example = f"an object with {calls}", ""

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        if not all(callable(getattr(value, name, None)) for name in self._methods):
            raise self.refused(value)
        return value


class Called(ArgumentKind):
    """A function or another callable that takes so many arguments by position; None for any."""

    example = ""

    def __init__(self, arguments: int | None = None) -> None:
        self._arguments = arguments
        of = {None: "", 0: " without arguments", 1: " of 1 argument"}
        self.shown = f"a function{of.get(arguments, f' of {arguments} arguments')}"

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        if not callable(value):
            raise self.refused(value)
        signature = None if self._arguments is None else _signature_of(value)
        if signature is not None and not _takes(signature, self._arguments or 0):
            raise Misfit(f"a function with the arguments {signature}", self.shown)
        return value


def _signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of what is called, not of a function that it wraps; None if it is unknown."""
    try:
        return inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError, NameError):  # a builtin, or annotations of Python 3.14
        return None


def _takes(signature: inspect.Signature, count: int) -> bool:
    """Whether a call with so many arguments by position fits a signature."""
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


class Choice(ArgumentKind):
    """One of a few texts."""

    def __init__(self, choices: tuple[str, ...]) -> None:
        *most, last = map(repr, choices)
        self.shown = f"{', '.join(most)} or {last}" if most else last
        self.example, self._choices = "", choices

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        if not (isinstance(value, str) and value in self._choices):
            raise self.refused(value)
        return str(value)


class ListKind(ArgumentKind):
    """A list, tuple or other ordered, sized collection of items of one kind."""

    def __init__(self, item: ArgumentKind) -> None:
        self._item = item
        self.shown = f"a list of {item.shown.removeprefix('a ')}"
        self.example = f"[{item.example}]"

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        items = value
        if not isinstance(value, list | tuple):
            if isinstance(value, _NO_LISTS) or not isinstance(value, Iterable):
                raise self.refused(value)
            if not isinstance(value, Sized):  # a generator can be read only once
                raise self.refused(value)
            items = list(value)
        fitted = [_member(self._item, f"[{i}]", each) for i, each in enumerate(items)]
        return items if fitted == items else type(items)(fitted)


class Mapped(ArgumentKind):
    """A mapping with keys of one kind and values of one kind."""

    def __init__(self, key: ArgumentKind, value: ArgumentKind) -> None:
        self._key, self._value = key, value
        self.shown = f"a mapping of {key.shown} to {value.shown}"
        self.example = f"{{{key.example}: {value.example or '…'}}}"

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        if not isinstance(value, Mapping):
            raise Misfit(type_of(value), self.shown)  # the value may be a misplaced secret
        fitted = {}
        for key, each in value.items():
            try:
                name = self._key.fit(key)
            except Misfit as misfit:
                raise Misfit(type_of(key), misfit.wanted, ", a name in it,") from None
            try:
                fitted[name] = self._value.fit(each)
            except Misfit as misfit:
                raise Misfit(type_of(each), misfit.wanted, f"[{name!r}]{misfit.place}") from None
        return fitted


class Fixed(ArgumentKind):
    """A tuple with one item for each kind."""

    def __init__(self, items: tuple[ArgumentKind, ...]) -> None:
        self._items = items
        self.shown = f"a tuple ({', '.join(item.shown for item in items)})"
        self.example = f"({', '.join(item.example for item in items)})"

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        if not isinstance(value, tuple):
            raise self.refused(value)
        if len(value) != len(self._items):
            raise Misfit(f"a tuple of {len(value)}", self.shown)
        pairs = zip(self._items, value, strict=True)
        return tuple(_member(item, f"[{i}]", each) for i, (item, each) in enumerate(pairs))


class Either(ArgumentKind):
    """A value of one of several kinds."""

    def __init__(self, kinds: Sequence[ArgumentKind]) -> None:
        self._kinds = kinds
        self.shown = " or ".join([kind.shown for kind in kinds if not isinstance(kind, Nothing)])
        self.example = next(filter(None, map(_EXAMPLE, kinds)), "")

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        misfits = []
        for kind in self._kinds:
            try:
                return kind.fit(value)
            except Misfit as misfit:
                misfits.append(misfit)
        nested = [misfit for misfit in misfits if misfit.place]
        if len(nested) == 1:
            raise nested[0]  # the outer kind was right
        pairs = zip(self._kinds, misfits, strict=True)
        of_text = [misfit for kind, misfit in pairs if isinstance(kind, Text)]
        if of_text and isinstance(value, str):  # it is text, and says what is wrong with it
            raise of_text[0]
        plain = (described(value), type_of(value))
        specific = [misfit.actual for misfit in misfits if misfit.actual not in plain]
        if len(specific) == 1:  # one kind says more than what the value is
            raise Misfit(specific[0], self.shown)
        relevant = [misfit for misfit in misfits if misfit.wanted != "None"]
        raise relevant[0] if len(relevant) == 1 else self.refused(value)


class Anything(ArgumentKind):
    """Any value; the function checks it itself."""

    shown, example = "a value", ""

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        return value


class Illustrated(ArgumentKind):
    """A kind with an example, and optionally a description, from the annotation."""

    def __init__(self, kind: ArgumentKind, example: Example) -> None:
        self.shown, self.example = example.shown or kind.shown, example.text
        self._kind = kind

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        try:
            return self._kind.fit(value)
        except Misfit as misfit:
            if misfit.wanted == self._kind.shown and not misfit.place:
                raise Misfit(misfit.actual, self.shown) from None
            raise


class VerifiedValue(ArgumentKind):
    """A value of a kind that a function accepts, too; None is not asked about."""

    def __init__(self, kind: ArgumentKind, verified: Verified) -> None:
        self.shown, self.example = kind.shown, kind.example
        self._kind, self._verify = kind, verified.verify

    def fit(self, value: Any) -> Any:
        """See `Kind.fit`."""
        fitted = self._kind.fit(value)
        if fitted is not None:
            self._verify(fitted)
        return fitted


@cache
def kind_of(annotation: Any, *, surrogates: bool = False) -> ArgumentKind:
    """Return the kind of an annotation; TypeError for an unsupported form."""
    origin, members = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        notes = members[1:]
        kind = kind_of(members[0], surrogates=surrogates or ANY_TEXT in notes)
        examples = [note for note in notes if isinstance(note, Example)]
        kind = Illustrated(kind, examples[0]) if examples else kind
        for verified in (note for note in notes if isinstance(note, Verified)):
            kind = VerifiedValue(kind, verified)
        return kind
    if origin in (Union, types.UnionType):
        return Either([kind_of(member, surrogates=surrogates) for member in members])
    if origin is Literal:
        return Choice(members)
    if origin is Sequence or origin is list:
        return ListKind(kind_of(members[0]))
    if origin is Mapping or origin is dict:
        return Mapped(kind_of(members[0]), kind_of(members[1]))
    if origin is tuple and members and members[-1] is not Ellipsis:
        return Fixed(tuple(map(kind_of, members)))
    if origin is Callable or annotation is Callable:
        return Called(len(members[0]) if members and isinstance(members[0], list) else None)
    if annotation is str:
        return Text(surrogates=surrogates)
    return _kind_of_class(os.PathLike if origin is os.PathLike else annotation)


def _kind_of_class(annotation: Any) -> ArgumentKind:
    if annotation in (Any, object) or isinstance(annotation, TypeVar):
        return Anything()
    if annotation in (None, type(None)):
        return Nothing()
    if annotation is bool:
        return Flag()
    if annotation is bytes:
        return Bytes()
    if annotation in (int, float):
        return Number(whole=annotation is int)
    if getattr(annotation, "_is_protocol", False):
        return Having(annotation)
    if isinstance(annotation, type):
        return Instance(annotation)
    raise TypeError(f"no rule for arguments of type {annotation!r}; add one to arguments/kinds.py")


def described(value: object) -> str:
    """Describe a value with its type, or only its type if the value is long or not plain."""
    if not isinstance(value, _SHOWN):
        return type_of(value)
    try:
        shown = ascii(value) if isinstance(value, str) else repr(value)
    except Exception:  # Python writes no integer of more than 4,300 digits
        return type_of(value)
    if len(shown) > _LONGEST_SHOWN:
        return type_of(value)
    return shown if value is None else f"{shown} ({type(value).__name__})"


def type_of(value: object) -> str:
    """Return the name of a value's type with its article."""
    name = type(value).__name__
    if name == "bytes":
        return name
    return f"{_article(name)} {name}"


def _member(kind: ArgumentKind, place: str, value: Any) -> Any:
    try:
        return kind.fit(value)
    except Misfit as misfit:
        raise Misfit(misfit.actual, misfit.wanted, f"{place}{misfit.place}") from None


def _article(name: str) -> str:
    return "an" if name[0] in "aeiouAEIOU" else "a"
