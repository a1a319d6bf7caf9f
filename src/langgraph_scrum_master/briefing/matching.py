"""How well lessons match what a session is about: BM25 of SQLite's full-text search, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from langgraph_scrum_master.briefing.bank import Lesson, Warn
from langgraph_scrum_master.text.terms import STOP_WORDS, plain_words

if TYPE_CHECKING:
    from sqlite3 import Connection

_MOST_WORDS = 300
"""Words of a query that are looked for."""

# Stemmed: a session on parsing is one for parsers.
_SCHEMA = """
CREATE VIRTUAL TABLE entries_fts USING fts5(
    name, description, category, metadata_text, content_hash UNINDEXED, tokenize = 'porter unicode61'
)
"""


def build_fts_index(entries: Sequence[Lesson], warn: Warn) -> Connection | None:
    """An index of the entries that is gone with its connection; None where SQLite or its FTS5 is missing."""
    try:
        import sqlite3
    except ImportError as error:
        warn(f"relevance does not count, SQLite is missing: {error}")
        return None
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    try:
        connection.execute(_SCHEMA)
        connection.executemany("INSERT INTO entries_fts VALUES (?, ?, ?, ?, ?)", map(_row, entries))
    except sqlite3.Error as error:
        connection.close()
        warn(f"relevance does not count, SQLite has no FTS5: {error}")
        return None
    return connection


def score_relevance(context_query: str, connection: Connection) -> dict[str, float]:
    """The entries that match by their hash, from 0 to 1 for the best one; nothing if none does."""
    if not (query := match_query(context_query)):
        return {}
    # Where FTS5 finds a better match it gives a lower number.
    found = "SELECT content_hash, -bm25(entries_fts) FROM entries_fts WHERE entries_fts MATCH ?"
    scores: dict[str, float] = dict(connection.execute(found, (query,)).fetchall())
    best = max(scores.values(), default=0.0)
    return {key: score / best for key, score in scores.items()} if best > 0 else {}


def match_query(context_query: str) -> str:
    """The query's words, any of which may match, without those that say nothing unless there are no others."""
    # In lower case, as AND, OR and NOT mean something else.
    words = [word.lower() for word in plain_words(context_query)]
    telling = [word for word in words if word not in STOP_WORDS] or words
    return " OR ".join(telling[:_MOST_WORDS])


def _row(entry: Lesson) -> tuple[str, str, str, str, str]:
    return entry.name, entry.description, entry.category, "\n".join(entry.details), entry.content_hash
