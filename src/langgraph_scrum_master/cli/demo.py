"""Loads and runs the example graph of the delivery team."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master.errors import ScrumMasterError
from langgraph_scrum_master.model import InjectionResult
from langgraph_scrum_master.team.history import CONTEXT_KEY

FROZEN = 1772452800.0
"""The demo's clock is fixed, so that its output is the same every time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Plain):
    """One turn of a node: who, and what it said or did."""

    who: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Playback(Plain):
    """A run of the graph, and how it ended."""

    steps: tuple[Step, ...]
    ending: str
    passed: bool
    result: InjectionResult | None = None
    text: str = ""


def load_team() -> ModuleType:
    """The example's module: from the installed package, or from the repository."""
    package = Path(__file__).parents[1]
    for folder in (package / "graphs", package.parents[1] / "graphs"):
        path = folder / "delivery_team.py"
        if path.is_file() and (spec := spec_from_file_location("delivery_team", path)) and spec.loader:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise ScrumMasterError(f"the example graph delivery_team.py is not installed beside {str(package)!r}")


def play(team: ModuleType, master: Any) -> Playback:
    """Run the team's graph until it ends or the step limit stops it."""
    graph = team.build(master).compile()
    steps: list[Step] = []
    result: InjectionResult | None = None
    text, passed = "", False
    try:
        for update in graph.stream(
            {"messages": [("user", team.TASK)]}, {"recursion_limit": team.STEP_LIMIT}, stream_mode="updates"
        ):
            (who, written), *_ = update.items()
            written = written or {}
            steps.append(Step(who=who, said=_summary(written)))
            result = written.get("injection_result", result)
            text = (written.get(CONTEXT_KEY) or {}).get("text", text)
            passed = written.get("gate_passed", passed)
        ending = steps[-1].said
    except RecursionError:
        ending = f"Stopped at the step limit of {team.STEP_LIMIT}: the developer never got an answer."
    return Playback(steps=tuple(steps), ending=ending, passed=passed, result=result, text=text)


def _summary(written: dict[str, Any]) -> str:
    if "messages" in written:
        return str(written["messages"][-1].text)
    if "sm_output" in written:
        return str(written["sm_output"].processing_notes)
    return "the context was read: cleared" if written else "nothing to do"
