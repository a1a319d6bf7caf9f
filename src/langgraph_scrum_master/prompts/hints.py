"""Hints on when memories were made: within the last hour, yesterday, at the same time of day, on the same weekday.

E2 decides what is recent. E3 is the mean of time of day and weekday and does not say which of them is near, so that
its two parts are compared here, by the same function.
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
"""The strength in E2 above which a memory is from the last hour."""

SAME_TIME = float(nearness(2 * _HOUR, DAY))
"""Moments within two hours of each other are the same time of day."""

TOPIC = 3
"""Words that name what a memory is about."""

LONGEST_TITLE = 8
"""Words of its title that do."""


def hints(query: Query, memories: Sequence[RetrievedContext], zone: tzinfo) -> list[RetrievedContext]:
    """What can be said of the times of these memories, best first, each kind once."""
    # The hint of the best memory comes last, and replaces others of its kind.
    found = dict(hint for memory in reversed(memories) for hint in _hints(query, memory, zone))
    told = {kind: found[kind] for kind in _KINDS if kind in found}
    return [
        RetrievedContext(
            source="hint",
            content=text,
            relevance_score=0.0,
            retrieved_at=query.now,
            key=f"hint:{kind}",
            title=text,
        )
        for kind, text in told.items()
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
    """The strength in E2, also where the memory's store did not give it."""
    known = memory.strengths.get(RECENT.code)
    return round(float(freshness(age)), DIGITS) if known is None else known


def _topic(query: Query, memory: RetrievedContext) -> str:
    """Its title, or the words that it shares with the query, or its first ones."""
    if memory.title:
        return " ".join(memory.title.split()[:LONGEST_TITLE])
    asked = {stem(word) for word in words(query.text)}
    said = list(dict.fromkeys(words(memory.content)))
    shared = [word for word in said if stem(word) in asked]
    return " ".join((shared or said)[:TOPIC]) or "this"
