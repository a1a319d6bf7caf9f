"""What the turns say so far, kept up to date turn by turn: a step looks only at what is new."""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from langgraph_scrum_master._internal.shapes import items_of, read
from langgraph_scrum_master.messages import UNNAMED, WINDOW, read_turn
from langgraph_scrum_master.model import Cycle, Turn
from langgraph_scrum_master.team.observe.acts import acts_of
from langgraph_scrum_master.team.observe.asking import shipped_model
from langgraph_scrum_master.team.observe.cycles import Repetitions
from langgraph_scrum_master.team.observe.flags import Flagged
from langgraph_scrum_master.team.observe.handoffs import Handoffs, hands_back, subagent_of
from langgraph_scrum_master.team.observe.pace import Paces
from langgraph_scrum_master.team.observe.questions import OpenQuestions
from langgraph_scrum_master.team.observe.rounds import Rounds
from langgraph_scrum_master.team.observe.spoken_gates import SpokenGates
from langgraph_scrum_master.team.observe.talk import Talk
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning

if TYPE_CHECKING:
    from langgraph_scrum_master.team.observe.asking.model import AskingModel


class Watch:
    """One conversation, watched from its last messages on."""

    __slots__ = (
        "_tasks",
        "_tuning",
        "flags",
        "gates",
        "handoffs",
        "length",
        "paces",
        "questions",
        "repeats",
        "request",
        "rounds",
        "talk",
        "turns",
    )

    def __init__(
        self,
        figures: object = None,
        asking: AskingModel | None = None,
        doubtful: bool = False,
        tuning: DetectionTuning = DEFAULT_DETECTION,
    ) -> None:
        self._tuning = tuning
        self.length = 0
        """Messages that were looked at or passed over."""
        self.turns: deque[Turn] = deque(maxlen=WINDOW)
        self.request = ""
        """What a person said last."""
        self.questions = OpenQuestions(asking, doubtful, tuning)
        self.handoffs = Handoffs()
        self.flags = Flagged()
        self.gates = SpokenGates(tuning)
        self.repeats = Repetitions(tuning)
        self.talk = Talk(tuning)
        self.rounds = Rounds(tuning)
        self.paces = Paces(figures, tuning)
        self._tasks: dict[str, str] = {}
        """The subagents that were called and have not reported yet, by the id of the call."""

    @property
    def quiet(self) -> bool:
        """Whether nobody lacks anything, repeats itself or takes long, by what the turns tell."""
        return (
            not self.questions.pending
            and not self.flags.by_agent
            and not self.gates.by_gate
            and self.repeats.progress
            and self.rounds.cycle is None
            and self.talk.progress
            and self.paces.newest is None
        )

    def cycles(self) -> tuple[Cycle, ...]:
        """The circles that the team is in."""
        found = self.repeats.cycles()
        if self.rounds.cycle is not None:
            found = (*found, self.rounds.cycle)
        return found or self.talk.cycles()

    def extend(self, messages: Sequence[object], at_turn: str, saved_at: float | None) -> None:
        """Take in the messages that are new.

        The newest of an unnamed agent is that of the agent at turn; one without a time has that of its checkpoint.
        """
        self.length = max(self.length, len(messages) - WINDOW)
        new = [read_turn(messages[i], i) for i in range(self.length, len(messages))]
        turns = [turn if turn.kind != "tool" and not turn.tool_calls else self._reported(turn) for turn in new if turn]
        if (at_turn or saved_at is not None) and new and new[-1] is not None:
            self.paces.measured |= saved_at is not None and turns[-1].time is None
            _complete(turns, at_turn, saved_at)
        if not self.turns and (times := [turn.time for turn in turns if turn.time is not None]):
            self.paces.resume(max(times))
        self.length = len(messages)
        # What is further back does not count for repetitions.
        size = len(turns)
        for i, turn in enumerate(turns):
            self._add(turn, size - i)

    def _reported(self, turn: Turn) -> Turn:
        """The turn, or if it is the report of a subagent, the same as that agent's."""
        for call in turn.tool_calls:
            if call.id and (subagent := subagent_of(call)):
                self._tasks[call.id] = subagent
        if turn.kind == "tool" and (reporter := self._tasks.pop(turn.answers, "")):
            return replace(turn, kind="agent", agent=reporter)
        return turn

    def _add(self, turn: Turn, age: int) -> None:
        if len(self.turns) == WINDOW and (self.questions.by_asker or self.flags.by_agent or self.gates.by_gate):
            for tracker in (self.questions, self.flags, self.gates):
                tracker.forget(self.turns[0])
        self.turns.append(turn)
        if turn.kind == "human":
            self.request = turn.text
        self.handoffs.add(turn)
        self.paces.add(turn)
        # Frameworks add such turns by themselves: whoever is said to speak there has said nothing.
        if turn.tool_calls and _only_hands_back(turn):
            self.questions.handed_back(turn.agent)
        else:
            self.flags.add(turn)
            if age <= self._tuning.stale_turns:
                self.questions.add(turn, self.turns)
                self.gates.add(turn)
            self.rounds.add(turn)
            if age <= self._tuning.watched_turns:
                acts = tuple(acts_of(turn, self._tuning)) if turn.kind == "agent" else ()
                self.repeats.add(turn, acts)
                self.talk.add(turn, acts)


