"""What users need to test their own graphs."""

from __future__ import annotations

import sys

from langgraph_scrum_master.testing.scripted import ScriptedChatModel

__all__ = ["ScriptedChatModel"]

if "pytest" in sys.modules:
    # So that a rule that is not kept is told with its values.
    sys.modules["pytest"].register_assert_rewrite(f"{__name__}.conformance")
