"""The shipped model, adapted to labelled turns of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from langgraph_scrum_master.team.observe.asking.dataset import LabelledTurn
from langgraph_scrum_master.team.observe.asking.model import AskingModel, shipped
from langgraph_scrum_master.team.observe.asking.train import examples_of, train
from langgraph_scrum_master.team.observe.asking.weights import LinearWeights

_PENALTY = 1.0
"""How much it costs to move away from the shipped weights: a few hundred turns move them a little."""

HELD_OUT = 5
"""Every so many turns, one is kept aside to compare the models."""


class Score(NamedTuple):
    """How well a model tells turns that ask from others."""

    precision: float
    recall: float
    false_positive_rate: float

    def __str__(self) -> str:
        return (
            f"precision {self.precision:.2f}, recall {self.recall:.2f}, "
            f"false-positive rate {self.false_positive_rate:.2f}"
        )


def adapted(turns: Sequence[LabelledTurn]) -> LinearWeights:
    """The shipped weights, moved by these turns."""
    start = shipped()
    examples = [example for turn in turns for example in examples_of(turn, start.logit)]
    about = {**start.weights.about, "adapted_to": len(turns)}
    return train(examples, about, start=start.weights, penalty=_PENALTY)


def compared(turns: Sequence[LabelledTurn]) -> tuple[Score, Score]:
    """The shipped model, and one adapted to four fifths of the turns, on the others."""
    rest = [turn for i, turn in enumerate(turns) if i % HELD_OUT]
    aside = [turn for i, turn in enumerate(turns) if not i % HELD_OUT]
    return _scored(shipped(), aside), _scored(AskingModel(adapted(rest)), aside)


def _scored(model: AskingModel, turns: Sequence[LabelledTurn]) -> Score:
    """The model on these turns, at its upper threshold."""
    found = [model.read(turn.text).probability >= model.upper for turn in turns]
    hits = sum(f and turn.asks for f, turn in zip(found, turns, strict=True))
    alarms = sum(found) - hits
    asked = sum(turn.asks for turn in turns)
    return Score(hits / max(1, hits + alarms), hits / max(1, asked), alarms / max(1, len(turns) - asked))
