"""The state keys that the scrum master writes, and their reducers.

Add `ScrumMasterState` to your graph's state: `class State(MessagesState, ScrumMasterState): ...`
"""

from __future__ import annotations

from typing import Annotated, Any

# LangGraph's MessagesState uses this TypedDict; it cannot be combined with typing.TypedDict.
from typing_extensions import TypedDict

from langgraph_scrum_master.errors import DecodeError
from langgraph_scrum_master.model import INJECTION_OUTCOMES, RECORD_STATUSES, InjectionRecord, InjectionResult, SMOutput

HISTORY_LIMIT = 100
"""Maximum number of records in the state; older ones are in the checkpoints and in the audit log."""

WAITING_LIMIT = 8
"""While so many payloads wait for their agent, no further gap is served."""

MERGED_LIMIT = 256
"""Maximum number of payloads that wait for their agent: branches of one superstep do not see each other's."""

FIGURES_KEY = "team_figures"
"""Our key with the running statistics."""

Payload = dict[str, Any]


def merge_payloads(old: Payload | None, new: Payload | None) -> Payload | None:
    """The newest payload first, with those that other agents have not read yet under `others`.

    There is one payload per gap. `cleared(gap_id)` removes one. None changes nothing: a subgraph that never saw a
    payload returns it.
    """
    if new is None:
        return old
    waiting = {payload["gap_id"]: payload for payload in payloads(old)}
    for payload in reversed(payloads(new)):
        waiting = {payload["gap_id"]: payload} | {k: v for k, v in waiting.items() if k != payload["gap_id"]}
    left = [payload for payload in waiting.values() if not payload.get("cleared")][:MERGED_LIMIT]
    return {**left[0], "others": left[1:]} if left else None


def payloads(payload: Payload | None) -> list[Payload]:
    """All waiting payloads, newest first, each without `others`."""
    if not isinstance(payload, dict) or "gap_id" not in payload:
        return []
    head = {key: value for key, value in payload.items() if key != "others"}
    others = payload.get("others")
    return [head, *(o for o in others if isinstance(o, dict) and "gap_id" in o)] if isinstance(others, list) else [head]


def cleared(gap_id: str) -> Payload:
    """The update that removes only this gap's payload."""
    return {"gap_id": gap_id, "cleared": True}


def merge_records(old: list[InjectionRecord], new: list[InjectionRecord]) -> list[InjectionRecord]:
    """One record per gap, the most advanced one, in order of first appearance; the oldest are dropped."""
    merged = {record.gap_id: record for record in records(old)}
    for record in records(new):
        known = merged.get(record.gap_id)
        if known is None or (record != known and _order(record) >= _order(known)):
            merged[record.gap_id] = record
    return _newest(list(merged.values()))


def records(history: object) -> list[InjectionRecord]:
    """The records of a history; dicts from a checkpoint are decoded."""
    if not isinstance(history, list | tuple):
        return []
    return [record for item in history if (record := _record(item))]


def latest(old: Any, new: Any) -> Any:
    """The last write of a superstep; None changes nothing."""
    return old if new is None else new


def newest_figures(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any] | None:
    """The newer statistics; a subgraph may return older ones."""
    if not old or not new:
        return old or new
    # A larger difference means that the clock was corrected.
    return old if 0 < _until(old) - _until(new) < _CORRECTION else new


_CORRECTION = 3_600.0


def _until(figures: dict[str, Any]) -> float:
    until = figures.get("until")
    return until if isinstance(until, int | float) else float("-inf")


class ScrumMasterState(TypedDict, total=False):
    """The keys that the scrum master writes."""

    injected_context: Annotated[dict[str, Any] | None, merge_payloads]
    """The injected text for one agent, with sources and sizes; removed after that agent's next turn."""
    injection_result: Annotated[InjectionResult | None, latest]
    """The latest result, without text."""
    injection_history: Annotated[list[InjectionRecord], merge_records]
    """One record per gap, including pending ones."""
    sm_output: Annotated[SMOutput | None, latest]
    """The latest observation and decision, for the audit trail."""
    team_figures: Annotated[dict[str, Any] | None, newest_figures]
    """Durations of each agent's latest turns, so that they survive restarts and trimmed histories."""


STATE_KEYS: tuple[str, ...] = tuple(ScrumMasterState.__annotations__)

HOST_KEYS: tuple[str, ...] = (
    *("messages", "current_agent", "active_agent", "current_story", "handoff_context", "missing_context"),
    *("structured_response", "gate_blocked", "gate_failure", "gate_results", "health_status", "cycle_analysis"),
    *("decisions", "sprint_plan", "sprint_progress"),
    *("adrs", "architecture_decisions", "tech_constraints", "constraints"),
)
"""Optional keys of the host that are read; a handoff and `requirements` may name others."""

READ_BACK: tuple[str, ...] = ("injected_context", "injection_history", FIGURES_KEY)
"""Our keys that later steps read."""


def _record(item: object) -> InjectionRecord | None:
    if isinstance(item, InjectionRecord):
        return item
    try:
        return InjectionRecord.from_dict(item) if isinstance(item, dict) else None
    except DecodeError:
        return None


def _newest(history: list[InjectionRecord]) -> list[InjectionRecord]:
    # Records of served gaps matter longest, so pending ones are dropped first.
    excess = len(history) - HISTORY_LIMIT
    if excess <= 0:
        return history
    order = sorted(range(len(history)), key=lambda i: (history[i].status in ("injected", "abstained"), i))
    dropped = set(order[:excess])
    return [record for i, record in enumerate(history) if i not in dropped]


def _order(record: InjectionRecord) -> tuple[object, ...]:
    """What decides between two records of a gap, in whichever order two branches wrote them."""
    return *_progress(record), record.failed, record.escalated, record.at, repr(record)


def _progress(record: InjectionRecord) -> tuple[int, int, int]:
    known = record.outcome in INJECTION_OUTCOMES
    outcome = INJECTION_OUTCOMES.index(record.outcome) if known else 0
    return RECORD_STATUSES.index(record.status), record.attempts, outcome
