"""The observed cycles in the format of the state key `cycle_analysis`."""

from __future__ import annotations

from langgraph_scrum_master.model import Cycle, CycleAnalysis, CyclePattern, Intervention, Observation, Severity, iso

SEVERITIES: tuple[tuple[int, Severity], ...] = ((12, "critical"), (8, "high"), (5, "medium"))
"""Minimum number of rounds per severity; below them it is low."""

_LONGEST_TOPIC = 200


def cycle_analysis(observation: Observation) -> CycleAnalysis:
    """The cycles from the state's own `cycle_analysis` and from the messages."""
    patterns = tuple(_pattern(cycle) for cycle in observation.cycles)
    strategy = _strategy(patterns)
    worst = max((pattern.exchange_count for pattern in patterns), default=0)
    return CycleAnalysis(
        circular_detected=bool(patterns),
        patterns_found=patterns,
        intervention_strategy=strategy,
        intervention_message=_message(patterns),
        escalation_triggered=strategy == "escalate_human",
        escalation_reason=f"the same {worst} times" if strategy == "escalate_human" else "",
        topic_exchanges={pattern.topic: pattern.exchange_count for pattern in patterns if pattern.topic},
        total_exchange_count=len(observation.handoffs),
        analyzed_at=observation.now,
    )


def severity(count: int) -> Severity:
    """The severity of a cycle with this many rounds."""
    return next((name for least, name in SEVERITIES if count >= least), "low")


def _pattern(cycle: Cycle) -> CyclePattern:
    known = cycle.first is not None and cycle.last is not None
    return CyclePattern(
        pattern_type=_kind(cycle),
        agents_involved=cycle.agents or (cycle.agent,),
        topic=cycle.topic[:_LONGEST_TOPIC],
        exchange_count=cycle.count,
        first_exchange_at=iso(cycle.first) if cycle.first is not None else "",
        last_exchange_at=iso(cycle.last) if cycle.last is not None else "",
        duration_seconds=cycle.last - cycle.first if known and cycle.last and cycle.first else 0.0,
        severity=severity(cycle.count),
        news=cycle.news,
    )


def _kind(cycle: Cycle) -> str:
    if cycle.kind == "topic_cycle" or len(cycle.agents) < 2:
        return cycle.kind
    return "agent_pair" if len(cycle.agents) == 2 else "multi_agent"


def _strategy(patterns: tuple[CyclePattern, ...]) -> Intervention:
    severities = {pattern.severity for pattern in patterns}
    if not severities:
        return "none"
    return "escalate_human" if "critical" in severities else "break_cycle" if "high" in severities else "inject_context"


def _message(patterns: tuple[CyclePattern, ...]) -> str:
    return "; ".join(
        f"{', '.join(pattern.agents_involved)}: {pattern.exchange_count} times the same, "
        f"{pattern.news:.0%} new in the last round"
        for pattern in patterns
    )
