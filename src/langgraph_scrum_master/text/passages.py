"""The passage of a text that bears most on what is looked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import log1p
from typing import NamedTuple

from langgraph_scrum_master.text.sections import FRONT_MATTER
from langgraph_scrum_master.text.terms import terms

LEFT_OUT = "…"
"""Stands where a passage was cut out of its text."""

_UNIT_END = re.compile(r"\n+|(?<=[.!?;])[ \t]+(?=[\"'(\[*_`]?[A-Z0-9])|(?<=[。？！])")
_HEADING = re.compile(r"#{1,6}\s|[^.!?:]{1,160}$")


class Passage(NamedTuple):
    """A part of a text, under its heading."""

    text: str
    whole: bool
    """Whether it is all of the text."""


def says_something(text: str) -> bool:
    """Whether there is anything below the headings and the front matter."""
    lines = [line for line in FRONT_MATTER.sub("", text).split("\n") if line.strip()]
    body = [line for line in lines if not line.lstrip().startswith("#") and not set(line.strip()) <= set("=-~*_")]
    return any(map(str.isalnum, "".join(body)))


def passage_of(text: str, wanted: Mapping[str, float], fits: Callable[[str], bool]) -> Passage:
    """The stretch of the text, as long as it `fits`, that has most of the wanted terms by weight, under its heading.

    A term counts more the fewer sentences of the text have it. Of a text that fits, all.
    """
    if fits(text):
        return Passage(text, True)
    heading, body = _headed(text)
    pieces = _pieces(body)
    held = [frozenset(terms(piece)) & wanted.keys() for piece in pieces]
    counts = {term: sum(term in each for each in held) for each in held for term in each}
    worth = {term: wanted[term] * log1p(len(pieces) / count) for term, count in counts.items()}
    start, end = _best_stretch(pieces, held, worth, lambda part: fits(_framed(heading, part, True, True)))
    part = "".join(pieces[start:end]).strip("\n")
    return Passage(_framed(heading, part, start > 0, end < len(pieces)), False)


def _headed(text: str) -> tuple[str, str]:
    """The heading that the text begins with, if it does, and the rest."""
    first, _, rest = FRONT_MATTER.sub("", text).partition("\n")
    return (first, rest) if rest.strip() and _HEADING.match(first) else ("", text)


def _pieces(text: str) -> list[str]:
    """The text cut after its sentences and lines; together they are the text."""
    ends = [match.end() for match in _UNIT_END.finditer(text)]
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True) if text[start:end]]


def _best_stretch(
    pieces: Sequence[str],
    held: Sequence[frozenset[str]],
    worth: Mapping[str, float],
    fits: Callable[[str], bool],
) -> tuple[int, int]:
    best, found = -1.0, (0, 1)
    end = 0
    for start in range(len(pieces)):
        end = max(end, start + 1)
        while end < len(pieces) and fits("".join(pieces[start : end + 1])):
            end += 1
        value = sum(worth[term] for term in frozenset[str]().union(*held[start:end]))
        if value > best:
            best, found = value, (start, end)
        if end == len(pieces):
            break
    return found


def _framed(heading: str, part: str, cut_before: bool, cut_after: bool) -> str:
    body = f"{LEFT_OUT} {part}" if cut_before else part
    body = f"{body} {LEFT_OUT}" if cut_after else body
    return f"{heading}\n{body}" if heading else body
