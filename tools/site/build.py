"""Sphinx builds the site: any warning is an error, and nothing is loaded from elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

SETTINGS: Final = """
import sys

sys.path.insert(0, {root!r})
project, release = "Rowsieve", {version!r}
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Rowsieve {version}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
myst_heading_anchors = 6
myst_heading_slug_func = "tools.site.links.slug"
myst_enable_extensions = ["html_image"]
highlight_language = "none"
nitpicky = True
smartquotes = False  # texts of names and statements are to be copied
suppress_warnings = [
    "myst.header",  # a page of the API begins with the heading of its class
    "myst.strikethrough",
]
"""


def build(source: Path, target: Path, *, root: Path, version: str) -> None:
    """Build the pages of `source` as HTML; CalledProcessError where Sphinx warns of anything."""
    settings = SETTINGS.format(root=str(root), version=version)
    (source / "conf.py").write_text(settings, "utf-8")
    options = ("--fail-on-warning", "--keep-going", "--quiet", "--jobs", "2", "--fresh-env")
    command = (sys.executable, "-m", "sphinx", *options, str(source), str(target))
    subprocess.run(command, check=True)
