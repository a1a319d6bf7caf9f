"""The storage interface under `RecordMemory`, which runs its blocking calls off the event loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from operator import mul
from typing import Any

from langgraph_scrum_master.memory.records import DecisionFilter, Kind, Ranked, Record
from langgraph_scrum_master.protocols import CAPABILITIES, Capability
from langgraph_scrum_master.rank.match import Match

_EVERY = 10_000
"""Records that are ranked before a filter is applied."""


class Backend(ABC):
    """The records of one shelf of one tenant.

    Calls may block, may come from several threads, and may raise any exception.
    """

    capabilities: frozenset[Capability] = CAPABILITIES - {"words"}
    """The capabilities of a memory with this backend."""
    tenant: str
    shelf: str
    """Empty for the memory itself."""

    @property
    @abstractmethod
    def place(self) -> str:
        """The location, for error messages."""

    @property
    def origin(self) -> object:
        """What its calls go to: all memories with the same origin hang together."""
        return self.place

    @abstractmethod
    def elsewhere(self, tenant: str, shelf: str) -> Backend:
        """The backend of another shelf or tenant in the same database."""

    @abstractmethod
    def put(self, records: Sequence[Record]) -> None:
        """Store the records in one step; a record with the same kind and key is replaced."""

    @abstractmethod
    def drop(self, kinds: Sequence[Kind], keys: Sequence[str]) -> None:
        """Remove the records of these kinds with these keys; missing keys are ignored."""

    @abstractmethod
    def ranked(self, kinds: Sequence[Kind], query: str, limit: int, k: int | None) -> list[Ranked]:
        """The `k` records that match the query best, of about the `limit` nearest, best first."""

    @abstractmethod
    def answering(
        self, kinds: Sequence[Kind], need: str, around: Sequence[tuple[str, float]], limit: int, k: int
    ) -> list[Ranked]:
        """The `k` records that most likely answer the need, of about the `limit` nearest, best first."""

    @abstractmethod
    def recent(self, query: str, session: str, since: float, limit: int) -> list[Ranked]:
        """The newest records of the session, or created since, newest first, compared with the query."""

    @abstractmethod
    def matching(self, query: str, wanted: Mapping[str, str], limit: int) -> list[Ranked]:
        """The newest memories whose metadata have all of these values, compared with the query."""

    @abstractmethod
    def keyed(self, keys: Sequence[str]) -> list[Record]:
        """The memories with these keys."""

    @abstractmethod
    def newest(self, kind: Kind) -> Record | None:
        """The newest record of a kind."""

    @abstractmethod
    def every(self, kind: Kind) -> list[Record]:
        """All records of a kind."""

    @abstractmethod
    def notes(self, book: str, keys: Sequence[str] | None) -> dict[str, Any]:
        """The notes in a book; those with these keys, if given."""

    @abstractmethod
    def save_notes(self, book: str, notes: Mapping[str, Any]) -> None:
        """Write notes into a book; those that are None are removed."""

    @abstractmethod
    def embedded(self, texts: Sequence[str]) -> list[list[float]]:
        """A unit vector for each text."""

    def nearest_to(self, vector: Sequence[float], k: int) -> list[Ranked]:
        """The memories nearest to the vector, by cosine. Without an index, all of them are embedded again."""
        records = self.every("memory")
        vectors = self.embedded([record.text for record in records])
        cosines = [sum(map(mul, vector, each)) for each in vectors]
        best = sorted(zip(records, cosines, strict=True), key=lambda pair: -pair[1])[:k]
        return [Ranked(record, Match(min(1.0, max(0.0, cosine)))) for record, cosine in best]

    @abstractmethod
    def open(self) -> None:
        """Load what the first search needs."""

    def cured(self, error: Exception, attempt: int) -> bool:
        """Try to repair the cause of an error, and return whether the call should be retried.

        `attempt` counts the retries so far.
        """
        return False

    @abstractmethod
    def close(self) -> None:
        """Close files and connections; the next use opens them again."""

    def ranked_by_words(self, kinds: Sequence[Kind], query: str, limit: int, k: int) -> list[Ranked]:
        """As `ranked`, for a query that cannot be embedded."""
        return self.ranked(kinds, query, limit, k)

    def ranked_shelves(
        self, shelves: Sequence[str], kinds: Sequence[Kind], query: str, limit: int, k: int
    ) -> list[list[Ranked]] | None:
        """The best records of each of these shelves, searched as one corpus; None if that is not supported."""
        return None

    def ranked_decisions(self, query: str, filters: DecisionFilter) -> list[Ranked]:
        """Decisions, best first; at least those that pass the filter."""
        return self.ranked(("decision",), query, _EVERY, None)

    def ranked_patterns(self, query: str, pattern_type: str) -> list[Ranked]:
        """Patterns, best first; at least those of the type."""
        return self.ranked(("pattern",), query, _EVERY, None)

    def decisions_by_agent(self, agent_type: str, limit: int) -> list[Record]:
        """Decisions; at least the newest ones of the agent."""
        return self.every("decision")

    def patterns_by_type(self, pattern_type: str) -> list[Record]:
        """Patterns; at least those of the type."""
        return self.every("pattern")
