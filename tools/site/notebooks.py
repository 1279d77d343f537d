"""Notebooks: scripts of cells (`# %%`), which are run by a kernel and shown with their output.

The scripts are what the repository keeps; editors and jupytext open them as notebooks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path("examples/notebooks")
CELL: Final = re.compile(r"^# %%(?P<markdown> \[markdown\])?[^\n]*\n", re.MULTILINE)
TIMEOUT_S: Final = 300


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of text or of code."""

    is_code: bool
    text: str


def cells(script: str) -> list[Cell]:
    """Return the cells of a script, without its header."""
    starts = list(CELL.finditer(script))
    ends = [*(each.start() for each in starts[1:]), len(script)]
    found = []
    for start, end in zip(starts, ends[: len(starts)], strict=True):
        text = script[start.end() : end].strip()
        if start["markdown"]:
            text = re.sub(r"^# ?", "", text, flags=re.MULTILINE)
        found.append(Cell(start["markdown"] is None, text))
    return found


def executed(script: Path) -> Any:
    """Run a script as a notebook; return the notebook with its output.

    CellExecutionError, with the cell and the traceback, if one raises.
    """
    import nbformat
    from jupyter_client.manager import KernelManager
    from nbclient import NotebookClient

    make = nbformat.v4
    notebook = make.new_notebook(
        cells=[
            make.new_code_cell(each.text) if each.is_code else make.new_markdown_cell(each.text)
            for each in cells(script.read_text("utf-8"))
        ],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    for number, cell in enumerate(notebook.cells):
        cell.id = f"{script.stem}-{number}"  # the same at each build
    manager = KernelManager(kernel_name="python3", transport="ipc")  # it listens on no port
    try:
        NotebookClient(notebook, km=manager, timeout=TIMEOUT_S).execute()
    finally:
        manager.shutdown_kernel(now=True)
    return notebook


def write_pages(root: Path, target: Path) -> dict[str, str]:
    """Run all notebooks and write their pages; return the page of each script."""
    import nbformat

    moved = {}
    for script in sorted((root / FOLDER).glob("*.py")):
        notebook = executed(script)
        place = FOLDER / script.name
        (target / FOLDER).mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, target / place.with_suffix(".ipynb"))
        page = place.with_suffix(".md")
        (target / page).write_text("\n".join(_page(notebook, script.stem)), "utf-8")
        moved[place.as_posix()] = page.as_posix()
    return moved


def _page(notebook: Any, name: str) -> Iterator[str]:
    first, *others = notebook.cells
    heading, _, text = first.source.partition("\n")
    yield from (heading, "", f"[This notebook]({name}.ipynb) was run by the build.", text, "")
    for cell in others:
        if cell.cell_type == "markdown":
            yield from (cell.source, "")
            continue
        yield from ("```python", cell.source, "```", "")
        for output in cell.outputs:
            yield from _shown(output)


def _shown(output: Any) -> Sequence[str]:
    """Return an output as Markdown: HTML as it is, without blank lines, which would end it."""
    if output.output_type == "stream":
        return ("```text", output.text.rstrip(), "```", "")
    data = output.get("data", {})
    if "text/html" in data:
        html = re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]).strip())
        return ('<div class="output">', html, "</div>", "")
    return ("```text", "".join(data.get("text/plain", "")).rstrip(), "```", "")


if __name__ == "__main__":
    import nbformat

    print(nbformat.writes(executed(Path(sys.argv[1]))))
