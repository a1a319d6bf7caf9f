"""Draw the inspector for the documentation: `make picture`."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from chromium import browser, installed
from inspected import KNOWN, SCRIPT, TEAM_RUNS, write_database, written_page
from langgraph_scrum_master.testing import a_memory

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def main() -> None:
    if installed() is None:
        sys.exit("there is no Chromium: apt-get install chromium")
    with TemporaryDirectory() as folder, browser() as chromium:
        address = written_page(Path(folder), _write_runs, a_memory(*KNOWN)).as_uri()
        windows: tuple[tuple[str, int, int, Literal["dark", "light"]], ...] = (
            ("inspector-wide", 1400, 1180, "light"),
            ("inspector-dark", 1400, 1180, "dark"),
            ("inspector-narrow", 400, 900, "dark"),
        )
        for name, width, height, scheme in windows:
            page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(address)
            if name == "inspector-narrow":
                page.locator("#left").evaluate("each => each.scrollIntoView()")
            page.screenshot(path=IMAGES / f"{name}.png")
            page.close()


def _write_runs(folder: Path) -> Path:
    runs = {thread: [(who, text.replace(SCRIPT, "")) for who, text in said] for thread, said in TEAM_RUNS.items()}
    return write_database(folder, runs)


if __name__ == "__main__":
    main()
