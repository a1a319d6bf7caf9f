"""The thresholds, windows, counts and confidences of detection.

The docstring of each field says where its value comes from: a script in `benchmarks/`, or "by hand". Limits on memory
and parsing are next to the code that they protect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import TypeGuard

from langgraph_scrum_master.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkWeights:
    """Weights of the logistic model for talk in circles. Positive weights are evidence for a circle.

    Fitted by `benchmarks/train_circles.py`, except `on_topic`. The script prints these values, except 0.88 for `known`
    and 0.18 for `own`, which give the same results on its scenarios.
    """

    known: float = 0.87
    """Share of words that were said before."""
    own: float = 0.19
    """Word overlap with earlier statements of the same agent."""
    again: float = 1.66
    """Share of statements about doing something again or undoing it."""
    new_name: float = -3.76
    """Share of statements with a new name."""
    done: float = -4.47
    """Share of statements that report something done."""
    failures: float = 0.95
    """Failed tool calls, from 0 to 1 for four or more."""
    bias: float = -0.59
    """The constant minus the threshold. Raise it to report more circles."""
    on_topic: float = 1.0
    """Added if all statements have the same topic mark. By hand."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not _is_number(value):
                raise ConfigError(f"TalkWeights.{each.name} must be a finite number, got {value!r}")

    def weighted_sum(self, features: Mapping[str, float]) -> float:
        """The weighted sum of the features."""
        return float(sum(getattr(self, name) * value for name, value in features.items()))

    @property
    def most(self) -> float:
        """Upper bound of `weighted_sum`."""
        weights = (self.known, self.own, self.again, self.new_name, self.done, self.failures)
        return sum(weight for weight in weights if weight > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionTuning:
    """The parameters of detection. `DEFAULT_DETECTION` has the defaults.

    Whole numbers count turns, acts, words or characters and are at least 1. All others are at least 0, and shares,
    probabilities and confidences are at most 1.
    """

    # Questions

    asks_from: float | None = None
    """Minimum probability of a question. None: the value in the weights file. It is 0.7 in the bundled one, chosen on
    labelled turns of 14 systems for a false-positive rate of 0.06, and written by `benchmarks/train_asking.py`."""
    doubtful_from: float | None = None
    """Minimum probability of a question that needs confirmation. None: the value in the weights file. It is 0.35 in the
    bundled one, chosen and written like `asks_from`."""
    bare_question: float = 0.75
    """Minimum probability assigned to each question in a turn that consists only of questions. By hand."""
    bare_questions: int = 4
    """Maximum number of questions in such a turn. By hand."""
    bare_question_words: int = 25
    """Maximum number of words in such a question. By hand."""
    unmarked_question_words: int = 10
    """Maximum number of words in a turn that is one question without a question mark. By hand."""
    settled_from: float = 0.5
    """Combined probability of all later turns from which a question is settled. By hand."""
    trust_other: float = 1.0
    """Weight of the probability that a turn settles a question, if another agent or a human speaks. By hand."""
    trust_self: float = 0.8
    """The same if the asker speaks. By hand."""
    trust_tool: float = 0.5
    """The same for a tool: most tool output is not an answer. By hand."""
    unrelated_below: float = 0.25
    """Probability below which a turn is unrelated to the question. By hand."""
    speaks_of: float = 0.4
    """Share of a question's terms that an on-topic reply repeats. By hand."""
    answers: float = 0.6
    """Minimum probability that an on-topic reply, or a decision right after the question, settles it. By hand."""
    does_not_know: float = 0.15
    """Maximum probability for a reply whose speaker does not know. By hand."""
    no_answer_below: float = 0.3
    """Probability below which a reply is not an answer. By hand."""
    unanswered_turns: int = 2
    """Turns of others without an answer that confirm a doubtful question of an agent that has stopped. By hand."""
    given_up_turns: int = 6
    """Turns of the asker after which a question expires. By hand."""
    stale_turns: int = 48
    """Turns after which a question or a gate in a message expires. By hand."""
    question_confidence: float = 0.9
    """Confidence of a question. By hand."""
    confirmed_question_confidence: float = 0.7
    """Confidence of a doubtful question that later turns confirmed. By hand."""
    likely: float = 0.5
    """Confidence below which a gap is dropped unless an assistant confirms it. By hand."""

    # Repeated acts. `same_*`, `news` and `long_outcome` were varied on labelled runs of seven systems, all at once:
    # the results hardly change within 25 % of each value. `known_*` were chosen on the same runs and do matter.

    watched_turns: int = 32
    """Latest turns of an unknown conversation that are checked for repetitions and talk in circles. By hand."""
    compared_acts: int = 32
    """Earlier acts that a new one is compared with. By hand."""
    repetition_window: int = 10
    """Number of latest acts in which repetitions are counted. By hand."""
    repetitions: int = 3
    """Repetitions in that window that make a circle; one more if all are code. By hand."""
    same_call: float = 0.7
    """Word overlap from which one call repeats another. By hand."""
    same_code: float = 0.7
    """The same for code. By hand."""
    same_statement: float = 0.6
    """The same for statements. By hand."""
    known_call: float = 0.95
    """Share of a call's names that its agent used before from which it has no new argument. By hand."""
    known_code: float = 0.95
    """The same for code. By hand."""
    known_statement: float = 1.0
    """The same for statements. By hand."""
    shortest_statement: int = 24
    """Shorter statements, such as "Done.", do not count as repetitions. Characters. By hand."""
    template_slots: int = 2
    """Maximum number of words in which two acts from one template differ. By hand."""
    news: float = 0.2
    """Share of new words in an outcome above which the act made progress. By hand."""
    long_outcome: int = 60
    """Characters from which an equal outcome is unlikely to be a coincidence. By hand."""
    same_outcome: float = 0.9
    """Word overlap from which two outcomes are the same. By hand."""
    repetition_confidence: float = 0.8
    """Confidence at exactly `repetitions`. By hand."""
    more_repetitions_confidence: float = 0.95
    """Confidence above `repetitions`. By hand."""
    reported_cycle_seconds: float = 600.0
    """Seconds after the last exchange in which a cycle reported by the state counts. By hand."""

    # Rounds of a hub

    compared_rounds: int = 5
    """Latest rounds that are compared. By hand."""
    rounds: int = 4
    """Minimum number of rounds since the last plan for a cycle. By hand."""
    same_ask: float = 0.25
    """Word overlap from which two requests ask for nearly the same. By hand."""
    ask_slots: int = 2
    """Maximum number of words in which two requests from one template differ. By hand."""
    reply_opening: int = 60
    """Characters at the start of a long reply that say what was done. By hand."""
    long_reply: int = 200
    """Characters from which a reply is long. By hand."""
    shortest_reply: int = 15
    """Shorter replies are ignored. Characters. By hand."""
    rounds_confidence: float = 0.8
    """Confidence of a cycle of rounds. By hand."""
    one_repeated_round_confidence: float = 0.6
    """Confidence with only one repetition. By hand."""

    # Talk in circles

    talk_window: int = 6
    """Number of latest statements in the model. By hand; `benchmarks/train_circles.py` fits the weights to it."""
    talk_fewest: int = 5
    """Minimum number of statements for a circle. By hand, as above."""
    talk_look_back: int = 8
    """Number of earlier statements in which a word or a name counts as known. By hand, as above."""
    talk_longest: int = 400
    """Maximum characters of a statement; longer ones bring new material. By hand, as above."""
    talk: TalkWeights = field(default_factory=TalkWeights)
    """The model, fitted by `benchmarks/train_circles.py`."""
    talk_confidence: float = 0.8
    """Confidence of talk in circles. By hand."""

    # Pace

    pace_samples: int = 6
    """Minimum number of earlier turns for a usual pace. By hand."""
    pace_of_usual: float = 2.0
    """A turn is slow only above this multiple of the agent's median. By hand."""
    pace_of_longest: float = 1.5
    """A turn is slow only above this multiple of the agent's longest turn. By hand."""
    pace_spreads: float = 4.0
    """A turn is slow only above the median plus this many robust spreads, on a logarithmic scale. By hand."""
    pace_least_spread: float = 0.25
    """Minimum spread. By hand."""
    longest_turn_seconds: float = 86_400.0
    """Seconds from which it was a break, not a turn. By hand."""
    pace_confidence: float = 0.6
    """Confidence that a slow agent lacks context. By hand."""

    # Gates, flags and assumptions

    gate_turns: int = 6
    """Turns of the agent after which a gate in a message expires. By hand."""
    gate_confidence: float = 0.85
    """Confidence of a gate that failed because information is missing. By hand."""
    flag_confidence: float = 0.95
    """Confidence of an explicit flag. By hand."""
    assumption_turns: int = 8
    """Number of latest turns in which an assumption counts. By hand."""
    assumption_confidence: float = 0.6
    """Confidence of an assumption. By hand."""

    # Health

    idle_warning_seconds: float = 210.0
    """Idle seconds while work waits for the agent. By hand."""
    idle_critical_seconds: float = 300.0
    """Idle seconds that are critical. By hand."""
    cycle_warning_seconds: float = 600.0
    """Median seconds of an agent's turns. By hand."""
    churn_warning: float = 7.0
    """Turns per minute of an agent. By hand."""
    churn_critical: float = 10.0
    """Turns per minute that are critical. By hand."""

    def __post_init__(self) -> None:
        for each in fields(self):
            _check_field(each.name, str(each.type), getattr(self, each.name))


_ANY_SIZE = ("pace_", "churn_")
"""Multiples and rates, which may be above 1."""


def _check_field(name: str, kind: str, value: object) -> None:
    if kind == "TalkWeights":
        valid, rule = isinstance(value, TalkWeights), "TalkWeights"
    elif kind == "int":
        valid, rule = type(value) is int and value >= 1, "a whole number, 1 or more"
    elif value is None:
        valid, rule = kind == "float | None", "a number"
    elif name.endswith("_seconds") or (name.startswith(_ANY_SIZE) and not name.endswith("_confidence")):
        valid, rule = _is_number(value) and value >= 0, "a number, 0 or more"
    else:
        valid, rule = _is_number(value) and 0 <= value <= 1, "a number from 0 to 1"
    if not valid:
        raise ConfigError(f"DetectionTuning.{name} must be {rule}, got {value!r}")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


DEFAULT_DETECTION = DetectionTuning()
