"""`python -m benchmarks.bars`: measure the bars, each in its own process, and print them."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.bars import (
    answers,
    calls,
    change_events,
    checkpoint,
    clustering,
    compaction_memory,
    databases,
    datafusion_session,
    decoding,
    differential,
    encodings,
    event_order,
    evolved,
    expressions,
    footers,
    full_scan,
    importing,
    imports,
    memory,
    merged,
    net_changes,
    opening,
    partial_upsert,
    peers,
    points,
    procedures,
    processes,
    publication,
    restart,
    retention,
    rewriting,
    shredding,
    small_changes,
    small_files,
    small_reads,
    statistics,
    stores,
    tightness,
    transactions,
    translation,
    upsert,
    variants,
    wide,
    writer,
)
from benchmarks.bars.sizes import BY_NAME, Sizes
from benchmarks.isolate import in_own_process, write_result
from benchmarks.report import print_bars, print_machine, wide_console
from benchmarks.result import RESULTS, Bar, Machine, save

BARS: dict[str, Callable[[Sizes, Path], Bar | list[Bar]]] = {
    "upsert": upsert.measure,
    "partial_upsert": partial_upsert.measure,
    "event_order": event_order.measure,
    "publication": publication.measure,
    "small_changes": small_changes.measure,
    "change_events": change_events.measure,
    "databases": databases.measure,
    "differential": differential.measure,
    "encodings": encodings.measure,
    "transactions": transactions.measure,
    "writer": writer.measure,
    "processes": processes.measure,
    "opening": opening.measure,
    "footers": footers.measure,
    "full_scan": full_scan.beside_plain_file,
    "own_file_scan": full_scan.beside_our_file,
    "datafusion_session": datafusion_session.measure,
    "stores": stores.measure,
    "answers": answers.measure,
    "merged": merged.measure,
    "stored": merged.stored,
    "disjoint": merged.disjoint,
    "points": points.measure,
    "shredding": shredding.measure,
    "small_reads": small_reads.measure,
    "calls": calls.measure,
    "peers": peers.measure,
    "restart": restart.measure,
    "expressions": expressions.measure,
    "planning": statistics.planning,
    "collecting": statistics.collecting,
    "translation": translation.measure,
    "checkpoint": checkpoint.measure,
    "evolved": evolved.reading,
    "columns": evolved.changing,
    "retention": retention.measure,
    "net_changes": net_changes.measure,
    "small_files": small_files.measure,
    "rewriting": rewriting.measure,
    "memory": memory.measure,
    "compaction_memory": compaction_memory.measure,
    "procedure_engines": procedures.engines,
    "nothing_to_do": procedures.nothing,
    "decoding": decoding.measure,
    "variants": variants.measure,
    "tightness": tightness.measure,
    "clustering": clustering.measure,
    "imports": imports.measure,
    "files": importing.measure,
    "wide": wide.columns,
    "long": wide.terms,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the selected bars, print them, and save them as JSON."""
    options = _options(arguments)
    if options.write is not None:
        write_result(measured(options.only[0], BY_NAME[options.sizes], options.work), options.write)
        return
    console = wide_console()
    machine = Machine.here()
    print_machine(machine, console)
    bars: list[Bar] = []
    for name in options.only or BARS:
        with console.status(f"measuring {name}"):
            wanted = ["--only", name, "--sizes", options.sizes]
            wanted += ["--work", str(options.work)] if options.work else []
            bars += in_own_process("benchmarks.bars", wanted, list[Bar])
    print_bars(bars, console)
    path = save("bars", BY_NAME[options.sizes], machine, bars, options.results)
    console.print(f"Saved as {path}")


def measured(name: str, sizes: Sizes, work: Path | None = None) -> list[Bar]:
    """Measure the bars of one name, in a temporary folder, by default the system's."""
    if work is not None:
        work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rowsieve-bar-", dir=work) as folder:
        found = BARS[name](sizes, Path(folder))
    return found if isinstance(found, list) else [found]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bars", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(BARS), default=[], help="these bars")
    parser.add_argument("--sizes", choices=list(BY_NAME), default="full")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder for the JSON")
    parser.add_argument("--work", type=Path, help="the folder for temporary tables")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
