"""Providers have what the table asks of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import rowsieve
from rowsieve import engines

PROTOCOLS = {
    "datafusion": engines.DataFusionProvider,
    "datafusion_catalog": engines.DataFusionCatalogProvider,
    "datafusion_merge": engines.DataFusionMergeProvider,
    "arrow": engines.ArrowProvider,
    "pandas": engines.PandasProvider,
    "polars": engines.PolarsProvider,
    "spark": engines.SparkProvider,
    "spark_merge": engines.SparkMergeProvider,
}
FUNCTIONS = [
    pytest.param(provider, name, id=f"{provider}.{name}")
    for provider, protocol in PROTOCOLS.items()
    for name in vars(protocol)
    if not name.startswith("_")
]


def test_each_provider_has_a_protocol_and_a_function_that_gives_it() -> None:
    assert set(PROTOCOLS) == set(engines.PROVIDERS)
    for name, module in engines.PROVIDERS.items():
        found: Callable[[], object] = getattr(engines, name)
        assert found() is import_module(module)


def test_each_folder_of_providers_is_reached() -> None:
    folders = {
        path.parent.name
        for path in (Path(rowsieve.__file__).parent / "providers").glob("*/__init__.py")
    }
    reached = {module.split(".")[2] for module in engines.PROVIDERS.values()}
    assert folders == reached | {"native_files"}  # which the engines' own folders share


@pytest.mark.parametrize(("provider", "name"), FUNCTIONS)
def test_a_provider_has_the_functions_of_its_protocol(provider: str, name: str) -> None:
    promised = inspect.signature(getattr(PROTOCOLS[provider], name))
    found = inspect.signature(getattr(import_module(engines.PROVIDERS[provider]), name))
    _, *wanted = promised.parameters.values()  # without self
    assert [(one.name, one.kind) for one in found.parameters.values()] == [
        (one.name, one.kind) for one in wanted
    ]
