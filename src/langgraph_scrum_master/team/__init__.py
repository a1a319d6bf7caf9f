"""Detects that an agent of a team lacks context, retrieves it, and delivers it through the graph's state.

Entry points are `ScrumMaster` and `manage_context_injection`, which build a `pipeline.Pipeline`. Call path in a graph:
`node` → `runtime` → `pipeline` → `observe` → `detect` → `needs` → `retrieval` → `delivery` → `record`. Without a gap a
step ends after `observe` or `detect`. `history` and `state` hold what earlier steps wrote, `outcome` follows what the
agent did with an injection, and `assistant` and `consult` call an optional chat model.
"""

from langgraph_scrum_master._internal.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
