"""Compares two replays of the same source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master.model import ContextGap, InjectionResult, freeze
from langgraph_scrum_master.replay.model import Replay, ReplayStep

SCORE_DIGITS = 4
"""Scores are compared to this many digits, because the last ones may differ between machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Plain):
    """One value that differs."""

    what: str
    before: Any = field(hash=False)
    after: Any = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDifference(Plain):
    """A step with differences."""

    where: str
    thread: str
    step: int
    changes: tuple[Change, ...]

    def __post_init__(self) -> None:
        freeze(self, "changes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Plain):
    """The steps that differ. Falsy if there are none."""

    steps: tuple[StepDifference, ...] = ()
    compared: int = 0
    """Number of steps in both replays."""
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    """Steps in only one of the two replays."""

    def __post_init__(self) -> None:
        freeze(self, "steps", "only_before", "only_after")

    def __bool__(self) -> bool:
        return bool(self.steps or self.only_before or self.only_after)


def difference(before: Replay, after: Replay) -> Difference:
    """The differences between two replays."""
    old, new = _by_place(before), _by_place(after)
    pairs = [(old[place], step) for place, step in new.items() if place in old]
    changed = [(step, changes) for earlier, step in pairs if (changes := tuple(_changes(earlier, step)))]
    return Difference(
        steps=tuple(
            StepDifference(where=step.where, thread=step.thread, step=step.step, changes=changes)
            for step, changes in changed
        ),
        compared=len(pairs),
        only_before=tuple(_place_name(place) for place in old if place not in new),
        only_after=tuple(_place_name(place) for place in new if place not in old),
    )


def against_recorded(replay: Replay) -> Difference:
    """The differences between a replay and the recorded results, for steps in which the scrum master ran."""
    ran = [step for step in replay.steps if step.ran]
    then = [replace(step, result=step.recorded, gaps=_gaps(step.recorded), given_up=()) for step in ran]
    now = [replace(step, gaps=_gaps(step.result), given_up=()) for step in ran]
    return difference(Replay(steps=tuple(then)), Replay(steps=tuple(now)))


def _gaps(result: InjectionResult | None) -> tuple[ContextGap, ...]:
    return () if result is None else (result.gap, *result.pending)


def _by_place(replay: Replay) -> dict[tuple[str, str, int, int], ReplayStep]:
    """The steps by place. Steps of the same place, such as checkpoints of two branches, are numbered."""
    seen: dict[tuple[str, str, int], int] = {}
    placed: dict[tuple[str, str, int, int], ReplayStep] = {}
    for step in replay.steps:
        number = seen[step.place] = seen.get(step.place, -1) + 1
        placed[(*step.place, number)] = step
    return placed


def _place_name(place: tuple[str, str, int, int]) -> str:
    where, thread, step, _ = place
    return " ".join(filter(None, (where, thread, f"step {step}")))


def _changes(before: ReplayStep, after: ReplayStep) -> Iterator[Change]:
    old, new = _facts(before), _facts(after)
    for what in old:
        if old[what] is not None and new[what] is not None and old[what] != new[what]:
            yield Change(what=what, before=old[what], after=new[what])


def _facts(step: ReplayStep) -> Mapping[str, Any]:
    """The values of a step that are compared. None where a value is unknown."""
    result = step.result
    gaps = [f"{gap.agent}: {gap.reason}, {gap.confidence:.2f}: {gap.context_query}" for gap in step.gaps]
    if result is None:
        return {"outcome": step.outcome, "gaps": gaps, **dict.fromkeys(_RESULT_FACTS), "failure": step.failure}
    return {
        "outcome": step.outcome,
        "gaps": gaps,
        "target": result.injection_target if result.injected else "",
        "contexts": {each.key: round(each.relevance_score, SCORE_DIGITS) for each in result.contexts_retrieved},
        "dropped": {each.key: each.why for each in result.dropped},
        "failures": [failure.source for failure in result.failures],
        "tokens": result.total_tokens,
        # A checkpoint no longer has the text once the agent has read it.
        "text": result.text or ("" if not result.injected else None),
        "failure": step.failure,
    }


_RESULT_FACTS = ("target", "contexts", "dropped", "failures", "tokens", "text")
