"""Hints on when memories were created: in the last hour, yesterday, at the same time of day, on the same weekday.

Turns of earlier sessions about the query also give hints on habits: what the user typically works on at this time.

E2 decides what is recent. E3 averages time of day and weekday, so its two parts are computed here separately.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo

from langgraph_scrum_master.model import Query, RetrievedContext, instant
from langgraph_scrum_master.rank.spaces.periodic import DAY, nearness
from langgraph_scrum_master.rank.spaces.recent import DIGITS, SPACE as RECENT, freshness
from langgraph_scrum_master.text.ago import ago, days_between
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


HABIT_DAYS = 3
"""The days on which the user must have worked on a topic for a habit. By hand."""

HABIT_SHARE = 2 / 3
"""The share of these days on which it was at this time of day. By hand."""

_PARTS_OF_DAY = ((5, "at night"), (12, "in the morning"), (17, "in the afternoon"), (22, "in the evening"))
"""The hour at which each part of the day ends."""


def hints(
    query: Query, memories: Sequence[RetrievedContext], zone: tzinfo, turns: Sequence[RetrievedContext] = ()
) -> list[RetrievedContext]:
    """One hint of each kind on these memories, ordered best first, and on turns of earlier sessions about the query."""
    # In reverse, so that the best memory wins.
    texts = dict(hint for memory in reversed(memories) for hint in _hints(query, memory, zone))
    texts |= dict(_turn_hints(query, turns, zone))
    if "habit" in texts:
        texts.pop("time of day", None)
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


_KINDS = ("recent", "yesterday", "habit", "time of day", "weekday", "session")


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


def _turn_hints(query: Query, turns: Sequence[RetrievedContext], zone: tzinfo) -> Iterator[tuple[str, str]]:
    now = instant(query.now)
    dated = [(created, turn) for turn in turns if 0 < (created := instant(turn.created_at)) <= now]
    if not dated:
        return
    latest, turn = max(dated, key=lambda each: each[0])
    if now - latest < _HOUR:
        yield "recent", f"Recent activity: {_topic(query, turn)}, {ago(latest, now, zone).lower()}"
    yesterday = [turn for created, turn in dated if days_between(created, now, zone) == 1]
    if yesterday:
        yield "yesterday", f"Continues from yesterday's session on {_topic(query, yesterday[0])}"
    days = {datetime.fromtimestamp(created, zone).date() for created, _ in dated}
    part = _part_of_day(now, zone)
    then = [(created, turn) for created, turn in dated if _part_of_day(created, zone) == part]
    days_then = {datetime.fromtimestamp(created, zone).date() for created, _ in then}
    if len(days_then) >= max(HABIT_DAYS, HABIT_SHARE * len(days)):
        last = ago(max(created for created, _ in then), now, zone).lower()
        yield "habit", f"You typically work on {_topic(query, then[0][1])} {part} (last: {last})"


def _part_of_day(moment: float, zone: tzinfo) -> str:
    hour = datetime.fromtimestamp(moment, zone).hour
    return next((name for end, name in _PARTS_OF_DAY if hour < end), _PARTS_OF_DAY[0][1])


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
