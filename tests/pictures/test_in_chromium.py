"""Pictures in a real browser: they fit a narrow and a wide window, and nothing is refused.

Skipped where there is no Chromium; Debian's package of this name is one.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from rowsieve.pictures.funnel import Funnel, Stage
from rowsieve.pictures.health import Fact, Health, Share
from rowsieve.pictures.key_ranges import KeyRanges, Panel
from rowsieve.pictures.page import Picture, page, section
from rowsieve.pictures.part_bar import PartBar
from rowsieve.pictures.timeline import Timeline, VersionMark
from tests import profiles
from tests.pictures.browser import CHROMIUM

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    pytest.mark.skipif(not profiles.IS_DEEP, reason="a browser is started in the deep profile"),
]


def pictures() -> list[Picture]:
    parts = [
        PartBar(f"{n:032x}", n * 10, n * 10 + 25, 100, n, 0, 1_000, (n, n), kind)
        for n, kind in enumerate(("read", "merged", "hides", "key", "statistics") * 6)
    ]
    marks = [
        VersionMark(n, "2026-01-01", "upsert", n, n % 3, 1, 0, call="open()") for n in range(60)
    ]
    shares = (Share("read", "live", 1, 100, "a"), Share("key", "log", 1, 50, "b"))
    stages = (Stage("parts", 10, 3, (("key", "by key ranges", 7),)),)
    before, after = Panel("version 1", parts), Panel("version 2", parts[:3])
    return [
        KeyRanges("memory:///" + "long-name-" * 12, "k", (before, after), "k < 5"),
        Funnel("t", 1, '"k" < 5', stages, phases=(("reading", 0.5),)),
        Timeline("t", marks),
        Health("t", 1, (Fact("reads", "1.0", "good", "parts"),), shares),
    ]


def in_browser(
    tmp_path: Path, width: int, *options: str, written: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Open the page in a window of this width."""
    assert CHROMIUM is not None
    path = tmp_path / "pictures.html"
    path.write_text(written or page("all", map(section, pictures())), "utf-8")
    return subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *(f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900"),
            *(*options, path.as_uri()),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )


@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("scheme", ["0", "1"])
def test_a_screenshot_is_drawn(tmp_path: Path, width: int, scheme: str) -> None:
    target = tmp_path / "shot.png"
    scheme_option = f"--blink-settings=preferredColorScheme={scheme}"
    in_browser(tmp_path, width, scheme_option, f"--screenshot={target}")
    png = target.read_bytes()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == width
    assert len(png) > 10_000  # an empty page has less


def test_the_browser_reads_the_page_that_was_written(tmp_path: Path) -> None:
    dumped = in_browser(tmp_path, 400, "--dump-dom").stdout
    written = (tmp_path / "pictures.html").read_text("utf-8")
    for name in ("section", "svg", "rect", "table", "tr", "details", "a"):
        opened = rf"<{name}[ >/]"
        assert len(re.findall(opened, dumped)) == len(re.findall(opened, written)), name


@pytest.mark.parametrize("is_broken", [False, True])
def test_the_style_of_the_page_is_allowed_by_its_policy(tmp_path: Path, is_broken: bool) -> None:
    """The console tells what a policy refuses; a page with another style shows that it does."""
    written = page("all", map(section, pictures()))
    if is_broken:
        written = written.replace("</style>", " </style>")
    done = in_browser(tmp_path, 400, "--enable-logging=stderr", "--dump-dom", written=written)
    assert ("Content Security Policy" in done.stderr) == is_broken
