"""What the turns say so far, kept up to date turn by turn: a step looks only at what is new."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import replace

from langgraph_scrum_master.model import Turn
from langgraph_scrum_master.observe.cycles import Repeats
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

    def __init__(self) -> None:
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
        self.paces = Paces()

    def extend(self, messages: Sequence[object], at_turn: str) -> None:
        """Take in the messages that are new; the newest of an unnamed agent is that of the agent at turn."""
        self.length = max(self.length, len(messages) - WINDOW)
        for index in range(self.length, len(messages)):
            turn = read_turn(messages[index], index)
            if turn is not None:
                if at_turn and turn.agent == UNNAMED and index == len(messages) - 1:
                    turn = replace(turn, agent=at_turn)
                self._add(turn)
        self.length = len(messages)

    def _add(self, turn: Turn) -> None:
        self.turns.append(turn)
        if turn.kind == "human":
            self.request = turn.text
        self.questions.add(turn)
        self.handoffs.add(turn)
        self.flags.add(turn)
        self.repeats.add(turn)
        self.rounds.add(turn)
        self.paces.add(turn)


class Watcher:
    """Remembers the conversations it has seen last, so that each message is read once.

    A conversation is known again by the message that was its last; whatever else happened to it, cut, summarised or
    branched, it is read anew from its last messages.
    """

    NEW = 8
    """Messages that may have come since; more are read like a new conversation."""

    CONVERSATIONS = 32

    def __init__(self) -> None:
        self._seen: OrderedDict[object, tuple[object, Watch]] = OrderedDict()
        self._lock = threading.Lock()

    def watch(self, messages: object, at_turn: str) -> Watch:
        """The watch of this conversation, with all its messages taken in."""
        history = items_of(messages)
        watch = self._known(history) or Watch()
        watch.extend(history, at_turn)
        if history:
            self._keep(history[-1], watch)
        return watch

    def _known(self, history: Sequence[object]) -> Watch | None:
        for back in range(min(self.NEW, len(history)) + 1):
            if back == len(history):
                return None
            last = history[-1 - back]
            with self._lock:
                # Taken out: nobody else goes on with it at the same time.
                message, watch = self._seen.pop(_key(last), (None, None))
            if watch is not None and watch.length == len(history) - back and _same(message, last):
                return watch
        return None

    def _keep(self, last: object, watch: Watch) -> None:
        with self._lock:
            self._seen[_key(last)] = (last, watch)
            if len(self._seen) > self.CONVERSATIONS:
                self._seen.popitem(last=False)


def _key(message: object) -> object:
    own = read(message, "id")
    return own if isinstance(own, str) and own else id(message)


def _same(one: object, other: object) -> bool:
    return one is other or bool(read(one, "content") == read(other, "content") and read(one, "id"))
