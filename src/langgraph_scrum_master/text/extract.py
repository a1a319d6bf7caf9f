"""Extractive summaries of conversations, without a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from math import log
from typing import NamedTuple

from langgraph_scrum_master._internal.caches import text_cache
from langgraph_scrum_master.text.facts import stated_facts
from langgraph_scrum_master.text.prose import sentences
from langgraph_scrum_master.text.similarity import SaidTexts
from langgraph_scrum_master.text.terms import numbers, terms
from langgraph_scrum_master.text.trim import trim

_LONGEST = 50
"""The maximum number of tokens of a sentence. Longer ones are cut."""

_SHORTEST = 4
"""The minimum number of remaining tokens to go on."""

FACTS_SHARE = 0.6
"""The largest share of a summary that lists facts that its sentences do not have. By hand."""

_SPEAKER = re.compile(r"([^\s:()][^:\n]{0,40}): (.*)", re.S)
_SPEECH_ACT = re.compile(r"  \((.+)\)")
_SETTLED = re.compile(
    r"\b(?:decid\w+|decision|agree[ds]?|agreement|settle[ds]?|chose\w*|choose|conclu\w+|approv\w+|confirm\w*|reject\w*|"
    r"commit(?:s|ted)?|promis\w+|will|must|shall|never|always|deadline|due|prefers?|remember|important|requires?|"
    r"instead|called|named?)\b",
    re.I,
)
_NAME = re.compile(r"(?<=[\w,;:] )[A-Z][\w-]*|\b[A-Z][A-Z\d]+\b|\b\w+[_.]\w+\b")
_FOCUS, _INHERITED, _QUESTION = 4.0, 0.4, 0.4
"""The weight of similarity to the focus, the share of it that an answer inherits from its question, and the factor for
questions. By hand."""


class _Utterance(NamedTuple):
    speaker: str
    sentence: str
    act: str = ""


class _Traits(NamedTuple):
    terms: frozenset[str]
    weight: float


def extract(text: str, max_tokens: int, count: Callable[[str], int], focus: str = "") -> str:
    """The most important sentences that fit, in order and with their speakers, after the facts of the others.

    Sentences on the focus count most, then decisions, numbers and names. Duplicates are skipped.
    """
    facts = stated_facts(text, int(FACTS_SHARE * max_tokens), count, focus=focus)
    summary = _sentences(text, max_tokens - count(facts) if facts else max_tokens, count, focus)
    return with_facts(summary, text, max_tokens, count, focus) if facts else summary


def with_facts(summary: str, text: str, max_tokens: int, count: Callable[[str], int], focus: str = "") -> str:
    """The summary of the text after the facts that it lacks, as far as they fit."""
    room = max_tokens - count(summary) if summary else max_tokens
    while facts := stated_facts(text, room, count, known=summary, focus=focus):
        joined = f"{facts} {summary}" if summary else facts
        # The whole can have more tokens than its parts.
        if (over := count(joined) - max_tokens) <= 0:
            return joined
        room = min(room, count(facts)) - over
    return summary


def _sentences(text: str, max_tokens: int, count: Callable[[str], int], focus: str) -> str:
    utterances = _read(text)
    scores = _scores(utterances, focus)
    room, chosen, seen = max_tokens, list[int](), SaidTexts()
    shortened: dict[int, str] = {}
    for index in sorted(range(len(utterances)), key=lambda index: (-scores[index], index)):
        if room < _SHORTEST:
            break
        sentence = trim(utterances[index].sentence, lambda start: count(start) <= min(_LONGEST, max_tokens))
        cost = count(f" {utterances[index].speaker}: {sentence}")
        if sentence and cost <= room and seen.add(sentence):
            chosen.append(index)
            shortened[index] = sentence
            room -= cost
    # The whole can have more tokens than its parts: drop the least important until it fits.
    while chosen and count(summary := _render(utterances, sorted(chosen), shortened)) > max_tokens:
        chosen.pop()
    return summary if chosen else ""


def _read(text: str) -> list[_Utterance]:
    utterances: list[_Utterance] = []
    speaker, turn = "", 0
    for line in text.split("\n"):
        if act := _SPEECH_ACT.fullmatch(line):
            utterances[turn:] = [each._replace(act=act[1]) for each in utterances[turn:]]
            continue
        if match := _SPEAKER.fullmatch(line):
            speaker, line, turn = match[1], match[2], len(utterances)
        utterances += [_Utterance(speaker, sentence) for sentence in sentences(line)]
    return utterances


def _scores(utterances: Sequence[_Utterance], focus: str) -> list[float]:
    traits = [_traits(each.sentence) for each in utterances]
    similarity = _focus_similarity([each.terms for each in traits], frozenset(terms(focus)))
    scores: list[float] = []
    for index, (each, (_, weight)) in enumerate(zip(utterances, traits, strict=True)):
        act_bonus = 0.5 if _SETTLED.search(each.act) else 0.0
        answers = index > 0 and utterances[index - 1].sentence.endswith("?")
        on_focus = max(similarity[index], _INHERITED * similarity[index - 1] if answers else 0.0)
        factor = _QUESTION if each.sentence.endswith("?") else 1.0
        # Later sentences are more likely to be still valid.
        scores.append(factor * (weight + act_bonus + _FOCUS * on_focus) + 0.1 * index / len(utterances))
    return scores


def _focus_similarity(sentence_terms: Sequence[frozenset[str]], focus: frozenset[str]) -> list[float]:
    """The share of the focus that each sentence has, weighted by idf."""
    frequency = Counter(term for each in sentence_terms for term in each & focus)
    idf = {term: log(1 + len(sentence_terms) / times) for term, times in frequency.items()}
    total = sum(idf.values())
    return [sum(idf[term] for term in each & focus) / total if total else 0.0 for each in sentence_terms]


@text_cache(1_000_000)
def _traits(sentence: str) -> _Traits:
    content = frozenset(terms(sentence))
    names = min(3, len(set(_NAME.findall(sentence))))
    weight = min(len(content), 8) / 16 + 0.35 * names
    weight += 1.0 if _SETTLED.search(sentence) else 0.0
    weight += 0.7 if numbers(sentence) else 0.0
    return _Traits(content, weight)


def _render(utterances: Sequence[_Utterance], indices: Sequence[int], shortened: dict[int, str]) -> str:
    parts: list[str] = []
    speaker = None
    for index in indices:
        each, sentence = utterances[index], shortened[index]
        parts.append(f"{each.speaker}: {sentence}" if each.speaker not in ("", speaker) else sentence)
        speaker = each.speaker
    return " ".join(parts)
