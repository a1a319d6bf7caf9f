"""Selects the gaps and payloads for the agent whose model is about to be called."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from langgraph_scrum_master._internal.shapes import mapping_of
from langgraph_scrum_master.model import ContextGap, Observation, Turn
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.team.history import since, unread_payloads
from langgraph_scrum_master.team.pipeline import Sighting
from langgraph_scrum_master.team.state import Payload

_BACK_TO = "transfer_back_to_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """An agent that is served for its own gaps and for those of agents that report to it; without a name, for all gaps.

    An agent reports if it is a subagent whose report is a tool result, or a worker that handed back to this agent.
    """

    agent: str = ""
    reasons: Collection[str] | None = None
    """Serve only gaps with these reasons, of the current agent itself; None serves all."""
    talks_to_user: bool = False
    """Whether the agent's output goes to the user; questions that only the user can answer are then left to them."""

    def at_turn(self, state: object) -> State:
        """The state with this agent as the current one: unnamed messages are attributed to it."""
        values = mapping_of(state)
        return {**values, "current_agent": self.agent} if self.agent else values

    def narrow(self, sighting: Sighting) -> Sighting:
        """The sighting with only the gaps that this reader serves."""
        if not self.agent and self.reasons is None and not self.talks_to_user:
            return sighting
        mine = tuple(gap for gap in sighting.gaps if self._serves(gap, sighting.observation))
        return replace(
            sighting,
            gaps=mine,
            given_up=tuple(gap for gap in sighting.given_up if self._serves(gap, sighting.observation)),
            elsewhere=tuple(gap for gap in sighting.gaps if gap not in mine),
        )

    def text(self, state: State, observation: Observation) -> str:
        """The waiting texts for this reader; those of other agents only until the next human message."""
        payloads = [each for each in unread_payloads(state, observation.turns) if self._reads(each, observation.turns)]
        return "\n\n".join(str(payload.get("text", "")) for payload in payloads)

    def _serves(self, gap: ContextGap, observation: Observation) -> bool:
        if self.talks_to_user and gap.whom == "user":
            return False
        if self.reasons is not None:
            return gap.reason in self.reasons and gap.agent == (self.agent or observation.current_agent)
        return self._is_responsible_for(gap.agent, observation.turns)

    def _reads(self, payload: Payload, turns: Sequence[Turn]) -> bool:
        if payload.get("agent") == self.agent:
            return True
        spoke = any(turn.kind == "human" for turn in since(payload, turns))
        return not spoke and self._is_responsible_for(str(payload.get("agent")), turns)

    def _is_responsible_for(self, agent: str, turns: Sequence[Turn]) -> bool:
        return self.agent in ("", agent) or any(turn.agent == agent and self._is_report(turn) for turn in turns)

    def _is_report(self, turn: Turn) -> bool:
        back = (call.name == f"{_BACK_TO}{self.agent}" for call in turn.tool_calls)
        return turn.kind == "agent" and (bool(turn.answers) or any(back))


ANYBODY = Reader()
