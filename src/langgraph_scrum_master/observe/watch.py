"""What the turns say so far, kept up to date turn by turn: a step looks only at what is new."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from langgraph_scrum_master.model import Turn
from langgraph_scrum_master.observe.cycles import LOOK_BACK, Repeats
from langgraph_scrum_master.observe.flags import Flagged
from langgraph_scrum_master.observe.handoffs import Handoffs
from langgraph_scrum_master.observe.pace import Paces
from langgraph_scrum_master.observe.questions import OpenQuestions
from langgraph_scrum_master.observe.rounds import Rounds
from langgraph_scrum_master.observe.turns import UNNAMED, WINDOW, read_turn
from langgraph_scrum_master.shapes import items_of, read


class Watch:
    """One conversation, watched from its last messages on."""

    __slots__ = ("flags", "handoffs", "length", "paces", "questions", "repeats", "request", "rounds", "turns")

    def __init__(self, figures: object = None) -> None:
        self.length = 0
        """Messages that were looked at or passed over."""
        self.turns: deque[Turn] = deque(maxlen=WINDOW)
        self.request = ""
        """What a person said last."""
        self.questions = OpenQuestions()
        self.handoffs = Handoffs()
        self.flags = Flagged()
        self.repeats = Repeats()
        self.rounds = Rounds()
        self.paces = Paces(figures)

    def extend(self, messages: Sequence[object], at_turn: str, saved_at: float | None) -> None:
        """Take in the messages that are new.

        The newest of an unnamed agent is that of the agent at turn; one without a time has that of its checkpoint.
        """
        self.length = max(self.length, len(messages) - WINDOW)
        new = [read_turn(messages[i], i) for i in range(self.length, len(messages))]
        if new and new[-1] is not None:
            new[-1] = _completed(new[-1], at_turn, saved_at)
        turns = [turn for turn in new if turn is not None]
        self.length = len(messages)
        # What is further back does not count for repetitions.
        recent = len(turns) - 2 * LOOK_BACK
        for i, turn in enumerate(turns):
            self._add(turn)
            if i >= recent:
                self.repeats.add(turn)

    def _add(self, turn: Turn) -> None:
        if len(self.turns) == WINDOW:
            self.questions.forget(self.turns[0])
            self.flags.forget(self.turns[0])
        self.turns.append(turn)
        if turn.kind == "human":
            self.request = turn.text
        self.questions.add(turn)
        self.handoffs.add(turn)
        self.flags.add(turn)
        self.rounds.add(turn)
        self.paces.add(turn)


class Watcher:
    """Remembers the conversations it has seen last, so that each message is read once.

    A conversation is known again by the messages that were its last, all of them the same; whatever happened to it
    otherwise, cut, summarised, edited or branched, it is read anew.
    """

    NEW = 8
    """Messages that may have come since; more are read like a new conversation."""

    CONVERSATIONS = 32
    """Conversations that are remembered at the same time."""

    def __init__(self) -> None:
        self._seen: OrderedDict[object, _Seen] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, messages: object, at_turn: str, figures: object = None, saved_at: float | None = None) -> Watch:
        """The watch of this conversation, with all its messages taken in. Nobody else has it until it is kept."""
        history = items_of(messages)
        watch = self._known(history) or Watch(figures)
        watch.extend(history, at_turn, saved_at)
        return watch

    def keep(self, messages: object, watch: Watch) -> None:
        """Remember the watch for the next time."""
        history = items_of(messages)
        if not history:
            return
        seen = _Seen(watch, list(history[-WINDOW:]), read(history[-1], "content"))
        with self._lock:
            self._seen[_key(history[-1])] = seen
            if len(self._seen) > self.CONVERSATIONS:
                self._seen.popitem(last=False)

    def _known(self, history: Sequence[object]) -> Watch | None:
        for end in range(len(history), max(0, len(history) - self.NEW - 1), -1):
            with self._lock:
                seen = self._seen.pop(_key(history[end - 1]), None)
            if seen is not None and seen.continues(history, end):
                return seen.watch
        return None


class _Seen(NamedTuple):
    watch: Watch
    messages: list[object]
    """The last messages, as they were."""
    content: object
    """What the very last said: a message that was changed in place is still the same object."""

    def continues(self, history: Sequence[object], end: int) -> bool:
        """Whether the history up to there is the one that was seen; the same objects are found equal at once."""
        start = end - len(self.messages)
        if self.watch.length != end or start < 0 or read(history[end - 1], "content") != self.content:
            return False
        return self.messages == list(history[start:end])


def _completed(turn: Turn, at_turn: str, saved_at: float | None) -> Turn:
    if at_turn and turn.agent == UNNAMED:
        turn = replace(turn, agent=at_turn)
    return turn if turn.time is not None or saved_at is None else replace(turn, time=saved_at)


def _key(message: object) -> object:
    own = read(message, "id")
    return own if isinstance(own, str) and own else id(message)
