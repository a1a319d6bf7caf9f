"""Gates and reviewers that turn work back in a message."""

from __future__ import annotations

import re

from langgraph_scrum_master.model import Gate, Turn
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning

_LOOKED_AT = 2_000
"""Characters of a message that are looked at."""

_SIGNS = ("fail", "reject", "blocked", "changes", "turned back", "not approved", "not passed")
_TURNED_BACK = re.compile(
    r"^\W*(?:\w+ )?(?:quality )?(?:gate|check|review)\b[^.:\n]{0,40}?\b(?:failed|fails|blocked|rejected|not passed)\b"
    r"|^\W*(?:rejected|failed|changes requested|request(?:ing)? changes|turned back|not approved)\b",
    re.I | re.M,
)


class SpokenGates:
    """The gates that turned work back in a message, and have not let it through since."""

    __slots__ = ("_own_turns", "_speaker", "_tuning", "by_gate")

    def __init__(self, tuning: DetectionTuning = DEFAULT_DETECTION) -> None:
        self._tuning = tuning
        self.by_gate: dict[str, Gate] = {}
        self._own_turns: dict[str, int] = {}
        self._speaker = ""
        """The agent that spoke last."""

    def add(self, turn: Turn) -> None:
        """Take in the next turn."""
        if turn.kind not in ("agent", "tool"):
            return
        if self.by_gate:
            self._let_through(turn)
        if self._speaker not in ("", turn.agent) and (start := _turned_back(turn.text)) >= 0:
            self._turn_back(turn, start)
        if turn.kind == "agent":
            self._speaker = turn.agent

    def forget(self, turn: Turn) -> None:
        """Drop what was said in a turn that is out of the window."""
        if (gate := self.by_gate.get(turn.agent)) is not None and gate.turn == turn.id:
            del self.by_gate[turn.agent]

    def _turn_back(self, turn: Turn, start: int) -> None:
        from langgraph_scrum_master.team.observe.gates import is_unnamed, missing_in

        said = turn.text[start:_LOOKED_AT]
        if missing := tuple(missing_in(said)):
            gate = Gate(
                name=turn.agent,
                reason=said,
                missing=missing,
                agent=self._speaker,
                turn=turn.id,
                unnamed=is_unnamed(missing),
            )
            self.by_gate[turn.agent], self._own_turns[turn.agent] = gate, 0

    def _let_through(self, turn: Turn) -> None:
        from langgraph_scrum_master.team.observe.gates import FAIL, PASS

        if turn.agent in self.by_gate and PASS.search(turn.text) and not FAIL.search(turn.text):
            del self.by_gate[turn.agent]
        for name, gate in list(self.by_gate.items()):
            if turn.agent == gate.agent:
                self._own_turns[name] += 1
                if self._own_turns[name] >= self._tuning.gate_turns:
                    del self.by_gate[name]


def _turned_back(text: str) -> int:
    """Where a text says that work was turned back; -1 if it does not, as most do not."""
    lowered = text[:_LOOKED_AT].lower()
    if not any(map(lowered.__contains__, _SIGNS)):
        return -1
    said = _TURNED_BACK.search(text, 0, _LOOKED_AT)
    return said.start() if said else -1
