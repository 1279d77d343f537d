"""The options of rewrite_data_files, as a map of texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from rowsieve.errors import InvalidInput, did_you_mean

_UNITS: Final = {"": 1, "b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}
_SIZE = re.compile(r"(\d{1,18})\s*([a-z]*)", re.ASCII)


class JobOrder(Enum):
    """The order in which groups are rewritten."""

    NONE = "none"
    BYTES_ASCENDING = "bytes-asc"
    BYTES_DESCENDING = "bytes-desc"
    FILES_ASCENDING = "files-asc"
    FILES_DESCENDING = "files-desc"


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """Selects the parts to rewrite, and the size of the new parts.

    A part is a candidate if its size is below `min_file_size_bytes` or above `max_file_size_bytes`,
    if deletes or newer versions may hide some of its rows, or with `rewrite_all`. A run of
    candidates is rewritten if it has at least `min_input_files` parts, if it is larger than the
    target, if deletes hide at least `delete_ratio` of its rows, or if `delete_file_threshold`
    files of deletes belong to parts that are rewritten together.
    """

    target_file_size_bytes: int
    min_file_size_bytes: int
    max_file_size_bytes: int
    max_file_group_size_bytes: int = 512 * 2**20
    min_input_files: int = 5
    delete_ratio: float = 0.3
    rewrite_all: bool = False
    strict: bool = False
    delete_file_threshold: int | None = None
    max_concurrent: int | None = None
    partial_progress: bool = False
    max_commits: int = 10
    job_order: JobOrder = JobOrder.NONE

    @classmethod
    def of(cls, options: Mapping[str, str], target_bytes: int) -> RewriteOptions:
        """Read the options; InvalidInput names a wrong one. `target_bytes`: the table's."""
        given: dict[str, Any] = {}
        for name, text in options.items():
            plain = name.strip().lower().replace("_", "-")
            if plain not in _READERS:
                raise InvalidInput(
                    f"rewrite_data_files has no option {name!r}; it has "
                    f"{', '.join(sorted(_READERS))}{did_you_mean(plain, _READERS)}"
                )
            field, read = _READERS[plain]
            if field in given:
                raise InvalidInput(
                    f"rewrite_data_files: the option {plain} is given twice; remove one"
                )
            given[field] = read(plain, text)
        target = given.get("target_file_size_bytes", target_bytes)
        if "file_size_threshold" in given:  # Trino's option: rewrite smaller files
            threshold = given.pop("file_size_threshold")
            given.setdefault("min_file_size_bytes", threshold)
            given.setdefault("max_file_size_bytes", max(threshold, target * 9 // 5))
            given.setdefault("min_input_files", 1)
        default = cls(target, target * 3 // 4, target * 9 // 5)
        return replace(default, **given).checked()

    def checked(self) -> RewriteOptions:
        """Return these options; InvalidInput if the sizes contradict each other."""
        if self.target_file_size_bytes > self.max_file_size_bytes:
            raise InvalidInput(
                f"rewrite_data_files: target-file-size-bytes {self.target_file_size_bytes} is "
                f"above max-file-size-bytes {self.max_file_size_bytes}, so rewritten parts would "
                "be rewritten again; raise max-file-size-bytes"
            )
        if not 0 <= self.min_file_size_bytes <= self.max_file_size_bytes:
            raise InvalidInput(
                f"rewrite_data_files: min-file-size-bytes {self.min_file_size_bytes} is above "
                f"max-file-size-bytes {self.max_file_size_bytes}; lower the first or raise the "
                "second"
            )
        return self


def size_bytes(name: str, text: str) -> int:
    """A size such as `134217728`, `128MB` or `1 GB`; units are powers of 1,024."""
    found = _SIZE.fullmatch(text.strip().lower())
    if found is None or found[2] not in _UNITS or not int(found[1]):
        raise InvalidInput(
            f"rewrite_data_files: the option {name} is {text!r}; give a size above zero, such as "
            "'134217728' or '128MB'"
        )
    return int(found[1]) * _UNITS[found[2]]


def _whole(name: str, text: str) -> int:
    if not re.fullmatch(r"0*[1-9]\d{0,17}", text, re.ASCII):
        raise InvalidInput(
            f"rewrite_data_files: the option {name} is {text!r}; give a whole number above zero"
        )
    return int(text)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidInput(f"rewrite_data_files: the option {name} is {text!r}; give true or false")
    return text.lower() == "true"


def _ratio(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value <= 1.0:
        raise InvalidInput(
            f"rewrite_data_files: the option {name} is {text!r}; give a number above 0 and up to 1"
        )
    return value


def _job_order(name: str, text: str) -> JobOrder:
    try:
        return JobOrder(text.strip().lower())
    except ValueError:
        raise InvalidInput(
            f"rewrite_data_files: the option {name} is {text!r}; give one of "
            f"{', '.join(order.value for order in JobOrder)}"
        ) from None


_READERS: Final[Mapping[str, tuple[str, Callable[[str, str], Any]]]] = {
    "target-file-size-bytes": ("target_file_size_bytes", size_bytes),
    "min-file-size-bytes": ("min_file_size_bytes", size_bytes),
    "max-file-size-bytes": ("max_file_size_bytes", size_bytes),
    "max-file-group-size-bytes": ("max_file_group_size_bytes", size_bytes),
    "file-size-threshold": ("file_size_threshold", size_bytes),
    "min-input-files": ("min_input_files", _whole),
    "delete-ratio": ("delete_ratio", _ratio),
    "delete-ratio-threshold": ("delete_ratio", _ratio),
    "rewrite-all": ("rewrite_all", _flag),
    "strict": ("strict", _flag),
    "delete-file-threshold": ("delete_file_threshold", _whole),
    "max-concurrent-file-group-rewrites": ("max_concurrent", _whole),
    "partial-progress.enabled": ("partial_progress", _flag),
    "partial-progress.max-commits": ("max_commits", _whole),
    "rewrite-job-order": ("job_order", _job_order),
}
