"""Scores texts that are not in a memory, for sources that read the state or files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.threads import off_loop
from langgraph_scrum_master.model import ContextSource, Query, RetrievedContext
from langgraph_scrum_master.rank.answers import answers_among
from langgraph_scrum_master.rank.embedders import embedder_for
from langgraph_scrum_master.text.terms import terms


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


async def scored(
    source: ContextSource, query: Query, read: Callable[..., Iterable[Piece | Exception]], *args: Any
) -> list[Any]:
    """The best of the pieces that `read` yields, as contexts. They are read and scored off the event loop.

    Pieces that could not be read follow as the exceptions that they raised.
    """
    return await off_loop(_scored, source, query, read, *args)


def attempt(make: Callable[..., Iterable[Piece]], *args: Any) -> Iterator[Piece | Exception]:
    """The pieces of one thing of the host; the exception instead if a type of the host raises one."""
    try:
        yield from list(make(*args))
    except BaseException as error:
        yield recordable(error)


def _scored(
    source: ContextSource, query: Query, read: Callable[..., Iterable[Piece | Exception]], *args: Any
) -> list[Any]:
    pieces = list(read(*args))
    problems = [piece for piece in pieces if isinstance(piece, Exception)]
    whole = [piece for piece in pieces if isinstance(piece, Piece) and piece.content.strip()]
    candidates = _most_promising(query, [part for piece in whole for part in _parts(piece)])
    if not candidates:
        return problems
    scores = _scores(query, [f"{piece.title}\n{piece.content}" for piece in candidates])
    best = sorted(_resolved(candidates, scores), key=lambda pair: (-pair[0], pair[1].key))[: query.k]
    contexts = [
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
    return [*contexts, *problems]


def _parts(piece: Piece) -> Iterator[Piece]:
    """The piece, in parts of at most `_LONGEST` characters, which end with a line where there is one."""
    text, start = piece.content, 0
    while len(text) - start > _LONGEST:
        end = text.rfind("\n", start + _LONGEST // 2, start + _LONGEST) + 1 or start + _LONGEST
        yield replace(piece, content=text[start:end], key=f"{piece.key}#{start}" if start and piece.key else piece.key)
        start = end
    yield replace(piece, content=text[start:], key=f"{piece.key}#{start}" if piece.key else "") if start else piece


def _most_promising(query: Query, pieces: list[Piece]) -> list[Piece]:
    """The pieces; of more than can be scored in time, those with most of the query's rare words."""
    if sum(len(piece.content) for piece in pieces) <= _MOST:
        return pieces
    wanted = list(dict.fromkeys(terms(query.text)))
    present = [[*map(f"{piece.title}\n{piece.content}".lower().__contains__, wanted)] for piece in pieces]
    rarity = [1 / max(1, sum(column)) for column in zip(*present, strict=True)]
    scores = [sum(compress(rarity, row)) for row in present]
    size, kept = 0, set()
    for i in sorted(range(len(pieces)), key=lambda i: (-scores[i], len(pieces[i].content))):
        size += len(pieces[i].content)
        if size > _MOST:
            break
        kept.add(i)
    return [piece for i, piece in enumerate(pieces) if i in kept]


_LONGEST = 20_000
"""Maximum characters of a text that is scored as one, by hand."""

_MOST = 500_000
"""Maximum characters that are scored, by hand: about a second."""


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
