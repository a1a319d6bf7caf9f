"""Products of vectors, in the thread that asks for them.

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
    return np.einsum("ij,j->i", rows, vector)


def table(rows: Array, others: Array) -> Array:
    """The product of each row with each of the others."""
    made = np.empty((len(rows), len(others)), dtype="float32")
    step = max(1, ALONE // max(1, rows.size))
    for start in range(0, len(others), step):
        part = slice(start, start + step)
        np.matmul(rows, others[part].T, out=made[:, part])
    return made


def distinct_numbers(numbers: Array, most: int) -> tuple[Array, Array]:
    """The different ones of numbers below so many, and where each stands among them; that few need no sorting."""
    known = np.zeros(most, dtype=bool)
    known[numbers] = True
    different = np.flatnonzero(known)
    place = np.zeros(most, dtype="int32")
    place[different] = np.arange(len(different))
    return different, place[numbers]
