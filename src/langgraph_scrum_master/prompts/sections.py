"""Contexts in sections, each with tokens of its own, and what spills from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from langgraph_scrum_master.config import PROMPT_BUDGET, TokenBudget
from langgraph_scrum_master.model import Dropped, RetrievedContext
from langgraph_scrum_master.protocols import TokenCounter
from langgraph_scrum_master.retrieval.dedupe import Split, dropped
from langgraph_scrum_master.retrieval.fit import SHORTEST
from langgraph_scrum_master.text.similarity import SaidTexts
from langgraph_scrum_master.text.trim import trim

ALERTS, CLOSE, RELATED, SESSION, HINTS = PROMPT_BUDGET

_LONG, _SHORT = 100, 80
"""A memory of more tokens than the first is cut to the second: rather more memories in part than fewer whole."""

MORE = "..."
"""What a cut memory ends with."""

WHOLE = ("alert", "session", "hint")
"""What is said as it is; all else is memories, of which the long are cut, and what is said twice is left out."""

Sections: TypeAlias = Mapping[str, Sequence[RetrievedContext]]
"""Contexts by the name of their section, in the order of the text."""

_CHARACTERS_PER_TOKEN = 8
"""Hardly any text has more."""


class Costs(NamedTuple):
    """What the parts of a text cost in tokens, as they are rendered."""

    title: int
    headings: Mapping[str, int]
    context: Callable[[RetrievedContext], int]
    """On its line."""
    text: TokenCounter


def allocate(
    wanted: Sections, budget: TokenBudget, costs: Costs
) -> tuple[dict[str, list[RetrievedContext]], list[Dropped]]:
    """What fits of each section and is not said before, and what is left.

    What alerts leave goes to the close matches; these and the related ones share what is left between them, but the
    related keep their own share as far as they need it; what they leave goes to the session. Hints get no more than
    their own.
    """
    kept: dict[str, list[RetrievedContext]] = {}
    left: list[Dropped] = []
    said = SaidTexts()

    def filled(name: str, room: int) -> int:
        """The tokens that the section takes."""
        chosen, rest = _fitting(wanted.get(name, ()), room - costs.headings[name], costs, said)
        kept[name] = chosen
        left.extend(rest)
        return costs.headings[name] + sum(map(costs.context, chosen)) if chosen else 0

    shared = budget[ALERTS] + budget[CLOSE] + budget[RELATED] - costs.title
    shared -= filled(ALERTS, min(budget[ALERTS], shared))
    shared -= filled(CLOSE, shared - _needed(wanted.get(RELATED, ()), budget[RELATED], costs))
    shared -= filled(RELATED, shared)
    filled(SESSION, budget[SESSION] + shared)
    filled(HINTS, budget[HINTS])
    return kept, left


def shortened_context(context: RetrievedContext, costs: Costs) -> RetrievedContext:
    """A long memory cut at a sentence, or else at a word."""
    count = costs.text
    if costs.context(context) <= _LONG or count(context.content) <= _LONG:
        return context
    # Most of it goes anyway: its start is enough to find the place.
    start = context.content[: 2 * _CHARACTERS_PER_TOKEN * _SHORT]
    short = trim(start if count(start) > _SHORT else context.content, lambda text: count(text) <= _SHORT, MORE)
    return replace(context, content=short, truncated=True) if short else context


def _needed(contexts: Sequence[RetrievedContext], most: int, costs: Costs) -> int:
    """What a section would take, up to its share."""
    taken = costs.headings[RELATED] if contexts else 0
    for context in contexts:
        if taken >= most:
            break
        taken += costs.context(shortened_context(context, costs))
    return min(taken, most)


def _fitting(contexts: Sequence[RetrievedContext], room: int, costs: Costs, said: SaidTexts) -> Split:
    kept: list[RetrievedContext] = []
    left: list[Dropped] = []
    for context in contexts:
        fitted = _fitted(context, room, costs)
        if fitted is None:
            left.append(dropped(context, "over_budget"))
        elif context.source not in WHOLE and not said.add(context.content):
            left.append(dropped(context, "duplicate"))
        else:
            kept.append(fitted)
            room -= costs.context(fitted)
    return kept, left


def _fitted(context: RetrievedContext, room: int, costs: Costs) -> RetrievedContext | None:
    """The context, or as much of it as is worth its line; None if that is nothing."""
    most = _CHARACTERS_PER_TOKEN * room
    if most < min(len(context.content), SHORTEST):
        return None
    if context.source not in WHOLE:
        context = shortened_context(context, costs)
    if costs.context(context) <= room:
        return context

    def fits(start: str) -> bool:
        return costs.context(replace(context, content=start)) <= room

    if context.source in ("alert", "hint") or len(context.content) < SHORTEST or not fits(context.content[:SHORTEST]):
        return None
    # Most of a long text goes anyway: its start is enough to find the place.
    start = context.content[:most]
    short = trim(context.content if fits(start) else start, fits, MORE)
    return replace(context, content=short, truncated=True) if len(short) >= SHORTEST else None
