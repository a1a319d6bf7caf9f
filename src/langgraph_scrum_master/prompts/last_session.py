"""The summary of the last session, and the turns of earlier sessions that are about the query."""

from __future__ import annotations

import re
from collections.abc import Iterable

from langgraph_scrum_master._internal.breakers import origin_of
from langgraph_scrum_master.memory.records import MemoryResult
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.prompts.divergence import own_turns
from langgraph_scrum_master.prompts.similar import SHARED_TERMS, shared_terms
from langgraph_scrum_master.protocols import MemoryStore, SessionMemory, State
from langgraph_scrum_master.text.terms import terms

TURN = "turn"
"""The source of a turn of an earlier session: hints are made of it, and it is not shown itself."""

_MANY = 3
"""Shared terms that suffice. Two do if they are half of the prompt's terms, and the prompt has this many. By hand."""

_GOES_ON = re.compile(
    r"\b(?:continue|resume|carry on|pick up|left off|last (?:time|session)|yesterday|weitermachen|mach(?:e|en)? weiter"
    r"|weiter|gestern|letztes mal|continu(?:er|ons|ar|amos|emos|iamo|a)|repren(?:ds|ons|dre)|ayer|ieri|ontem)\b"
    r"|продолж|вчера|继续|昨天|続き|続け|昨日|계속|어제",
    re.I,
)


class SessionSource:
    """The summary of the session that ended last; with `precise`, if the query is about that session."""

    name = "session"

    def __init__(self, memory: SessionMemory, precise: bool = False) -> None:
        self._memory = memory
        self._precise = precise
        self.origin = origin_of(memory)

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """The summary as a context, if there is one, and the turns that are about the query."""
        summary = await self._memory.last_session(query.session)
        if summary is None or not summary.content.strip():
            return []
        if not self._precise:
            return [_context(query, summary, self.name)]
        turns = await _earlier_turns(self._memory, query)
        session = summary.metadata.get("session")
        wanted = any(each.metadata.get("session") == session for each in turns) or await self._goes_on(query)
        contexts = [_context(query, each, TURN) for each in turns]
        return [_context(query, summary, self.name), *contexts] if wanted else contexts

    async def _goes_on(self, query: Query) -> bool:
        """Whether the first prompt of a session refers to earlier work without saying which."""
        return bool(_GOES_ON.search(query.text)) and not await own_turns(self._memory, query, 1)


async def _earlier_turns(memory: MemoryStore, query: Query) -> list[MemoryResult]:
    """Turns of other sessions with several terms of the query, best first.

    Scores do not count: the words of a topic that the user often works on are frequent, and say little by their idf.
    """
    asked = frozenset(terms(query.text))
    found = await memory.search_similar(query.text, k=query.k)
    others = [each for each in found if each.metadata.get("session") not in (None, "", query.session)]
    return [each for each in others if each.metadata.get("kind") == "memory" and _related(each.content, asked)]


def _related(turn: str, asked: frozenset[str]) -> bool:
    """Whether a turn is about the same. A prompt that is merely repeated, such as "run the tests", is about no work."""
    shared = shared_terms(turn, asked)
    enough = shared >= _MANY or (shared >= SHARED_TERMS and 2 * shared >= len(asked) >= _MANY)
    return enough and bool(set(terms(turn)) - asked)


def _context(query: Query, result: MemoryResult, source: str) -> RetrievedContext:
    return RetrievedContext(
        source=source,
        content=result.content,
        relevance_score=result.score,
        metadata=result.metadata,
        retrieved_at=query.now,
        key=result.key,
        created_at=str(result.metadata.get("created_at", "")),
    )
