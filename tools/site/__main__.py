"""Build the site into `build/site/html`: pages, API, notebooks, then the checks."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Final

from tools.release import ROOT, version
from tools.site import api_pages, gallery, notebooks
from tools.site.build import build
from tools.site.checks import faults
from tools.site.staging import stage

TARGET: Final = ROOT / "build" / "site"


def main(target: Path = TARGET) -> None:
    """Stage the pages, generate those of the API, build, and check the result."""
    source, html = target / "source", target / "html"
    for folder in (source, html):
        shutil.rmtree(folder, ignore_errors=True)
    shown = gallery.write_page(ROOT, source)
    api = api_pages.write_pages(source)
    moved = notebooks.write_pages(ROOT, source)
    stage(ROOT, source, generated=[shown, api], moved=moved)
    build(source, html, root=ROOT, version=version())
    if broken := faults(html):
        sys.exit("\n".join(broken))
    print(html.relative_to(Path.cwd()) if html.is_relative_to(Path.cwd()) else html)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=TARGET, help="where source and html go")
    main(parser.parse_args().target)
