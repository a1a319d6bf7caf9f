"""Relevance of lessons to a query: BM25 in an in-memory FTS5 index of SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from langgraph_scrum_master.briefing.bank import Lesson, Warn
from langgraph_scrum_master.text.terms import STOP_WORDS, plain_words

if TYPE_CHECKING:
    from sqlite3 import Connection

_MAX_WORDS = 300
"""The maximum number of words in a query."""

# Stemmed: "parsing" matches "parser".
_SCHEMA = """
CREATE VIRTUAL TABLE entries_fts USING fts5(
    name, description, category, metadata_text, content_hash UNINDEXED, tokenize = 'porter unicode61'
)
"""


def build_fts_index(entries: Sequence[Lesson], warn: Warn) -> Connection | None:
    """An index of the entries, in memory. None if SQLite or FTS5 is missing."""
    try:
        import sqlite3
    except ImportError as error:
        warn(f"relevance is inactive, SQLite is missing: {error}")
        return None
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        connection.execute(_SCHEMA)
        connection.executemany("INSERT INTO entries_fts VALUES (?, ?, ?, ?, ?)", map(_row, entries))
    except sqlite3.Error as error:
        connection.close()
        warn(f"relevance is inactive, SQLite has no FTS5: {error}")
        return None
    return connection


def score_relevance(context_query: str, connection: Connection) -> dict[str, float]:
    """The scores of matching entries by hash, normalised so that the best is 1."""
    if not (query := match_query(context_query)):
        return {}
    # bm25() is lower for better matches.
    statement = "SELECT content_hash, -bm25(entries_fts) FROM entries_fts WHERE entries_fts MATCH ?"
    scores: dict[str, float] = dict(connection.execute(statement, (query,)).fetchall())
    best = max(scores.values(), default=0.0)
    return {key: score / best for key, score in scores.items()} if best > 0 else {}


def match_query(context_query: str) -> str:
    """An FTS5 query that matches any of the words. Stop words are dropped unless there are no others."""
    # Lowercase: AND, OR and NOT are operators.
    words = [word.lower() for word in plain_words(context_query)]
    content_words = [word for word in words if word not in STOP_WORDS] or words
    return " OR ".join(content_words[:_MAX_WORDS])


def _row(entry: Lesson) -> tuple[str, str, str, str, str]:
    return entry.name, entry.description, entry.category, "\n".join(entry.details), entry.content_hash
