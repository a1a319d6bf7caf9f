"""Whether a turn asks for what its speaker lacks: by a small learned model, or in an exact form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from langgraph_scrum_master.model import Turn
from langgraph_scrum_master.team.observe.asking.cues import may_ask
from langgraph_scrum_master.team.observe.asking.exact import exact_asks
from langgraph_scrum_master.text.terms import terms

if TYPE_CHECKING:
    from langgraph_scrum_master.team.observe.asking.model import AskingModel, AskingSpan

_MOST_WORDS = 60
"""What a need is cut after."""

_MOST_NEEDS = 4
"""Things that a turn asks for; what is beyond belongs to the last."""

FEW_NAMES = 3
"""Names in a sentence that points back and cannot be understood by itself."""

_POINTER = re.compile(r"\b(?:its?|this|that|these|those|them|they|their|one|either|both)\b", re.I)
_MARKUP = re.compile(r"^[\s#*\-•\d.)]+|\*{1,3}|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)")


class Ask(NamedTuple):
    """One thing that a turn asks for."""

    text: str
    """In the speaker's own words, with the sentence before it where it points back."""
    start: int
    end: int
    """Where in the turn it is."""
    probability: float
    evidence: str
    """What fired: the model with its probability, or the form."""
    of_user: bool = False
    """Whether a tool that asks the user was called."""


def asks(turn: Turn, model: AskingModel | None = None) -> tuple[Ask, ...]:
    """What the turn's speaker asks for, need by need; nothing if it does not ask.

    Doubtful ones, with a probability between the model's thresholds, are among them.
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
    """The model that comes with the package, loaded when the first turn may ask."""
    from langgraph_scrum_master.team.observe.asking.model import shipped

    return shipped()


def _needs(turn: str, spans: Sequence[AskingSpan]) -> list[Ask]:
    """The spans, joined where one only goes on about the one before."""
    needs: list[Ask] = []
    names: set[str] = set()
    for span in spans:
        own = set(terms(span.text))
        text = _bare(turn[span.start : span.end])
        goes_on = not names or not own.isdisjoint(names) or _points_back(span.text) or len(needs) == _MOST_NEEDS
        if needs and goes_on:
            last = needs[-1]
            needs[-1] = last._replace(
                text=_cut(f"{last.text} {text}"),
                end=span.end,
                probability=max(last.probability, span.probability),
                evidence=_evidence(max(last.probability, span.probability)),
            )
            names |= own
        else:
            before = f"{_bare(span.before)} " if span.before and _points_back(span.text) else ""
            needs.append(Ask(_cut(before + text), span.start, span.end, span.probability, _evidence(span.probability)))
            names = own
    return needs


def _points_back(sentence: str) -> bool:
    """Whether the sentence cannot be understood without the one before."""
    named = len(terms(sentence))
    return named == 0 or (named <= FEW_NAMES and bool(_POINTER.search(sentence)))


def _evidence(probability: float) -> str:
    return f"asks (model {probability:.2f})"


def _bare(text: str) -> str:
    return _MARKUP.sub("", " ".join(text.split())).strip()


def _cut(text: str) -> str:
    words = text.split()
    return " ".join(words[:_MOST_WORDS]) if len(words) > _MOST_WORDS else text
