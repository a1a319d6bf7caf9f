"""A backend over a third-party store that has its own search; its results are ranked here."""

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
    names_of,
    references_of,
    session_of,
)
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.embedders import embedder_for
from langgraph_scrum_master.text.references import canonical
from langgraph_scrum_master.text.terms import terms


class ForeignBackend(Backend):
    """Ranks the results of another store. The results are the corpus: there are no statistics of the whole store."""

    embedder: str | Embedder = "static"

    @abstractmethod
    def nearest(self, kind: Kind, query: str, limit: int) -> list[Record]:
        """About `limit` records of a kind that may match the query."""

    @abstractmethod
    def since(self, kind: Kind, session: str, since: float) -> list[Record]:
        """The records of a session, or created since, newest first."""

    @abstractmethod
    def having(self, kind: Kind, wanted: Mapping[str, str]) -> list[Record]:
        """The records of a kind whose metadata have all of these values, newest first."""

    def open(self) -> None:
        """Load the embedder and the ranking code."""
        from langgraph_scrum_master.rank.relevance import relevance

        relevance("warm", ["warm"], embedder_for(self.embedder))

    def close(self) -> None:
        """Do nothing: the owner of the store closes it."""

    def ranked(self, kinds: Sequence[Kind], query: str, limit: int, k: int | None) -> list[Ranked]:
        """The records that match the query best, of those that the store finds."""
        records = [record for kind in kinds for record in self.nearest(kind, query, limit)]
        return sorted(self._rank(query, records), key=_best_first)[:k]

    def answering(
        self, kinds: Sequence[Kind], need: str, around: Sequence[tuple[str, float]], limit: int, k: int
    ) -> list[Ranked]:
        """The records that most likely answer the need, of those that the store finds."""
        from langgraph_scrum_master.rank.answers import answers_among

        context = "\n".join((need, *(text for text, _ in around)))
        by_key = {
            (kind, record.key): record
            for kind in kinds
            for query in dict.fromkeys((need, context))
            for record in self.nearest(kind, query, limit)
        }
        records = list(by_key.values())
        matches = answers_among(need, around, [record.text for record in records], embedder_for(self.embedder))
        ranked = [Ranked(record, match) for record, match in zip(records, matches, strict=True)]
        return sorted(ranked, key=_best_first)[:k]

    def recent(self, query: str, session: str, since: float, limit: int) -> list[Ranked]:
        """The newest records of the session, or created since, newest first, compared with the query."""
        records = [record for kind in SEARCHED for record in self.since(kind, session, since)[:limit]]
        return self._rank(query, sorted(records, key=created_of, reverse=True)[:limit])

    def matching(self, query: str, wanted: Mapping[str, str], limit: int) -> list[Ranked]:
        """The newest memories whose metadata have these values, compared with the query."""
        return self._rank(query, self.having("memory", wanted)[:limit])

    def embedded(self, texts: Sequence[str]) -> list[list[float]]:
        """A unit vector for each text."""
        return embedded(texts, embedder_for(self.embedder))

    def _rank(self, query: str, records: Sequence[Record]) -> list[Ranked]:
        from langgraph_scrum_master.rank.relevance import relevance

        related = self._related() if records else {}
        matches = relevance(
            query,
            [record.text for record in records],
            embedder_for(self.embedder),
            sessions=[session_of(record) for record in records],
            linked=[
                [*references_of(record), *(other for name in names_of(record) for other in related.get(name, ()))]
                for record in records
            ],
            keys=[record.key for record in records],
        )
        return [Ranked(record, match) for record, match in zip(records, matches, strict=True)]

    def _related(self) -> dict[str, list[str]]:
        """The names that relationships link each name with."""
        links: dict[str, list[str]] = {}
        for record in self.every("relationship"):
            one, other = (canonical(str(record.data.get(end))) for end in ("source", "target"))
            if one != other:
                links.setdefault(one, []).append(other)
                links.setdefault(other, []).append(one)
        return links


def most_matching(records: list[Record], query: str, limit: int) -> list[Record]:
    """The `limit` records that have most of the query's words."""
    if len(records) <= limit:
        return records
    wanted = terms(query)
    return nlargest(limit, records, key=lambda record: sum(map(record.text.lower().__contains__, wanted)))


def _best_first(ranked: Ranked) -> tuple[float, str]:
    return -ranked.match.score, ranked.record.key
