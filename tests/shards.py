"""`pytest --shard 2/4`: the second of four shares of the test files; together they are all files.

A file is in one shard whole, since its tests share fixtures. Files are dealt in the order of
their names, so that the shards of one commit agree whatever runs them.
"""

from __future__ import annotations

import pytest


def parse_shard(text: str) -> tuple[int, int]:
    """`"2/4"` as (2, 4); a usage error for anything that is not one of so many."""
    number, slash, count = text.partition("/")
    if slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise pytest.UsageError(f"--shard {text!r}: expected NUMBER/COUNT, such as 2/4")


def files_of(shard: tuple[int, int], files: set[str]) -> set[str]:
    """The files of one shard."""
    number, count = shard
    return set(sorted(files)[number - 1 :: count])


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rowsieve")
    group.addoption("--shard", help="run one share of the test files: NUMBER/COUNT")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a wrong share before the tests are collected."""
    if (text := config.getoption("shard")) is not None:
        parse_shard(text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (text := config.getoption("shard")) is None:
        return
    mine = files_of(parse_shard(text), {str(item.path) for item in items})
    gone = [item for item in items if str(item.path) not in mine]
    items[:] = [item for item in items if str(item.path) in mine]
    config.hook.pytest_deselected(items=gone)
