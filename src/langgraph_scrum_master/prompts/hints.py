"""Hints on when memories were created: in the last hour, yesterday, at the same time of day, on the same weekday.

E2 decides what is recent. E3 averages time of day and weekday, so its two parts are computed here separately.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo

from langgraph_scrum_master.model import Query, RetrievedContext, instant
from langgraph_scrum_master.rank.spaces.periodic import DAY, nearness
from langgraph_scrum_master.rank.spaces.recent import DIGITS, SPACE as RECENT, freshness
from langgraph_scrum_master.text.ago import days_between
from langgraph_scrum_master.text.terms import stem, words

_HOUR = 3_600.0

WITHIN_AN_HOUR = round(float(freshness(_HOUR)), DIGITS)
"""Memories of the last hour have a strength above this in E2."""

SAME_TIME = float(nearness(2 * _HOUR, DAY))
"""Times within two hours of each other count as the same time of day."""

TOPIC_WORDS = 3
"""The maximum number of words that describe a memory."""

TITLE_WORDS = 8
"""The maximum number of words from its title."""


def hints(query: Query, memories: Sequence[RetrievedContext], zone: tzinfo) -> list[RetrievedContext]:
    """One hint of each kind on these memories, which are ordered best first."""
    # In reverse, so that the best memory wins.
    texts = dict(hint for memory in reversed(memories) for hint in _hints(query, memory, zone))
    ordered = {kind: texts[kind] for kind in _KINDS if kind in texts}
    return [
        RetrievedContext(
            source="hint",
            content=text,
            relevance_score=0.0,
            retrieved_at=query.now,
            key=f"hint:{kind}",
            title=text,
        )
        for kind, text in ordered.items()
    ]


_KINDS = ("recent", "yesterday", "time of day", "weekday", "session")


def _hints(query: Query, memory: RetrievedContext, zone: tzinfo) -> Iterator[tuple[str, str]]:
    now, created = instant(query.now), instant(memory.created_at)
    age = now - created
    days = days_between(created, now, zone) if created > 0 and age >= 0 else 0
    if days == 1:
        yield "yesterday", "Continuation from yesterday's session"
    if memory.source == "session":
        return
    if query.session and memory.metadata.get("session") == query.session:
        yield "session", f"Earlier in this session: {_topic(query, memory)}"
    if age >= 0 and _freshness(memory, age) > WITHIN_AN_HOUR:
        yield "recent", f"Recent activity (within last hour): {_topic(query, memory)}"
    if days >= 1 and nearness(age, DAY) >= SAME_TIME:
        yield "time of day", f"Same time of day as previous work on {_topic(query, memory)}"
    if days and days % 7 == 0:
        yield "weekday", f"Same weekday as previous work on {_topic(query, memory)}"


def _freshness(memory: RetrievedContext, age: float) -> float:
    """The strength in E2, computed if the store did not return it."""
    known = memory.strengths.get(RECENT.code)
    return round(float(freshness(age)), DIGITS) if known is None else known


def _topic(query: Query, memory: RetrievedContext) -> str:
    """The title of a memory, the words that it shares with the query, or its first words."""
    if memory.title:
        return " ".join(memory.title.split()[:TITLE_WORDS])
    query_stems = {stem(word) for word in words(query.text)}
    memory_words = list(dict.fromkeys(words(memory.content)))
    shared = [word for word in memory_words if stem(word) in query_stems]
    return " ".join((shared or memory_words)[:TOPIC_WORDS]) or "this"
