"""`checked` and `checked_methods`: wrap public calls; wrong arguments raise InvalidInput.

`checked_names` does so for constructors that check their values themselves.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from typing import Any, Final, ParamSpec, TypeVar, get_type_hints

from rowsieve.arguments.kinds import Anything, ArgumentKind, Misfit, kind_of
from rowsieve.arguments.peer_names import hint_for_argument
from rowsieve.arguments.short_tracebacks import is_shortened, shortened
from rowsieve.errors import InvalidInput, RowsieveError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of each call; the first call evaluates the annotations.

    Too many, too few and unknown arguments raise TypeError, as in plain Python calls.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        positional, kinds, required = kinds_of(function)
        if len(args) > len(positional):
            _refuse_by_place(function, positional, len(args))
            return function(*args, **kwargs)  # takes any number
        if not kwargs.keys() <= kinds.keys():
            _refuse_unknown(function, kinds, kwargs)
        if missing := required.difference(positional[: len(args)], kwargs):
            names = ", ".join(map(repr, sorted(missing)))
            raise TypeError(f"{_shown(function)}() missing required arguments: {names}")
        name = ""
        fitted: list[Any] = []
        try:
            for name, value in zip(positional, args, strict=False):
                kind = kinds[name]
                fitted.append(value if isinstance(kind, Anything) else kind.fit(value))
            for name, value in kwargs.items():
                if name in kinds and not isinstance(kinds[name], Anything):
                    kwargs[name] = kinds[name].fit(value)
        except Misfit as misfit:
            raise _refusal(_shown(function), name, kinds[name], misfit) from None
        try:
            return function(*fitted, **kwargs)
        except RowsieveError as error:
            if is_shortened():
                raise shortened(error) from None
            raise

    call.__rowsieve_checked__ = True  # type: ignore[attr-defined]  # for the test of the surface
    return call


def checked_methods(cls: type[C]) -> type[C]:
    """Check the arguments of all public methods of a class, also of inherited ones."""
    for name in dir(cls):
        if name.startswith("_"):
            continue
        attribute = inspect.getattr_static(cls, name)
        if isinstance(attribute, types.FunctionType):
            setattr(cls, name, checked(attribute))
        elif isinstance(attribute, classmethod | staticmethod):
            setattr(cls, name, type(attribute)(checked(attribute.__func__)))
    return cls


def checked_names(cls: type[C]) -> type[C]:
    """Let the constructor of a class name the nearest argument for an unknown one."""
    create: Any = vars(cls)["__init__"]
    names = dict.fromkeys(inspect.signature(create).parameters, Anything())

    @wraps(create)
    def call(*args: Any, **kwargs: Any) -> None:
        if not kwargs.keys() <= names.keys():
            _refuse_unknown(create, names, kwargs)
        create(*args, **kwargs)

    cls.__init__ = call  # type: ignore[method-assign] # it takes the same arguments
    return cls


@cache
def kinds_of(
    function: Callable[..., Any],
) -> tuple[tuple[str, ...], dict[str, ArgumentKind], frozenset[str]]:
    """Return the positional names, the kind of each argument, and the required names."""
    parameters = inspect.signature(function).parameters.values()
    # The type of the result is not evaluated: its engine may not be imported.
    annotations = {
        n: each for n, each in inspect.get_annotations(function).items() if n != "return"
    }
    alone = types.SimpleNamespace(__annotations__=annotations)
    hints = get_type_hints(alone, inspect.unwrap(function).__globals__, include_extras=True)
    kinds = {
        parameter.name: kind_of(hints[parameter.name]) if parameter.name in hints else Anything()
        for parameter in parameters
    }
    named = (*_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)
    required = [
        each.name for each in parameters if each.kind in named and each.default is each.empty
    ]
    positional = [each.name for each in parameters if each.kind in _POSITIONAL]
    return tuple(positional), kinds, frozenset(required)


def _refuse_unknown(
    function: Callable[..., Any], kinds: Mapping[str, ArgumentKind], passed: Iterable[str]
) -> None:
    """Raise TypeError for the first unknown name, unless the function takes names of any kind."""
    if inspect.Parameter.VAR_KEYWORD in _parameter_kinds(function):
        return
    name = next(name for name in passed if name not in kinds)
    hint = hint_for_argument(name, kinds)
    raise TypeError(f"{_shown(function)}() got an unexpected keyword argument {name!r}{hint}")


def _refuse_by_place(
    function: Callable[..., Any], positional: tuple[str, ...], passed: int
) -> None:
    """Raise TypeError for too many arguments, unless the function takes any number of them."""
    parameters = inspect.signature(function).parameters.values()
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        return
    receiver = positional[:1] in (("self",), ("cls",))
    named = [each.name for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
    hint = f"; name the others, such as {named[0]}=…" if named else ""
    takes, passed = len(positional) - receiver, passed - receiver
    raise TypeError(
        f"{_shown(function)}() takes at most {takes} arguments by position, got {passed}{hint}"
    )


def _parameter_kinds(function: Callable[..., Any]) -> set[Any]:
    return {each.kind for each in inspect.signature(function).parameters.values()}


def _shown(function: Callable[..., Any]) -> str:
    """The name by which a function is called: the class of a constructor."""
    if function.__name__ == "__init__":
        return function.__qualname__.split(".")[-2]
    return function.__name__


def _refusal(function: str, name: str, kind: ArgumentKind, misfit: Misfit) -> InvalidInput:
    example = f", such as {name}={kind.example}" if kind.example else ""
    takes = "" if misfit.wanted == kind.shown else f"; {name}= takes {kind.shown}"
    return InvalidInput(
        f"{function}: {name}{misfit.place} is {misfit.actual}, not {misfit.wanted}{takes}{example}"
    )
