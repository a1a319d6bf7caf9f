"""Counts the recorded gaps by agent and reason, with what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master._internal.shapes import items_of
from langgraph_scrum_master.messages import read_turns
from langgraph_scrum_master.model import InjectionRecord, InjectionResult, Snapshot
from langgraph_scrum_master.team.outcome import news_in, outcomes
from langgraph_scrum_master.team.state import merge_records, records

_LATEST_MESSAGES = 100
"""Number of latest messages that are read for the outcome of an injection: an agent uses or ignores it soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(Plain):
    """The gaps of one agent with one reason, by outcome."""

    agent: str
    reason: str
    thread: str = ""
    """The thread, where threads are counted separately."""
    gaps: int = 0
    served: int = 0
    abstained: int = 0
    """Nothing relevant enough was found."""
    escalated: int = 0
    """The need came up again after `max_attempts`."""
    waiting: int = 0
    """Still pending, or closed without being served."""
    used: int = 0
    ignored: int = 0
    asked_again: int = 0
    open: int = 0
    """Served, but the outcome is not yet known."""
    tokens: int = 0
    """Of all injected texts."""


class Histories:
    """The latest injection records of each thread, from snapshots in order."""

    def __init__(self) -> None:
        self.by_thread: dict[str, list[InjectionRecord]] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Take over the records of the next snapshot, and what its messages say about open outcomes."""
        messages = items_of(snapshot.state.get("messages"))
        before = self.by_thread.get(snapshot.thread, [])
        history = merge_records(before, records(snapshot.state.get("injection_history")))
        result = snapshot.result
        if result is not None and result.gap.gap_id not in {record.gap_id for record in history}:
            history = merge_records(history, [replace(record_of(result), news=news_in(result, read_turns(messages)))])
        if any(record.outcome == "open" for record in history):
            latest = tuple(read_turns(messages[-_LATEST_MESSAGES:]))
            history = merge_records(history, outcomes(history, latest, ()))
        self.by_thread[snapshot.thread] = history

    def tallies(self, *, by_thread: bool = False) -> tuple[Tally, ...]:
        """The gaps by agent and reason, and by thread if asked for."""
        rows: dict[tuple[str, str, str], list[Tally]] = {}
        for thread, history in self.by_thread.items():
            for record in history:
                rows.setdefault((thread if by_thread else "", record.agent, record.reason), []).append(_tally(record))
        return tuple(
            summed(each, agent=agent, reason=reason, thread=thread)
            for (thread, agent, reason), each in sorted(rows.items())
        )


def record_of(result: InjectionResult) -> InjectionRecord:
    """The history record of a result, for sources without `injection_history`."""
    gap = result.gap
    return InjectionRecord(
        gap_id=gap.gap_id,
        need=gap.need,
        agent=gap.agent,
        reason=gap.reason,
        status="injected" if result.injected else "abstained",
        at=gap.detected_at,
        attempts=1,
        escalated=result.escalated,
        tokens=result.total_tokens if result.injected else 0,
        outcome="open" if result.injected else "",
        after=result.after,
    )


def _tally(record: InjectionRecord) -> Tally:
    served = record.status == "injected"
    return Tally(
        agent=record.agent,
        reason=record.reason,
        gaps=1,
        served=served,
        abstained=record.status == "abstained" and not record.escalated,
        escalated=record.escalated,
        waiting=record.status in ("pending", "closed"),
        used=record.outcome == "used",
        ignored=record.outcome == "ignored",
        asked_again=record.outcome == "asked_again",
        open=served and record.outcome in ("", "open"),
        tokens=record.tokens if served else 0,
    )


COUNTS = (
    *("gaps", "served", "abstained", "escalated", "waiting"),
    *("used", "ignored", "asked_again", "open", "tokens"),
)
"""The counters of a tally."""


def summed(rows: Iterable[Tally], agent: str, reason: str, thread: str = "") -> Tally:
    """The rows added up."""
    total = Tally(agent=agent, reason=reason, thread=thread)
    for row in rows:
        total = replace(total, **{name: getattr(total, name) + int(getattr(row, name)) for name in COUNTS})
    return total
