"""Builds the prompt of each dialogue turn from instructions, history, entities and documents within a token limit.

Entry point: `PromptAssembler`. Call path: `session` reads the messages, `entities` and `knowledge` retrieve context,
`budgets` allocates tokens to the sections, `history` and `compress` fit each section to its budget, `assembly` fits the
whole prompt, `prompt` and `chat` render it as text and messages, `records` and `turn_store` store what it contained.
"""

from langgraph_scrum_master._internal.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
