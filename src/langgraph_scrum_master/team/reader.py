"""Whose model is about to be called: what of the gaps, and of what waits in the state, is for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from langgraph_scrum_master._internal.shapes import mapping_of
from langgraph_scrum_master.model import ContextGap, Observation, Turn
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.team.history import since, unread
from langgraph_scrum_master.team.pipeline import Sighting
from langgraph_scrum_master.team.state import Payload

_BACK_TO = "transfer_back_to_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """An agent, which gets what it lacks itself, and what those lack that report to it; without a name, anybody.

    Who reports is a subagent whose report came as a tool's answer, or a worker that handed back to this agent. Others
    read for themselves.
    """

    agent: str = ""
    reasons: Collection[str] | None = None
    """Only gaps of these reasons, and of the agent at turn itself; all if None."""
    talks_to_user: bool = False
    """Whether what the agent says goes to the user: then so do questions that only the user can answer."""

    def at_turn(self, state: object) -> State:
        """The state with this agent at turn: what nobody's name stands on is its own."""
        values = mapping_of(state)
        return {**values, "current_agent": self.agent} if self.agent else values

    def narrowed(self, sighting: Sighting) -> Sighting:
        """The sighting with the gaps that are this reader's to serve; those of others are left to others."""
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
        """What waits for this reader; what is another's only until a person speaks, who has it all by then."""
        found = [each for each in unread(state, observation.turns) if self._reads(each, observation.turns)]
        return "\n\n".join(str(payload.get("text", "")) for payload in found)

    def _serves(self, gap: ContextGap, observation: Observation) -> bool:
        if self.talks_to_user and gap.whom == "user":
            return False
        if self.reasons is not None:
            return gap.reason in self.reasons and gap.agent == (self.agent or observation.current_agent)
        return self._is_for_it(gap.agent, observation.turns)

    def _reads(self, payload: Payload, turns: Sequence[Turn]) -> bool:
        if payload.get("agent") == self.agent:
            return True
        spoke = any(turn.kind == "human" for turn in since(payload, turns))
        return not spoke and self._is_for_it(str(payload.get("agent")), turns)

    def _is_for_it(self, agent: str, turns: Sequence[Turn]) -> bool:
        return self.agent in ("", agent) or any(turn.agent == agent and self._is_report(turn) for turn in turns)

    def _is_report(self, turn: Turn) -> bool:
        back = (call.name == f"{_BACK_TO}{self.agent}" for call in turn.tool_calls)
        return turn.kind == "agent" and (bool(turn.answers) or any(back))


ANYBODY = Reader()
