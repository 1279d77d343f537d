"""Modules that are called like their function, as in `rowsieve.predicate.bind(tree, schema)`.

A package has a submodule as its attribute once that is imported, instead of the function of the
same name that it exports. Such a module is called as its function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rowsieve.arguments.short_tracebacks import shortening


def callable_as(name: str, function: Callable[..., Any]) -> None:
    """Let the module with this name be called as the function; its errors are short in a prompt."""
    called = shortening(function)

    class CallableModule(ModuleType):
        """A module that is called as its function."""

        __doc__ = function.__doc__

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return called(*args, **kwargs)

    sys.modules[name].__class__ = CallableModule
