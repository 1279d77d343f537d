"""Bar: `import rowsieve` in a fresh process, compared with deltalake, and its installed size.

A lazy import only moves its cost, so the bar also shows the first use: a process that imports the
library, opens a small table and reads its rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.installed import installations
from benchmarks.measure import Sample, Series
from benchmarks.result import Bar, Case, expect

MOST_CPU_S = 0.012
MOST_INSTALLED_MB = 320
ROWS = 10
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"  # it would make each run compile our files again
# Processes end without clean-up: deltalake's threads abort about one in four of them at the end.
CLOCKED = """
import os, time
wall, cpu = time.perf_counter(), time.process_time()
{work}
print(time.perf_counter() - wall, time.process_time() - cpu, {answer}, flush=True)
os._exit(0)
"""
IMPORTS = {"rowsieve": "import rowsieve", "deltalake": "import deltalake"}
FIRST_USES = {
    "rowsieve": "import rowsieve\nrows = rowsieve.open_table({uri!r}).to_arrow()",
    "deltalake": "import deltalake\nrows = deltalake.DeltaTable({uri!r}).to_pyarrow_table()",
}


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Run each system in fresh processes, which measure themselves; the systems take turns."""
    systems = [name for name in IMPORTS if name == "rowsieve" or find_spec(name) is not None]
    uris = {name: str(folder / name) for name in systems}
    rows = pa.table({"id": range(ROWS), "value": [f"v{i}" for i in range(ROWS)]})
    rs.create_table(uris["rowsieve"], rows, key=["id"])
    if "deltalake" in systems:
        from deltalake import write_deltalake

        write_deltalake(uris["deltalake"], rows)
    importing = Case("import", [Series(name) for name in systems])
    using = Case("import and first scan", [Series(name) for name in systems])
    for _ in range(sizes.repeats):  # the median leaves out the first, which may write bytecode
        for name in systems:
            importing.of(name).samples.append(_timed(IMPORTS[name], "0", 0))
            use = FIRST_USES[name].format(uri=uris[name])
            using.of(name).samples.append(_timed(use, "rows.num_rows", ROWS))
    installed_mb = installations()[0].size_bytes / 1e6
    times = "; ".join(f"{case.name}: {_shown(case)}" for case in (importing, using))
    return Bar(
        name="imports",
        promise=f"import rowsieve takes at most {MOST_CPU_S * 1e3:.0f} ms of CPU, "
        f"and its packages {MOST_INSTALLED_MB} MB",
        found=f"{times}; installed {installed_mb:.0f} MB",
        met=importing.of("rowsieve").cpu_s() <= MOST_CPU_S and installed_mb <= MOST_INSTALLED_MB,
        cases=[importing, using],
        facts={"pandas is installed": find_spec("pandas") is not None},
    )


def _shown(case: Case) -> str:
    return ", ".join(
        f"{series.system} {series.wall_s() * 1e3:.1f} ms ({series.cpu_s() * 1e3:.1f} ms CPU)"
        for series in case.series
    )


def _timed(work: str, answer: str, expected: int) -> Sample:
    command = [sys.executable, "-c", CLOCKED.format(work=work, answer=answer)]
    environment = {name: value for name, value in os.environ.items() if name != _NO_BYTECODE}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    wall, cpu, found = done.stdout.split()
    expect(work, int(found), expected)
    return Sample(float(wall), float(cpu))
