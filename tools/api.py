"""Write the reference of all public names, with types: `make api` writes `build/api.md`.

Signatures and texts are those of the code, so the page is made when it is read, and not kept. The
page for people, with examples, is `docs/reference/python.md`.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import typing
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import rowsieve
from rowsieve.arguments import annotations as argument_annotations

LONGEST_SIGNATURE: Final = 90
TARGET: Final = Path(__file__).parents[1] / "build" / "api.md"
# What else is public: the errors, and the entries of providers and metrics.
ERRORS: Final = "rowsieve.errors"  # its functions are for our own messages
MODULES: Final = (
    "rowsieve",
    ERRORS,
    "rowsieve.metrics",
    "rowsieve.providers.datafusion",
    "rowsieve.providers.spark",
    "rowsieve.telemetry",
)


def page() -> str:
    """The reference as Markdown: a section per module, a heading per name."""
    lines = [f"# API of Rowsieve {rowsieve.__version__}", ""]
    for module in MODULES:
        lines += [f"## `{module}`", ""]
        for name, value in public_names(module):
            lines += entry(name, value)
    lines += ["## Types of arguments", ""]
    lines += [f"- `{name}`: {text}" for name, text in argument_types()]
    return "\n".join([*lines, ""])


def argument_types() -> Iterator[tuple[str, str]]:
    """The names of types in signatures, with the text below each."""
    body = ast.parse(inspect.getsource(argument_annotations)).body
    for alias, text in pairwise(body):
        match alias, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                value=ast.Constant(value=str(doc))
            ):
                yield name, " ".join(doc.split())


def public_names(module: str) -> Iterator[tuple[str, Any]]:
    """The names that a module lists, or that it defines without an underscore."""
    loaded = __import__(module, fromlist=["_"])
    listed = getattr(loaded, "__all__", None)
    names = listed or [name for name in vars(loaded) if not name.startswith("_")]
    for name in sorted(names):
        value = getattr(loaded, name)
        is_own = listed or getattr(value, "__module__", None) == module
        is_entry = inspect.isclass(value) or (inspect.isroutine(value) and module != ERRORS)
        if is_own and is_entry:
            yield name, value


def entry(name: str, value: Any) -> Iterator[str]:
    """The lines on a class, with its members, or on a function."""
    yield f"### `{name}`"
    yield ""
    yield from described(name, value)
    if not inspect.isclass(value) or issubclass(value, BaseException):
        return
    if dataclasses.is_dataclass(value):
        yield "| field | type |"
        yield "|---|---|"
        for field in dataclasses.fields(value):
            if not field.name.startswith("_"):
                yield f"| `{field.name}` | `{plain(field.type)}` |".replace(" | None", r" \| None")
        yield ""
    for member, found in members(value):
        yield f"#### `{name}.{member}`"
        yield ""
        yield from described(member, found)


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class that our code defines, inherited ones too."""
    for name in dir(kind):
        found = inspect.getattr_static(kind, name)
        if isinstance(found, property):
            found = found.fget
        elif isinstance(found, classmethod | staticmethod):
            found = found.__func__
        module = getattr(found, "__module__", None) or ""
        if name.startswith("_") or not module.startswith("rowsieve"):
            continue
        if inspect.isfunction(inspect.unwrap(found)):
            yield name, found


def described(name: str, value: Any) -> Iterator[str]:
    """The signature in a block of code, and the docstring."""
    if (signature := signature_of(value)) is not None:
        yield "```py"
        yield f"{name}{signature}"
        yield "```"
        yield ""
    if text := inspect.getdoc(value):
        yield re.sub(r"``([^`]+)``", r"`\1`", text)
        yield ""


def signature_of(value: Any) -> str | None:
    """The signature with plain types, an argument a line if it is long; None for errors."""
    if inspect.isclass(value) and (
        issubclass(value, BaseException) or value.__init__ is object.__init__
    ):
        return None
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    shown = [
        parameter.replace(annotation=Shown(parameter.annotation))
        if parameter.annotation is not parameter.empty
        else parameter
        for parameter in signature.parameters.values()
        if parameter.name != "self" and not parameter.name.startswith("_")
    ]
    result = signature.return_annotation
    signature = signature.replace(
        parameters=shown,
        return_annotation=result if result is signature.empty else Shown(result),
    )
    text = str(signature)
    if len(text) <= LONGEST_SIGNATURE:
        return text
    arguments = [str(parameter) for parameter in shown]
    star = next((i for i, each in enumerate(shown) if each.kind is each.KEYWORD_ONLY), None)
    if star is not None and not any(each.kind is each.VAR_POSITIONAL for each in shown):
        arguments.insert(star, "*")
    end = "" if result is signature.empty else f" -> {plain(result)}"
    return "(\n" + "".join(f"    {argument},\n" for argument in arguments) + f"){end}"


class Shown:
    """An annotation that is shown without quotes, metadata and names of our modules."""

    def __init__(self, annotation: Any) -> None:
        self._text = plain(annotation)

    def __repr__(self) -> str:
        return self._text


def plain(annotation: Any) -> str:
    """The text of an annotation: `Annotated` loses its metadata, names lose their modules."""
    if typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"^Annotated\[(.*?), \w+\(.*\)\]$", r"\1", text)
    return re.sub(r"\b(?:rowsieve|collections|typing)(?:\.\w+)*\.(\w+)", r"\1", text)


def main() -> None:
    """Write the page."""
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(page(), "utf-8")
    print(TARGET.relative_to(Path.cwd()) if TARGET.is_relative_to(Path.cwd()) else TARGET)


if __name__ == "__main__":
    main()
