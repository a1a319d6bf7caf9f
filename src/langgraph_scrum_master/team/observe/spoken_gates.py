"""Gates and reviewers that reject work in a message."""

from __future__ import annotations

import re

from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master.model import Gate, Turn
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning

_LONGEST = 2_000
"""Characters of a message that are read."""

_SIGNS = ("fail", "reject", "blocked", "changes", "turned back", "not approved", "not passed")
_REJECTION = lazy_pattern(
    r"^[^\w\n]*(?:\w+ )?(?:quality )?(?:gate|check|review)\b[^.:\n]{0,40}?\b"
    r"(?:failed|fails|blocked|rejected|not passed)\b"
    r"|^[^\w\n]*(?:rejected|failed|changes requested|request(?:ing)? changes|turned back|not approved)\b",
    re.I | re.M,
)


class SpokenGates:
    """Gates that rejected work in a message and have not passed it since."""

    __slots__ = ("_own_turns", "_speaker", "_tuning", "by_gate")

    def __init__(self, tuning: DetectionTuning = DEFAULT_DETECTION) -> None:
        self._tuning = tuning
        self.by_gate: dict[str, Gate] = {}
        self._own_turns: dict[str, int] = {}
        self._speaker = ""
        """The latest agent to speak."""

    def add(self, turn: Turn) -> None:
        """Process the next turn."""
        if turn.kind not in ("agent", "tool"):
            return
        if self.by_gate:
            self._remove_passed(turn)
        if self._speaker not in ("", turn.agent) and (start := _rejection(turn.text)) >= 0:
            self._add_rejection(turn, start)
        if turn.kind == "agent":
            self._speaker = turn.agent

    def forget(self, turn: Turn) -> None:
        """Drop the gate of a turn that left the window."""
        if (gate := self.by_gate.get(turn.agent)) is not None and gate.turn == turn.id:
            del self.by_gate[turn.agent]

    def _add_rejection(self, turn: Turn, start: int) -> None:
        from langgraph_scrum_master.team.observe.gates import is_unnamed, missing_in

        reason = turn.text[start:_LONGEST]
        if missing := tuple(missing_in(reason)):
            gate = Gate(
                name=turn.agent,
                reason=reason,
                missing=missing,
                agent=self._speaker,
                turn=turn.id,
                unnamed=is_unnamed(missing),
            )
            self.by_gate[turn.agent], self._own_turns[turn.agent] = gate, 0

    def _remove_passed(self, turn: Turn) -> None:
        from langgraph_scrum_master.team.observe.gates import FAIL, PASS

        if turn.agent in self.by_gate and PASS.search(turn.text) and not FAIL.search(turn.text):
            del self.by_gate[turn.agent]
        for name, gate in list(self.by_gate.items()):
            if turn.agent == gate.agent:
                self._own_turns[name] += 1
                if self._own_turns[name] >= self._tuning.gate_turns:
                    del self.by_gate[name]


def _rejection(text: str) -> int:
    """Start of a rejection in the text; -1 if there is none."""
    lowered = text[:_LONGEST].lower()
    if not any(map(lowered.__contains__, _SIGNS)):
        return -1
    match = _REJECTION.search(text, 0, _LONGEST)
    return match.start() if match else -1
