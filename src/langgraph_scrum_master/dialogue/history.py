"""A dialogue's turns in so many tokens: the newest word for word, older ones summarised, and less if need be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, get_args

from langgraph_scrum_master.config import HistoryConfig
from langgraph_scrum_master.dialogue.model import CompressionLevel, DialogueTurn, FormattedHistory, FormattedTurn
from langgraph_scrum_master.protocols import TokenCounter
from langgraph_scrum_master.text.trim import trim

LEVELS: tuple[CompressionLevel, ...] = get_args(CompressionLevel)

HISTORY_MARGIN = 50
"""Tokens that are left beside the turns and the summary; a summary of fewer is not worth making."""

SUMMARY_TOKENS = {"medium": 200, "heavy": 100, "extreme": 40}
"""How long a summary is at most at each level."""

LAST_TURN = 60
"""Tokens of the last turn where only the essential is told."""

Summarize: TypeAlias = Callable[[str, int], Awaitable[str]]
"""Says a conversation in so many tokens. Never fails."""


async def format_history(
    turns: Sequence[DialogueTurn], max_tokens: int, summarize: Summarize, count: TokenCounter, config: HistoryConfig
) -> FormattedHistory:
    """The last turns as they were said, however long they are, and a summary of those before if there is room."""
    recent = format_turns(turns[-config.verbatim_turns :], config)
    older = turns[: -config.verbatim_turns]
    room = max_tokens - recent_tokens(recent, count) - HISTORY_MARGIN
    summary = ""
    if older and room > HISTORY_MARGIN:
        summary = await summarize(prepared(older), min(room, config.max_summary_tokens))
    return FormattedHistory(summary=summary, recent_turns=recent, turns=tuple(turns))


def format_turns(turns: Sequence[DialogueTurn], config: HistoryConfig) -> tuple[FormattedTurn, ...]:
    """The turns as they are told, each with its speaker, and with its time if asked for."""

    def told(turn: DialogueTurn) -> FormattedTurn:
        hour = "[{time}] " if config.include_timestamps and turn.hour else ""
        template = config.template or hour + ("{speaker}: " if config.include_speakers else "") + "{text}"
        return FormattedTurn(
            turn_id=turn.turn_id,
            speaker=turn.label,
            content=turn.said,
            formatted=template.format(time=turn.hour, speaker=turn.label, text=turn.said),
            role=turn.role,
        )

    return tuple(told(turn) for turn in turns)


def recent_tokens(turns: Sequence[FormattedTurn], count: TokenCounter) -> int:
    """What the turns take, each on its line."""
    return count("\n".join(turn.formatted for turn in turns)) if turns else 0


def prepared(turns: Sequence[DialogueTurn]) -> str:
    """The turns for whoever summarises them, with their speech acts."""
    acts = ([f"  ({turn.speech_act})"] if turn.speech_act else [] for turn in turns)
    return "\n".join(
        line for turn, act in zip(turns, acts, strict=True) for line in [f"{turn.label}: {turn.said}", *act]
    )


async def compress_history(
    history: FormattedHistory, max_tokens: int, summarize: Summarize, count: TokenCounter
) -> FormattedHistory:
    """The history, compressed no more than needed to fit; in the end as many of the last turns as do.

    What room there is then goes to the summary of the others.
    """
    if count(history.text) <= max_tokens:
        return history
    shorter = history
    for level in LEVELS[:-1]:
        shorter = await shorten_history(shorter, level, summarize, count)
        if count(shorter.text) <= max_tokens:
            return await _summed_up(shorter, max_tokens, summarize, count)
    for_others = max_tokens // 4 if len(history.turns) > 1 else 0
    last = keep_last_turns(history, max_tokens - (for_others if for_others > HISTORY_MARGIN else 0), count)
    return await _summed_up(last, max_tokens, summarize, count)


async def _summed_up(
    history: FormattedHistory, max_tokens: int, summarize: Summarize, count: TokenCounter
) -> FormattedHistory:
    """The history with a summary of all that it does not tell word for word, as long as it may be; or as it is."""
    if not history.recent_turns or not (older := _older(history, len(history.recent_turns))):
        return history
    room = max_tokens - count(replace(history, summary="…").text)
    if room <= max(HISTORY_MARGIN, count(history.summary)):
        return history
    longer = replace(history, summary=await summarize(older, room))
    return longer if count(longer.text) <= max_tokens else history


async def shorten_history(
    history: FormattedHistory, level: CompressionLevel, summarize: Summarize, count: TokenCounter
) -> FormattedHistory:
    """The history at a level, or as it is if that has no fewer tokens."""
    if not history.recent_turns:
        return history
    if level == "light":
        turns = tuple(turn.saying(" ".join(turn.content.split())) for turn in history.recent_turns)
        shorter = replace(history, recent_turns=turns, level=level)
    else:
        shorter = await _summarised(history, level, summarize, count)
    return shorter if count(shorter.text) < count(history.text) else history


async def _summarised(
    history: FormattedHistory, level: CompressionLevel, summarize: Summarize, count: TokenCounter
) -> FormattedHistory:
    keep = -(-len(history.recent_turns) // 2) if level == "medium" else 1
    recent = history.recent_turns[-keep:]
    if level == "extreme":
        last = recent[-1]
        recent = (last.saying(trim(last.content, lambda start: count(start) <= LAST_TURN)),)
    older = _older(history, keep)
    summary = await summarize(older, SUMMARY_TOKENS[level]) if older else ""
    return replace(history, summary=summary, recent_turns=recent, brief=level != "medium", level=level)


def _older(history: FormattedHistory, keep: int) -> str:
    """What is to be summarised where so many turns are kept: the turns before, or all that is left of them."""
    if history.turns:
        return prepared(history.turns[:-keep])
    return "\n".join(filter(None, [history.summary, *(turn.formatted for turn in history.recent_turns[:-keep])]))


def keep_last_turns(history: FormattedHistory, max_tokens: int, count: TokenCounter) -> FormattedHistory:
    """As many of the last turns as fit, without a summary; of the very last at least its start, if any of it fits."""
    bare = replace(history, summary="", recent_turns=(), brief=True, level=LEVELS[-1])

    def holding(*turns: FormattedTurn) -> FormattedHistory:
        return replace(bare, recent_turns=turns)

    def fits(*turns: FormattedTurn) -> bool:
        return count(holding(*turns).text) <= max_tokens

    kept: tuple[FormattedTurn, ...] = ()
    for turn in reversed(history.recent_turns):
        if not fits(turn, *kept):
            break
        kept = (turn, *kept)
    if not kept and history.recent_turns:
        last = history.recent_turns[-1]
        start = trim(last.content, lambda start: fits(last.saying(start)))
        kept = (last.saying(start),) if start else ()
    return holding(*kept)
