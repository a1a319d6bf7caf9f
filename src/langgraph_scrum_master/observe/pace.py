"""How long an agent takes against its usual."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import expm1, log1p
from statistics import median

from langgraph_scrum_master.model import Pace, Turn
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.shapes import dict_of, read

ENOUGH = 6
"""Earlier samples without which there is no usual."""

FLOOR = 2.0
"""How many times its usual an agent may take in any case."""

BEYOND = 1.5
"""How many times the longest it ever took."""

SPREADS = 4.0
"""How many robust spreads above the median, on a logarithmic scale: durations have long tails."""

_LEAST_SPREAD = 0.25


def read_paces(state: State, turns: Sequence[Turn], current_agent: str) -> Iterator[Pace]:
    """The latest turn's pace from the messages' own times; where they have none, from the state's health figures."""
    measured = list(_measured(turns))
    if measured:
        yield measured[-1]
    elif not any(turn.time is not None for turn in turns):
        yield from _reported(state.get("health_status"), current_agent)


def _measured(turns: Sequence[Turn]) -> Iterator[Pace]:
    samples: dict[str, list[float]] = {}
    before: float | None = None
    for turn in turns:
        if turn.time is None:
            # Whoever that was, the time until the next turn is not the next speaker's alone.
            before = None
            continue
        if turn.kind == "agent" and before is not None and turn.time >= before:
            earlier = samples.setdefault(turn.agent, [])
            if turn is turns[-1] and len(earlier) >= ENOUGH:
                usual, limit = median(earlier), _limit(earlier)
                yield Pace(agent=turn.agent, seconds=turn.time - before, usual=usual, limit=limit, evidence=turn.id)
            earlier.append(turn.time - before)
        before = turn.time


def _limit(earlier: Sequence[float]) -> float:
    logs = [log1p(seconds) for seconds in earlier]
    middle = median(logs)
    spread = 1.4826 * median(abs(value - middle) for value in logs)
    far = expm1(middle + SPREADS * max(spread, _LEAST_SPREAD))
    return max(FLOOR * median(earlier), BEYOND * max(earlier), far)


def _reported(health: object, current_agent: str) -> Iterator[Pace]:
    # The agent's own figure is left out of what it is compared with.
    times = _numbers(dict_of(read(read(health, "metrics"), "agent_cycle_times")))
    others = [seconds for agent, seconds in times.items() if agent != current_agent]
    if current_agent in times and others:
        usual = median(others)
        yield Pace(
            agent=current_agent,
            seconds=times[current_agent],
            usual=usual,
            limit=FLOOR * usual,
            evidence="health_status",
        )


def _numbers(times: Mapping[str, object]) -> dict[str, float]:
    return {agent: float(seconds) for agent, seconds in times.items() if isinstance(seconds, int | float)}
