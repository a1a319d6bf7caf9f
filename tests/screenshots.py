"""Draw the inspector for the documentation: `make picture`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from chromium import browser, installed
from inspected import SCRIPT, messages
from langgraph_scrum_master.cli.page import page, page_data
from langgraph_scrum_master.replay import replay
from langgraph_scrum_master.testing import a_memory

IMAGES = Path(__file__).parents[1] / "docs" / "images"

KNOWN = (
    "Refunds go to the queue refunds-v2, decided by the architect: the old queue loses messages.",
    "The refund worker retries a payment three times, then asks a person.",
    "Invoices go to the queue invoices, one message for each order.",
    "A cancelled order frees its stock at once.",
    "The landing page has a teal header.",
)


def main() -> None:
    if installed() is None:
        sys.exit("there is no Chromium: apt-get install chromium")
    with TemporaryDirectory() as folder, browser() as chromium:
        page_file = Path(folder) / "inspector.html"
        seen = replay(_run(Path(folder)), memory=a_memory(*KNOWN))
        page_file.write_text(page(page_data(seen, "refunds.json")), "utf-8")
        address = page_file.as_uri()
        windows: tuple[tuple[str, int, Literal["dark", "light"]], ...] = (
            ("inspector-wide", 1400, "light"),
            ("inspector-narrow", 420, "dark"),
        )
        for name, width, scheme in windows:
            shown = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            shown.goto(address)
            shown.screenshot(path=IMAGES / f"{name}.png")


def _run(folder: Path) -> Path:
    path = folder / "refunds.json"
    said = [{**each, "content": each["content"].replace(SCRIPT, "")} for each in messages()]
    path.write_text(json.dumps(said), "utf-8")
    return path


if __name__ == "__main__":
    main()
