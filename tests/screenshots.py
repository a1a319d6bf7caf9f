"""Draw the inspector for the documentation: `make picture`."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from chromium import browser, installed
from inspected import written_page

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def main() -> None:
    if installed() is None:
        sys.exit("there is no Chromium: apt-get install chromium")
    with TemporaryDirectory() as folder, browser() as chromium:
        address = written_page(Path(folder)).as_uri()
        windows: tuple[tuple[str, int, Literal["dark", "light"]], ...] = (
            ("inspector-wide", 1400, "light"),
            ("inspector-narrow", 420, "dark"),
        )
        for name, width, scheme in windows:
            page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page.goto(address)
            page.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
