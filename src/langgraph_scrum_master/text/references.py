"""Names in a text: of people and things, of code, and of records such as stories, decisions and requirements."""

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
"""Characters of a text's first line in which its own name stands."""

_ORDINARY = frozenset(
    """
    a an and any are as at but by can could did do does for from given had has have he her his how i if in is it its
    may my no not of on or our please she should so that the their then there these they this those to use was we were
    what when where which who whom whose why will with would yes you your
    """.split()  # noqa: SIM905 - a list of 60 quoted words is no easier to read
)


def references(text: str) -> list[str]:
    """The records that a text names, each as `kind:number`: `ADR-007` and `adr 7` are the same."""
    return [_reference(found) for found in _RECORD.finditer(text)]


def own_reference(text: str) -> str:
    """The record that a text is, by its heading; nothing if it does not say."""
    heading = text.lstrip("# ").split("\n", 1)[0][:_HEADING]
    found = _RECORD.search(heading)
    if found is None or (found.start() and not _ENDS_NAME.match(heading, found.end())):
        return ""
    return _reference(found)


def family(reference: str) -> str:
    """The kind of record that a reference such as `adr:7` is to; nothing if it is a name of another sort."""
    return reference.partition(":")[0] if _REFERENCE.fullmatch(reference) else ""


def canonical(name: str) -> str:
    """What a record is known by, given a key or a name of it: `ADR-007` as `adr:7`, anything else in lower case."""
    found = _RECORD.fullmatch(name.strip())
    return _reference(found) if found else name.strip().lower()


def containers(reference: str) -> list[str]:
    """What a record is a part of by its number: `fr:3.1` of `fr:3`."""
    kind, _, number = reference.partition(":")
    parts = number.split(".") if family(reference) else []
    return [f"{kind}:{'.'.join(parts[:end])}" for end in range(1, len(parts))]


def besides(text: str) -> str:
    """The text without the records that it names."""
    return _RECORD.sub(" ", text)


def proper_names(text: str) -> list[str]:
    """The names of people and things in a text, in lower case."""
    return [name for found in _NAME.findall(text) if (name := found.lower()) not in _ORDINARY]


def identifiers(text: str) -> list[str]:
    """The parts of the identifiers and file names in a text, in lower case."""
    return [part.lower() for found in _CODE.findall(text) for part in _PARTS.findall(found)]


def _reference(found: re.Match[str]) -> str:
    kind = (found[1] or found[2] or found[3]).lower()
    return f"{kind}:{'.'.join(str(int(part)) for part in found[4].split('.'))}"
