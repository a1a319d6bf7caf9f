"""Compares the duration of an agent's turns with its usual, from running statistics in the state.

The statistics have the latest durations of each agent and the time up to which they count. They survive restarts and
trimmed histories; a branch starts with those of its checkpoint.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from math import expm1, log1p
from statistics import median
from typing import Any

from langgraph_scrum_master._internal.shapes import dict_of, items_of, read
from langgraph_scrum_master.model import Pace, Turn
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning

LATEST = 50
"""Maximum number of durations per agent."""

FIGURES_SAVED_EVERY = 16
"""Turns after which the statistics in the state are updated; earlier in a short history, which may be trimmed soon."""

MOST_AGENTS = 64
"""Maximum number of agents with statistics; the latest to speak."""

CORRECTION = 3_600.0
"""A larger jump back in time, in seconds, is a clock correction; a smaller one means concurrent agents."""

_LONGEST = 1e9
_LATEST = 1e11


class Paces:
    """Durations of each agent's latest turns, and the pace of the newest."""

    __slots__ = ("_before", "_counted", "_newest", "_samples", "_tuning", "_until", "measured", "newest")

    def __init__(self, figures: object = None, tuning: DetectionTuning = DEFAULT_DETECTION) -> None:
        self._tuning = tuning
        self._until = _until(figures)
        self._samples = _samples(figures)
        self._counted: deque[float] = deque(maxlen=FIGURES_SAVED_EVERY)
        """Times of the latest turns in the samples."""
        self._newest: tuple[Turn, float] | None = None
        self._before: float | None = None
        self.newest: Pace | None = None
        self.measured = False
        """Whether turns get their time from our clock because the messages have none."""

    def add(self, turn: Turn) -> None:
        """Process the next turn."""
        # Tool calls and results without a time belong to the turn of the calling agent.
        if turn.time is None and (turn.kind not in ("human", "agent") or turn.tool_calls):
            return
        self._add_newest_to_samples()
        self.newest, before, self._before = None, self._before, turn.time
        # Without a time there is nothing to measure.
        if turn.time is None:
            return
        if before is None:
            return
        if turn.time < before - CORRECTION:
            self._until = min(self._until, turn.time)
            return
        # Turns of concurrent agents may be out of order.
        self._before = max(before, turn.time)
        if turn.kind == "agent" and max(before, self._until) < turn.time < before + self._tuning.longest_turn_seconds:
            self._set_newest(turn, round(turn.time - before, 3))

    def resume(self, newest: float) -> None:
        """Start reading a history that ends at this time; statistics from after it are not a valid starting point."""
        if self._until > newest + CORRECTION:
            self._until = float("-inf")

    def cycle_times(self) -> dict[str, tuple[float, ...]]:
        """Durations of each agent's latest turns in seconds, including the newest."""
        times = {agent: tuple(samples) for agent, samples in self._samples.items()}
        if self._newest is not None:
            turn, seconds = self._newest
            times[turn.agent] = (*times.get(turn.agent, ()), seconds)[-LATEST:]
        return times

    def due(self, figures: object, turns: int) -> dict[str, Any] | None:
        """The statistics to write, if those in the state are too old for a history of this many turns.

        They exclude the newest turn, so that reading the same state again compares it with the turns before.
        """
        fresh = FIGURES_SAVED_EVERY if self.measured else max(1, min(FIGURES_SAVED_EVERY, turns // 2))
        if len(self._counted) < fresh or self._counted[-fresh] <= _until(figures):
            return None
        return {"until": self._until, "cycle_times": {agent: list(times) for agent, times in self._samples.items()}}

    def _set_newest(self, turn: Turn, seconds: float) -> None:
        earlier = self._samples.get(turn.agent, ())
        tuning = self._tuning
        if len(earlier) >= tuning.pace_samples and seconds > tuning.pace_of_longest * max(earlier):
            usual, limit = median(earlier), _limit(earlier, tuning)
            self.newest = Pace(agent=turn.agent, seconds=seconds, usual=usual, limit=limit, evidence=turn.id)
        self._newest = (turn, seconds)

    def _add_newest_to_samples(self) -> None:
        if self._newest is None:
            return
        (turn, seconds), self._newest = self._newest, None
        # Reinserted, so that the latest to speak comes last.
        samples = self._samples.pop(turn.agent, None)
        self._samples[turn.agent] = samples = deque(maxlen=LATEST) if samples is None else samples
        samples.append(seconds)
        if len(self._samples) > MOST_AGENTS:
            del self._samples[next(iter(self._samples))]
        if turn.time is not None:
            self._until = turn.time
            self._counted.append(turn.time)


def reported_paces(health: object, current_agent: str, of_usual: float) -> Iterator[Pace]:
    """The pace from the state's health metrics, for agents whose turns we have not measured often enough.

    The limit is `of_usual` times the usual duration: that of the other agents, or of the team as a whole if that is
    shorter. The latter contains the agent's own turns.
    """
    metrics = read(health, "metrics", health)
    times = _numbers(dict_of(read(metrics, "agent_cycle_times")))
    if read(health, "status") == "healthy":
        return
    others = [seconds for agent, seconds in times.items() if agent != current_agent]
    # Without a value, hosts report 0.
    overall = [seconds for seconds in _plausible((read(metrics, "overall_cycle_time"),)) if seconds]
    if current_agent in times and (others or overall):
        usual = min([*overall, median(others)] if others else overall)
        yield Pace(
            agent=current_agent,
            seconds=times[current_agent],
            usual=usual,
            limit=of_usual * usual,
            evidence="health_status",
        )


def _until(figures: object) -> float:
    until = read(figures, "until")
    return float(until) if isinstance(until, int | float) and abs(until) < _LATEST else float("-inf")


def _samples(figures: object) -> dict[str, deque[float]]:
    stored = dict_of(read(figures, "cycle_times"))
    times = {agent: deque(_plausible(items_of(values)), maxlen=LATEST) for agent, values in stored.items()}
    return {agent: samples for agent, samples in times.items() if samples and isinstance(agent, str)}


def _plausible(values: Collection[object]) -> list[float]:
    return [float(value) for value in values if isinstance(value, int | float) and 0 <= value < _LONGEST]


def _limit(earlier: Collection[float], tuning: DetectionTuning) -> float:
    logs = [log1p(seconds) for seconds in earlier]
    middle = median(logs)
    spread = 1.4826 * median(abs(value - middle) for value in logs)
    far = expm1(middle + tuning.pace_spreads * max(spread, tuning.pace_least_spread))
    return max(tuning.pace_of_usual * median(earlier), tuning.pace_of_longest * max(earlier), far)


def _numbers(times: Mapping[str, object]) -> dict[str, float]:
    return {agent: valid[0] for agent, seconds in times.items() if (valid := _plausible((seconds,)))}
