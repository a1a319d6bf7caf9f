"""Architecture decision records in Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass

from langgraph_scrum_master.text.sections import FRONT_MATTER

_NUMBER = re.compile(r"(?:ADR[ -]?)?0*(\d+)", re.I)
_SUPERSEDED_BY = re.compile(r"\bsuper[sc]eded\s+by\b", re.I)
_DIGITS = re.compile(r"0*(\d+)")
_TITLE = re.compile(r"^#\s+(.+)$", re.M)
_STATUS_SECTION = re.compile(r"^#{2,}\s*status\s*$\n+(.+?)(?=^#|\Z)", re.I | re.M | re.S)
_MARKS = re.compile(r"~~.*?~~|[\[\]*_~]")
_BLANK_LINES = re.compile(r"\n{2,}")
_STATUS_LINE = re.compile(r"^(?:[*\-]\s*)?\**status\**\s*:\**\s*(.+)$", re.I | re.M)

NOT_IN_FORCE = re.compile(
    r"\s*(?:proposed|rejected|deprecated|draft|withdrawn|obsolete|pending|not accepted|superseded|superceded)\b"
    r"|.*\bsuper[sc]eded\b",
    re.I | re.S,
)
"""Matches the status of a decision that is not in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adr:
    """A decision record: its title, its status in lower case (empty if there is none), and the rest of its text."""

    title: str
    status: str
    text: str
    number: str = ""
    """From the title or the file name, without leading zeros."""

    @property
    def in_force(self) -> bool:
        """Whether the decision is in force. One without a status is."""
        return not NOT_IN_FORCE.match(self.status)

    @property
    def successor(self) -> str:
        """The number of the decision that supersedes this one; empty if the status names none."""
        # Two searches: one pattern for both would read the rest of the status after every "superseded by".
        by = _SUPERSEDED_BY.search(self.status)
        number = _DIGITS.search(self.status, by.end()) if by else None
        return number[1] if number else ""


def parse_adr(text: str, name: str) -> Adr:
    """Parse a decision record in Markdown. `name` is the title if the text has none."""
    front = FRONT_MATTER.match(text)
    text = text[front.end() :] if front else text
    title = _TITLE.search(text)
    status = (
        (_STATUS_LINE.search(front[1]) if front else None) or _STATUS_SECTION.search(text) or _STATUS_LINE.search(text)
    )
    number = (_NUMBER.match(title[1].strip()) if title else None) or _NUMBER.match(name)
    return Adr(
        title=title[1].strip() if title else name,
        status=_MARKS.sub("", status[1]).strip(" .\"'\n").lower() if status else "",
        number=number[1] if number else "",
        text=_BLANK_LINES.sub("\n", _STATUS_SECTION.sub("", _TITLE.sub("", text, count=1), count=1)).strip(),
    )
