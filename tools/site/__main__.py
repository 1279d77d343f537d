"""Build the site into `build/site/html`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from tools.release import ROOT, version
from tools.site.api_pages import write_pages
from tools.site.build import build
from tools.site.staging import stage

TARGET: Final = ROOT / "build" / "site"


def main(target: Path = TARGET) -> None:
    """Stage the pages, generate those of the API, build, and check the result."""
    source, html = target / "source", target / "html"
    shutil.rmtree(target, ignore_errors=True)
    generated = [write_pages(source)]
    stage(ROOT, source, generated=generated)
    build(source, html, root=ROOT, version=version())
    print(html.relative_to(Path.cwd()) if html.is_relative_to(Path.cwd()) else html)


if __name__ == "__main__":
    main()
