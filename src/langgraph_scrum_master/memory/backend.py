"""What a memory needs of the place where its records are: blocking calls, which `RecordMemory` makes off the loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph_scrum_master.memory.records import DecisionFilter, Kind, Ranked, Record
from langgraph_scrum_master.protocols import CAPABILITIES, Capability

_EVERY = 10_000
"""How many records are ranked where a filter may leave few of them."""


class Backend(ABC):
    """The records of one shelf of one tenant.

    Calls may block, and come from several threads. What fails may raise anything.
    """

    capabilities: frozenset[Capability] = CAPABILITIES - {"words"}
    """What a memory over it declares."""
    tenant: str
    shelf: str
    """Empty for the memory itself."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is, as errors name it."""

    @abstractmethod
    def elsewhere(self, tenant: str, shelf: str) -> Backend:
        """The backend of another shelf, or of another tenant, in the same place."""

    @abstractmethod
    def put(self, records: Sequence[Record]) -> None:
        """Store the records, in one step; one with the same kind and key is replaced."""

    @abstractmethod
    def drop(self, kinds: Sequence[Kind], keys: Sequence[str]) -> None:
        """Remove the records of these kinds with these keys; those that are not there are passed over."""

    @abstractmethod
    def ranked(self, kinds: Sequence[Kind], query: str, limit: int, k: int | None) -> list[Ranked]:
        """The `k` records that serve the query best, of about the `limit` nearest, best first."""

    @abstractmethod
    def answering(
        self, kinds: Sequence[Kind], need: str, around: Sequence[tuple[str, float]], limit: int, k: int
    ) -> list[Ranked]:
        """The `k` records that most likely answer the need, of about the `limit` nearest, best first."""

    @abstractmethod
    def recent(self, query: str, session: str, since: float, limit: int) -> list[Ranked]:
        """The newest records of the session, or made since, newest first, compared with the query."""

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

    @abstractmethod
    def open(self) -> None:
        """Load what the first search would load."""

    def cured(self, error: Exception, attempt: int) -> bool:
        """Whether what has led to the error was made right, so that the same can be tried again.

        `attempt` is how often it was tried again already.
        """
        return False

    @abstractmethod
    def close(self) -> None:
        """Close files and connections; the next use opens them again."""

    def ranked_by_words(self, kinds: Sequence[Kind], query: str, limit: int, k: int) -> list[Ranked]:
        """The same as `ranked` for a query that cannot be embedded."""
        return self.ranked(kinds, query, limit, k)

    def ranked_shelves(
        self, shelves: Sequence[str], kinds: Sequence[Kind], query: str, limit: int, k: int
    ) -> list[list[Ranked]] | None:
        """What each of these shelves ranks best, in one search as one corpus; None if it cannot be done so."""
        return None

    def ranked_decisions(self, query: str, filters: DecisionFilter) -> list[Ranked]:
        """The decisions that pass the filter, or more, best first."""
        return self.ranked(("decision",), query, _EVERY, None)

    def ranked_patterns(self, query: str, pattern_type: str) -> list[Ranked]:
        """The patterns of a type, or more, best first."""
        return self.ranked(("pattern",), query, _EVERY, None)

    def decisions_by_agent(self, agent_type: str, limit: int) -> list[Record]:
        """The newest decisions of an agent, or more."""
        return self.every("decision")

    def patterns_by_type(self, pattern_type: str) -> list[Record]:
        """The patterns of a type, or more."""
        return self.every("pattern")
