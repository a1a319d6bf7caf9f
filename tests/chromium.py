"""A real browser: Debian's Chromium, without a window and without a network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def installed() -> str | None:
    """Where Chromium is."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def browser() -> Iterator[Browser]:
    """The browser, as long as it is needed."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=installed(), args=list(QUIET))
        try:
            yield started
        finally:
            started.close()
