"""Products of vectors in the thread that asks for them.

BLAS shares all but small ones among threads that wait for each other in busy loops. For as little as is compared here
that gains nothing, and where others work too, as in a busy host, it takes many times as long.
"""

from __future__ import annotations

import numpy as np

from langgraph_scrum_master.rank.features import Array

ALONE = 262_144
"""Multiplications up to which OpenBLAS works alone."""


def cosines(rows: Array, vector: Array) -> Array:
    """The product of each row with the vector: the cosines, if all are of length one."""
    if rows.size < ALONE:
        return np.einsum("ij,j->i", rows, vector)
    # Of two vectors: with one alone BLAS has another limit, far lower.
    return table(np.stack([vector, vector]), rows)[0]


def table(rows: Array, others: Array) -> Array:
    """The product of each row with each of the others."""
    made = np.empty((len(rows), len(others)), dtype="float32")
    step = max(1, ALONE // max(1, rows.size))
    for start in range(0, len(others), step):
        part = slice(start, start + step)
        np.matmul(rows, others[part].T, out=made[:, part])
    return made
