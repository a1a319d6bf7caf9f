"""Fits contexts into sections, each with its own token budget and a share of what others leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from langgraph_scrum_master.config import PROMPT_BUDGET, TokenBudget
from langgraph_scrum_master.model import Dropped, RetrievedContext
from langgraph_scrum_master.protocols import TokenCounter
from langgraph_scrum_master.retrieval.dedupe import Split, dropped
from langgraph_scrum_master.retrieval.fit import SHORTEST
from langgraph_scrum_master.text.passages import passage_of
from langgraph_scrum_master.text.similarity import SaidTexts
from langgraph_scrum_master.text.trim import trim

ALERTS, CLOSE, RELATED, SESSION, HINTS = PROMPT_BUDGET

_LONG, _SHORT = 100, 80
"""A memory with more tokens than the first is cut to the second, to make room for more memories."""

CUT_MARK = "..."
"""Appended to a cut memory."""

VERBATIM_SOURCES = ("alert", "session", "hint")
"""Sources whose contexts are used as they are. All others are cut and deduplicated like memories."""

Sections: TypeAlias = Mapping[str, Sequence[RetrievedContext]]
"""Contexts by section, in the order of the text."""

_CHARACTERS_PER_TOKEN = 8
"""An upper bound for nearly all texts, by hand."""


class Costs(NamedTuple):
    """The costs of the rendered parts in tokens."""

    title: int
    headings: Mapping[str, int]
    context: Callable[[RetrievedContext], int]
    """The cost of a context's line."""
    text: TokenCounter
    wanted: Mapping[str, float] = MappingProxyType({})
    """Weighted words of the query: a cut memory keeps the passage that has most of them."""


def allocate(
    wanted: Sections, budget: TokenBudget, costs: Costs
) -> tuple[dict[str, list[RetrievedContext]], list[Dropped]]:
    """The contexts that fit into each section without duplicates, and the dropped ones.

    Close matches also get what alerts leave, and what related ones do not need of their share. Related ones get what
    close matches leave, and the session gets the rest. Hints never exceed their own share.
    """
    kept: dict[str, list[RetrievedContext]] = {}
    left: list[Dropped] = []
    seen = SaidTexts()

    def fill(name: str, room: int) -> int:
        """Fill a section, and return the tokens it takes."""
        chosen, rest = _fitting(wanted.get(name, ()), room - costs.headings[name], costs, seen)
        kept[name] = chosen
        left.extend(rest)
        return costs.headings[name] + sum(map(costs.context, chosen)) if chosen else 0

    shared = budget[ALERTS] + budget[CLOSE] + budget[RELATED] - costs.title
    shared -= fill(ALERTS, min(budget[ALERTS], shared))
    shared -= fill(CLOSE, shared - _needed(wanted.get(RELATED, ()), budget[RELATED], costs))
    shared -= fill(RELATED, shared)
    fill(SESSION, budget[SESSION] + shared)
    fill(HINTS, budget[HINTS])
    return kept, left


def shortened_context(context: RetrievedContext, costs: Costs) -> RetrievedContext:
    """The context; if it is long, cut to the passage that answers the query."""
    count = costs.text
    if costs.context(context) <= _LONG or count(context.content) <= _LONG:
        return context
    short = _cut(context.content, costs.wanted, lambda text: count(text) <= _SHORT, _SHORT)
    return replace(context, content=short, truncated=True) if short else context


def _cut(text: str, wanted: Mapping[str, float], fits: Callable[[str], bool], tokens: int) -> str:
    """The passage with most of the wanted words, or the start of the text if that has as many."""
    most = _CHARACTERS_PER_TOKEN * tokens
    passage = passage_of(text, wanted, lambda part: len(part) <= most and fits(part))
    if not passage.at_start:
        return passage.text if fits(passage.text) else trim(passage.text[: 2 * most], fits, CUT_MARK)
    # The cut is near the start: counting all of a long text would be wasted.
    start = text[: 2 * most]
    return trim(text if fits(start) else start, fits, CUT_MARK)


def _needed(contexts: Sequence[RetrievedContext], most: int, costs: Costs) -> int:
    """The tokens that a section needs, up to its share."""
    taken = costs.headings[RELATED] if contexts else 0
    for context in contexts:
        if taken >= most:
            break
        taken += costs.context(shortened_context(context, costs))
    return min(taken, most)


def _fitting(contexts: Sequence[RetrievedContext], room: int, costs: Costs, seen: SaidTexts) -> Split:
    kept: list[RetrievedContext] = []
    left: list[Dropped] = []
    for context in contexts:
        fitted = _fitted(context, room, costs)
        if fitted is None:
            left.append(dropped(context, "over_budget"))
        elif context.source not in VERBATIM_SOURCES and not seen.add(context.content):
            left.append(dropped(context, "duplicate"))
        else:
            kept.append(fitted)
            room -= costs.context(fitted)
    return kept, left


def _fitted(context: RetrievedContext, room: int, costs: Costs) -> RetrievedContext | None:
    """The context, cut if necessary; None if too little of it would be left."""
    most = _CHARACTERS_PER_TOKEN * room
    if most < min(len(context.content), SHORTEST):
        return None
    if context.source not in VERBATIM_SOURCES:
        context = shortened_context(context, costs)
    if costs.context(context) <= room:
        return context

    def fits(start: str) -> bool:
        return costs.context(replace(context, content=start)) <= room

    if context.source in ("alert", "hint") or len(context.content) < SHORTEST or not fits(context.content[:SHORTEST]):
        return None
    wanted = {} if context.source in VERBATIM_SOURCES else costs.wanted
    short = _cut(context.content, wanted, fits, room)
    return replace(context, content=short, truncated=True) if len(short) >= SHORTEST else None
