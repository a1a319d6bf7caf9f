"""Messages → a dialogue's turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph_scrum_master._internal.shapes import dict_of, items_of, read, text_of
from langgraph_scrum_master.dialogue.model import DialogueSession, DialogueTurn, Role
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.messages import BRIEFING, SYNTHETIC, UNNAMED, read_turn
from langgraph_scrum_master.model import Turn, TurnKind, iso

UNKNOWN = "default"
"""The session of messages that come without one."""

KEPT = frozenset(("summarization", BRIEFING))
"""Marks of messages that are told though nobody said them: LangChain's for turns that it summed up, and a briefing."""

_ROLES: dict[TurnKind, Role] = {"human": "user", "agent": "assistant", "tool": "tool", "system": "system"}


def read_session(given: object, session_id: str = UNKNOWN) -> DialogueSession:
    """The session that is given, as one, as anything with `id` and `turns`, or as plain messages.

    System messages at its start are the host's instructions, and no turns.
    """
    if isinstance(given, DialogueSession):
        return given
    turns = given if isinstance(given, list | tuple) else read(given, "turns")
    if not isinstance(turns, list | tuple):
        raise ConfigError(f"session must have `id` and `turns`, or be a list of messages, got {given!r:.200}")
    opening = _opening(turns)
    return DialogueSession(
        id=text_of(read(given, "id")) or session_id,
        turns=tuple(read_dialogue(turns[len(opening) :])),
        instructions="\n\n".join(turn.text for turn in opening if turn.text),
    )


def read_dialogue(messages: object) -> list[DialogueTurn]:
    """The turns in messages of any framework, oldest first; what says nothing or is no message is passed over."""
    found = (_dialogue_turn(message) for message in items_of(messages))
    return [turn for turn in found if turn is not None and turn.said.strip()]


def divided(messages: Sequence[object]) -> tuple[list[object], object | None, list[object]]:
    """What was said before the last message that a person wrote, that message if there is one, and what came since.

    A briefing counts as said before, wherever it stands.
    """
    places = range(len(messages) - 1, -1, -1)
    place = next((i for i in places if (turn := read_turn(messages[i], 0)) and turn.kind == "human"), None)
    if place is None:
        return list(messages), None, []
    since = messages[place + 1 :]
    briefings = [message for message in since if _mark(message) == BRIEFING]
    others = [message for message in since if _mark(message) != BRIEFING]
    return [*messages[:place], *briefings], messages[place], others


def thread_of(config: Mapping[str, Any]) -> str:
    """The session of a run: its thread."""
    thread = dict_of(config.get("configurable")).get("thread_id")
    return str(thread) if thread else UNKNOWN


def _mark(message: object) -> str:
    turn = read_turn(message, 0, synthetic=True)
    return text_of(turn.marks.get(SYNTHETIC)) if turn else ""


def _opening(messages: Sequence[object]) -> list[Turn]:
    opening: list[Turn] = []
    for message in messages:
        turn = None if isinstance(message, DialogueTurn) else read_turn(message, 0)
        if turn is None or turn.kind != "system":
            break
        opening.append(turn)
    return opening


def _dialogue_turn(message: object) -> DialogueTurn | None:
    if isinstance(message, DialogueTurn):
        return message
    # As if at the first place: there, a person with a name is not taken for an agent.
    turn = read_turn(message, 0, synthetic=True)
    if turn is None or (SYNTHETIC in turn.marks and text_of(turn.marks[SYNTHETIC]) not in KEPT):
        return None
    role: Role = "system" if SYNTHETIC in turn.marks else _ROLES[turn.kind]
    unnamed = role == "system" or turn.agent in (UNNAMED, "user", turn.kind)
    calls = ", ".join(f"{call.name}({call.arguments})" for call in turn.tool_calls)
    spoken = turn.text.strip()
    return DialogueTurn(
        turn_id=turn.id,
        speaker=role if unnamed else turn.agent,
        text=turn.text if spoken else f"(calls {calls})" if calls else "",
        corrected_text=text_of(turn.marks.get("corrected_text")),
        timestamp=iso(turn.time) if turn.time is not None else "",
        speech_act=text_of(turn.marks.get("speech_act")),
        # A call without a word is nothing that was said.
        role=role if spoken else "tool",
    )
