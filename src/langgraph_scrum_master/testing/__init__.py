"""Helpers to test your own agents, graphs and plugs; imported lazily."""

import sys

from langgraph_scrum_master._internal.lazy import lazy_exports

if "pytest" in sys.modules:
    # So that failing assertions show their values.
    sys.modules["pytest"].register_assert_rewrite(f"{__name__}.conformance", f"{__name__}.plugs")

__getattr__, __dir__ = lazy_exports(__name__, __file__)
