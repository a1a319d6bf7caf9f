"""A query against ledgers and their vectors: the nearest by meaning and by words, ranked in all spaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from langgraph_scrum_master.memories import Match
from langgraph_scrum_master.memory.ledger import Ledger, Row
from langgraph_scrum_master.memory.records import Kind, Ranked
from langgraph_scrum_master.memory.together import Together
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.answers import NeedQuery, answers
from langgraph_scrum_master.rank.asked import Around, Asked, Candidates
from langgraph_scrum_master.rank.relevance import CITING, NEIGHBOURS, Agreement, agreement, fair, supported
from langgraph_scrum_master.rank.spaces import SPACES, with_models

SUPPORTED = 12
"""The best candidates at first sight, whose neighbours are looked at too."""

Nearest: TypeAlias = Callable[[Kind, Any, int], list[tuple[int, float]]]
"""The numbers of the records of a kind whose vectors are nearest, with their cosines."""


class Book(NamedTuple):
    """A ledger that is searched, and what finds the nearest of its vectors."""

    ledger: Ledger
    nearest: Nearest


def search(
    books: Sequence[Book],
    embedder: Embedder | None,
    kinds: Sequence[Kind],
    query: str,
    limit: int,
    k: int | None,
    models: Mapping[str, Embedder],
) -> list[list[Ranked]]:
    """The `k` records of these kinds in each book that serve the query best, best first; all candidates if it is None.

    `models` stand in the place of the spaces they are given for. Without an embedder, what needs none answers.
    """
    ledgers = [book.ledger for book in books if any(map(book.ledger.count, kinds))]
    if not ledgers:
        return [[] for _ in books]
    asked = Asked(query, ledgers[0] if len(ledgers) == 1 else Together(ledgers), embedder, models=models)
    found = [_candidates(book, asked, kinds, limit) for book in books]
    if not any(found):
        return [[] for _ in books]
    agreed, candidates = _agreed([(book.ledger, rows) for book, rows in zip(books, found, strict=True)], asked, models)
    total = fair(supported(agreed.total, agreed.whole, candidates), candidates)
    ends = np.cumsum([len(rows) for rows in found]).tolist()
    orders = [
        (end - len(rows) + np.argsort(-total[end - len(rows) : end], kind="stable")[:k]).tolist()
        for rows, end in zip(found, ends, strict=True)
    ]
    every = [row for rows in found for row in rows]
    matches = iter(agreed.matches(total, [i for order in orders for i in order]))
    return [
        _ranked(book.ledger, [every[i] for i in order], list(islice(matches, len(order))))
        for book, order in zip(books, orders, strict=True)
    ]


def search_answers(
    book: Book,
    embedder: Embedder | None,
    kinds: Sequence[Kind],
    need: str,
    around: Sequence[Around],
    limit: int,
    k: int,
    models: Mapping[str, Embedder],
) -> list[Ranked]:
    """The `k` records of these kinds that most likely answer a need, in the light of what was said around it."""
    ledger = book.ledger
    if not any(map(ledger.count, kinds)):
        return []
    needed = NeedQuery(need, around, ledger, embedder, models)
    found = may_answer(book, needed, kinds, limit)
    if not found:
        return []
    numbers = [row.id for row in found]
    by_model = {space: ledger.modelled.vectors(numbers, space, model) for space, model in models.items()}
    candidates = Candidates([row.candidate for row in found], by_model)
    matches = answers(needed, candidates, with_models(models) if models else SPACES)
    best = sorted(range(len(found)), key=lambda i: (-matches[i].score, -found[i].id))[:k]
    return _ranked(ledger, [found[i] for i in best], [matches[i] for i in best])


def may_answer(book: Book, needed: NeedQuery, kinds: Sequence[Kind], limit: int) -> list[Row]:
    """The records that are nearest to a need by itself, or with what was said around it."""
    return list({row.id: row for asked in needed.both for row in _first_sight(book, asked, kinds, limit)[0]}.values())


def _candidates(book: Book, asked: Asked, kinds: Sequence[Kind], limit: int) -> list[Row]:
    """The nearest by meaning and by words, and what stands around the best of them."""
    rows, seen = _first_sight(book, asked, kinds, limit)
    further = _around(book.ledger, sorted(rows, key=lambda row: -seen[row.id]))
    return rows + book.ledger.rows(sorted(further - seen.keys()), list(kinds))


def _first_sight(book: Book, asked: Asked, kinds: Sequence[Kind], limit: int) -> tuple[list[Row], dict[int, float]]:
    """The nearest by meaning and by words, and how near each is."""
    ledger = book.ledger
    present = {kind: count for kind in kinds if (count := ledger.count(kind))}
    if not present:
        return [], {}
    seen = ledger.lexical(list(present), asked.features.terms, asked.term_weights, limit)
    if asked.embedded:
        ledger.refuse_other_lengths(asked.vector[None, :])
    for kind, count in present.items() if asked.embedded else ():
        for number, cosine in book.nearest(kind, asked.vector, min(limit, count)):
            seen[number] = seen.get(number, 0.0) + cosine
    return ledger.rows(sorted(seen), list(present)), seen


def compare(
    ledger: Ledger, embedder: Embedder, query: str, rows: Sequence[Row], models: Mapping[str, Embedder]
) -> list[Ranked]:
    """These records in their order, each with how like the query it is by itself."""
    if not rows:
        return []
    agreed, _ = _agreed([(ledger, rows)], Asked(query, ledger, embedder, models=models), models)
    return _ranked(ledger, rows, agreed.matches(agreed.total, range(len(rows))))


def _agreed(
    found: Sequence[tuple[Ledger, Sequence[Row]]], asked: Asked, models: Mapping[str, Embedder]
) -> tuple[Agreement, Candidates]:
    """How the records of several ledgers agree with a query, compared all at once."""
    filled = [(ledger, rows) for ledger, rows in found if rows]
    by_model = {
        space: np.concatenate(
            [ledger.modelled.vectors([row.id for row in rows], space, model) for ledger, rows in filled]
        )
        for space, model in models.items()
    }
    every = [row.candidate for _, rows in filled for row in rows]
    places = [place for place, (_, rows) in enumerate(filled) for _ in rows]
    candidates = Candidates(every, by_model, places)
    spaces = with_models(models) if models else SPACES
    return agreement(asked, candidates, spaces, [len(rows) for _, rows in filled]), candidates


def _ranked(ledger: Ledger, rows: Sequence[Row], matches: Sequence[Match]) -> list[Ranked]:
    records = ledger.records([row.id for row in rows])
    return [Ranked(records[row.id], match) for row, match in zip(rows, matches, strict=True) if row.id in records]


def _around(ledger: Ledger, best: Sequence[Row]) -> set[int]:
    """The records beside these in their sessions, and those that they refer to."""
    places = [row.candidate for row in best[:SUPPORTED] if row.candidate.session]
    beside = {(p.session, p.position + sign * off) for p in places for off, _ in NEIGHBOURS for sign in (-1, 1)}
    cited = Candidates([row.candidate for row in best[:CITING]]).references.flat if best else ()
    return {*ledger.neighbours(sorted(beside)), *ledger.named(sorted({int(name) for name in cited}))}
