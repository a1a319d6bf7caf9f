"""Texts of the state that are outside the agent's view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from langgraph_scrum_master._internal.shapes import absent, content_text, fields_text, items_of, read, text_of
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.retrieval.sources.scoring import Piece, attempt, scored

_MAX_MESSAGES = 500
"""The maximum number of earlier messages that are searched."""

_HANDOFF_TEXTS = ("task_summary", "instructions")


class StateSource:
    """Messages outside the agent's view, decisions, and the context of a handoff."""

    name = origin = "state"

    def __init__(self, view_window: int) -> None:
        self._view_window = view_window

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """Contexts scored by their text."""
        return await scored("state", query, self._pieces, state, query.agent)

    def _pieces(self, state: State, agent: str) -> Iterator[Piece | Exception]:
        yield from self._out_of_view(state, agent)
        for decision in items_of(state.get("decisions")):
            yield from attempt(_decision, decision)
        yield from _handoff(state)

    def _out_of_view(self, state: State, agent: str) -> Iterator[Piece | Exception]:
        messages = items_of(state.get("messages"))
        end = len(messages) - self._view_window
        start = max(0, end - _MAX_MESSAGES)
        for i, message in enumerate(messages[start : max(0, end)], start):
            yield from attempt(_earlier_message, message, i, agent)


def _earlier_message(message: object, index: int, agent: str) -> Iterator[Piece]:
    text = content_text(read(message, "content"))
    speaker = text_of(read(read(message, "additional_kwargs"), "agent")) or text_of(read(message, "name"))
    if text and speaker != agent:
        title = f"Earlier message by {speaker or 'the team'}"
        yield Piece(content=text, key=f"message:{read(message, 'id') or index}", title=title, session="messages")


def _decision(decision: object) -> Iterator[Piece]:
    if text := decision if isinstance(decision, str) else _decision_text(decision):
        agent = text_of(read(decision, "agent")) or text_of(read(decision, "agent_type"))
        yield Piece(
            content=text,
            key=text_of(read(decision, "id")),
            title=f"Decision of {agent}" if agent else "Decision",
            created_at=str(read(decision, "timestamp") or ""),
        )


def _decision_text(decision: object) -> str:
    parts = (text_of(read(decision, name)) for name in ("summary", "context", "rationale", "outcome"))
    return "\n".join(part for part in parts if part)


def _handoff(state: State) -> Iterator[Piece | Exception]:
    handoff = state.get("handoff_context")
    if absent(handoff):
        return
    for name in _HANDOFF_TEXTS:
        if text := text_of(read(handoff, name)):
            yield Piece(content=text, key=f"handoff:{name}", title=f"Handoff, {name.replace('_', ' ')}")
    for decision in (*items_of(read(handoff, "decisions")), *items_of(read(handoff, "relevant_decisions"))):
        yield from attempt(_decision, decision)
    for i, message in enumerate(items_of(read(handoff, "recent_messages"))):
        text = content_text(read(message, "content")) or text_of(message)
        yield Piece(content=text, key=f"handoff:message:{i}", title="Message handed over")
    for name in items_of(read(handoff, "relevant_state_keys")):
        if isinstance(name, str) and name != "messages":
            yield from attempt(_value, state.get(name), f"state:{name}", name.replace("_", " "))
    if isinstance(context := read(handoff, "required_context"), Mapping):
        for name, value in context.items():
            yield from attempt(_value, value, f"handoff:{name}", f"Handoff, {name}")


def _value(value: object, key: str, title: str) -> Iterator[Piece]:
    yield Piece(content=fields_text(value), key=key, title=title)
