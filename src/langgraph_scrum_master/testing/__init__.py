"""What users need to test their own agents, graphs and plug-ins; loaded when it is used."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langgraph_scrum_master.testing.assertions import (
        assert_abstained as assert_abstained,
        assert_gap as assert_gap,
        assert_injected as assert_injected,
        assert_no_gap as assert_no_gap,
    )
    from langgraph_scrum_master.testing.cases import SnapshotCase as SnapshotCase
    from langgraph_scrum_master.testing.fixed import FixedClock as FixedClock, a_memory as a_memory, a_state as a_state
    from langgraph_scrum_master.testing.scripted import ScriptedChatModel as ScriptedChatModel

_HOMES = {
    "assertions": ("assert_abstained", "assert_gap", "assert_injected", "assert_no_gap"),
    "cases": ("SnapshotCase",),
    "fixed": ("FixedClock", "a_memory", "a_state"),
    "scripted": ("ScriptedChatModel",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_HOME_OF]

if "pytest" in sys.modules:
    # So that a rule that is not kept is told with its values.
    sys.modules["pytest"].register_assert_rewrite(f"{__name__}.conformance", f"{__name__}.plugs")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
