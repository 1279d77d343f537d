"""The gallery: the pictures that the page on pictures makes when its code runs, as a browser shows.

Each picture is a page of its own. Screenshots are taken by a headless Chromium; where there is
none, the gallery has links alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.site.navigation import Entry, Group

FOLDER: Final = "gallery"
MADE_BY: Final = "docs/how-to/pictures.md"
WIDTH, HEIGHT = 900, 640
SCHEMES: Final = {"light": "1", "dark": "0"}
"""Colour schemes, with Chromium's number of each."""


def write_page(root: Path, target: Path) -> Group:
    """Run the page's code, take the screenshots and write the gallery; return its group."""
    folder = target / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        _run(root, Path(work))
        names = sorted(path.stem for path in Path(work).glob("*.html"))
        for name in names:
            shutil.copyfile(Path(work) / f"{name}.html", folder / f"{name}-picture.html")
    shots = {name: list(_screenshots(folder, name)) for name in names}
    (folder / "README.md").write_text("\n".join(_page(shots)), "utf-8")
    return Group("Gallery", [Entry("Pictures of tables and queries", f"{FOLDER}/README.md")])


def _run(root: Path, work: Path) -> None:
    """Run the code of the page in a folder, in a process of its own."""
    code = (
        "from pathlib import Path; from tests.test_docs import run_code; "
        f"run_code(Path({str(root / MADE_BY)!r}))"
    )
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", code], cwd=work, env=environment, check=True)


def _screenshots(folder: Path, name: str) -> Iterator[str]:
    """Take the screenshots of a picture; yield their names."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        return
    for scheme, number in SCHEMES.items():
        shot = folder / f"{name}-{scheme}.png"
        with (
            tempfile.TemporaryDirectory() as profile,
            contextlib.suppress(subprocess.TimeoutExpired),
        ):
            subprocess.run(
                [
                    *(chromium, "--headless", "--no-sandbox", "--disable-gpu"),
                    *("--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"),
                    *(f"--user-data-dir={profile}", f"--screenshot={shot}"),
                    f"--blink-settings=preferredColorScheme={number}",
                    (folder / f"{name}-picture.html").as_uri(),
                ],
                capture_output=True,
                check=True,
                timeout=120,
            )
            yield shot.name


def _page(shots: dict[str, list[str]]) -> Iterator[str]:
    yield "# Gallery"
    yield ""
    yield f"Made when this site was built, by the code of [the page on pictures](../{MADE_BY})."
    for name, files in shots.items():
        yield f"\n## `{name}.html`\n\n[The page itself]({name}-picture.html)\n"
        for file in files:
            scheme = file.removeprefix(f"{name}-").removesuffix(".png")
            yield f"![{name} in a browser, {scheme}]({file})\n"
