"""Decides whether a turn asks for something, with a small linear model or by explicit signals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master.model import Turn
from langgraph_scrum_master.team.observe.asking.cues import may_ask
from langgraph_scrum_master.team.observe.asking.exact import exact_asks
from langgraph_scrum_master.text.terms import terms

if TYPE_CHECKING:
    from langgraph_scrum_master.team.observe.asking.model import AskingModel, AskingSpan

_MOST_WORDS = 60
"""Maximum number of words in a need."""

_MOST_NEEDS = 4
"""Maximum number of needs per turn; further ones are joined to the last."""

FEW_NAMES = 3
"""Maximum number of terms in a sentence that refers back and is not self-contained."""

_POINTER = lazy_pattern(r"\b(?:its?|this|that|these|those|them|they|their|one|either|both)\b", re.I)
_MARKUP = lazy_pattern(r"^[\s#*\-•\d.)]+|\*{1,3}|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)")


class Ask(NamedTuple):
    """One need of a turn."""

    text: str
    """The need in the speaker's words, with the previous sentence if it refers back to it."""
    start: int
    end: int
    """End of the need in the turn's text."""
    probability: float
    evidence: str
    """The model with its probability, or the explicit signal."""
    of_user: bool = False
    """Whether it is a call of a tool that asks the user."""


def asks(turn: Turn, model: AskingModel | None = None) -> tuple[Ask, ...]:
    """The needs of a turn; empty if it does not ask.

    They include doubtful ones, with a probability between the model's thresholds.
    """
    if turn.kind != "agent":
        return ()
    if exact := exact_asks(turn):
        return tuple(
            Ask(_cut(each.text), each.start, each.end, 1.0, each.form, each.of_user) for each in exact[:_MOST_NEEDS]
        )
    if not turn.text or not may_ask(turn.text):
        return ()
    reading = (model or shipped_model()).read(turn.text)
    return tuple(_needs(turn.text, reading.spans)) if reading.spans else ()


def shipped_model() -> AskingModel:
    """The bundled model, loaded lazily."""
    from langgraph_scrum_master.team.observe.asking.model import shipped

    return shipped()


def _needs(turn: str, spans: Sequence[AskingSpan]) -> list[Ask]:
    """The spans as needs; a span that continues the previous one is joined to it."""
    needs: list[Ask] = []
    names: set[str] = set()
    for span in spans:
        own = set(terms(span.text))
        text = _bare(turn[span.start : span.end])
        continues = not names or not own.isdisjoint(names) or _refers_back(span.text) or len(needs) == _MOST_NEEDS
        if needs and continues:
            last = needs[-1]
            needs[-1] = last._replace(
                text=_cut(f"{last.text} {text}"),
                end=span.end,
                probability=max(last.probability, span.probability),
                evidence=_evidence(max(last.probability, span.probability)),
            )
            names |= own
        else:
            before = f"{_bare(span.before)} " if span.before and _refers_back(span.text) else ""
            needs.append(Ask(_cut(before + text), span.start, span.end, span.probability, _evidence(span.probability)))
            names = own
    return needs


def _refers_back(sentence: str) -> bool:
    """Whether the sentence needs the previous one to be understood."""
    count = len(terms(sentence))
    return count == 0 or (count <= FEW_NAMES and bool(_POINTER.search(sentence)))


def _evidence(probability: float) -> str:
    return f"asks (model {probability:.2f})"


def _bare(text: str) -> str:
    return _MARKUP.sub("", " ".join(text.split())).strip()


def _cut(text: str) -> str:
    words = text.split()
    return " ".join(words[:_MOST_WORDS]) if len(words) > _MOST_WORDS else text
