"""Quality gates that turned work back."""

from __future__ import annotations

from langgraph_scrum_master.model import Gate
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.shapes import items_of, read, text_of, truthy


def read_gates(state: State) -> tuple[Gate, ...]:
    """The gates that block now: by the state's flag, or the latest word of each gate by name."""
    latest = {text_of(read(result, "gate_name")): result for result in items_of(state.get("gate_results"))}
    failed = [
        Gate(name=name, reason=text_of(read(result, "reason")))
        for name, result in latest.items()
        if read(result, "passed") is False
    ]
    if truthy(state.get("gate_blocked")) and (reason := text_of(state.get("gate_failure"))):
        failed = [Gate(name="", reason=reason), *(gate for gate in failed if gate.reason != reason)]
    return tuple(failed)
