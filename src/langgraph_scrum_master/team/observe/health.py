"""Team health: idle time, cycle time and churn per agent, and alerts above the thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import median, quantiles

from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.serialisation import to_plain
from langgraph_scrum_master.model import (
    AlertSeverity,
    Health,
    HealthAlert,
    HealthMetrics,
    HealthStatus,
    Observation,
    Turn,
    instant,
    iso,
)
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning

_SHORTEST = 60.0
"""Minimum seconds over which turns are counted: a burst is not a rate."""

_WORDS = {
    "idle": "{agent} has been idle for {value:.0f} s, with work waiting for it",
    "cycle_time": "{agent} usually takes {value:.0f} s for a turn",
    "churn": "{agent} makes {value:.1f} turns a minute",
    "slow_turn": "{agent} took {value:.0f} s for its latest turn, far more than it usually does",
}


def health_status(observation: Observation, tuning: DetectionTuning = DEFAULT_DETECTION) -> HealthStatus:
    """The state's own `health_status`, or else the health that the messages show."""
    if observation.reported_health is not None:
        return observation.reported_health
    metrics = _metrics(observation)
    alerts = tuple(_alerts(metrics, observation, tuning))
    status = _status(alerts)
    return HealthStatus(
        status=status,
        summary="; ".join(alert.message for alert in alerts) or _summary(metrics),
        is_healthy=status == "healthy",
        evaluated_at=observation.now,
        metrics=metrics,
        alerts=alerts,
    )


def read_health(value: object) -> HealthStatus | None:
    """The state's own `health_status`, from a dict or an object; None if it is invalid."""
    try:
        return HealthStatus.from_dict(to_plain(value))
    # A host's own type may raise anything here.
    except BaseException as error:
        recordable(error)
        return None


def _metrics(observation: Observation) -> HealthMetrics:
    timed = [turn for turn in observation.turns if turn.kind == "agent" and turn.time is not None]
    by_agent: dict[str, list[Turn]] = {}
    for turn in timed:
        by_agent.setdefault(turn.agent, []).append(turn)
    minutes = max(_SHORTEST, _ends(timed)[1] - _ends(timed)[0]) / 60 if timed else 1.0
    in_cycles = {evidence for cycle in observation.cycles for evidence in cycle.evidence}
    samples = sorted(chain.from_iterable(observation.cycle_times.values()))
    return HealthMetrics(
        agent_idle_times={agent: _idle(agent, turns, observation) for agent, turns in by_agent.items()},
        agent_cycle_times={agent: median(times) for agent, times in observation.cycle_times.items()},
        agent_churn_rates={agent: len(turns) / minutes for agent, turns in by_agent.items()},
        overall_cycle_time=median(samples) if samples else 0.0,
        overall_churn_rate=len(timed) / minutes,
        unproductive_churn_rate=sum(turn.id in in_cycles for turn in timed) / minutes,
        cycle_time_percentiles=_percentiles(samples),
        agent_snapshots={
            agent: {"turns": len(turns), "last_turn": turns[-1].id, "last_turn_at": iso(_ends(turns)[1])}
            for agent, turns in by_agent.items()
        },
        collected_at=observation.now,
    )


def _ends(turns: Sequence[Turn]) -> tuple[float, float]:
    times = [turn.time for turn in turns if turn.time is not None]
    return min(times), max(times)


def _idle(agent: str, turns: Sequence[Turn], observation: Observation) -> float:
    # Idle time starts at the latest handoff to the agent.
    handed = [handoff.time for handoff in observation.handoffs if handoff.target == agent and handoff.time is not None]
    return max(0.0, instant(observation.now) - max([_ends(turns)[1], *handed]))


def _percentiles(samples: Sequence[float]) -> dict[str, float]:
    if len(samples) < 2:
        return dict.fromkeys(("p50", "p90", "p95"), samples[0]) if samples else {}
    cuts = quantiles(samples, n=100, method="inclusive")
    return {"p50": cuts[49], "p90": cuts[89], "p95": cuts[94]}


def _alerts(metrics: HealthMetrics, observation: Observation, tuning: DetectionTuning) -> Iterator[HealthAlert]:
    # Only an agent that has work waiting is idle.
    expected = {observation.handoff_target, *(question.addressee for question in observation.questions)}
    if observation.turns and observation.turns[-1].agent != observation.current_agent:
        expected.add(observation.current_agent)
    idle = {agent: seconds for agent, seconds in metrics.agent_idle_times.items() if agent in expected}
    idle_limits = {"critical": tuning.idle_critical_seconds, "warning": tuning.idle_warning_seconds}
    churn_limits = {"critical": tuning.churn_critical, "warning": tuning.churn_warning}
    yield from _over("idle", idle, idle_limits, observation.now)
    yield from _over(
        "cycle_time", metrics.agent_cycle_times, {"warning": tuning.cycle_warning_seconds}, observation.now
    )
    yield from _over("churn", metrics.agent_churn_rates, churn_limits, observation.now)
    for pace in observation.paces:
        if pace.seconds > pace.limit > 0:
            yield from _over("slow_turn", {pace.agent: pace.seconds}, {"warning": pace.limit}, observation.now)


def _over(kind: str, values: Mapping[str, float], thresholds: Mapping[str, float], now: str) -> Iterator[HealthAlert]:
    levels: tuple[AlertSeverity, ...] = ("critical", "warning")
    for agent, value in values.items():
        severity = next((level for level in levels if value > thresholds.get(level, float("inf"))), None)
        if severity is not None:
            yield HealthAlert(
                severity=severity,
                alert_type=kind,
                message=_WORDS[kind].format(agent=agent, value=value),
                affected_agent=agent,
                metric_value=value,
                threshold_value=thresholds[severity],
                triggered_at=now,
            )


def _status(alerts: Sequence[HealthAlert]) -> Health:
    if any(alert.severity == "critical" for alert in alerts):
        return "critical"
    warnings = sum(alert.severity == "warning" for alert in alerts)
    return "degraded" if warnings > 1 else "warning" if warnings else "healthy"


def _summary(metrics: HealthMetrics) -> str:
    agents = len(metrics.agent_churn_rates)
    return f"{agents} agent{'s' * (agents != 1)} at work, nothing out of the ordinary" if agents else "no times known"
