"""Deterministic states, clocks and memories for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langgraph_scrum_master._internal.threads import wait_for
from langgraph_scrum_master.memory.records import CodePattern, Decision, Memory
from langgraph_scrum_master.model import instant

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langgraph_scrum_master.memory.langgraph_store import StoreMemory

NOON = "2026-03-02T12:00:00+00:00"


def a_state(*turns: tuple[str, str] | BaseMessage, **keys: Any) -> dict[str, Any]:
    """A graph's state with messages from (speaker, text) pairs, where `user` is the human, and other state keys.

    The messages have the ids m0, m1 and so on. Message objects are used unchanged.
    """
    return {"messages": [_message(i, turn) for i, turn in enumerate(turns)], **keys}


def _message(index: int, turn: tuple[str, str] | BaseMessage) -> BaseMessage:
    from langchain_core.messages import AIMessage, HumanMessage

    if not isinstance(turn, tuple):
        return turn
    speaker, text = turn
    own = f"m{index}"
    return HumanMessage(text, id=own) if speaker == "user" else AIMessage(text, name=speaker, id=own)


class FixedClock:
    """A clock that does not move until `advance` is called: `ScrumMaster(clock=FixedClock())`."""

    def __init__(self, at: str = NOON) -> None:
        self._seconds = instant(at)
        if self._seconds == float("-inf"):
            raise ValueError(f"at must be a time such as {NOON!r}, got {at!r}")

    def __call__(self) -> float:
        """Seconds since the epoch."""
        return self._seconds

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._seconds += seconds


def a_memory(*records: str | Memory | Decision | CodePattern, namespace: str = "default") -> StoreMemory:
    """An in-process memory with these texts, decisions and patterns."""
    from langgraph.store.memory import InMemoryStore

    from langgraph_scrum_master.memory.langgraph_store import StoreMemory

    memory = StoreMemory(InMemoryStore(), namespace=namespace)
    wait_for(_fill(memory, records))
    return memory


async def _fill(memory: StoreMemory, records: tuple[str | Memory | Decision | CodePattern, ...]) -> None:
    for each in records:
        match each:
            case Decision():
                await memory.store_decision(each)
            case CodePattern():
                await memory.store_pattern(each)
            case Memory():
                await memory.store_many([each])
            case _:
                await memory.store_many([Memory(content=each)])
