"""Arguments against annotations: what fits, what is refused, and what the message says."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.arguments import ANY_TEXT, Example, checked, checked_methods
from rowsieve.errors import InvalidInput
from tests.small_tables import keyed


class Teller(Protocol):
    def tell(self, what: str) -> None: ...


class Loud:
    def tell(self, what: str) -> None:
        """Nothing."""


@checked
def take(
    place: Annotated[str | os.PathLike[str], ANY_TEXT] = "",
    names: Annotated[Sequence[str], Example("['id']", "a list of names")] | None = None,
    *,
    token: Annotated[tuple[str, int], Example("('loader', 17)")] | None = None,
    mode: Literal["on", "off"] | None = None,
    limit: int | None = None,
    share: float | None = None,
    at: datetime | str | None = None,
    notes: Mapping[str, str] | None = None,
    columns: Sequence[str] | Mapping[str, str] | None = None,
    flag: bool = False,
    schema: pa.Schema | None = None,
    data: bytes = b"",
    teller: Teller | None = None,
    called: Callable[[], int] | None = None,
    counted: Callable[[int, int], None] | bool | None = None,
    other: Any = None,
) -> Any:
    """Return what was given."""
    given = dict(locals())
    return {name: value for name, value in given.items() if value is not None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"token": ("b", True)}, "token[1] is True (bool), not a whole number; token= takes"),
        ({"token": ("b", 1.5)}, "token[1] is 1.5 (float), not a whole number"),
        ({"token": (1, 1)}, "token[0] is 1 (int), not text"),
        ({"token": "x"}, "token is 'x' (str), not a tuple (text, a whole number)"),
        ({"token": ("a",)}, "a tuple of 1, not a tuple (text, a whole number)"),
        ({"token": ["a", 1]}, "token is a list, not a tuple"),
        ({"token": ("a", 2**63)}, "token[1] is a number of more than 64 bits, not a whole number"),
        ({"names": "id"}, "names is 'id' (str), not a list of names, such as names=['id']"),
        ({"names": [5]}, "names[0] is 5 (int), not text; names= takes a list of names, such as"),
        ({"names": {"a"}}, "names is a set, not a list of names"),
        ({"names": {"a": 1}}, "names is a dict, not a list of names"),
        ({"names": (name for name in "ab")}, "names is a generator, not a list of names"),
        ({"names": ["a", "\ud800"]}, "names[1] is text with a lone surrogate at position 0"),
        ({"mode": "of"}, "mode is 'of' (str), not 'on' or 'off'"),
        ({"mode": ["on"]}, "mode is a list, not 'on' or 'off'"),
        ({"limit": 1.5}, "limit is 1.5 (float), not a whole number, such as limit=1"),
        ({"limit": True}, "limit is True (bool), not a whole number"),
        ({"limit": "5"}, "limit is '5' (str), not a whole number"),
        ({"limit": 10**30}, "limit is a number of more than 64 bits"),
        ({"share": "1%"}, "share is '1%' (str), not a number, such as share=1.5"),
        ({"share": False}, "share is False (bool), not a number"),
        ({"share": 10**400}, "share is a number of more than 64 bits"),
        ({"at": 5}, "at is 5 (int), not a datetime.datetime or text"),
        ({"at": date(2020, 1, 1)}, "at is datetime.date(2020, 1, 1) (date), not a datetime"),
        ({"notes": "SECRET"}, "notes is a str, not a mapping of text to text"),
        ({"notes": {"a": 5}}, "notes['a'] is an int, not text"),
        ({"notes": {5: "SECRET"}}, "notes, a name in it, is an int, not text"),
        ({"notes": {"a": "SECRET\ud800"}}, "notes['a'] is a str, not text that can be encoded"),
        ({"columns": "a"}, "columns is 'a' (str), not a list of text or a mapping of text to text"),
        ({"columns": ["a", 1]}, "columns[1] is 1 (int), not text"),
        ({"columns": {"a": 1}}, "columns['a'] is an int, not text"),
        ({"flag": 1}, "flag is 1 (int), not True or False"),
        ({"schema": "id int"}, "schema is 'id int' (str), not a pyarrow.Schema"),
        ({"data": "x"}, "data is 'x' (str), not bytes"),
        ({"teller": print}, "not an object with tell()"),
        ({"called": 5}, "called is 5 (int), not a function without arguments"),
        ({"called": lambda a: a}, "called is a function with the arguments (a), not a function"),
        ({"counted": lambda: 1}, "arguments (), not a function of 2 arguments or True or False"),
        ({"counted": lambda a, *, b: 1}, "counted is a function with the arguments (a, *, b)"),
        ({"place": b"x"}, "place is bytes, not text or an os.PathLike"),
        ({"limit": "x" * 100}, "limit is a str, not a whole number"),
    ],
)
def test_a_wrong_argument_is_named_with_what_was_given_and_expected(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        take(**arguments)
    assert str(raised.value).startswith("take: ")
    assert message in str(raised.value)
    assert "SECRET" not in str(raised.value)
    assert raised.value.__suppress_context__


@pytest.mark.parametrize(
    "arguments",
    [
        {"place": Path("a")},
        {"place": "a\udcff"},
        {"names": []},
        {"names": ("a", "b")},
        {"token": ("a", 1)},
        {"mode": "on", "limit": 0, "share": 0.5, "flag": True},
        {"at": datetime(2020, 1, 1, tzinfo=UTC)},
        {"at": "2020-01-01"},
        {"notes": {"": "\0"}},
        {"columns": {"a": "b"}},
        {"columns": ["a"]},
        {"schema": pa.schema([])},
        {"data": memoryview(b"x")},
        {"teller": Loud(), "called": list},
        {"called": lambda a=1: a, "counted": lambda *a: None},
        {"called": int, "counted": print},
        {"counted": wraps(len)(lambda done, total: None)},
        {"other": object()},
    ],
)
def test_a_right_argument_arrives_as_it_is(arguments: dict[str, Any]) -> None:
    taken = take(**arguments)
    assert {name: taken[name] for name in arguments} == arguments


def test_numbers_and_collections_of_libraries_become_pythons() -> None:
    given: dict[str, Any] = {
        "names": np.array(["a", "b"]),
        "limit": np.int64(3),
        "share": np.float32(0.5),
        "flag": np.True_,
    }
    taken = take(**given)
    assert taken["names"] == ["a", "b"]
    assert [type(taken[name]) for name in ("limit", "share", "flag")] == [int, float, bool]


def test_an_object_has_a_method_however_it_comes_by_it() -> None:
    class Classwide:
        @classmethod
        def tell(cls, what: str) -> None:
            """Nothing."""

    class Forwarding:
        def __getattr__(self, name: str) -> Any:
            return getattr(Loud(), name)

    tellers: list[Any] = [Classwide(), Classwide, Forwarding(), SimpleNamespace(tell=print)]
    for teller in tellers:
        assert take(teller=teller)["teller"] is teller


def test_positions_and_names_are_checked_alike() -> None:
    with pytest.raises(InvalidInput, match="names is 'id'"):
        take("place", "id")


def test_too_many_and_unknown_arguments_are_type_errors() -> None:
    with pytest.raises(TypeError, match="by position"):
        take(*["a", ["b"], "c"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'nope'"):
        take(nope=1)  # type: ignore[call-arg]


def test_methods_of_a_class_and_of_its_bases_are_checked() -> None:
    class Base:
        def inherited(self, count: int) -> int:
            return count

    @checked_methods
    class Derived(Base):
        @classmethod
        def made(cls, count: int) -> int:
            return count

        @staticmethod
        def plain(count: int) -> int:
            return count

        @property
        def size(self) -> int:
            return 5

        def _own(self, count: int) -> int:
            return count

    wrong: Any = "1"
    for call in (Derived().inherited, Derived.made, Derived.plain):
        with pytest.raises(InvalidInput, match="count is '1'"):
            call(wrong)
    assert (Derived().inherited(1), Derived.made(1), Derived.plain(1), Derived().size) == (
        1,
        1,
        1,
        5,
    )
    assert [Derived()._own(wrong), Base().inherited(wrong)] == [wrong, wrong]


def test_an_annotation_without_a_rule_is_found_by_the_first_call() -> None:
    @checked
    def odd(items: frozenset[int] | Annotated[tuple[int, ...], "any length"]) -> None:
        """Nothing."""

    with pytest.raises(TypeError, match="no rule for arguments"):
        odd(frozenset())


def test_wrong_names_of_arguments_are_answered_in_the_words_of_the_caller() -> None:
    @checked_methods
    class Owner:
        def compact(self, *, progress: bool = False) -> bool:
            return progress

        def options(self, **values: int) -> dict[str, int]:
            return values

        def upsert(self, data: int) -> int:
            return data

    owner: Any = Owner()
    with pytest.raises(TypeError, match=r"^compact\(\) got .* 'progres'; did you mean 'progress'"):
        owner.compact(progres=True)
    with pytest.raises(TypeError, match=r"^compact\(\) got an unexpected keyword argument 'foo'$"):
        owner.compact(foo=True)
    with pytest.raises(TypeError, match=r"^upsert\(\) missing required arguments: 'data'$"):
        owner.upsert()
    assert owner.options(a=1, b=2) == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        pytest.param(
            lambda table: table.update({"v": 1}, "k = 1"),
            r"^update\(\) takes at most 1 arguments by position, got 2; name the others, "
            r"such as where=…$",
            id="method",
        ),
        pytest.param(
            lambda table: rs.translate("k = 1", "postgres", "spark", schema=table),  # type: ignore[call-arg]
            "such as target=…",
            id="function",
        ),
        pytest.param(lambda table: table.refresh(1), "at most 0 .* got 1$", id="nothing to name"),
    ],
)
def test_too_many_arguments_by_position_say_which_to_name(
    call: Callable[[Any], object], says: str
) -> None:
    table = keyed({"k": [1], "v": [2]})
    with pytest.raises(TypeError, match=says):
        call(table)
    assert table.version == 1
