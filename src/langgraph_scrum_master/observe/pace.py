"""How long an agent takes against its usual."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from math import expm1, log1p
from statistics import median

from langgraph_scrum_master.model import Pace, Turn
from langgraph_scrum_master.shapes import dict_of, read

ENOUGH = 6
"""Earlier samples without which there is no usual."""

FLOOR = 2.0
"""How many times its usual an agent may take in any case."""

BEYOND = 1.5
"""How many times the longest it ever took."""

SPREADS = 4.0
"""How many robust spreads above the median, on a logarithmic scale: durations have long tails."""

LATEST = 50
"""Samples that are kept of an agent."""

_LEAST_SPREAD = 0.25
_LONGEST = 1e9


class Paces:
    """How long each agent's latest turns took, and the pace of the newest."""

    __slots__ = ("_before", "_samples", "newest", "timed")

    def __init__(self) -> None:
        self._samples: dict[str, deque[float]] = {}
        self._before: float | None = None
        self.newest: Pace | None = None
        self.timed = False
        """Whether any message tells its time."""

    def add(self, turn: Turn) -> None:
        """Take in the next turn."""
        self.newest, before, self._before = None, self._before, turn.time
        # After a message without a time, the time until the next turn is not the next speaker's alone.
        if turn.time is None:
            return
        self.timed = True
        if turn.kind == "agent" and before is not None and turn.time >= before:
            self._measure(turn, turn.time - before)

    def _measure(self, turn: Turn, seconds: float) -> None:
        earlier = self._samples.setdefault(turn.agent, deque(maxlen=LATEST))
        if len(earlier) >= ENOUGH and seconds > BEYOND * max(earlier):
            usual, limit = median(earlier), _limit(earlier)
            self.newest = Pace(agent=turn.agent, seconds=seconds, usual=usual, limit=limit, evidence=turn.id)
        earlier.append(seconds)


def reported(health: object, current_agent: str) -> Iterator[Pace]:
    """The pace that the state's health figures tell, for teams whose messages carry no times."""
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


def _limit(earlier: Collection[float]) -> float:
    logs = [log1p(seconds) for seconds in earlier]
    middle = median(logs)
    spread = 1.4826 * median(abs(value - middle) for value in logs)
    far = expm1(middle + SPREADS * max(spread, _LEAST_SPREAD))
    return max(FLOOR * median(earlier), BEYOND * max(earlier), far)


def _numbers(times: Mapping[str, object]) -> dict[str, float]:
    plausible = ((agent, seconds) for agent, seconds in times.items() if isinstance(seconds, int | float))
    return {agent: float(seconds) for agent, seconds in plausible if 0 <= seconds < _LONGEST}
