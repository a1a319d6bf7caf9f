"""What earlier steps wrote to the state: payloads that wait to be read, injections and attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langgraph_scrum_master._internal.shapes import absent
from langgraph_scrum_master.model import ContextGap, Turn
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.team.state import WAITING_LIMIT, Payload, payloads, records

CONTEXT_KEY = "injected_context"
"""Our key with the text for an agent, also inside a handoff."""

HANDOFF_KEY = "handoff_context"
"""The host's key for the data of a handoff."""

MOST_FAILED = 10
"""Maximum attempts for a need in which a source failed."""


def has_injections(state: State) -> bool:
    """Whether the state has records or payloads of earlier steps that this step may have to update."""
    return not (
        absent(state.get("injection_history")) and absent(state.get(CONTEXT_KEY)) and absent(state.get(HANDOFF_KEY))
    )


def waiting(state: State) -> list[Payload]:
    """All payloads in the state that were not cleared, in our own key and in the handoff."""
    handoff = state.get(HANDOFF_KEY)
    inside = payloads(handoff.get(CONTEXT_KEY)) if isinstance(handoff, Mapping) else []
    return [payload for payload in (*payloads(state.get(CONTEXT_KEY)), *inside) if not payload.get("cleared")]


def unread_payloads(state: State, turns: Sequence[Turn]) -> list[Payload]:
    """Payloads whose agent has not spoken since."""
    return [payload for payload in waiting(state) if not has_spoken(payload, turns)]


def has_spoken(payload: Payload, turns: Sequence[Turn]) -> bool:
    """Whether the payload's agent has spoken since it was written."""
    return any(turn.agent == payload.get("agent") and _ends_its_turn(turn) for turn in since(payload, turns))


def since(payload: Payload, turns: Sequence[Turn]) -> Sequence[Turn]:
    """The turns that came after the payload was written."""
    # If none of them is left, the history was trimmed, and all remaining turns came later.
    before = payload.get("before") or ()
    seen = [i for i, turn in enumerate(turns) if turn.id in before]
    return turns[seen[-1] + 1 :] if seen else turns


def _ends_its_turn(turn: Turn) -> bool:
    # After a tool call the agent continues its turn and still needs the context.
    handed_over = any(call.name.startswith(("transfer_", "task")) for call in turn.tool_calls)
    return turn.kind == "agent" and (not turn.tool_calls or handed_over)


def unsettled_gaps(
    gaps: Sequence[ContextGap], state: State, turns: Sequence[Turn], max_attempts: int
) -> tuple[tuple[ContextGap, ...], tuple[ContextGap, ...]]:
    """The gaps to serve and those to give up, without gaps that were served or whose agent has a payload to read."""
    history = records(state.get("injection_history"))
    served = {record.gap_id for record in history if record.status == "injected"}
    reading = {payload.get("agent") for payload in unread_payloads(state, turns)}
    escalated = {record.need for record in history if record.escalated}
    tries: dict[str, int] = {}
    failed: dict[str, int] = {}
    for record in history:
        tries[record.need] = tries.get(record.need, 0) + record.attempts
        failed[record.need] = failed.get(record.need, 0) + record.failed
    if len(reading) >= WAITING_LIMIT:
        return (), ()
    open_now = [gap for gap in gaps if gap.gap_id not in served and gap.agent not in reading]
    exhausted = {
        gap.need for gap in open_now if tries.get(gap.need, 0) >= max_attempts or failed.get(gap.need, 0) >= MOST_FAILED
    }
    return (
        tuple(gap for gap in open_now if gap.need not in exhausted),
        tuple(gap for gap in open_now if gap.need in exhausted and gap.need not in escalated),
    )


def injected_keys(state: State, agent: str, in_view: Sequence[Turn]) -> set[str]:
    """Keys of the contexts injected for the agent while these turns were in its view."""
    ids = {"", *(turn.id for turn in in_view)}
    own = (record for record in records(state.get("injection_history")) if record.agent == agent)
    return {key for record in own if record.after in ids for key in record.keys}
