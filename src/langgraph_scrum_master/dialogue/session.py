"""Reads dialogue sessions and turns from messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph_scrum_master._internal.shapes import dict_of, items_of, read, text_of
from langgraph_scrum_master.dialogue.model import DialogueSession, DialogueTurn, Role
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.messages import BRIEFING, SYNTHETIC, UNNAMED, read_turn
from langgraph_scrum_master.model import Turn, TurnKind, iso

DEFAULT_SESSION = "default"
"""The id of a session that has none."""

_SYNTHETIC_TURNS = frozenset(("summarization", BRIEFING))
"""Synthetic messages that count as turns: LangChain's summaries of earlier turns, and briefings."""

_ROLES: dict[TurnKind, Role] = {"human": "user", "agent": "assistant", "tool": "tool", "system": "system"}


def read_session(source: object, session_id: str = DEFAULT_SESSION) -> DialogueSession:
    """Read a `DialogueSession`, any object with `id` and `turns`, or plain messages.

    System messages at the start are the application's instructions, not turns.
    """
    if isinstance(source, DialogueSession):
        return source
    turns = source if isinstance(source, list | tuple) else read(source, "turns")
    if not isinstance(turns, list | tuple):
        raise ConfigError(f"session must have `id` and `turns`, or be a list of messages, got {source!r:.200}")
    opening = _opening(turns)
    return DialogueSession(
        id=text_of(read(source, "id")) or session_id,
        turns=tuple(read_dialogue(turns[len(opening) :])),
        instructions="\n\n".join(turn.text for turn in opening if turn.text),
    )


def read_dialogue(messages: object) -> list[DialogueTurn]:
    """Read turns from messages of any framework, oldest first. Empty messages and other objects are skipped."""
    turns = (_dialogue_turn(message) for message in items_of(messages))
    return [turn for turn in turns if turn is not None and turn.effective_text.strip()]


def split_at_user_turn(messages: Sequence[object]) -> tuple[list[object], object | None, list[object]]:
    """Split the messages into those before the last human message, that message if any, and those after it.

    Briefings go with the messages before it, wherever they are.
    """
    backwards = range(len(messages) - 1, -1, -1)
    last = next((i for i in backwards if (turn := read_turn(messages[i], 0)) and turn.kind == "human"), None)
    if last is None:
        return list(messages), None, []
    since = messages[last + 1 :]
    briefings = [message for message in since if _mark(message) == BRIEFING]
    others = [message for message in since if _mark(message) != BRIEFING]
    return [*messages[:last], *briefings], messages[last], others


def thread_of(config: Mapping[str, Any]) -> str:
    """The thread id of a run, used as its session id."""
    thread = dict_of(config.get("configurable")).get("thread_id")
    return str(thread) if thread else DEFAULT_SESSION


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
    # Index 0, because there a named person is not taken for an agent.
    turn = read_turn(message, 0, synthetic=True)
    if turn is None or (SYNTHETIC in turn.marks and text_of(turn.marks[SYNTHETIC]) not in _SYNTHETIC_TURNS):
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
        # A tool call without text is not a spoken turn.
        role=role if spoken else "tool",
    )
