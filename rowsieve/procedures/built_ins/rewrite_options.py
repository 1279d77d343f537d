"""The options of rewrite_data_files, as a map of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from rowsieve.errors import InvalidInput
from rowsieve.procedures.built_ins.option_readers import (
    Reader,
    flag,
    ratio,
    read_options,
    size_bytes,
    whole_number,
)


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
        fields = read_options("rewrite_data_files", options, _READERS)
        target = fields.get("target_file_size_bytes", target_bytes)
        if "file_size_threshold" in fields:  # Trino's option: rewrite smaller files
            threshold = fields.pop("file_size_threshold")
            fields.setdefault("min_file_size_bytes", threshold)
            fields.setdefault("max_file_size_bytes", max(threshold, target * 9 // 5))
            fields.setdefault("min_input_files", 1)
        default = cls(target, target * 3 // 4, target * 9 // 5)
        return replace(default, **fields).checked()

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


def _job_order(option: str, text: str) -> JobOrder:
    try:
        return JobOrder(text.strip().lower())
    except ValueError:
        raise InvalidInput(
            f"{option} is {text!r}; give one of {', '.join(order.value for order in JobOrder)}"
        ) from None


_READERS: Final[Mapping[str, tuple[str, Reader]]] = {
    "target-file-size-bytes": ("target_file_size_bytes", size_bytes),
    "min-file-size-bytes": ("min_file_size_bytes", size_bytes),
    "max-file-size-bytes": ("max_file_size_bytes", size_bytes),
    "max-file-group-size-bytes": ("max_file_group_size_bytes", size_bytes),
    "file-size-threshold": ("file_size_threshold", size_bytes),
    "min-input-files": ("min_input_files", whole_number),
    "delete-ratio": ("delete_ratio", ratio),
    "delete-ratio-threshold": ("delete_ratio", ratio),
    "rewrite-all": ("rewrite_all", flag),
    "strict": ("strict", flag),
    "delete-file-threshold": ("delete_file_threshold", whole_number),
    "max-concurrent-file-group-rewrites": ("max_concurrent", whole_number),
    "partial-progress.enabled": ("partial_progress", flag),
    "partial-progress.max-commits": ("max_commits", whole_number),
    "rewrite-job-order": ("job_order", _job_order),
}
