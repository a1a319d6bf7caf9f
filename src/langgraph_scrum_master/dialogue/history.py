"""Renders a dialogue's history within a token limit: recent turns verbatim, older ones summarised."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, get_args

from langgraph_scrum_master.dialogue.model import CompressionLevel, DialogueTurn, FormattedHistory, FormattedTurn
from langgraph_scrum_master.dialogue.settings import HistoryConfig
from langgraph_scrum_master.protocols import TokenCounter
from langgraph_scrum_master.text.facts import facts_in
from langgraph_scrum_master.text.sanitize import quoted_speakers, visible
from langgraph_scrum_master.text.trim import trim

LEVELS: tuple[CompressionLevel, ...] = get_args(CompressionLevel)

HISTORY_MARGIN = 50
"""Tokens reserved beside the turns and the summary."""

LEAST_SUMMARY = 20
"""Minimum tokens of a summary: a few facts."""

SUMMARY_TOKENS = {"medium": 200, "heavy": 100, "extreme": 40}
"""Maximum length of the summary per level."""

LAST_TURN_TOKENS = 60
"""Maximum length of the last turn at the extreme level."""

Summarize: TypeAlias = Callable[[str, int], Awaitable[str]]
"""Summarises a conversation in at most the given number of tokens. Never raises."""


async def format_history(
    turns: Sequence[DialogueTurn], max_tokens: int, summarize: Summarize, count: TokenCounter, config: HistoryConfig
) -> FormattedHistory:
    """Render the recent turns verbatim, whatever their length, and a summary of the older ones if there is room."""
    recent = format_turns(turns[-config.verbatim_turns :], config)
    older = turns[: -config.verbatim_turns]
    room = max_tokens - recent_tokens(recent, count) - HISTORY_MARGIN
    summary = ""
    if older and room > HISTORY_MARGIN:
        summary = await summarize(transcript(older), min(room, config.max_summary_tokens))
    return FormattedHistory(summary=summary, recent_turns=recent, turns=tuple(turns))


def format_turns(turns: Sequence[DialogueTurn], config: HistoryConfig) -> tuple[FormattedTurn, ...]:
    """Render each turn with its speaker, and with its time if configured."""

    def rendered(turn: DialogueTurn) -> FormattedTurn:
        hour = "[{time}] " if config.include_timestamps and turn.hour else ""
        template = config.template or hour + ("{speaker}: " if config.include_speakers else "") + "{text}"
        text = _text(turn)
        return FormattedTurn(
            turn_id=turn.turn_id,
            speaker=turn.label,
            content=text,
            formatted=template.format(time=turn.hour, speaker=turn.label, text=text),
            role=turn.role,
        )

    return tuple(rendered(turn) for turn in turns)


def _text(turn: DialogueTurn) -> str:
    """The text of the turn, none of whose lines look like another turn."""
    return quoted_speakers(visible(turn.effective_text))


def recent_tokens(turns: Sequence[FormattedTurn], count: TokenCounter) -> int:
    """Tokens of the turns, one per line."""
    return count("\n".join(turn.formatted for turn in turns)) if turns else 0


def transcript(turns: Sequence[DialogueTurn]) -> str:
    """The turns as input for a summarizer, with their speech acts."""
    acts = ([f"  ({turn.speech_act})"] if turn.speech_act else [] for turn in turns)
    return "\n".join(
        line for turn, act in zip(turns, acts, strict=True) for line in [f"{turn.label}: {_text(turn)}", *act]
    )


async def compress_history(
    history: FormattedHistory, max_tokens: int, summarize: Summarize, count: TokenCounter
) -> FormattedHistory:
    """Compress the history to fit, at the lightest level that keeps the ids, dates and amounts of all turns.

    If none does, at the one that keeps most of them. Remaining tokens go to a summary of the turns that are left out.
    """
    if count(history.text) <= max_tokens and (history.summary or not _older(history, len(history.recent_turns))):
        return history
    wanted = facts_in("\n".join(turn.effective_text for turn in history.turns) or history.text)
    best, most = history, -1
    async for shorter in _fitting(history, max_tokens, summarize, count):
        if (kept := sum(fact in shorter.text for fact in wanted)) > most:
            best, most = shorter, kept
        if kept == len(wanted):
            break
    return best


async def _fitting(
    history: FormattedHistory, max_tokens: int, summarize: Summarize, count: TokenCounter
) -> AsyncIterator[FormattedHistory]:
    """The history at each level that fits, from light to extreme, and with as few turns as a third leaves room for."""
    shorter = history
    for level in LEVELS[:-1]:
        shorter = await shorten_history(shorter, level, summarize, count)
        if count(shorter.text) <= max_tokens:
            yield await extend_summary(shorter, max_tokens, summarize, count)
    reserve = max_tokens // 3 if len(history.turns) > 1 else 0
    last = keep_last_turns(history, max_tokens - (reserve if reserve > LEAST_SUMMARY else 0), count)
    yield await extend_summary(last, max_tokens, summarize, count)


async def extend_summary(
    history: FormattedHistory, max_tokens: int, summarize: Summarize, count: TokenCounter
) -> FormattedHistory:
    """Replace the summary by a longer one if there is room, covering all turns that are not rendered verbatim."""
    if not history.recent_turns or not (older := _older(history, len(history.recent_turns))):
        return history
    room = max_tokens - count(replace(history, summary="…").text)
    if room <= max(LEAST_SUMMARY, count(history.summary)):
        return history
    longer = replace(history, summary=await summarize(older, room))
    return longer if count(longer.text) <= max_tokens else history


async def shorten_history(
    history: FormattedHistory, level: CompressionLevel, summarize: Summarize, count: TokenCounter
) -> FormattedHistory:
    """Compress the history at a level. Unchanged if that saves no tokens."""
    if not history.recent_turns:
        return history
    if level == "light":
        turns = tuple(turn.with_content(" ".join(turn.content.split())) for turn in history.recent_turns)
        shorter = replace(history, recent_turns=turns, level=level)
    else:
        shorter = await _summarize_older(history, level, summarize, count)
    return shorter if count(shorter.text) < count(history.text) else history


async def _summarize_older(
    history: FormattedHistory, level: CompressionLevel, summarize: Summarize, count: TokenCounter
) -> FormattedHistory:
    keep = -(-len(history.recent_turns) // 2) if level == "medium" else 1
    recent = history.recent_turns[-keep:]
    if level == "extreme":
        last = recent[-1]
        recent = (last.with_content(trim(last.content, lambda start: count(start) <= LAST_TURN_TOKENS)),)
    older = _older(history, keep)
    summary = await summarize(older, SUMMARY_TOKENS[level]) if older else ""
    return replace(history, summary=summary, recent_turns=recent, brief=level != "medium", level=level)


def _older(history: FormattedHistory, keep: int) -> str:
    """The text to summarise if the last `keep` turns stay verbatim."""
    if history.turns:
        return transcript(history.turns[:-keep])
    return "\n".join(filter(None, [history.summary, *(turn.formatted for turn in history.recent_turns[:-keep])]))


def keep_last_turns(history: FormattedHistory, max_tokens: int, count: TokenCounter) -> FormattedHistory:
    """As many of the last turns as fit, without a summary. If not even one fits, the start of the last turn."""
    bare = replace(history, summary="", recent_turns=(), brief=True, level=LEVELS[-1])

    def with_turns(*turns: FormattedTurn) -> FormattedHistory:
        return replace(bare, recent_turns=turns)

    def fits(*turns: FormattedTurn) -> bool:
        return count(with_turns(*turns).text) <= max_tokens

    selected: tuple[FormattedTurn, ...] = ()
    for turn in reversed(history.recent_turns):
        if not fits(turn, *selected):
            break
        selected = (turn, *selected)
    if not selected and history.recent_turns:
        last = history.recent_turns[-1]
        start = trim(last.content, lambda start: fits(last.with_content(start)))
        selected = (last.with_content(start),) if start else ()
    return with_turns(*selected)
