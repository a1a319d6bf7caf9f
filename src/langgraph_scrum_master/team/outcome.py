"""Determines the outcome of an injection from the agent's next turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master.model import ContextGap, InjectionRecord, InjectionResult, Turn, digest
from langgraph_scrum_master.text.terms import terms

MOST_NEWS = 24
"""Maximum number of new words recorded per injection."""

MIN_REPEATED = 2
"""New words that an agent must repeat to have used the text; one is enough for numbers and names."""

_PATIENCE = 2
"""Turns after which an agent that repeated no new word has ignored the text."""

_DISTINCTIVE = lazy_pattern(r"\d.*\d|\d\D|\D\d|_|\w\.\w")
"""A number of several digits, a path or an identifier: unlikely to be repeated by chance."""

_NAME = lazy_pattern(r"(?<=[\w,;:(\"'`] )[A-Z][\w-]+|\b\w+[a-z][A-Z]\w*")
"""A capitalised word inside a sentence, or a camel-case word."""


def news_in(result: InjectionResult, turns: Iterable[Turn]) -> tuple[str, ...]:
    """Digests of words that only the injected text has; distinctive ones come first and start with `!`."""
    known = {word for turn in turns for word in terms(turn.text)} | set(terms(result.gap.context_query))
    texts = [context.content for context in result.contexts_retrieved]
    names = {word for text in texts for name in _NAME.findall(text) for word in terms(name)}
    new = {word for text in texts for word in terms(text) if word not in known and len(word) > 1}
    distinctive = {word for word in new if word in names or _DISTINCTIVE.search(word)}
    best = sorted(new, key=lambda word: (word not in distinctive, -len(word), word))[:MOST_NEWS]
    return tuple(f"{'!' if word in distinctive else ''}{_word_digest(result.gap.gap_id, word)}" for word in best)


def _word_digest(gap_id: str, word: str) -> str:
    """A word as it is stored in the history, which contains no text."""
    return digest(gap_id, word)[:8]


def outcomes(
    history: Sequence[InjectionRecord], turns: Sequence[Turn], gaps: Iterable[ContextGap]
) -> list[InjectionRecord]:
    """The records with a new outcome."""
    again = {(gap.agent, gap.need): gap.gap_id for gap in gaps}
    changed = []
    for record in history:
        if record.outcome == "open":
            latest_gap = again.get((record.agent, record.need), record.gap_id)
            outcome = "asked_again" if latest_gap != record.gap_id else _outcome(record, turns)
            if outcome != "open":
                changed.append(replace(record, outcome=outcome))
    return changed


def _outcome(record: InjectionRecord, turns: Sequence[Turn]) -> str:
    if not record.news:
        return "open"
    since = next((i + 1 for i in range(len(turns) - 1, -1, -1) if turns[i].id == record.after), 0)
    own = [turn for turn in turns[since:] if turn.agent == record.agent and turn.kind == "agent"]
    words = {_word_digest(record.gap_id, word) for turn in own for word in (*terms(turn.text), *_call_words(turn))}
    repeated = [word for word in record.news if word.removeprefix("!") in words]
    if len(repeated) >= MIN_REPEATED or any(word.startswith("!") for word in repeated):
        return "used"
    return "ignored" if sum(not turn.tool_calls for turn in own) >= _PATIENCE else "open"


def _call_words(turn: Turn) -> list[str]:
    """The words in the turn's tool calls: an agent may use the text without quoting it in prose."""
    return [word for call in turn.tool_calls for word in terms(call.arguments)]
