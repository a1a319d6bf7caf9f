"""The sentences of a conversation that are worth keeping, found without a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import log
from typing import NamedTuple

from langgraph_scrum_master.text.prose import sentences
from langgraph_scrum_master.text.similarity import SaidTexts
from langgraph_scrum_master.text.terms import numbers, terms
from langgraph_scrum_master.text.trim import trim

_LONGEST = 50
"""Tokens of a sentence; the rest of a longer one is cut."""

_SHORTEST = 4
"""Tokens in which nothing worth telling is said."""

_SPEAKER = re.compile(r"([^\s:()][^:\n]{0,40}): (.*)", re.S)
_SPEECH_ACT = re.compile(r"  \((.+)\)")
_SETTLED = re.compile(
    r"\b(?:decid\w+|decision|agree[ds]?|agreement|settle[ds]?|chose\w*|choose|conclu\w+|approv\w+|confirm\w*|reject\w*|"
    r"commit(?:s|ted)?|promis\w+|will|must|shall|never|always|deadline|due|prefers?|remember|important|requires?|"
    r"instead|called|named?)\b",
    re.I,
)
_NAME = re.compile(r"(?<=[\w,;:] )[A-Z][\w-]*|\b[A-Z][A-Z\d]+\b|\b\w+[_.]\w+\b")
_FOCUS, _BEFORE, _QUESTION = 4.0, 0.4, 0.4
"""What bearing on the focus counts, how much of it an answer has from its question, and how much questions count."""


class _Said(NamedTuple):
    speaker: str
    sentence: str
    act: str = ""


class _Traits(NamedTuple):
    terms: frozenset[str]
    weight: float


def extract(text: str, max_tokens: int, count: Callable[[str], int], focus: str = "") -> str:
    """As many of the conversation's sentences as fit, in their order and with their speakers.

    Decisions, numbers and names come first, and what bears on the focus before all; nothing is said twice.
    """
    said = _read(text)
    scores = _scores(said, focus)
    room, chosen, shelf = max_tokens, list[int](), SaidTexts()
    shortened: dict[int, str] = {}
    for place in sorted(range(len(said)), key=lambda place: (-scores[place], place)):
        if room < _SHORTEST:
            break
        sentence = trim(said[place].sentence, lambda start: count(start) <= min(_LONGEST, max_tokens))
        cost = count(f" {said[place].speaker}: {sentence}")
        if sentence and cost <= room and shelf.add(sentence):
            chosen.append(place)
            shortened[place] = sentence
            room -= cost
    # The whole may count more than its parts: the least important go until it fits.
    while chosen and count(summary := _told(said, sorted(chosen), shortened)) > max_tokens:
        chosen.pop()
    return summary if chosen else ""


def _read(text: str) -> list[_Said]:
    found: list[_Said] = []
    speaker, turn = "", 0
    for line in text.split("\n"):
        if act := _SPEECH_ACT.fullmatch(line):
            found[turn:] = [each._replace(act=act[1]) for each in found[turn:]]
            continue
        if opened := _SPEAKER.fullmatch(line):
            speaker, line, turn = opened[1], opened[2], len(found)
        found += [_Said(speaker, sentence) for sentence in sentences(line)]
    return found


def _scores(said: Sequence[_Said], focus: str) -> list[float]:
    traits = [_traits(each.sentence) for each in said]
    bearing = _bearing([each.terms for each in traits], frozenset(terms(focus)))
    scores: list[float] = []
    for place, (each, (_, weight)) in enumerate(zip(said, traits, strict=True)):
        acted = 0.5 if _SETTLED.search(each.act) else 0.0
        answers = place > 0 and said[place - 1].sentence.endswith("?")
        focused = max(bearing[place], _BEFORE * bearing[place - 1] if answers else 0.0)
        asked = _QUESTION if each.sentence.endswith("?") else 1.0
        # Of two that say as much, the later one is more likely to hold still.
        scores.append(asked * (weight + acted + _FOCUS * focused) + 0.1 * place / len(said))
    return scores


def _bearing(spoken: Sequence[frozenset[str]], focus: frozenset[str]) -> list[float]:
    """How much of the focus each sentence has, rare words counting more."""
    frequency = Counter(term for each in spoken for term in each & focus)
    rarity = {term: log(1 + len(spoken) / times) for term, times in frequency.items()}
    whole = sum(rarity.values())
    return [sum(rarity[term] for term in each & focus) / whole if whole else 0.0 for each in spoken]


@lru_cache(maxsize=16_384)
def _traits(sentence: str) -> _Traits:
    said = frozenset(terms(sentence))
    names = min(3, len(set(_NAME.findall(sentence))))
    weight = min(len(said), 8) / 16 + 0.35 * names
    weight += 1.0 if _SETTLED.search(sentence) else 0.0
    weight += 0.7 if numbers(sentence) else 0.0
    return _Traits(said, weight)


def _told(said: Sequence[_Said], places: Sequence[int], shortened: dict[int, str]) -> str:
    parts: list[str] = []
    speaker = None
    for place in places:
        each = said[place]
        parts.append(f"{each.speaker}: {shortened[place]}" if each.speaker not in ("", speaker) else shortened[place])
        speaker = each.speaker
    return " ".join(parts)
