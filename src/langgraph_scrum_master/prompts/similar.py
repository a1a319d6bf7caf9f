"""Memories that are similar to a query, or that answer it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langgraph_scrum_master._internal.breakers import origin_of
from langgraph_scrum_master.memory.records import MemoryResult
from langgraph_scrum_master.model import Query, RetrievedContext
from langgraph_scrum_master.protocols import MemoryStore, State
from langgraph_scrum_master.retrieval.sources.memory import answers_in, remembered
from langgraph_scrum_master.text.passages import neighbouring_terms
from langgraph_scrum_master.text.terms import terms

SHARED_TERMS = 2
"""Content words of the prompt that a memory must have in two neighbouring sentences. `benchmarks/bench_noise.py` prints
what other values let through."""


class SimilarSource:
    """The results of one search over all kinds of records; with `precise`, those that are about the query."""

    name = "memory"

    def __init__(self, memory: MemoryStore, precise: bool = False) -> None:
        self._memory = memory
        self._precise = precise
        self.origin = origin_of(memory)

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        """The `query.k` best, with the store's own scores."""
        if self._precise:
            return [remembered(query, result) for result in await results_about(self._memory, query)]
        return [remembered(query, result) for result in await self._memory.search_similar(query.text, k=query.k)]


async def results_about(memory: MemoryStore, query: Query) -> Sequence[MemoryResult]:
    """The memories that may answer the query and have several of its words in one place, with the score of an answer.

    An instruction to a coding agent is no question: most share a word with some memory, and need none.
    """
    wanted = frozenset(terms(query.text))
    answers = await answers_in(memory, query)
    return [each for each in answers if enough(shared_terms(each.content, wanted), len(wanted))]


def shared_terms(text: str, wanted: frozenset[str]) -> int:
    """The number of these terms in two neighbouring sentences of the text."""
    return max((len(wanted & each) for each in neighbouring_terms(text)), default=0)


def enough(shared: int, asked: int, least: int = SHARED_TERMS) -> bool:
    """Whether a text has enough of a prompt's terms, of which there are `asked`."""
    return shared >= min(least, asked)
