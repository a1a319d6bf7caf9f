"""E9: shared character n-grams, in hash buckets; robust to typing errors."""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.products import cosines
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.spaces.space import Space


def strengths(query: RankQuery, candidates: Candidates) -> Array:
    """The share of the query's character n-grams that the text has, by idf and normalised by length."""
    buckets = np.flatnonzero(np.unpackbits(query.features.grams))
    weights = query.corpus.gram_idf(buckets)
    total = float(weights.sum())
    if not total:
        return np.zeros(len(candidates), dtype="float32")
    floor = query.tuning.length_floor
    length = floor + (1 - floor) * np.sqrt(np.maximum(1, candidates.filled) / max(1.0, query.corpus.mean_grams))
    return np.clip(cosines(candidates.occupies(buckets).astype("float32"), weights) / total / length, 0, 1)


SPACE = Space(
    name="E9 hyperdimensional",
    category="structural",
    agrees=0.33,
    diverges=0.14,
    strengths=strengths,
    weight_without_words=0.0,
)
