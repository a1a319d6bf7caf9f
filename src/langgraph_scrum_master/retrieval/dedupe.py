"""Filters contexts by score, novelty and duplication."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from langgraph_scrum_master.model import Dropped, DropReason, RetrievedContext
from langgraph_scrum_master.text.passages import says_something
from langgraph_scrum_master.text.similarity import CombinedTexts, ExactTexts, SaidTexts

Split = tuple[list[RetrievedContext], list[Dropped]]
"""The kept contexts in order, and the dropped ones."""


def dropped(context: RetrievedContext, why: DropReason) -> Dropped:
    """The record of a dropped context."""
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


FAR_BELOW = 0.35
"""The minimum odds of a context relative to the best one, by hand."""


def beside_the_best(contexts: Sequence[RetrievedContext]) -> Split:
    """The contexts whose odds are not far below those of the best one."""
    best = max((_odds(context) for context in contexts), default=0.0)
    kept = [context for context in contexts if _odds(context) >= FAR_BELOW * best]
    return kept, [dropped(context, "far_below_best") for context in contexts if _odds(context) < FAR_BELOW * best]


def _odds(context: RetrievedContext) -> float:
    return context.relevance_score / max(1e-9, 1 - context.relevance_score)


def picked(contexts: Sequence[RetrievedContext], indices: Sequence[int]) -> Split:
    """The contexts at these indices, in that order."""
    kept = [contexts[index] for index in indices]
    left = [context for index, context in enumerate(contexts) if index not in indices]
    return kept, [dropped(context, "not_picked") for context in left]


def filled(contexts: Sequence[RetrievedContext]) -> Split:
    """The contexts with text below their headings."""
    kept: list[RetrievedContext] = []
    left: list[Dropped] = []
    for context in contexts:
        if says_something(context.content):
            kept.append(context)
        else:
            left.append(dropped(context, "only_a_heading"))
    return kept, left


def novel(
    contexts: Sequence[RetrievedContext], statements: Sequence[str], seen: Sequence[str], seen_keys: Collection[str]
) -> Split:
    """The contexts that are neither contained in the `statements` nor equal to a `seen` one."""
    combined, exact = CombinedTexts(*statements), ExactTexts(*seen)
    kept: list[RetrievedContext] = []
    left: list[Dropped] = []
    for context in contexts:
        if context.key in seen_keys or combined.contain(context.content) or context.content in exact:
            left.append(dropped(context, "already_seen"))
        else:
            kept.append(context)
    return kept, left


def distinct_contexts(contexts: Sequence[RetrievedContext]) -> Split:
    """The contexts without duplicates of better ones."""
    kept: dict[str, RetrievedContext] = {}
    left: list[Dropped] = []
    seen = SaidTexts()
    for context in contexts:
        if context.key not in kept and seen.add(context.content):
            kept[context.key] = context
        else:
            left.append(dropped(context, "duplicate"))
    return list(kept.values()), left
