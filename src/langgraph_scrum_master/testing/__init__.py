"""What users need to test their own agents, graphs and plug-ins; loaded when it is used."""

import sys

from langgraph_scrum_master._internal.lazy import lazy_exports

if "pytest" in sys.modules:
    # So that a failing rule is reported with its values.
    sys.modules["pytest"].register_assert_rewrite(f"{__name__}.conformance", f"{__name__}.plugs")

__getattr__, __dir__ = lazy_exports(__name__, __file__)
