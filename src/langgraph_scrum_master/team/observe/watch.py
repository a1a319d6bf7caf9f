"""Incremental state of a conversation, so that a step reads only the new messages."""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.shapes import items_of, read
from langgraph_scrum_master.messages import UNNAMED, WINDOW, read_turn
from langgraph_scrum_master.model import Cycle, Turn
from langgraph_scrum_master.team.observe.acts import acts_of
from langgraph_scrum_master.team.observe.asking import shipped_model
from langgraph_scrum_master.team.observe.cycles import Repetitions
from langgraph_scrum_master.team.observe.flags import Flags
from langgraph_scrum_master.team.observe.handoffs import Handoffs, hands_back, subagent_of
from langgraph_scrum_master.team.observe.long_texts import (
    MOST_READ,
    LongMessage,
    comparable,
    message_size,
    shortened,
    size_of,
)
from langgraph_scrum_master.team.observe.pace import Paces
from langgraph_scrum_master.team.observe.questions import OpenQuestions
from langgraph_scrum_master.team.observe.rounds import Rounds
from langgraph_scrum_master.team.observe.spoken_gates import SpokenGates
from langgraph_scrum_master.team.observe.talk import Talk
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning

if TYPE_CHECKING:
    from langgraph_scrum_master.team.observe.asking.model import AskingModel


