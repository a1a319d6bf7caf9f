"""Vector products in the calling thread.

BLAS splits all but small products among threads that wait in busy loops. Products here are too small to gain from
that, and on a busy host the waiting makes them many times slower.
"""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array

SINGLE_THREADED = 262_144
"""Multiplications up to which OpenBLAS stays in the calling thread."""


def cosines(rows: Array, vector: Array) -> Array:
    """The dot product of each row with the vector: the cosine, for unit vectors."""
    return np.einsum("ij,j->i", rows, vector)


def dot_products(rows: Array, others: Array) -> Array:
    """The dot product of each row with each of the others."""
    products = np.empty((len(rows), len(others)), dtype="float32")
    step = max(1, SINGLE_THREADED // max(1, rows.size))
    for start in range(0, len(others), step):
        part = slice(start, start + step)
        np.matmul(rows, others[part].T, out=products[:, part])
    return products


def distinct_values(values: Array, limit: int) -> tuple[Array, Array]:
    """The distinct values, sorted, and the index of each value among them; as `np.unique`, for values below `limit`."""
    present = np.zeros(limit, dtype=bool)
    present[values] = True
    distinct = np.flatnonzero(present)
    index = np.zeros(limit, dtype="int32")
    index[distinct] = np.arange(len(distinct))
    return distinct, index[values]
