"""Context for agents of a team: notices that one lacks something, finds it, and delivers it through the graph state."""

from langgraph_scrum_master._internal.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
