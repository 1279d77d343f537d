"""`python -m benchmarks.suite`: run the suite, each system in processes of its own."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.markdown import document
from benchmarks.peers.environments import version_of
from benchmarks.peers.registry import KINDS, OURS, System
from benchmarks.plot import draw
from benchmarks.report import print_cases, print_machine, wide_console
from benchmarks.result import RESULTS, Case, Machine, save
from benchmarks.suite.cases import CASES
from benchmarks.suite.field import Field
from benchmarks.suite.install import not_installed
from benchmarks.suite.runners import Child
from benchmarks.suite.sizes import BY_NAME

DRAWN = ("full scan", "1% range", "point", "upsert", "compaction", "open", "plan")
MEASURED = ("systems", "planners")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the selected groups, print the medians, and save them as JSON and SVG."""
    options = _options(arguments)
    console = wide_console()
    peers = [s for kind in MEASURED for s in KINDS[kind] if wanted(s, options.peers)]
    with console.status("making the environments of peers"):
        absent = not_installed(peers, make=not options.installed)
    machine = Machine.here()
    machine.versions |= {
        s.package: version_of(s) for s in peers if s.environment and s.name not in absent
    }
    print_machine(machine, console)

    def new_field(kind: str, folder: Path) -> Field:
        systems = [s for s in KINDS[kind] if s in peers and s.name not in absent]
        reasons = {s.name: absent[s.name] for s in KINDS[kind] if s.name in absent}
        return Field(kind, systems, Child, folder, reasons)

    cases: list[Case] = []
    for name in options.only or CASES:
        with (
            console.status(f"measuring {name}"),
            tempfile.TemporaryDirectory(prefix="rowsieve-suite-", dir=options.work) as folder,
        ):
            cases += CASES[name](BY_NAME[options.sizes], Path(folder), new_field)
    print_cases(cases, console)
    path = save("suite", BY_NAME[options.sizes], machine, cases, options.results)
    drawing = path.with_suffix(".svg")
    drawing.write_text(draw([case for case in cases if case.name.startswith(DRAWN)]))
    path.with_suffix(".md").write_text(document(cases))
    console.print(f"Saved as {path}, {drawing.name} and {path.stem}.md")


def wanted(system: System, names: Sequence[str]) -> bool:
    """Whether a system is selected; ours always is."""
    return not names or system.name.startswith(OURS) or system.name in names


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suite", description=__doc__)
    names = sorted({system.name for kind in MEASURED for system in KINDS[kind]})
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=[], help="these groups")
    parser.add_argument("--peers", nargs="+", choices=names, default=[], help="these systems")
    parser.add_argument("--installed", action="store_true", help="make no environments")
    parser.add_argument("--sizes", choices=list(BY_NAME), default="small")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="where JSON, SVG and Markdown go"
    )
    parser.add_argument("--work", type=Path, help="where tables are made, for a while")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
