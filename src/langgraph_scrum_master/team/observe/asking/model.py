"""The asking model: the probability that a turn, and each of its sentences, asks for something."""

from __future__ import annotations

import math
from collections import OrderedDict
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from langgraph_scrum_master.team.observe.asking.cues import may_ask
from langgraph_scrum_master.team.observe.asking.features import Sentence, UnitFeatures, features
from langgraph_scrum_master.team.observe.asking.units import Units, split_units
from langgraph_scrum_master.team.observe.asking.weights import LinearWeights
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning

CACHE_SIZE = 2_048
"""Number of cached readings."""


class AskingSpan(NamedTuple):
    """A part of a turn that asks."""

    start: int
    end: int
    text: str
    probability: float
    before: str = ""
    """The previous unit, which it may refer to."""


class Reading(NamedTuple):
    """The model's output for a turn."""

    probability: float
    """Probability that the turn asks for something."""
    spans: tuple[AskingSpan, ...] = ()
    """The parts that ask, each above the lower threshold."""


NO_READING = Reading(0.0)

NOT_NEEDS = frozenset(("OFFER", "APPROVE", "PROPOSE", "EXAM", "SELF"))
"""Concepts of questions that are not needs: offers, approvals, proposals, quizzes and thoughts."""


class AskingModel:
    """Reads turns with a set of weights; readings are cached."""

    def __init__(self, weights: LinearWeights, tuning: DetectionTuning = DEFAULT_DETECTION) -> None:
        self.weights = weights
        self._tuning = tuning
        self._slope, self._offset = weights.about["calibration"]
        self.lower: float = weights.about["lower"] if tuning.doubtful_from is None else tuning.doubtful_from
        """Minimum probability of a doubtful question."""
        self.upper: float = weights.about["upper"] if tuning.asks_from is None else tuning.asks_from
        """Minimum probability of a question. Between the two, something must confirm it."""
        self._cache: OrderedDict[str, Reading] = OrderedDict()

    @classmethod
    def load(cls, path: str | Path) -> AskingModel:
        """The model with the weights in a file written by `scrum-master train`."""
        return cls(LinearWeights.load(Path(path)))

    def tuned(self, tuning: DetectionTuning) -> AskingModel:
        """A model with the same weights and this tuning."""
        return AskingModel(self.weights, tuning)

    def read(self, text: str) -> Reading:
        """The reading of a text."""
        if (cached := self._cache.get(text)) is not None:
            return cached
        reading = self._reading(text)
        self._cache[text] = reading
        if len(self._cache) > CACHE_SIZE:
            # Another thread may have evicted it.
            with suppress(KeyError):
                self._cache.popitem(last=False)
        return reading

    def logit(self, unit: UnitFeatures) -> float:
        """The log odds of a unit, before calibration."""
        return score(self.weights, unit)

    def _reading(self, text: str) -> Reading:
        if not may_ask(text):
            return NO_READING
        units = split_units(text)
        wanted = [i for i, unit in enumerate(units.items) if may_ask(unit.text)]
        scored = zip(wanted, map(self.logit, features(text, units, wanted)), strict=True)
        likely = {i: self._probability(logit) for i, logit in scored}
        if likely and is_only_questions(units, self._tuning):
            likely = {i: max(p, self._tuning.bare_question) for i, p in likely.items()}
        spans = tuple(
            AskingSpan(unit.start, unit.end, unit.text, p, units.items[i - 1].text if i else "")
            for i, p in likely.items()
            if p >= self.lower and (unit := units.items[i])
        )
        return Reading(max(likely.values(), default=0.0), spans)

    def _probability(self, logit: float) -> float:
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, self._slope * logit + self._offset))))


_OPENS = frozenset(("do", "does", "did", "is", "are", "has", "have"))
_INVERTS = _OPENS | {"should", "can", "was", "were", "will"}


def is_only_questions(units: Units, tuning: DetectionTuning = DEFAULT_DETECTION) -> bool:
    """Whether the turn consists only of a few short factual questions."""
    if len(units.items) == 1 and _is_unmarked_question(units.items[0].text, tuning.unmarked_question_words):
        return True
    return len(units.items) <= tuning.bare_questions and all(
        _is_plain_question(Sentence(unit.text), tuning.bare_question_words) for unit in units.items
    )


def _is_plain_question(sentence: Sentence, most_words: int) -> bool:
    return (
        sentence.is_question
        and len(sentence.tokens) <= most_words
        and ("WH" in sentence.concepts or (sentence.tokens[0] in _OPENS and "YOU" not in sentence.concepts))
        and NOT_NEEDS.isdisjoint(sentence.concepts)
    )


def _is_unmarked_question(text: str, most_words: int) -> bool:
    """Whether a turn is a question by its word order alone, as in "which database do we use"."""
    sentence = Sentence(text)
    tokens = sentence.tokens
    if not (text[-1:].isalnum() and "," not in text and 3 < len(tokens) <= most_words and "WH" in sentence.concepts):
        return False
    which, inverted = tokens[0].startswith(("wh", "wa", "wi")), tokens[1] in _INVERTS
    if tokens[0] in ("when", "why", "while", "with", "was", "will", "want", "wait") or not which:
        return False
    return (inverted and tokens[0] != "which") or (tokens[2] in _INVERTS and tokens[1] not in _OWN)


_OWN = frozenset(("i", "we", "you", "they", "he", "she", "it", "this", "that", "owns", "is", "are"))


def score(weights: LinearWeights, unit: UnitFeatures) -> float:
    """The log odds that a unit asks, with these weights."""
    return weights.bias + sum([weight * weights.total(names) for weight, names in unit.weighted()])


@cache
def shipped() -> AskingModel:
    """The bundled model."""
    content = (files(__package__) / "asking.weights").read_bytes()
    return AskingModel(LinearWeights.from_bytes(content, "the package's asking.weights"))
