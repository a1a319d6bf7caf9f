"""What the agent has already, and what says the same twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langgraph_scrum_master.model import Dropped, DropReason, RetrievedContext
from langgraph_scrum_master.text.similarity import Seen

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


def novel(contexts: Sequence[RetrievedContext], seen: Iterable[str], seen_keys: Iterable[str]) -> Split:
    """The contexts that say something the agent has not seen."""
    known, keys = Seen(), set(seen_keys)
    for text in seen:
        known.add(text)
    kept: list[RetrievedContext] = []
    left: list[Dropped] = []
    for context in contexts:
        if context.key in keys or known.says(context.content):
            left.append(dropped(context, "already_seen"))
        else:
            kept.append(context)
    return kept, left


def distinct(contexts: Sequence[RetrievedContext]) -> Split:
    """The contexts without those that repeat a better one."""
    kept: list[RetrievedContext] = []
    left: list[Dropped] = []
    for context in contexts:
        if any(_repeats(context, other) for other in kept):
            left.append(dropped(context, "duplicate"))
        else:
            kept.append(context)
    return kept, left


def _repeats(context: RetrievedContext, other: RetrievedContext) -> bool:
    known = Seen()
    known.add(other.content)
    return context.key == other.key or known.says(context.content)
