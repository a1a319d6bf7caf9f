"""The graph keys that the scrum master writes, and how updates of them combine.

Mix `ScrumMasterState` into your graph's state: `class State(MessagesState, ScrumMasterState): ...`
"""

from __future__ import annotations

from typing import Annotated, Any

# As LangGraph's own MessagesState: classes made with the other TypedDict cannot be mixed with these.
from typing_extensions import TypedDict

from langgraph_scrum_master.errors import DecodeError
from langgraph_scrum_master.model import INJECTION_OUTCOMES, RECORD_STATUSES, InjectionRecord, InjectionResult, SMOutput

HISTORY_LIMIT = 100
"""Slim records that the state keeps; older ones are in the checkpoints and in the audit log."""

WAITING_LIMIT = 8
"""Payloads that wait for their agent at the same time."""

FIGURES_KEY = "team_figures"
"""The key of ours that holds running figures."""

Payload = dict[str, Any]


def merge_payloads(old: Payload | None, new: Payload | None) -> Payload | None:
    """The newest payload first, with those that other agents have not read yet under `others`.

    Keyed by gap: the same payload twice stands once. `cleared(gap_id)` takes one away. None changes nothing: a subgraph
    that never saw a payload returns it.
    """
    if new is None:
        return old
    waiting = {payload["gap_id"]: payload for payload in payloads(old)}
    for payload in reversed(payloads(new)):
        waiting = {payload["gap_id"]: payload} | {k: v for k, v in waiting.items() if k != payload["gap_id"]}
    left = [payload for payload in waiting.values() if not payload.get("cleared")][:WAITING_LIMIT]
    return {**left[0], "others": left[1:]} if left else None


def payloads(payload: Payload | None) -> list[Payload]:
    """All payloads that wait, newest first, each without `others`."""
    if not isinstance(payload, dict) or "gap_id" not in payload:
        return []
    head = {key: value for key, value in payload.items() if key != "others"}
    others = payload.get("others")
    return [head, *(o for o in others if isinstance(o, dict) and "gap_id" in o)] if isinstance(others, list) else [head]


def cleared(gap_id: str) -> Payload:
    """The update that takes this gap's payload away and leaves all others."""
    return {"gap_id": gap_id, "cleared": True}


def merge_records(old: list[InjectionRecord], new: list[InjectionRecord]) -> list[InjectionRecord]:
    """One record per gap, the one that is further along, in the order they first appeared; the newest are kept."""
    merged = {record.gap_id: record for record in records(old)}
    for record in records(new):
        known = merged.get(record.gap_id)
        if known is None or _progress(record) >= _progress(known):
            merged[record.gap_id] = record
    return _newest(list(merged.values()))


def records(history: object) -> list[InjectionRecord]:
    """The records of a history, also where a checkpoint gave them back as dicts."""
    if not isinstance(history, list | tuple):
        return []
    return [record for item in history if (record := _record(item))]


def latest(old: Any, new: Any) -> Any:
    """The last write of a superstep; None leaves what is there."""
    return old if new is None else new


def newest_figures(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any] | None:
    """The newer figures, unless a subgraph gives back some that do not reach so far."""
    if not old or not new:
        return old or new
    # Much further back, the clock was set right in between.
    return old if 0 < _until(old) - _until(new) < _CORRECTION else new


_CORRECTION = 3_600.0


def _until(figures: dict[str, Any]) -> float:
    until = figures.get("until")
    return until if isinstance(until, int | float) else float("-inf")


class ScrumMasterState(TypedDict, total=False):
    """The keys that the scrum master writes. What it reads, it takes from the state as it comes."""

    injected_context: Annotated[dict[str, Any] | None, merge_payloads]
    """The text for the agent it names, with sources and sizes; gone once that agent has spoken."""
    injection_result: Annotated[InjectionResult | None, latest]
    """The latest result: the gap, what was found, kept and dropped."""
    injection_history: Annotated[list[InjectionRecord], merge_records]
    """A slim record per gap, those that still wait among them."""
    sm_output: Annotated[SMOutput | None, latest]
    """What was observed and decided, for the audit trail."""
    team_figures: Annotated[dict[str, Any] | None, newest_figures]
    """How long each agent's latest turns took: its usual, also after a restart and without the older messages."""


STATE_KEYS: tuple[str, ...] = tuple(ScrumMasterState.__annotations__)

HOST_KEYS: tuple[str, ...] = (
    *("messages", "current_agent", "active_agent", "current_story", "handoff_context", "missing_context"),
    *("structured_response", "gate_blocked", "gate_failure", "gate_results", "health_status", "cycle_analysis"),
    *("decisions", "sprint_plan", "sprint_progress"),
    *("adrs", "architecture_decisions", "tech_constraints", "constraints"),
)
"""The host's keys that are read, if they are there; a handoff and `requirements` may name others."""

READ_BACK: tuple[str, ...] = ("injected_context", "injection_history", FIGURES_KEY)
"""The keys of ours that later steps read."""


def _record(item: object) -> InjectionRecord | None:
    if isinstance(item, InjectionRecord):
        return item
    try:
        return InjectionRecord.from_dict(item) if isinstance(item, dict) else None
    except DecodeError:
        return None


def _newest(history: list[InjectionRecord]) -> list[InjectionRecord]:
    # What was served must be remembered longest: what only waited is let go first.
    excess = len(history) - HISTORY_LIMIT
    if excess <= 0:
        return history
    order = sorted(range(len(history)), key=lambda i: (history[i].status in ("injected", "abstained"), i))
    gone = set(order[:excess])
    return [record for i, record in enumerate(history) if i not in gone]


def _progress(record: InjectionRecord) -> tuple[int, int, int]:
    known = record.outcome in INJECTION_OUTCOMES
    outcome = INJECTION_OUTCOMES.index(record.outcome) if known else 0
    return RECORD_STATUSES.index(record.status), record.attempts, outcome
