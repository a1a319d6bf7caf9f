"""Adds context to a prompt: related memories, an alert on a change of topic, and the last session's summary.

Entry point: `InjectionPipeline`.
Call path: `similar` (memories), then `divergence` and `last_session` → `priority` (order) → `sections` (token budget) →
`hints` (times) → `markdown` (text) → `PromptResult`.
"""

from langgraph_scrum_master._internal.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
