"""Indexes a project's code, commits, experiences and values, and assembles them for a query.

Entry points: the indexers fill a memory, `ContextAssembler` reads it.
Call path: `ContextAssembler` → `Searcher` (search) → `render` (Markdown) → `fit` (token budget).
In the graph, `learned_sources` offers the same shelves as sources of retrieval.
"""

from langgraph_scrum_master._internal.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
