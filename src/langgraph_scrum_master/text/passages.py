"""The passage of a text that matches a query best."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import log1p
from typing import NamedTuple

from langgraph_scrum_master.text.sections import FRONT_MATTER
from langgraph_scrum_master.text.terms import terms

LEFT_OUT = "…"
"""Marks omitted text."""

_UNIT_END = re.compile(r"\n+|(?<=[.!?;])[ \t]+(?=[\"'(\[*_`]?[A-Z0-9])|(?<=[。？！])")
_HEADING = re.compile(r"#{1,6}\s|[^.!?:]{1,160}$")


class Passage(NamedTuple):
    """A part of a text, under its heading."""

    text: str
    whole: bool
    """Whether it is the whole text."""

    @property
    def at_start(self) -> bool:
        """Whether nothing is left out before it."""
        return not self.text.startswith(LEFT_OUT) and f"\n{LEFT_OUT} " not in self.text


def says_something(text: str) -> bool:
    """Whether the text has more than headings and front matter."""
    lines = [line for line in FRONT_MATTER.sub("", text).split("\n") if line.strip()]
    body = [line for line in lines if not line.lstrip().startswith("#") and not set(line.strip()) <= set("=-~*_")]
    return any(map(str.isalnum, "".join(body)))


def neighbouring_terms(text: str) -> Iterator[frozenset[str]]:
    """The terms of each sentence or line of the text together with those of the next one."""
    pieces = [frozenset(terms(piece)) for piece in _pieces(text)]
    return (first | second for first, second in zip(pieces, [*pieces[1:], frozenset[str]()], strict=True))


def passage_of(text: str, wanted: Mapping[str, float], fits: Callable[[str], bool]) -> Passage:
    """The passage that `fits` and has the most wanted terms by weight, under the heading of the text.

    Terms are weighted by their idf among the text's sentences. A text that fits is returned whole.
    """
    if fits(text):
        return Passage(text, True)
    heading, body = _split_heading(text)
    pieces = _pieces(body)
    matches = [frozenset(terms(piece)) & wanted.keys() for piece in pieces]
    counts = {term: sum(term in each for each in matches) for each in matches for term in each}
    weights = {term: wanted[term] * log1p(len(pieces) / count) for term, count in counts.items()}
    start, end = _best_range(pieces, matches, weights, lambda part: fits(_with_marks(heading, part, True, True)))
    part = "".join(pieces[start:end]).strip("\n")
    return Passage(_with_marks(heading, part, start > 0, end < len(pieces)), False)


def _split_heading(text: str) -> tuple[str, str]:
    """The heading at the start of the text, or an empty one, and the rest."""
    first, _, rest = FRONT_MATTER.sub("", text).partition("\n")
    return (first, rest) if rest.strip() and _HEADING.match(first) else ("", text)


def _pieces(text: str) -> list[str]:
    """The text split after sentences and lines, without loss."""
    ends = [match.end() for match in _UNIT_END.finditer(text)]
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True) if text[start:end]]


def _best_range(
    pieces: Sequence[str],
    matches: Sequence[frozenset[str]],
    weights: Mapping[str, float],
    fits: Callable[[str], bool],
) -> tuple[int, int]:
    best, best_range = -1.0, (0, 1)
    end = 0
    for start in range(len(pieces)):
        end = max(end, start + 1)
        while end < len(pieces) and fits("".join(pieces[start : end + 1])):
            end += 1
        value = sum(weights[term] for term in frozenset[str]().union(*matches[start:end]))
        if value > best:
            best, best_range = value, (start, end)
        if end == len(pieces):
            break
    return best_range


def _with_marks(heading: str, part: str, cut_before: bool, cut_after: bool) -> str:
    body = f"{LEFT_OUT} {part}" if cut_before else part
    body = f"{body} {LEFT_OUT}" if cut_after else body
    return f"{heading}\n{body}" if heading else body
