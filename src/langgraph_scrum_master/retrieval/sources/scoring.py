"""Scores texts that are not in a memory, for sources that read the state or files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph_scrum_master._internal.threads import off_loop
from langgraph_scrum_master.model import ContextSource, Query, RetrievedContext
from langgraph_scrum_master.rank.answers import answers_among
from langgraph_scrum_master.rank.embedders import embedder_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A candidate text of a source."""

    content: str
    key: str = ""
    title: str = ""
    created_at: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    session: str = ""
    """Pieces of one session are in order, and neighbours support each other."""
    replaced_by: str = ""
    """The key of the piece that replaces this one in the results."""


async def scored(source: ContextSource, query: Query, pieces: Iterable[Piece]) -> list[RetrievedContext]:
    """The best pieces as contexts, scored off the event loop."""
    candidates = [piece for piece in pieces if piece.content.strip()]
    if not candidates:
        return []
    texts = [f"{piece.title}\n{piece.content}" for piece in candidates]
    scores = await off_loop(_scores, query, texts)
    best = sorted(_resolved(candidates, scores), key=lambda pair: (-pair[0], pair[1].key))[: query.k]
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


def _resolved(candidates: Sequence[Piece], scores: Sequence[float]) -> Iterator[tuple[float, Piece]]:
    """Each piece with the best score of itself and the pieces that it replaces."""
    by_key = {piece.key: piece for piece in candidates if piece.key}
    best: dict[int, float] = {}
    for piece, score in zip(candidates, scores, strict=True):
        target: Piece | None = piece
        for _ in range(len(candidates)):
            if target is None or not target.replaced_by:
                break
            target = by_key.get(target.replaced_by)
        if target is not None and not target.replaced_by:
            best[id(target)] = max(score, best.get(id(target), 0.0))
    for piece in candidates:
        if id(piece) in best:
            yield best[id(piece)], piece


def _scores(query: Query, texts: Sequence[str]) -> list[float]:
    return [match.score for match in answers_among(query.text, query.around, texts, embedder_for("static"))]
