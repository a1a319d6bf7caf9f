"""Finds names in texts: proper names, identifiers, and references to records such as stories or decisions."""

from __future__ import annotations

import re

_RECORD = re.compile(
    r"\b(?:([A-Z]{2,8})-?|([A-Z])-|((?i:story|epic|issue|task|ticket|requirement|decision|feature|pr|adr|rfc|fr|nfr))[ -]?#?)"
    r"(\d{1,9}(?:\.\d{1,9})*)\b"
)
_NAME = re.compile(r"\b[A-Z][A-Za-z0-9]+\b")
_REFERENCE = re.compile(r"[a-z]+:\d+(?:\.\d+)*")
_CODE = re.compile(
    r"\b(?:[a-z]+(?:[A-Z][a-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|\w+_\w+|\w+(?=\(\))|\w+(?=\.(?:py|ts|js|go|rs|java|toml|ya?ml|json|md)\b))"
)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_ENDS_NAME = re.compile(r"\s*(?:[:>|—–]|- )")

_HEADING = 60
"""The characters of the first line that are searched for the text's own reference."""

_ORDINARY = frozenset(
    """
    a an and any are as at but by can could did do does for from given had has have he her his how i if in is it its
    may my no not of on or our please she should so that the their then there these they this those to use was we were
    what when where which who whom whose why will with would yes you your
    """.split()  # noqa: SIM905 - a list of 60 quoted words is no easier to read
)


def references(text: str) -> list[str]:
    """The references in a text as `kind:number`. `ADR-007` and `adr 7` are equal."""
    return [_reference(match) for match in _RECORD.finditer(text)]


def own_reference(text: str) -> str:
    """The reference of the text itself, from its heading; empty if it has none."""
    heading = text.lstrip("# ").split("\n", 1)[0][:_HEADING]
    match = _RECORD.search(heading)
    if match is None or (match.start() and not _ENDS_NAME.match(heading, match.end())):
        return ""
    return _reference(match)


def family(reference: str) -> str:
    """The kind of a reference, such as `adr` for `adr:7`; empty for other names."""
    return reference.partition(":")[0] if _REFERENCE.fullmatch(reference) else ""


def canonical(name: str) -> str:
    """The canonical form of a key or name: `ADR-007` as `adr:7`, anything else in lower case."""
    match = _RECORD.fullmatch(name.strip())
    return _reference(match) if match else name.strip().lower()


def containers(reference: str) -> list[str]:
    """The references that contain this one by number: `fr:3` for `fr:3.1`."""
    kind, _, number = reference.partition(":")
    parts = number.split(".") if family(reference) else []
    return [f"{kind}:{'.'.join(parts[:end])}" for end in range(1, len(parts))]


def besides(text: str) -> str:
    """The text without its references."""
    return _RECORD.sub(" ", text)


def proper_names(text: str) -> list[str]:
    """The names of people and things in a text, in lower case."""
    return [name for match in _NAME.findall(text) if (name := match.lower()) not in _ORDINARY]


def identifiers(text: str) -> list[str]:
    """The parts of the identifiers and file names in a text, in lower case."""
    return [part.lower() for match in _CODE.findall(text) for part in _PARTS.findall(match)]


def _reference(match: re.Match[str]) -> str:
    kind = (match[1] or match[2] or match[3]).lower()
    return f"{kind}:{'.'.join(str(int(part)) for part in match[4].split('.'))}"
