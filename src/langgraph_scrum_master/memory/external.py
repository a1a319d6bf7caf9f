"""A backend over a store of somebody else's, which searches by itself: what it finds is ranked here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from heapq import nlargest

from langgraph_scrum_master.memory.backend import Backend
from langgraph_scrum_master.memory.records import (
    SEARCHED,
    Kind,
    Ranked,
    Record,
    created_of,
    embedded,
    linked,
    names_of,
    session_of,
)
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.embedders import embedder_for
from langgraph_scrum_master.text.references import canonical
from langgraph_scrum_master.text.terms import terms


class ForeignBackend(Backend):
    """Ranks what the store finds against itself: there are no statistics of all that the store holds."""

    embedder: str | Embedder = "static"

    @abstractmethod
    def nearest(self, kind: Kind, query: str, limit: int) -> list[Record]:
        """About `limit` records of a kind that may serve the query."""

    @abstractmethod
    def since(self, kind: Kind, session: str, since: float) -> list[Record]:
        """The records of a session, or made since, newest first."""

    @abstractmethod
    def having(self, kind: Kind, wanted: Mapping[str, str]) -> list[Record]:
        """The records of a kind whose metadata have all of these values, newest first."""

    def open(self) -> None:
        """Load the embedder and what ranks."""
        from langgraph_scrum_master.rank.relevance import relevance

        relevance("warm", ["warm"], embedder_for(self.embedder))

    def close(self) -> None:
        """Nothing: the store is its owner's to close."""

    def ranked(self, kinds: Sequence[Kind], query: str, limit: int, k: int | None) -> list[Ranked]:
        """The records that serve the query best, of those that the store finds."""
        found = [record for kind in kinds for record in self.nearest(kind, query, limit)]
        return sorted(self._matched(query, found), key=_best_first)[:k]

    def answering(
        self, kinds: Sequence[Kind], need: str, around: Sequence[tuple[str, float]], limit: int, k: int
    ) -> list[Ranked]:
        """The records that most likely answer the need, of those that the store finds."""
        from langgraph_scrum_master.rank.answers import answers_among

        said = "\n".join((need, *(text for text, _ in around)))
        found = {
            (kind, record.key): record
            for kind in kinds
            for query in dict.fromkeys((need, said))
            for record in self.nearest(kind, query, limit)
        }
        records = list(found.values())
        matches = answers_among(need, around, [record.text for record in records], embedder_for(self.embedder))
        ranked = [Ranked(record, match) for record, match in zip(records, matches, strict=True)]
        return sorted(ranked, key=_best_first)[:k]

    def recent(self, query: str, session: str, since: float, limit: int) -> list[Ranked]:
        """The newest records of the session, or made since, newest first, compared with the query."""
        found = [record for kind in SEARCHED for record in self.since(kind, session, since)[:limit]]
        return self._matched(query, sorted(found, key=created_of, reverse=True)[:limit])

    def matching(self, query: str, wanted: Mapping[str, str], limit: int) -> list[Ranked]:
        """The newest memories whose metadata have these values, compared with the query."""
        return self._matched(query, self.having("memory", wanted)[:limit])

    def embedded(self, texts: Sequence[str]) -> list[list[float]]:
        """A unit vector for each text."""
        return embedded(texts, embedder_for(self.embedder))

    def _matched(self, query: str, found: Sequence[Record]) -> list[Ranked]:
        from langgraph_scrum_master.rank.relevance import relevance

        related = self._related() if found else {}
        matches = relevance(
            query,
            [record.text for record in found],
            embedder_for(self.embedder),
            sessions=[session_of(record) for record in found],
            linked=[
                [*linked(record), *(other for name in names_of(record) for other in related.get(name, ()))]
                for record in found
            ],
            keys=[record.key for record in found],
        )
        return [Ranked(record, match) for record, match in zip(found, matches, strict=True)]

    def _related(self) -> dict[str, list[str]]:
        """What relationships link each name with."""
        found: dict[str, list[str]] = {}
        for record in self.every("relationship"):
            one, other = (canonical(str(record.data.get(end))) for end in ("source", "target"))
            if one != other:
                found.setdefault(one, []).append(other)
                found.setdefault(other, []).append(one)
        return found


def wordiest(records: list[Record], query: str, most: int) -> list[Record]:
    """The records that have most of the query's words, if there are too many to rank."""
    if len(records) <= most:
        return records
    wanted = terms(query)
    return nlargest(most, records, key=lambda record: sum(map(record.text.lower().__contains__, wanted)))


def _best_first(ranked: Ranked) -> tuple[float, str]:
    return -ranked.match.score, ranked.record.key
