"""Adapts the bundled model to labelled turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from langgraph_scrum_master.team.observe.asking.dataset import LabelledTurn
from langgraph_scrum_master.team.observe.asking.model import AskingModel, shipped
from langgraph_scrum_master.team.observe.asking.train import examples_of, train
from langgraph_scrum_master.team.observe.asking.weights import LinearWeights

_PENALTY = 1.0
"""Ridge penalty on the distance from the bundled weights: a few hundred turns shift them a little."""

HELD_OUT = 5
"""One in this many turns is held out to compare the models."""


class Score(NamedTuple):
    """Classification metrics of a model."""

    precision: float
    recall: float
    false_positive_rate: float

    def __str__(self) -> str:
        return (
            f"precision {self.precision:.2f}, recall {self.recall:.2f}, "
            f"false-positive rate {self.false_positive_rate:.2f}"
        )


def adapted(turns: Sequence[LabelledTurn]) -> LinearWeights:
    """The bundled weights, adapted to these turns."""
    start = shipped()
    examples = [example for turn in turns for example in examples_of(turn, start.logit)]
    about = {**start.weights.about, "adapted_to": len(turns)}
    return train(examples, about, start=start.weights, penalty=_PENALTY)


def compared(turns: Sequence[LabelledTurn]) -> tuple[Score, Score]:
    """Scores on the held-out turns: of the bundled model, and of one adapted to the rest."""
    rest = [turn for i, turn in enumerate(turns) if i % HELD_OUT]
    held_out = [turn for i, turn in enumerate(turns) if not i % HELD_OUT]
    return _score(shipped(), held_out), _score(AskingModel(adapted(rest)), held_out)


def _score(model: AskingModel, turns: Sequence[LabelledTurn]) -> Score:
    """The scores of a model at its upper threshold."""
    predictions = [model.read(turn.text).probability >= model.upper for turn in turns]
    hits = sum(predicted and turn.asks for predicted, turn in zip(predictions, turns, strict=True))
    false_alarms = sum(predictions) - hits
    positives = sum(turn.asks for turn in turns)
    return Score(
        hits / max(1, hits + false_alarms), hits / max(1, positives), false_alarms / max(1, len(turns) - positives)
    )
