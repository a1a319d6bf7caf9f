"""What sources that search the state themselves have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph_scrum_master.blocking import off_loop
from langgraph_scrum_master.model import ContextSource, Query, RetrievedContext
from langgraph_scrum_master.rank.embedders import embedder_for
from langgraph_scrum_master.rank.relevance import relevance


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A text that a source could offer."""

    content: str
    key: str = ""
    title: str = ""
    created_at: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


async def scored(source: ContextSource, query: Query, pieces: Iterable[Piece]) -> list[RetrievedContext]:
    """The best pieces as contexts, scored off the event loop."""
    offered = [piece for piece in pieces if piece.content.strip()]
    if not offered:
        return []
    scores = await off_loop(_scores, query.text, [f"{p.title}\n{p.content}" for p in offered])
    best = sorted(zip(scores, offered, strict=True), key=lambda pair: (-pair[0], pair[1].key))[: query.k]
    return [
        RetrievedContext(
            source=source,
            content=piece.content,
            relevance_score=score,
            metadata=piece.metadata,
            retrieved_at=query.now,
            key=piece.key,
            title=piece.title,
            created_at=piece.created_at,
        )
        for score, piece in best
    ]


def _scores(text: str, candidates: Sequence[str]) -> list[float]:
    return relevance(text, candidates, embedder_for("static"))
