"""What the agent has already, and what says the same twice."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from langgraph_scrum_master.model import Dropped, DropReason, RetrievedContext
from langgraph_scrum_master.text.passages import says_something
from langgraph_scrum_master.text.similarity import SaidTexts, Seen, Whole

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


FAR_BELOW = 0.35
"""Of the best context's odds, what another's must be to be given beside it."""


def beside_the_best(contexts: Sequence[RetrievedContext]) -> Split:
    """The contexts that are not much less likely to serve than the best one."""
    best = max((_odds(context) for context in contexts), default=0.0)
    kept = [context for context in contexts if _odds(context) >= FAR_BELOW * best]
    return kept, [dropped(context, "far_below_best") for context in contexts if _odds(context) < FAR_BELOW * best]


def _odds(context: RetrievedContext) -> float:
    return context.relevance_score / max(1e-9, 1 - context.relevance_score)


def picked(contexts: Sequence[RetrievedContext], places: Sequence[int]) -> Split:
    """The contexts at these places, in that order."""
    kept = [contexts[place] for place in places]
    left = [context for place, context in enumerate(contexts) if place not in places]
    return kept, [dropped(context, "not_picked") for context in left]


def filled(contexts: Sequence[RetrievedContext]) -> Split:
    """The contexts that say something below their headings."""
    kept: list[RetrievedContext] = []
    left: list[Dropped] = []
    for context in contexts:
        if says_something(context.content):
            kept.append(context)
        else:
            left.append(dropped(context, "only_a_heading"))
    return kept, left


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


def distinct_contexts(contexts: Sequence[RetrievedContext]) -> Split:
    """The contexts without those that repeat a better one."""
    kept: dict[str, RetrievedContext] = {}
    left: list[Dropped] = []
    said = SaidTexts()
    for context in contexts:
        if context.key not in kept and said.add(context.content):
            kept[context.key] = context
        else:
            left.append(dropped(context, "duplicate"))
    return list(kept.values()), left
