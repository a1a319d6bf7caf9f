"""What the agent has already, and what says the same twice."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from langgraph_scrum_master.model import Dropped, DropReason, RetrievedContext
from langgraph_scrum_master.text.similarity import Seen, Shelf, Whole

Split = tuple[list[RetrievedContext], list[Dropped]]
"""What is kept, in its order, and what is not."""


def dropped(context: RetrievedContext, why: DropReason) -> Dropped:
    """The trace of a context that the agent does not get."""
    return Dropped(
        key=context.key,
        source=context.source,
        title=context.title,
        relevance_score=context.relevance_score,
        why=why,
    )


def above(contexts: Sequence[RetrievedContext], bar: float) -> Split:
    """The contexts that reach the bar."""
    kept = [context for context in contexts if context.relevance_score >= bar]
    return kept, [dropped(context, "below_bar") for context in contexts if context.relevance_score < bar]


def novel(
    contexts: Sequence[RetrievedContext], told: Sequence[str], seen: Sequence[str], seen_keys: Collection[str]
) -> Split:
    """The contexts that say something new: no part of what the agent was `told`, and no text it has `seen`."""
    known, whole = Seen(*told), Whole(*seen)
    kept: list[RetrievedContext] = []
    left: list[Dropped] = []
    for context in contexts:
        if context.key in seen_keys or known.says(context.content) or context.content in whole:
            left.append(dropped(context, "already_seen"))
        else:
            kept.append(context)
    return kept, left


def distinct(contexts: Sequence[RetrievedContext]) -> Split:
    """The contexts without those that repeat a better one."""
    kept: dict[str, RetrievedContext] = {}
    left: list[Dropped] = []
    said = Shelf()
    for context in contexts:
        if context.key not in kept and said.add(context.content):
            kept[context.key] = context
        else:
            left.append(dropped(context, "duplicate"))
    return list(kept.values()), left
