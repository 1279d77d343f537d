"""Finds a column, or a field inside one, by its path; returns schemas with one field changed.

A path is text such as `address.city`, or a tuple of its steps, which may contain dots. The item of
a list is the step `element`; the entries of a map have the steps `key` and `value`. Steps match
exactly, or else uniquely ignoring case. A column whose own name has dots is looked up by that name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from rowsieve.errors import InvalidSchemaChange, UnknownColumn, did_you_mean
from rowsieve.types.logical import Field, List, LogicalType, Map, Struct, type_name
from rowsieve.types.schema import Schema

Path: TypeAlias = str | tuple[str, ...]
Chain: TypeAlias = tuple[Field, ...]
"""A column and the fields inside it that lead to the last one."""

ELEMENT, KEY, VALUE = "element", "key", "value"


def resolve(schema: Schema, path: Path) -> Chain:
    """Return the chain of the path; UnknownColumn if it leads to no field, or to more than one."""
    names = {field.name for field in schema}
    if isinstance(path, str):
        if path in names:
            return (schema.field(path),)
        chains = list(_parsed(schema.fields, path, _is_same)) or list(
            _parsed(schema.fields, path, _is_same_ignoring_case)
        )
    else:
        chains = list(_walked(schema.fields, path, _is_same)) or list(
            _walked(schema.fields, path, _is_same_ignoring_case)
        )
    if len(chains) == 1:
        return chains[0]
    if not isinstance(path, str) and len(path) == 1:
        return (schema.field(path[0]),)  # raises
    text = shown_path(path)
    if chains:
        raise UnknownColumn(
            f"{text!r} is ambiguous: {len(chains)} fields match; give the path as a list of its "
            "steps, with the exact names",
            name=text,
        )
    if isinstance(path, str) and "." not in path:
        return (schema.field(path),)  # raises
    raise _unknown(schema, text)


def parent_of(schema: Schema, path: Path) -> tuple[Chain, str]:
    """Return the chain of the struct in which `path` names a new field, and the field's name.

    The chain is empty for a column. UnknownColumn for text with a dot that leads to no field.
    """
    if not isinstance(path, str):
        return (resolve(schema, path[:-1]) if path[:-1] else ()), path[-1]
    places = [i for i, character in enumerate(path) if character == "."]
    for place in reversed(places):
        try:
            return resolve(schema, path[:place]), path[place + 1 :]
        except UnknownColumn:
            continue
    if places:
        raise UnknownColumn(
            f"no column {path[: places[0]]!r} that {path!r} could be a field of; to name a column "
            f"with a dot, give [{path!r}]",
            name=path,
        )
    return (), path


def with_field(schema: Schema, chain: Chain, field: Field | None) -> Schema:
    """Return the schema with the last field of the chain replaced, or removed for None."""
    old = chain[-1]
    for parent in reversed(chain[:-1]):
        field = replace(parent, type=_with_child(parent.type, old, field))
        old = parent
    fields = (field if each.id == old.id else each for each in schema)
    return Schema(schema.id, tuple(each for each in fields if each is not None))


def all_fields(fields: Iterable[Field]) -> Iterator[Field]:
    """Yield the fields, each followed by those inside it, at any depth."""
    for field in fields:
        yield field
        yield from all_fields(child for _, child in children(field.type))


def children(type_: LogicalType) -> Iterator[tuple[str, Field]]:
    """Yield the fields directly inside a type, each with its step in a path."""
    match type_:
        case Struct(fields=fields):
            for field in fields:
                yield field.name, field
        case List(element=element):
            yield ELEMENT, element
        case Map(key=key, value=value):
            yield KEY, key
            yield VALUE, value


def shown(chain: Sequence[Field]) -> str:
    """Return the path of a chain as text."""
    steps = [chain[0].name]
    for parent, field in pairwise(chain):
        steps += [step for step, child in children(parent.type) if child.id == field.id]
    return ".".join(steps)


def shown_path(path: Path) -> str:
    """Return a path as text."""
    return path if isinstance(path, str) else ".".join(path)


def siblings(schema: Schema, chain: Chain) -> tuple[Field, ...]:
    """Return the fields of the struct that the chain leads to; the columns for an empty chain."""
    if not chain:
        return schema.fields
    field = chain[-1]
    if not isinstance(field.type, Struct):
        raise InvalidSchemaChange(
            f"{shown(chain)!r} is {type_name(field.type)}; only a struct has fields that can be "
            "added, dropped, renamed or put in an order"
        )
    return field.type.fields


def is_inside_key(chain: Chain) -> bool:
    """Return whether the last field is the key of a map, or inside one."""
    pairs = pairwise(chain)
    return any(isinstance(parent.type, Map) and parent.type.key is field for parent, field in pairs)


def _with_child(type_: LogicalType, old: Field, new: Field | None) -> LogicalType:
    match type_:
        case Struct(fields=fields):
            changed = (new if each.id == old.id else each for each in fields)
            return Struct(tuple(each for each in changed if each is not None))
        case List() if new is not None:
            return List(new)
        case Map(key=key, value=value) if new is not None:
            return Map(new, value) if key.id == old.id else Map(key, new)
        case _:
            raise AssertionError(f"{type_} cannot lose {old.name!r}")


_Same: TypeAlias = Callable[[str, str], bool]


def _is_same(name: str, step: str) -> bool:
    return name == step


def _is_same_ignoring_case(name: str, step: str) -> bool:
    return name.lower() == step.lower()


def _parsed(fields: Sequence[Field], text: str, is_same: _Same) -> Iterator[Chain]:
    """Yield each chain whose steps, joined by dots, are the text."""
    yield from _parsed_steps([(field.name, field) for field in fields], text, is_same)


def _parsed_steps(steps: Sequence[tuple[str, Field]], text: str, is_same: _Same) -> Iterator[Chain]:
    for step, field in steps:
        if is_same(step, text):
            yield (field,)
        elif is_same(f"{step}.", text[: len(step) + 1]):
            rest = _parsed_steps(list(children(field.type)), text[len(step) + 1 :], is_same)
            yield from ((field, *chain) for chain in rest)


def _walked(fields: Sequence[Field], path: Sequence[str], is_same: _Same) -> Iterator[Chain]:
    """Yield each chain with exactly these steps."""
    steps = [(field.name, field) for field in fields]
    chains: list[Chain] = [()]
    for place, wanted_step in enumerate(path):
        chains = [
            (*chain, field)
            for chain in chains
            for step, field in (children(chain[-1].type) if place else steps)
            if is_same(step, wanted_step)
        ]
    yield from (chain for chain in chains if chain)


def _unknown(schema: Schema, text: str) -> UnknownColumn:
    """Name the longest beginning of the path that exists, and what is inside it."""
    for place in (i for i in reversed(range(len(text))) if text[i] == "."):
        try:
            outer = resolve(schema, text[:place])[-1]
        except UnknownColumn:
            continue
        known = [step for step, _ in children(outer.type)]
        step = text[place + 1 :]
        message = (
            f"no field {step!r} in {text[:place]!r}, which is {type_name(outer.type)}"
            f"{did_you_mean(step, known)}"
        )
        return UnknownColumn(message, name=text)
    return UnknownColumn(f"no column {text!r} in ({', '.join(schema.names)})", name=text)
