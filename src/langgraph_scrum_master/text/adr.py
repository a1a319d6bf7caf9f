"""Architecture decision records in Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TITLE = re.compile(r"^#\s+(.+)$", re.M)
_STATUS_SECTION = re.compile(r"^#{2,}\s*status\s*$\n+(.+?)$\n*", re.I | re.M)
_BLANK_LINES = re.compile(r"\n{2,}")
_STATUS_LINE = re.compile(r"^(?:[*\-]\s*)?\**status\**\s*:\**\s*(.+)$", re.I | re.M)

NOT_IN_FORCE = ("proposed", "rejected", "deprecated", "superseded", "draft", "withdrawn")
"""First words of a status whose decision must not be followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adr:
    """One record: its title, its status in lower case (empty if it names none), and the rest of its text."""

    title: str
    status: str
    text: str

    @property
    def in_force(self) -> bool:
        """Whether the decision is to be followed; a document without a status is."""
        return not self.status.startswith(NOT_IN_FORCE)


def parse_adr(text: str, name: str) -> Adr:
    """The record in a Markdown text; `name` is its title if it has none."""
    title = _TITLE.search(text)
    status = _STATUS_SECTION.search(text) or _STATUS_LINE.search(text)
    return Adr(
        title=title[1].strip() if title else name,
        status=status[1].strip(" *_.").lower() if status else "",
        text=_BLANK_LINES.sub("\n", _STATUS_SECTION.sub("", _TITLE.sub("", text, count=1), count=1)).strip(),
    )
