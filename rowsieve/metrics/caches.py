"""What the caches of this process hold; their text for Prometheus."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from rowsieve.byte_cache import PROCESS, CacheUsage
from rowsieve.metrics.hedge_counts import hedge_counts
from rowsieve.metrics.store_cache import store_cache

GAUGES: Final = {
    "cache_size_bytes": "Estimated memory of the values in a cache of the process.",
    "cache_values": "Values in a cache of the process.",
    "cache_limit_bytes": "The limit of all caches of the process together.",
    "store_cache": "What the cache folder answered to this process since it began, by count.",
    "hedged_reads": "Reads of stores with hedged reads since the process began, by count.",
}


def caches() -> tuple[CacheUsage, ...]:
    """Return what each cache of this process holds, by name.

    All of them together hold at most `rowsieve.byte_cache.PROCESS_BYTES`.
    """
    return PROCESS.usage()


def gauge_lines() -> list[str]:
    """Return the gauges of all caches, and of hedged reads, in Prometheus' text format."""
    all_caches = caches()
    samples = {
        "cache_size_bytes": [(f'{{cache="{each.name}"}}', each.size_bytes) for each in all_caches],
        "cache_values": [(f'{{cache="{each.name}"}}', each.value_count) for each in all_caches],
        "cache_limit_bytes": [('{cache="all"}', PROCESS.limit_bytes)],
        "store_cache": [(f'{{count="{n}"}}', v) for n, v in asdict(store_cache()).items()],
        "hedged_reads": [(f'{{count="{n}"}}', v) for n, v in asdict(hedge_counts()).items()],
    }
    lines: list[str] = []
    for name, values in samples.items():
        lines.append(f"# HELP rowsieve_{name} {GAUGES[name]}")
        lines.append(f"# TYPE rowsieve_{name} gauge")
        lines += [f"rowsieve_{name}{label} {value}" for label, value in values]
    return lines
