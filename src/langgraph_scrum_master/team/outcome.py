"""What became of an injection, as the agent's next turns show it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from langgraph_scrum_master.model import ContextGap, InjectionRecord, InjectionResult, Turn, digest
from langgraph_scrum_master.text.terms import terms

MOST_NEWS = 24
"""Words that are kept of what only the injected text said."""

TAKEN_UP = 2
"""Of these, how many an agent that uses the text takes up; of numbers and names, one."""

_PATIENCE = 2
"""Turns after which an agent that has taken up nothing has ignored the text."""

_TELLING = re.compile(r"\d.*\d|\d\D|\D\d|_|\w\.\w")
"""A number of several digits, a path, an identifier: nobody says such by chance."""

_NAME = re.compile(r"(?<=[\w,;:(\"'`] )[A-Z][\w-]+|\b\w+[a-z][A-Z]\w*")
"""A word with a capital letter inside of a sentence."""


def news_in(result: InjectionResult, turns: Iterable[Turn]) -> tuple[str, ...]:
    """The words that only the injected text says, as digests: those that tell by themselves first, after a `!`."""
    known = {word for turn in turns for word in terms(turn.text)} | set(terms(result.gap.context_query))
    texts = [context.content for context in result.contexts_retrieved]
    names = {word for text in texts for name in _NAME.findall(text) for word in terms(name)}
    new = {word for text in texts for word in terms(text) if word not in known and len(word) > 1}
    telling = {word for word in new if word in names or _TELLING.search(word)}
    best = sorted(new, key=lambda word: (word not in telling, -len(word), word))[:MOST_NEWS]
    return tuple(f"{'!' if word in telling else ''}{_kept(result.gap.gap_id, word)}" for word in best)


def _kept(gap_id: str, word: str) -> str:
    """A word as the state's history keeps it, which holds no text."""
    return digest(gap_id, word)[:8]


def outcomes(
    history: Sequence[InjectionRecord], turns: Sequence[Turn], gaps: Iterable[ContextGap]
) -> list[InjectionRecord]:
    """The records whose outcome shows by now."""
    again = {(gap.agent, gap.need): gap.gap_id for gap in gaps}
    found = []
    for record in history:
        if record.outcome == "open":
            asked = again.get((record.agent, record.need), record.gap_id)
            outcome = "asked_again" if asked != record.gap_id else _shown(record, turns)
            if outcome != "open":
                found.append(replace(record, outcome=outcome))
    return found


def _shown(record: InjectionRecord, turns: Sequence[Turn]) -> str:
    if not record.news:
        return "open"
    since = next((i + 1 for i in range(len(turns) - 1, -1, -1) if turns[i].id == record.after), 0)
    own = [turn for turn in turns[since:] if turn.agent == record.agent and turn.kind == "agent"]
    said = {_kept(record.gap_id, word) for turn in own for word in (*terms(turn.text), *_called(turn))}
    taken = [word for word in record.news if word.removeprefix("!") in said]
    if len(taken) >= TAKEN_UP or any(word.startswith("!") for word in taken):
        return "used"
    return "ignored" if sum(not turn.tool_calls for turn in own) >= _PATIENCE else "open"


def _called(turn: Turn) -> list[str]:
    """What the turn's tool calls say: an agent may use what it was told without a word."""
    return [word for call in turn.tool_calls for word in terms(call.arguments)]
