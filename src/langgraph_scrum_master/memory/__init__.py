"""Memory stores: SQLite, PostgreSQL, a Chroma server, or a LangGraph store."""

from langgraph_scrum_master._internal.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
