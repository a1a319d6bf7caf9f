"""The numbers that decide whether detection reports something, in one recipe.

Each field says what it is and where its value comes from: a script in `benchmarks/`, or "by hand". Bounds of memory and
of parsing stay beside the code that they protect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import TypeGuard

from langgraph_scrum_master.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkWeights:
    """The logistic model of talk in circles: what speaks for a circle, and what against it.

    Fitted by `benchmarks/train_circles.py`, except `on_topic`. The script prints these values, but for `known` (0.88)
    and `own` (0.18), which change no result on its scenarios.
    """

    known: float = 0.87
    """Share of words that were said before."""
    own: float = 0.19
    """Share of words in common with what the same agent said before."""
    again: float = 1.66
    """Share of statements that speak of doing something again, or back."""
    new_name: float = -3.76
    """Share of statements with a name that was not used before."""
    done: float = -4.47
    """Share of statements that report something done."""
    failures: float = 0.95
    """Failed tool calls, from 0 to 1 for four or more."""
    bias: float = -0.59
    """The constant, less the threshold: raise it to report more circles."""
    on_topic: float = 1.0
    """Added if all statements are marked with one topic. By hand."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not _is_number(value):
                raise ConfigError(f"TalkWeights.{each.name} must be a finite number, got {value!r}")

    def weighed(self, features: Mapping[str, float]) -> float:
        """What these features speak for a circle."""
        return float(sum(getattr(self, name) * value for name, value in features.items()))

    @property
    def most(self) -> float:
        """The most that features can add to the bias."""
        weights = (self.known, self.own, self.again, self.new_name, self.done, self.failures)
        return sum(weight for weight in weights if weight > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionTuning:
    """When detection reports something. `DEFAULT_DETECTION` has the defaults.

    Whole numbers count turns, acts, words or characters and are at least 1. All others are at least 0, and shares,
    probabilities and confidences are at most 1.
    """

    # Questions

    asks_from: float | None = None
    """Probability from which a turn asks. None: that of the weights file. In the package's, 0.7: chosen on labelled
    turns of 14 systems for a false-positive rate of 0.06, and written by `benchmarks/train_asking.py`."""
    doubtful_from: float | None = None
    """Probability from which a turn asks if something confirms it. None: that of the weights file. In the
    package's, 0.35: chosen and written like `asks_from`."""
    bare_question: float = 0.75
    """Least probability of each question in a turn that is nothing but questions. By hand."""
    bare_questions: int = 4
    """Most questions of such a turn. By hand."""
    bare_question_words: int = 25
    """Most words of such a question. By hand."""
    unmarked_question_words: int = 10
    """Most words of a question without a question mark that is all of its turn. By hand."""
    settled_from: float = 0.5
    """Probability from which a question is settled, by all later turns together. By hand."""
    trust_other: float = 1.0
    """Weight of the probability that a turn settles a question, if another agent or a person speaks. By hand."""
    trust_self: float = 0.8
    """The same if the asker speaks. By hand."""
    trust_tool: float = 0.5
    """The same for a tool: tools say much that is no answer. By hand."""
    unrelated_below: float = 0.25
    """Probability below which a turn has nothing to do with the question. By hand."""
    speaks_of: float = 0.4
    """Share of a question's terms in a reply that speaks of it. By hand."""
    answers: float = 0.6
    """Least probability that such a reply, or one that tells a decision right after the question, settles it. By
    hand."""
    does_not_know: float = 0.15
    """Most probability for a reply whose speaker says that it does not know. By hand."""
    no_answer_below: float = 0.3
    """Probability below which a reply is no answer. By hand."""
    unanswered_turns: int = 2
    """Turns of others without an answer that confirm a doubtful question of an agent that has stopped. By hand."""
    given_up_turns: int = 6
    """Turns of the asker after which it has gone on without an answer. By hand."""
    stale_turns: int = 48
    """Turns after which a question no longer counts, and in which gates in messages are looked for. By hand."""
    question_confidence: float = 0.9
    """Confidence of a question. By hand."""
    confirmed_question_confidence: float = 0.7
    """Confidence of a doubtful question that later turns confirmed. By hand."""
    likely: float = 0.5
    """Confidence below which a gap is dropped unless an assistant confirms it. By hand."""

    # Repeated acts. `same_*`, `news` and `long_outcome` were varied on labelled runs of seven systems, all at once:
    # results hardly changed within a quarter of each value. `known_*` were chosen on the same runs, and change them.

    watched_turns: int = 32
    """Latest turns of a conversation met for the first time in which repetitions and talk are looked at. By hand."""
    compared_acts: int = 32
    """Earlier acts that a new one is compared with. By hand."""
    repetition_window: int = 10
    """Latest acts among which repetitions are counted. By hand."""
    repetitions: int = 3
    """Repetitions in that window that make a circle; one more if all are code. By hand."""
    same_call: float = 0.7
    """Share of words that two calls have in common if one repeats the other. By hand."""
    same_code: float = 0.7
    """The same for code. By hand."""
    same_statement: float = 0.6
    """The same for statements. By hand."""
    known_call: float = 0.95
    """Share of a call's names that its agent used before, from which it has no new argument. By hand."""
    known_code: float = 0.95
    """The same for code. By hand."""
    known_statement: float = 1.0
    """The same for statements. By hand."""
    shortest_statement: int = 24
    """Characters below which a statement repeats nothing, such as "Done.". By hand."""
    template_slots: int = 2
    """Most words in which two acts made from one template differ. By hand."""
    news: float = 0.2
    """Share of new words in an outcome above which the act has brought news. By hand."""
    long_outcome: int = 60
    """Characters of an outcome that is unlikely to come twice by chance. By hand."""
    same_outcome: float = 0.9
    """Share of words in common of an outcome that comes again. By hand."""
    repetition_confidence: float = 0.8
    """Confidence at exactly `repetitions`. By hand."""
    more_repetitions_confidence: float = 0.95
    """Confidence above `repetitions`. By hand."""
    reported_cycle_seconds: float = 600.0
    """Seconds after its last exchange in which the state's own finding of a cycle counts. By hand."""

    # Rounds of a hub

    compared_rounds: int = 5
    """Latest rounds that are compared. By hand."""
    rounds: int = 4
    """Rounds since the last plan before which nothing is a cycle. By hand."""
    same_ask: float = 0.25
    """Share of words that two asks have in common if they ask for nearly the same. By hand."""
    ask_slots: int = 2
    """Most words in which two asks made from one template differ. By hand."""
    reply_opening: int = 60
    """Characters of a long reply that tell what was done. By hand."""
    long_reply: int = 200
    """Characters from which a reply is long. By hand."""
    shortest_reply: int = 15
    """Characters below which a reply tells nothing. By hand."""
    rounds_confidence: float = 0.8
    """Confidence of a cycle of rounds. By hand."""
    one_repeated_round_confidence: float = 0.6
    """Confidence if only one repetition shows it. By hand."""

    # Talk in circles

    talk_window: int = 6
    """Latest statements that the model looks at. By hand; `benchmarks/train_circles.py` fits the weights to it."""
    talk_fewest: int = 5
    """Statements before which talk is no circle. By hand, as above."""
    talk_look_back: int = 8
    """Statements before one in which a word or a name counts as said. By hand, as above."""
    talk_longest: int = 400
    """Characters of a statement; a longer one brings material. By hand, as above."""
    talk: TalkWeights = field(default_factory=TalkWeights)
    """The model, fitted by `benchmarks/train_circles.py`."""
    talk_confidence: float = 0.8
    """Confidence of talk in circles. By hand."""

    # Pace

    pace_samples: int = 6
    """Earlier turns of an agent without which it has no usual pace. By hand."""
    pace_of_usual: float = 2.0
    """Multiple of its usual time that an agent may take in any case. By hand."""
    pace_of_longest: float = 1.5
    """Multiple of its longest time that it may take. By hand."""
    pace_spreads: float = 4.0
    """Robust spreads above the median that it may take, on a logarithmic scale. By hand."""
    pace_least_spread: float = 0.25
    """The least such spread. By hand."""
    longest_turn_seconds: float = 86_400.0
    """Seconds from which it was a break, and no turn. By hand."""
    pace_confidence: float = 0.6
    """Confidence that a slow agent lacks context. By hand."""

    # Gates, flags and assumptions

    gate_turns: int = 6
    """Turns of the agent whose work a gate turned back in a message, after which that no longer counts. By hand."""
    gate_confidence: float = 0.85
    """Confidence of a gate that lacks information. By hand."""
    flag_confidence: float = 0.95
    """Confidence of what an agent says it lacks. By hand."""
    assumption_turns: int = 8
    """Newest turns in which an assumption still matters. By hand."""
    assumption_confidence: float = 0.6
    """Confidence of an assumption. By hand."""

    # Health

    idle_warning_seconds: float = 210.0
    """Seconds for which an agent may be silent while work waits for it. By hand."""
    idle_critical_seconds: float = 300.0
    """Seconds from which that is critical. By hand."""
    cycle_warning_seconds: float = 600.0
    """Seconds that an agent's turn may usually take. By hand."""
    churn_warning: float = 7.0
    """Turns a minute that an agent may make. By hand."""
    churn_critical: float = 10.0
    """Turns a minute from which that is critical. By hand."""

    def __post_init__(self) -> None:
        for each in fields(self):
            _refuse_unless_valid(each.name, str(each.type), getattr(self, each.name))


_ANY_SIZE = ("pace_", "churn_")
"""Multiples and rates, which may be above 1."""


def _refuse_unless_valid(name: str, kind: str, value: object) -> None:
    if kind == "TalkWeights":
        valid, rule = isinstance(value, TalkWeights), "TalkWeights"
    elif kind == "int":
        valid, rule = type(value) is int and value >= 1, "a whole number from 1 on"
    elif value is None:
        valid, rule = kind == "float | None", "a number"
    elif name.endswith("_seconds") or (name.startswith(_ANY_SIZE) and not name.endswith("_confidence")):
        valid, rule = _is_number(value) and value >= 0, "a number from 0 on"
    else:
        valid, rule = _is_number(value) and 0 <= value <= 1, "a number from 0 to 1"
    if not valid:
        raise ConfigError(f"DetectionTuning.{name} must be {rule}, got {value!r}")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


DEFAULT_DETECTION = DetectionTuning()
