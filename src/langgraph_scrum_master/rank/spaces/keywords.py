"""E13: shared words, or related words in the static model."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.products import cosines, distinct_values, dot_products
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space
from langgraph_scrum_master.rank.tuning import RankTuning
from langgraph_scrum_master.rank.word_vectors import word_vectors


def strengths(query: RankQuery, candidates: Candidates) -> Array:
    """The share of the query's words for which the text has the word or a related word, by idf."""
    words, weights = query.words
    wanted = list(words)
    if not wanted or not len(candidates.terms.flat):
        return np.zeros(len(candidates), dtype="float32")
    vectors, flat = word_vectors(), candidates.terms.flat
    distinct, index = _in_text_order(*distinct_values(query.corpus.word_rows(flat, vectors), len(vectors)))
    cosine = dot_products(vectors.vectors(vectors.rows(list(words.values()))), vectors.vectors(distinct))
    likeness = _likeness(cosine, query.tuning).take(index, axis=1)
    likeness[np.array(wanted, dtype=flat.dtype)[:, None] == flat] = 1.0
    return cosines(candidates.terms.max_per_list(likeness).T, weights) / weights.sum()


def _likeness(cosine: Array, tuning: RankTuning) -> Array:
    """How much one word counts as another, from 0 to 1."""
    low, high = tuning.unrelated_words, tuning.related_words
    return np.where(cosine > tuning.least_related, np.clip((cosine - low) / (high - low), 0, 1), np.float32(0))


def _in_text_order(distinct: Array, index: Array) -> tuple[Array, Array]:
    """The distinct rows in order of first occurrence.

    Row numbers depend on earlier queries, and a matrix product rounds by column position: sorted by row, the same query
    could score differently.
    """
    first = np.zeros(len(distinct), dtype="int64")
    first[index[::-1]] = np.arange(len(index))[::-1]
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return distinct[order], rank[index]


SPACE = Space(
    name="E13 keywords", category="semantic", agrees=0.43, diverges=0.19, strengths=strengths, weight_without_words=0.25
)
