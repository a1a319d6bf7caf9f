"""E13: the same words, or words near them in the static model."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.kinship import kinship
from langgraph_scrum_master.rank.products import cosines, distinct_numbers, table
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space
from langgraph_scrum_master.rank.tuning import RankTuning


def strengths(asked: RankQuery, candidates: Candidates) -> Array:
    """The share of the query's words that the text has, or has words near them, by idf."""
    asked_words, weights = asked.words
    wanted = list(asked_words)
    if not wanted or not len(candidates.terms.flat):
        return np.zeros(len(candidates), dtype="float32")
    known, flat = kinship(), candidates.terms.flat
    different, place = _as_they_come(*distinct_numbers(asked.corpus.kin(flat, known), len(known)))
    near = table(known.vectors(known.numbers(list(asked_words.values()))), known.vectors(different))
    each = _likeness(near, asked.tuning).take(place, axis=1)
    each[np.array(wanted, dtype=flat.dtype)[:, None] == flat] = 1.0
    return cosines(candidates.terms.best(each).T, weights) / weights.sum()


def _likeness(near: Array, tuning: RankTuning) -> Array:
    """How much one word counts as another, by their cosines."""
    low, high = tuning.unrelated_words, tuning.related_words
    return np.where(near > tuning.least_related, np.clip((near - low) / (high - low), 0, 1), np.float32(0))


def _as_they_come(different: Array, place: Array) -> tuple[Array, Array]:
    """The same in the order of the texts, for products are rounded by where they stand, and numbers tell what was asked
    before.
    """
    first = np.zeros(len(different), dtype="int64")
    first[place[::-1]] = np.arange(len(place))[::-1]
    order = np.argsort(first)
    now = np.empty_like(order)
    now[order] = np.arange(len(order))
    return different[order], now[place]


SPACE = Space(name="E13 keywords", category="semantic", agrees=0.43, diverges=0.19, strengths=strengths, unheard=0.25)
