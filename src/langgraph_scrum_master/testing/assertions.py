"""Assertions on gaps and results; failures report what was found instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from langgraph_scrum_master._internal.shapes import unwrapped
from langgraph_scrum_master.errors import DecodeError
from langgraph_scrum_master.model import ContextGap, DropReason, InjectionResult, RetrievedContext
from langgraph_scrum_master.scrum_master import ScrumMaster
from langgraph_scrum_master.team.history import waiting
from langgraph_scrum_master.team.record.facts import outcome

T = TypeVar("T")


def assert_gap(
    actual: object,
    *,
    agent: str | None = None,
    reason: str | None = None,
    about: str | None = None,
    scrum_master: ScrumMaster | None = None,
) -> ContextGap:
    """Assert that there is a gap with this agent, reason and text in its query; return the first one.

    `actual` is a result, gaps, or a state, which `scrum_master` evaluates, by default one without arguments.
    """
    __tracebackhide__ = True
    gaps = _gaps(actual, scrum_master)
    for gap in gaps:
        fits = (agent in (None, gap.agent), reason in (None, gap.reason), (about or "") in gap.context_query)
        if all(fits):
            return gap
    wanted = _criteria(agent=agent, reason=reason, about=about)
    raise AssertionError(f"no gap{wanted}; found: {_join(map(_gap, gaps)) or 'no gap at all'}")


def assert_no_gap(actual: object, *, agent: str | None = None, scrum_master: ScrumMaster | None = None) -> None:
    """Assert that there is no gap, or no gap of this agent if one is given."""
    __tracebackhide__ = True
    gaps = [gap for gap in _gaps(actual, scrum_master) if agent in (None, gap.agent)]
    if gaps:
        raise AssertionError(f"expected no gap{_criteria(agent=agent)}; found: {_join(map(_gap, gaps))}")


def assert_injected(
    actual: object, *, agent: str | None = None, containing: str | None = None, source: str | None = None
) -> InjectionResult:
    """Assert that context was injected: for this agent, with this text, from this source.

    `actual` is a result or the final state of a graph.
    """
    __tracebackhide__ = True
    result, text = _result(actual)
    if result is None:
        raise AssertionError("nothing was injected: there was no gap")
    if not result.injected:
        raise AssertionError(f"nothing was injected: {outcome(result)} at {_gap(result.gap)}; {_dropped(result)}")
    if agent not in (None, result.gap.agent):
        raise AssertionError(f"context was given to {result.gap.agent!r}, not to {agent!r}")
    if source is not None and source not in {context.source for context in result.contexts_retrieved}:
        raise AssertionError(f"nothing was from {source!r}; found: {_join(map(_context, result.contexts_retrieved))}")
    if containing is not None and containing not in text:
        hint = (
            ""
            if text
            else " (the state loses the text once the agent has read it: check the result or an earlier state)"
        )
        raise AssertionError(f"{containing!r} is not in the text{hint}: {text!r}; {_dropped(result)}")
    return result


def assert_abstained(actual: object, *, because: DropReason | None = None) -> InjectionResult:
    """Assert that there was a gap and nothing was injected; with `because`, that a context was dropped for it."""
    __tracebackhide__ = True
    result, _ = _result(actual)
    if result is None:
        raise AssertionError("nothing to abstain from: there was no gap")
    if result.injected:
        raise AssertionError(f"context was injected: {_join(map(_context, result.contexts_retrieved))}")
    if because is not None and because not in {each.why for each in result.dropped}:
        raise AssertionError(f"nothing was dropped as {because!r}; {_dropped(result)}")
    return result


def _gaps(actual: object, scrum_master: ScrumMaster | None) -> tuple[ContextGap, ...]:
    if actual is None:
        return ()
    if isinstance(actual, InjectionResult):
        return (actual.gap, *actual.pending)
    if isinstance(actual, ContextGap):
        return (actual,)
    if isinstance(actual, list | tuple) and all(isinstance(each, ContextGap) for each in actual):
        return tuple(actual)
    return (scrum_master or ScrumMaster()).detect(actual)


def _result(actual: object) -> tuple[InjectionResult | None, str]:
    """The result and the injected text."""
    if actual is None or isinstance(actual, InjectionResult):
        return actual, actual.text if actual is not None else ""
    state, _ = unwrapped(actual)
    result = state.get("injection_result")
    if isinstance(result, dict):
        result = InjectionResult.from_dict(result)
    if result is not None and not isinstance(result, InjectionResult):
        raise DecodeError(f"expected a result, or a state that has one, got {actual!r:.80}")
    own = [payload for payload in waiting(state) if result is not None and payload["gap_id"] == result.gap.gap_id]
    return result, str(own[0].get("text", "")) if own else ""


def _criteria(**criteria: str | None) -> str:
    text = ", ".join(f"{name} {value!r}" for name, value in criteria.items() if value is not None)
    return f" with {text}" if text else ""


def _gap(gap: ContextGap) -> str:
    return f"{gap.agent} ({gap.reason}, {gap.confidence:.2f}, {', '.join(gap.indicators)}): {gap.context_query!r}"


def _context(context: RetrievedContext) -> str:
    return f"{context.source} {context.title or context.key!r} {context.relevance_score:.2f}"


def _dropped(result: InjectionResult) -> str:
    dropped = [
        f"{each.source} {each.title or each.key!r} {each.relevance_score:.2f} {each.why}" for each in result.dropped
    ]
    failed = [f"{failure.source}: {failure.error}" for failure in result.failures]
    return f"dropped: {_join(dropped) or 'nothing'}" + (f"; failed: {_join(failed)}" if failed else "")


def _join(items: Iterable[str]) -> str:
    return "; ".join(items)
