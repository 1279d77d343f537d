"""Import optional engines at first use; a missing or too old one names the extra to install."""

from __future__ import annotations

import importlib
import logging
import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from rowsieve.errors import MissingExtra, UnsupportedOperation

RELEASES: Final[Mapping[str, tuple[str, str | None]]] = {
    "datafusion": ("55.0", "56"),
    "deltalake": ("1.6.4", None),
    "polars": ("2.1.0", None),
    "pyiceberg": ("0.12", None),
    "pyspark": ("4.3", None),
}
"""The lowest release of each engine that works, and the first one that does not."""

TESTED: Final[Mapping[str, str]] = {"pyspark": "4.3"}
"""The newest releases that were tested, where no release is known not to work."""

_LOG: Final = logging.getLogger("rowsieve")


def imported(module: str, extra: str) -> Any:
    """Import the module.

    MissingExtra, which says what to install, if that fails; UnsupportedOperation if its release is
    not one that works.
    """
    package = module.partition(".")[0]
    try:
        library = importlib.import_module(package)
        check_release(package, extra, str(getattr(library, "__version__", "")))
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"{package} is not installed: pip install 'rowsieve[{extra}]'"
        ) from error


def is_instance(value: object, module: str, name: str) -> bool:
    """Whether this is an object of a module's class; the module is not imported for it."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))


@cache
def check_release(package: str, extra: str, release: str) -> None:
    """UnsupportedOperation if the release does not work; warns if it is newer than those tested."""
    lowest, first_refused = RELEASES.get(package, ("0", None))
    numbers = _numbers(release)
    if not numbers:
        return  # a custom build without a version
    if numbers < _numbers(lowest) or (first_refused and numbers >= _numbers(first_refused)):
        wanted = f">={lowest}" + (f",<{first_refused}" if first_refused else "")
        raise UnsupportedOperation(
            f"{package} {release} of {sys.prefix} is not supported, but {package}{wanted} is: "
            f"pip install 'rowsieve[{extra}]'"
        )
    tested = TESTED.get(package)
    if tested is not None and numbers[:2] > _numbers(tested):
        _LOG.warning(
            "%s %s is newer than %s, the newest that this release of rowsieve was tested with",
            package,
            release,
            tested,
        )


def _numbers(release: str) -> tuple[int, ...]:
    """Return the leading numbers of a release without trailing zeros: (4, 3) for `4.3.0.dev1`."""
    match = re.match(r"\d+(\.\d+)*", release)
    numbers = [] if match is None else [int(each) for each in match[0].split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
