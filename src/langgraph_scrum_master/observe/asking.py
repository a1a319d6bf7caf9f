"""Whether a turn asks for information that its speaker needs, or says that it cannot go on without it."""

from __future__ import annotations

import re
from functools import lru_cache

from langgraph_scrum_master.model import Turn
from langgraph_scrum_master.text.prose import prose, sentences
from langgraph_scrum_master.text.terms import terms

MOST_WORDS = 120
"""What a turn asks for is cut after so many words."""

MOST_NEEDS = 4
"""Things that a turn asks for; what is beyond belongs to the last."""

LONGEST = 600
"""Characters of a sentence that are looked at."""

_CUES = (
    *(
        "?",
        "？",
        "please",
        "kindly",
        "can",
        "could",
        "would",
        "will",
        "need",
        "not",
        "n't",
        "no ",
        "block",
        "stuck",
        "wait",
    ),
    *("clear", "ambiguous", "silent", "incomplete", "missing", "lack", "sure", "sufficient", "unknown", "unspecified"),
    *("without", "until", "unless", "if ", "nobody", "here's"),
)
"""Every ask holds one of these: most turns are done with at this point."""


def asks(turn: Turn) -> tuple[str, ...]:
    """What the turn's speaker asks for, need by need, in its own words; nothing if it does not ask."""
    if turn.kind != "agent":
        return ()
    found = asking(turn.text)
    if not found and turn.marks.get("clarification_needed") and (said := turn.text.split()):
        return (" ".join(said[:MOST_WORDS]),)
    return found


@lru_cache(maxsize=2048)
def asking(text: str) -> tuple[str, ...]:
    """The sentences of this text that ask, those for the same need together."""
    lowered = text.lower()
    if not any(map(lowered.__contains__, _CUES)):
        return ()
    # Its patterns take long to compile: whoever only builds a graph does without them.
    from langgraph_scrum_master.observe.wording import asks_for, lacks

    said = [_clipped(sentence) for sentence in sentences(prose(text))]
    found = [
        i
        for i, sentence in enumerate(said)
        if asks_for(sentence, said[i + 1 :]) or lacks(sentence, said[max(0, i - 1) : i + 2])
    ]
    if not found:
        return ()
    asked = [said[i] for i in found]
    if found[0] and _points_back(asked[0]):
        asked[0] = f"{said[found[0] - 1]} {asked[0]}"
    return tuple(" ".join(need.split()[: MOST_WORDS // 2]) for need in _needs(asked))


def _needs(asked: list[str]) -> list[str]:
    """The sentences, joined where one only goes on about the one before."""
    needs: list[str] = []
    names: set[str] = set()
    for sentence in asked:
        own = set(terms(sentence))
        if not needs or not names or not own.isdisjoint(names) or _points_back(sentence) or len(needs) == MOST_NEEDS:
            needs[-1:] = [f"{needs[-1]} {sentence}" if needs else sentence]
            names |= own
        else:
            needs.append(sentence)
            names = own
    return needs


def _points_back(sentence: str) -> bool:
    """Whether the sentence cannot be understood without the one before."""
    named = len(terms(sentence))
    return named == 0 or (named <= _FEW_NAMES and bool(_POINTER.search(sentence)))


def _clipped(sentence: str) -> str:
    # What is longer is no sentence, and patterns would take long over it.
    return sentence if len(sentence) <= LONGEST else f"{sentence[: LONGEST // 2]} {sentence[-LONGEST // 2 :]}"


_FEW_NAMES = 3
_POINTER = re.compile(r"\b(?:its?|this|that|these|those|them|they|their|one|either|both)\b", re.I)
