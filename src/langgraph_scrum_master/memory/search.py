"""Search over shelves: candidates by vectors and by words, ranked in all spaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from langgraph_scrum_master.memory.candidates import CandidateRows
from langgraph_scrum_master.memory.records import Kind, Ranked
from langgraph_scrum_master.memory.shelf import Shelf
from langgraph_scrum_master.memory.statistics import MergedStatistics
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.answers import NeedQuery, answers
from langgraph_scrum_master.rank.corpus import Corpus
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.match import Match
from langgraph_scrum_master.rank.query import Around, Candidates, RankQuery
from langgraph_scrum_master.rank.recipe import DEFAULT_RECIPE, Recipe
from langgraph_scrum_master.rank.relevance import Agreement, agreement, apply_fair_share, with_support
from langgraph_scrum_master.rank.spaces import spaces_for
from langgraph_scrum_master.rank.tuning import RankTuning

VERBATIM_WORDS = 4
"""The words from which a query that a text contains verbatim ranks that text first. By hand."""

_ABOVE = 1e-6


def search(
    shelves: Sequence[Shelf],
    embedder: Embedder | None,
    kinds: Sequence[Kind],
    query: str,
    limit: int,
    k: int | None,
    recipe: Recipe = DEFAULT_RECIPE,
) -> list[list[Ranked]]:
    """The `k` best records of these kinds in each shelf, best first; all candidates if `k` is None.

    The shelves are one corpus. Without an embedder, only words count.
    """
    filled = [shelf.statistics for shelf in shelves if any(map(shelf.count, kinds))]
    if not filled:
        return [[] for _ in shelves]
    rank_query = _query(query, filled[0] if len(filled) == 1 else MergedStatistics(filled), embedder, recipe)
    found = [_candidates(shelf, rank_query, kinds, limit) for shelf in shelves]
    if not any(map(len, found)):
        return [[] for _ in shelves]
    agreed, candidates = _agreement(list(zip(shelves, found, strict=True)), rank_query, recipe)
    total = apply_fair_share(
        with_support(agreed.total, agreed.maximum, candidates, recipe.tuning), candidates, recipe.tuning
    )
    total = _verbatim_first(rank_query, total, candidates, list(zip(shelves, found, strict=True)))
    ends = np.cumsum([len(rows) for rows in found]).tolist()
    orders = [
        (end - len(rows) + np.argsort(-total[end - len(rows) : end], kind="stable")[:k]).tolist()
        for rows, end in zip(found, ends, strict=True)
    ]
    every = np.concatenate([rows.ids for rows in found])
    matches = iter(agreed.matches(total, [i for order in orders for i in order]))
    return [
        _ranked(shelf, every[order].tolist(), list(islice(matches, len(order))))
        for shelf, order in zip(shelves, orders, strict=True)
    ]


def _verbatim_first(
    query: RankQuery, total: Array, candidates: Candidates, found: Sequence[tuple[Shelf, CandidateRows]]
) -> Array:
    """The agreement, with texts that contain the whole query above all others, in their order."""
    wanted = _squashed(query.text)
    if wanted.count(" ") < VERBATIM_WORDS - 1 or not len(query.features.terms):
        return total
    # Only the texts that have all words of the query are read.
    likely = candidates.with_all_terms(query.features.terms)
    verbatim = [i for i, text in _texts_at(likely, found) if wanted in _squashed(text)]
    if not verbatim:
        return total
    raised = total.copy()
    raised[verbatim] += max(0.0, float(total.max() - total[verbatim].min())) + _ABOVE
    return raised


def _texts_at(indexes: Sequence[int], found: Sequence[tuple[Shelf, CandidateRows]]) -> Iterator[tuple[int, str]]:
    """The texts of some candidates of all shelves, by index."""
    start = 0
    for shelf, rows in found:
        ids = {i: int(rows.ids[i - start]) for i in indexes if start <= i < start + len(rows)}
        records = shelf.records(list(ids.values())) if ids else {}
        yield from ((i, records[number].text) for i, number in ids.items() if number in records)
        start += len(rows)


def _squashed(text: str) -> str:
    return " ".join(text.lower().split())


def search_answers(
    shelf: Shelf,
    embedder: Embedder | None,
    kinds: Sequence[Kind],
    need: str,
    around: Sequence[Around],
    limit: int,
    k: int,
    recipe: Recipe = DEFAULT_RECIPE,
) -> list[Ranked]:
    """The `k` records of these kinds that most likely answer a need, given the messages around it."""
    if not any(map(shelf.count, kinds)):
        return []
    need_query = NeedQuery(
        need, around, shelf.statistics, embedder, recipe.models, now=recipe.now, tuning=recipe.tuning
    )
    found = may_answer(shelf, need_query, kinds, limit)
    if not len(found):
        return []
    matches = answers(need_query, _as_candidates([(shelf, found)], recipe), spaces_for(recipe))
    ids = found.ids.tolist()
    best = sorted(range(len(found)), key=lambda i: (-matches[i].score, -ids[i]))[:k]
    return _ranked(shelf, [ids[i] for i in best], [matches[i] for i in best])


def may_answer(shelf: Shelf, need: NeedQuery, kinds: Sequence[Kind], limit: int) -> CandidateRows:
    """The candidates for an answer: the records nearest to the need alone, or together with the messages around it."""
    near = (_nearness(shelf, query, kinds, limit) for query in need.queries)
    return shelf.rows(list(dict.fromkeys(number for each in near for number in sorted(each))), kinds)


def compare(
    shelf: Shelf, embedder: Embedder, query: str, rows: CandidateRows, recipe: Recipe = DEFAULT_RECIPE
) -> list[Ranked]:
    """These records in their order, each scored on its own, without support."""
    if not len(rows):
        return []
    agreed, _ = _agreement([(shelf, rows)], _query(query, shelf.statistics, embedder, recipe), recipe)
    return _ranked(shelf, rows.ids.tolist(), agreed.matches(agreed.total, range(len(rows))))


def _query(text: str, corpus: Corpus, embedder: Embedder | None, recipe: Recipe) -> RankQuery:
    return RankQuery(text, corpus, embedder, now=recipe.now, models=recipe.models, tuning=recipe.tuning)


def _candidates(shelf: Shelf, query: RankQuery, kinds: Sequence[Kind], limit: int) -> CandidateRows:
    """The nearest by vectors and by words, with the session neighbours and citations of the best of them."""
    nearness = _nearness(shelf, query, kinds, limit)
    ids = sorted(nearness)
    rows = shelf.rows(ids, kinds)
    best = np.argsort([-nearness[each] for each in rows.ids.tolist()], kind="stable")
    further = _around(shelf, rows.take(best), query.tuning) - nearness.keys()
    return shelf.rows([*ids, *sorted(further)], kinds) if further else rows


def _nearness(shelf: Shelf, query: RankQuery, kinds: Sequence[Kind], limit: int) -> dict[int, float]:
    """The nearest records by vectors and by words, and how near each is."""
    present = {kind: count for kind in kinds if (count := shelf.count(kind))}
    if not present:
        return {}
    nearness = shelf.lexical(list(present), query.features.terms, query.term_weights, limit)
    if query.embedded:
        shelf.check_dimensions(query.vector)
    for kind, count in present.items() if query.embedded else ():
        for number, cosine in shelf.nearest(kind, query.vector, min(limit, count)):
            nearness[number] = nearness.get(number, 0.0) + cosine
    return nearness


def _agreement(
    found: Sequence[tuple[Shelf, CandidateRows]], query: RankQuery, recipe: Recipe
) -> tuple[Agreement, Candidates]:
    """The agreement of the records of several shelves with a query."""
    filled = [(shelf, rows) for shelf, rows in found if len(rows)]
    candidates = _as_candidates(filled, recipe)
    return agreement(query, candidates, spaces_for(recipe), [len(rows) for _, rows in filled]), candidates


def _as_candidates(filled: Sequence[tuple[Shelf, CandidateRows]], recipe: Recipe) -> Candidates:
    """The records of several shelves as one set of candidates."""
    by_model = {
        space: np.concatenate([shelf.model_vectors(rows.ids.tolist(), space, model) for shelf, rows in filled])
        for space, model in recipe.models.items()
    }
    parts = [(rows.table, rows.numbers) for _, rows in filled]
    return Candidates.of(parts, by_model, lambda: [text for each in filled for text in _texts(*each)])


def _texts(shelf: Shelf, rows: CandidateRows) -> list[str]:
    ids = rows.ids.tolist()
    records = shelf.records(ids)
    # Another process may have deleted a record in the meantime.
    return [records[each].text if each in records else "" for each in ids]


def _ranked(shelf: Shelf, ids: Sequence[int], matches: Sequence[Match]) -> list[Ranked]:
    records = shelf.records(ids)
    return [Ranked(records[each], match) for each, match in zip(ids, matches, strict=True) if each in records]


def _around(shelf: Shelf, best: CandidateRows, tuning: RankTuning) -> set[int]:
    """The session neighbours of these records, and the records that they cite."""
    table, supporters = best.table, best.numbers[: tuning.supporters]
    if not len(supporters):
        return set()
    sessions, positions = (table.gather(name, supporters).tolist() for name in ("sessions", "positions"))
    offsets = [sign * off for off, _ in tuning.neighbours for sign in (-1, 1)]
    neighbours = {
        (table.session_name(session), position + offset)
        for session, position in zip(sessions, positions, strict=True)
        if session >= 0
        for offset in offsets
    }
    cited = Candidates.of([(table, best.numbers[: tuning.citing])]).references.flat
    return shelf.around(sorted(neighbours), np.unique(cited).tolist())
