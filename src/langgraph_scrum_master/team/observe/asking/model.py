"""The asking model: whether a turn asks for what its speaker lacks, and which of its sentences do."""

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

REMEMBERED = 2_048
"""Turns whose reading is kept."""


class AskingSpan(NamedTuple):
    """A part of a turn that asks."""

    start: int
    end: int
    text: str
    probability: float
    before: str = ""
    """The unit before it, which it may point back to."""


class Reading(NamedTuple):
    """What the model makes of a turn."""

    probability: float
    """That the turn asks for something that its speaker lacks."""
    spans: tuple[AskingSpan, ...] = ()
    """What of it does, each more likely than the lower threshold."""


NO_READING = Reading(0.0)

OTHERWISE = frozenset(("OFFER", "APPROVE", "PROPOSE", "EXAM", "SELF"))
"""Concepts that make a question something else: an offer, a request for approval, a bid, a quiz, a thought."""


class AskingModel:
    """Reads turns with a set of weights; the same turn is read once."""

    def __init__(self, weights: LinearWeights, tuning: DetectionTuning = DEFAULT_DETECTION) -> None:
        self.weights = weights
        self._tuning = tuning
        self._slope, self._offset = weights.about["calibration"]
        self.lower: float = weights.about["lower"] if tuning.doubtful_from is None else tuning.doubtful_from
        """Below this a turn does not ask."""
        self.upper: float = weights.about["upper"] if tuning.asks_from is None else tuning.asks_from
        """From this on it does; between the two something must confirm it."""
        self._read: OrderedDict[str, Reading] = OrderedDict()

    @classmethod
    def load(cls, path: str | Path) -> AskingModel:
        """The model whose weights `scrum-master train` wrote."""
        return cls(LinearWeights.load(Path(path)))

    def tuned(self, tuning: DetectionTuning) -> AskingModel:
        """A model with the same weights that decides by this tuning."""
        return AskingModel(self.weights, tuning)

    def read(self, text: str) -> Reading:
        """Whether the text asks, and where."""
        if (known := self._read.get(text)) is not None:
            return known
        reading = self._reading(text)
        self._read[text] = reading
        if len(self._read) > REMEMBERED:
            # Another thread may have been here first.
            with suppress(KeyError):
                self._read.popitem(last=False)
        return reading

    def logit(self, unit: UnitFeatures) -> float:
        """The score of a unit, before it is made a probability."""
        return score(self.weights, unit)

    def _reading(self, text: str) -> Reading:
        if not may_ask(text):
            return NO_READING
        found = split_units(text)
        wanted = [i for i, unit in enumerate(found.items) if may_ask(unit.text)]
        rated = zip(wanted, map(self.logit, features(text, found, wanted)), strict=True)
        likely = {i: self._probability(logit) for i, logit in rated}
        if likely and asks_and_nothing_else(found, self._tuning):
            likely = {i: max(p, self._tuning.bare_question) for i, p in likely.items()}
        spans = tuple(
            AskingSpan(unit.start, unit.end, unit.text, p, found.items[i - 1].text if i else "")
            for i, p in likely.items()
            if p >= self.lower and (unit := found.items[i])
        )
        return Reading(max(likely.values(), default=0.0), spans)

    def _probability(self, logit: float) -> float:
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, self._slope * logit + self._offset))))


_OPENS = frozenset(("do", "does", "did", "is", "are", "has", "have"))
_INVERTS = _OPENS | {"should", "can", "was", "were", "will"}


def asks_and_nothing_else(found: Units, tuning: DetectionTuning = DEFAULT_DETECTION) -> bool:
    """Whether the turn is a few short questions for facts: who says only that wants to know them."""
    if len(found.items) == 1 and _is_unmarked_question(found.items[0].text, tuning.unmarked_question_words):
        return True
    return len(found.items) <= tuning.bare_questions and all(
        _is_plain_question(Sentence(unit.text), tuning.bare_question_words) for unit in found.items
    )


def _is_plain_question(sentence: Sentence, most_words: int) -> bool:
    return (
        sentence.is_question
        and len(sentence.tokens) <= most_words
        and ("WH" in sentence.concepts or (sentence.tokens[0] in _OPENS and "YOU" not in sentence.concepts))
        and OTHERWISE.isdisjoint(sentence.concepts)
    )


def _is_unmarked_question(text: str, most_words: int) -> bool:
    """Whether a whole turn is a question by its word order alone, as in "which database do we use"."""
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
    """The log odds that a unit asks, by these weights."""
    return weights.bias + sum([weight * weights.total(names) for weight, names in unit.weighted()])


@cache
def shipped() -> AskingModel:
    """The model that comes with the package."""
    content = (files(__package__) / "asking.weights").read_bytes()
    return AskingModel(LinearWeights.from_bytes(content, "the package's asking.weights"))