class Watcher:
    """Remembers the conversations it has seen last, so that each message is read once.

    A conversation is known again by the messages that were its last, all of them the same; whatever happened to it
    otherwise, cut, summarised, edited or branched, it is read anew. `doubtful` questions count where somebody confirms
    them.
    """

    NEW = 8
    """Messages that may have come since; more are read like a new conversation."""

    CONVERSATIONS = 32
    """Conversations that are remembered at the same time."""

    def __init__(
        self,
        asking: AskingModel | None = None,
        *,
        doubtful: bool = False,
        tuning: DetectionTuning = DEFAULT_DETECTION,
    ) -> None:
        self.tuning = tuning
        self._asking = asking if tuning == DEFAULT_DETECTION else (asking or shipped_model()).tuned(tuning)
        self._doubtful = doubtful
        self._seen: OrderedDict[object, _Seen] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, messages: object, at_turn: str, figures: object = None, saved_at: float | None = None) -> Watch:
        """The watch of this conversation, with all its messages taken in. Nobody else has it until it is kept."""
        history = items_of(messages)
        watch = self._known(history) or Watch(figures, self._asking, self._doubtful, self.tuning)
        watch.extend(history, at_turn, saved_at)
        return watch

    def keep(self, messages: object, watch: Watch) -> None:
        """Remember the watch for the next time."""
        history = items_of(messages)
        if not history:
            return
        seen = _Seen(watch, history[-WINDOW:], read(history[-1], "content"))
        key = _key(history[-1])
        with self._lock:
            self._seen[key] = seen
            self._seen.move_to_end(key)
            if len(self._seen) > self.CONVERSATIONS:
                self._seen.popitem(last=False)

    def _known(self, history: Sequence[object]) -> Watch | None:
        ends = range(len(history), max(0, len(history) - self.NEW - 1), -1)
        # The very same messages first: the same run in another thread of the graph has equal ones.
        for same in (operator.is_, _equal):
            for end in ends:
                key = _key(history[end - 1])
                seen = self._seen.get(key)
                if seen is not None and same(seen.messages[-1], history[end - 1]) and seen.continues(history, end):
                    # Compared without the lock, for messages may do anything then; whoever takes it first has it.
                    with self._lock:
                        if self._seen.get(key) is seen:
                            del self._seen[key]
                            return seen.watch
        return None


class _Seen(NamedTuple):
    watch: Watch
    messages: Sequence[object]
    """The last messages, as they were."""
    content: object
    """What the very last said: a message that was changed in place is still the same object."""

    def continues(self, history: Sequence[object], end: int) -> bool:
        """Whether the history up to there is the one that was seen; the same objects are found equal at once."""
        start = end - len(self.messages)
        if self.watch.length != end or start < 0 or not _equal(read(history[end - 1], "content"), self.content):
            return False
        return _equal(self.messages, history[start:end])


def _complete(turns: list[Turn], at_turn: str, saved_at: float | None) -> None:
    """Name the agent at turn where its newest turn, with the tools it used, is unnamed; date the newest."""
    if saved_at is not None and turns[-1].time is None:
        turns[-1] = replace(turns[-1], time=saved_at)
    for i in range(len(turns) - 1, -1, -1) if at_turn else ():
        if turns[i].kind == "agent" and turns[i].agent != UNNAMED:
            return
        if turns[i].kind == "agent":
            turns[i] = replace(turns[i], agent=at_turn)
        if turns[i].kind != "tool" and (i == 0 or turns[i - 1].kind != "tool"):
            return


def _only_hands_back(turn: Turn) -> bool:
    return all(hands_back(call) for call in turn.tool_calls)


def _equal(one: object, other: object) -> bool:
    """Whether they are equal; what cannot say, as a message with an array in it, is not."""
    try:
        return bool(one == other)
    # A host's own type may raise anything here.
    except Exception:
        return False


def _key(message: object) -> object:
    own = read(message, "id")
    return own if isinstance(own, str) and own else id(message)
