"""What a project has learned: code, commits, experiences and values, indexed and assembled for a query."""

from langgraph_scrum_master._internal.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
