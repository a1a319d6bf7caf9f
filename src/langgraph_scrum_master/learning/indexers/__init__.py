"""Indexers that fill a memory with a project's code, commits, documents and values."""

from __future__ import annotations

from langgraph_scrum_master.learning.indexers.code import index_code
from langgraph_scrum_master.learning.indexers.commits import index_commits
from langgraph_scrum_master.learning.indexers.documents import index_documents
from langgraph_scrum_master.learning.indexers.files import IndexReport
from langgraph_scrum_master.learning.indexers.values import index_values

__all__ = ["IndexReport", "index_code", "index_commits", "index_documents", "index_values"]
