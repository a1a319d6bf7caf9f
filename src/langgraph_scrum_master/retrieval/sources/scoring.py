"""What sources that search the state themselves have in common."""

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
    """A text that a source could offer."""

    content: str
    key: str = ""
    title: str = ""
    created_at: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    session: str = ""
    """Pieces of one session stand in order: neighbours support each other."""
    stands_for: str = ""
    """The key of the piece to offer in its place."""


async def scored(source: ContextSource, query: Query, pieces: Iterable[Piece]) -> list[RetrievedContext]:
    """The best pieces as contexts, scored off the event loop."""
    offered = [piece for piece in pieces if piece.content.strip()]
    if not offered:
        return []
    texts = [f"{piece.title}\n{piece.content}" for piece in offered]
    scores = await off_loop(_scores, query, texts)
    best = sorted(_in_place(offered, scores), key=lambda pair: (-pair[0], pair[1].key))[: query.k]
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


def _in_place(offered: Sequence[Piece], scores: Sequence[float]) -> Iterator[tuple[float, Piece]]:
    """Each piece with its score, or with that of a piece it takes the place of, if that is better."""
    by_key = {piece.key: piece for piece in offered if piece.key}
    best: dict[int, float] = {}
    for piece, score in zip(offered, scores, strict=True):
        shown: Piece | None = piece
        for _ in range(len(offered)):
            if shown is None or not shown.stands_for:
                break
            shown = by_key.get(shown.stands_for)
        if shown is not None and not shown.stands_for:
            best[id(shown)] = max(score, best.get(id(shown), 0.0))
    for piece in offered:
        if id(piece) in best:
            yield best[id(piece)], piece


def _scores(query: Query, texts: Sequence[str]) -> list[float]:
    return [match.score for match in answers_among(query.text, query.around, texts, embedder_for("static"))]