class Watch:
    """The trackers of one conversation."""

    __slots__ = (
        "_tasks",
        "_tuning",
        "flags",
        "gates",
        "handoffs",
        "length",
        "long",
        "paces",
        "questions",
        "repeats",
        "request",
        "rounds",
        "size",
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
        """Number of messages that were read or skipped."""
        self.turns: deque[Turn] = deque(maxlen=WINDOW)
        self.size = 0
        """Characters of these turns."""
        self.long: dict[int, LongMessage] = {}
        """Long messages by their index."""
        self.request = ""
        """The latest human message."""
        self.questions = OpenQuestions(asking, doubtful, tuning)
        self.handoffs = Handoffs()
        self.flags = Flags()
        self.gates = SpokenGates(tuning)
        self.repeats = Repetitions(tuning)
        self.talk = Talk(tuning)
        self.rounds = Rounds(tuning)
        self.paces = Paces(figures, tuning)
        self._tasks: dict[str, str] = {}
        """Subagents that have not reported yet, by the id of the tool call."""

    @property
    def quiet(self) -> bool:
        """Whether the messages show no gap."""
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
        """The current cycles."""
        cycles = self.repeats.cycles()
        if self.rounds.cycle is not None:
            cycles = (*cycles, self.rounds.cycle)
        return cycles or self.talk.cycles()

    def extend(self, messages: Sequence[object], at_turn: str, saved_at: float | None) -> None:
        """Process the new messages.

        The newest message of an unnamed agent is attributed to `at_turn`, and without a time it gets `saved_at`.
        """
        self.length = max(self.length, len(messages) - WINDOW)
        new = [self._read(messages[i], i) for i in range(self.length, len(messages))]
        turns = [
            turn if turn.kind != "tool" and not turn.tool_calls else self._attribute_report(turn)
            for turn in new
            if turn
        ]
        if (at_turn or saved_at is not None) and new and new[-1] is not None:
            self.paces.measured |= saved_at is not None and turns[-1].time is None
            _complete(turns, at_turn, saved_at)
        if not self.turns and (times := [turn.time for turn in turns if turn.time is not None]):
            self.paces.resume(max(times))
        self.length = len(messages)
        # Older turns do not count as repetitions.
        size = len(turns)
        for i, turn in enumerate(turns):
            self._add(turn, size - i)

    def _read(self, message: object, index: int) -> Turn | None:
        """The turn of a message, without the middle of long texts."""
        turn = read_turn(message, index)
        if turn is None or size_of(turn) <= MOST_READ:
            return turn
        self.long = {i: each for i, each in self.long.items() if i > index - WINDOW}
        self.long[index] = LongMessage(message)
        return shortened(turn)

    def _attribute_report(self, turn: Turn) -> Turn:
        """The turn, attributed to the subagent if it is a subagent's report."""
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
        if len(self.turns) == WINDOW:
            self.size -= size_of(self.turns[0])
        self.size += size_of(turn)
        self.turns.append(turn)
        if turn.kind == "human":
            self.request = turn.text
        self.handoffs.add(turn)
        self.paces.add(turn)
        # Frameworks insert such turns; the agent itself has said nothing.
        if turn.tool_calls and _only_hands_back(turn):
            self.questions.confirm_handed_back(turn.agent)
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
    """Caches the latest conversations, so that each message is read once.

    A conversation is recognised by its last messages, which must all be equal. If it was trimmed, summarised, edited or
    branched, it is read from scratch. `doubtful` includes questions that an assistant has to confirm.
    """

    NEW = 8
    """Maximum number of new messages; with more, the conversation is read from scratch."""

    CONVERSATIONS = 32
    """Maximum number of cached conversations."""

    CHARACTERS = 4_000_000
    """Maximum number of characters of all cached conversations but the latest."""

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
        self._cache: OrderedDict[object, _CachedWatch] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def take(self, messages: object, at_turn: str, figures: object = None, saved_at: float | None = None) -> Watch:
        """The up-to-date watch of this conversation. The caller owns it until `release`."""
        history = items_of(messages)
        watch = self._cached(history) or Watch(figures, self._asking, self._doubtful, self.tuning)
        watch.extend(history, at_turn, saved_at)
        return watch

    def unread(self, messages: object) -> int:
        """The number of characters that `take` would read, about."""
        history = items_of(messages)
        ends = range(len(history), max(0, len(history) - self.NEW - 1), -1)
        known = next((end for end in ends if _key(history[end - 1]) in self._cache), len(history) - WINDOW)
        return sum([message_size(message) for message in history[max(0, known) :]])

    def release(self, messages: object, watch: Watch) -> None:
        """Return the watch to the cache."""
        history = items_of(messages)
        if not history:
            return
        cached = _CachedWatch(watch, _latest(history, watch), comparable(read(history[-1], "content")))
        key = _key(history[-1])
        with self._lock:
            if (before := self._cache.pop(key, None)) is not None:
                self._size -= before.watch.size
            self._cache[key] = cached
            self._size += watch.size
            while len(self._cache) > self.CONVERSATIONS or (self._size > self.CHARACTERS and len(self._cache) > 1):
                self._size -= self._cache.popitem(last=False)[1].watch.size

    def _cached(self, history: Sequence[object]) -> Watch | None:
        ends = range(len(history), max(0, len(history) - self.NEW - 1), -1)
        # Identical objects first: another thread of the graph may have equal messages.
        for same in (operator.is_, _equal):
            for end in ends:
                key = _key(history[end - 1])
                cached = self._cache.get(key)
                if (
                    cached is not None
                    and same(cached.messages[-1], history[end - 1])
                    and cached.continues(history, end)
                ):
                    # Compared without the lock, since `==` may run foreign code.
                    with self._lock:
                        if self._cache.get(key) is cached:
                            del self._cache[key]
                            self._size -= cached.watch.size
                            return cached.watch
        return None


class _CachedWatch(NamedTuple):
    watch: Watch
    messages: Sequence[object]
    """The last messages."""
    content: object
    """Content of the last message or its hash, to notice a change in place."""

    def continues(self, history: Sequence[object], end: int) -> bool:
        """Whether the history up to `end` is this one."""
        start = end - len(self.messages)
        if (
            self.watch.length != end
            or start < 0
            or not _equal(comparable(read(history[end - 1], "content")), self.content)
        ):
            return False
        return _equal(self.messages, history[start:end])


def _latest(history: Sequence[object], watch: Watch) -> Sequence[object]:
    """The last messages, without the contents of long ones."""
    latest = history[-WINDOW:]
    if not watch.long:
        return latest
    start = len(history) - len(latest)
    return type(latest)(watch.long.get(i, message) for i, message in enumerate(latest, start))  # type: ignore[call-arg]


def _complete(turns: list[Turn], at_turn: str, saved_at: float | None) -> None:
    """Set the agent of the newest unnamed turn, including its tool calls, and the time of the newest turn."""
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
    """Whether they are equal; False if the comparison fails, such as for arrays."""
    try:
        return bool(one == other)
    # A host's own type may raise anything here.
    except BaseException as error:
        recordable(error)
        return False


def _key(message: object) -> object:
    own = read(message, "id")
    return own if isinstance(own, str) and own else id(message)
