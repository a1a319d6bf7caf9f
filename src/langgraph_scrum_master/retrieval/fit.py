"""Selects the contexts that fit into a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from langgraph_scrum_master.model import Dropped, RetrievedContext
from langgraph_scrum_master.retrieval.dedupe import Split, dropped
from langgraph_scrum_master.text.trim import trim

SHORTEST = 80
"""The minimum number of characters of a trimmed text, by hand."""


def select(
    contexts: Sequence[RetrievedContext], most: int, fits: Callable[[Sequence[RetrievedContext]], bool]
) -> Split:
    """The first contexts, up to `most`, that fit together.

    A context that does not fit is trimmed. If too little of it would be left, it is dropped and the next one is tried.
    """
    kept: list[RetrievedContext] = []
    left: list[Dropped] = []
    for context in contexts:
        if len(kept) >= most:
            left.append(dropped(context, "over_items"))
        elif (fitted := _fitted(context, kept, fits)) is None:
            left.append(dropped(context, "over_budget"))
        else:
            kept.append(fitted)
    return kept, left


def _fitted(
    context: RetrievedContext, kept: Sequence[RetrievedContext], fits: Callable[[Sequence[RetrievedContext]], bool]
) -> RetrievedContext | None:
    if fits([*kept, context]):
        return context

    def start_fits(start: str) -> bool:
        return fits([*kept, replace(context, content=start, truncated=True)])

    if len(context.content) < SHORTEST or not start_fits(context.content[:SHORTEST]):
        return None
    short = trim(context.content, start_fits)
    return replace(context, content=short, truncated=True) if len(short) >= SHORTEST else None
