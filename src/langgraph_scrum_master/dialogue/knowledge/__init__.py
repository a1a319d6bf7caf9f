"""A knowledge base: documents are chunked, stored, searched, reranked and formatted."""

from __future__ import annotations

from langgraph_scrum_master.dialogue.knowledge.base import KnowledgeBase
from langgraph_scrum_master.dialogue.knowledge.documents import Document, SearchResult, format_chunk

__all__ = ["Document", "KnowledgeBase", "SearchResult", "format_chunk"]
