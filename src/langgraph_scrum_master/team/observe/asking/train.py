"""Training: logistic regression over hashed features with NumPy; deterministic."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph_scrum_master.team.observe.asking.dataset import LabelledTurn
from langgraph_scrum_master.team.observe.asking.features import UnitFeatures, features
from langgraph_scrum_master.team.observe.asking.units import Unit, split_units
from langgraph_scrum_master.team.observe.asking.weights import LinearWeights, bucket

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_BESIDE = 0.3
"""Weight of an unmarked unit in a turn that asks, since it may ask as well."""

BITS = 18
"""Binary logarithm of the number of buckets."""

_PENALTY = 0.1
"""Ridge penalty, relative to the sum of the losses."""

ITERATIONS, MEMORY = 120, 8


class Example(NamedTuple):
    """A training example."""

    features: UnitFeatures
    label: bool
    weight: float = 1.0


class Matrix(NamedTuple):
    """The examples as rows of weighted buckets."""

    starts: Array
    buckets: Array
    values: Array
    rows: Array
    size: int

    def times(self, weights: Array) -> Array:
        """The score of each row."""
        import numpy as np

        return np.bincount(self.rows, self.values * weights[self.buckets], minlength=len(self.starts))

    def transposed_times(self, by_row: Array) -> Array:
        """For each bucket, the sum over its rows."""
        import numpy as np

        return np.bincount(self.buckets, self.values * by_row[self.rows], minlength=self.size)


def examples_of(turn: LabelledTurn, score: Callable[[UnitFeatures], float] | None = None) -> list[Example]:
    """The units of a labelled turn as examples.

    If a turn asks but has no spans, the unit with the best `score` is the positive example, and the others are ignored.
    """
    units = split_units(turn.text)
    read = features(turn.text, units, range(len(units.items)))
    if not turn.asks:
        return [Example(each, False) for each in read]
    if turn.spans is None:
        return [Example(max(read, key=score), True)] if read and score is not None else []
    labels = [_within(unit, turn.spans) for unit in units.items]
    return [Example(each, label, 1.0 if label else _BESIDE) for each, label in zip(read, labels, strict=True)]


def _within(unit: Unit, spans: Sequence[tuple[int, int]]) -> bool:
    size = unit.end - unit.start
    return any(min(unit.end, end) - max(unit.start, start) > 0.5 * min(size, end - start) for start, end in spans)


def matrix(examples: Sequence[UnitFeatures], bits: int = BITS) -> Matrix:
    """The hashed features of the examples."""
    import numpy as np

    starts: list[int] = []
    buckets: list[int] = []
    values: list[float] = []
    rows: list[int] = []
    known: dict[str, int] = {}
    for row, example in enumerate(examples):
        starts.append(len(buckets))
        for weight, names in example.weighted():
            # Sorted, since the iteration order of sets differs between runs.
            for name in sorted(names):
                if (place := known.get(name)) is None:
                    place = known[name] = bucket(name, bits)
                buckets.append(place)
                values.append(weight)
                rows.append(row)
    return Matrix(np.array(starts), np.array(buckets), np.array(values), np.array(rows), 1 << bits)


def train(
    examples: Sequence[Example], about: dict[str, Any], *, start: LinearWeights | None = None, penalty: float = _PENALTY
) -> LinearWeights:
    """Fit the weights to the examples; `start` is the prior, or zero."""
    import numpy as np

    data = matrix([example.features for example in examples])
    labels = np.array([1.0 if example.label else -1.0 for example in examples])
    counts = np.array([example.weight for example in examples])
    prior = np.zeros(data.size + 1)
    if start is not None:
        prior[:-1] = np.array(start.values, dtype="float64") * start.unit
        prior[-1] = start.bias
    return quantised(_minimise(data, labels, counts, prior, penalty), about)


def quantised(weights: Array, about: dict[str, Any]) -> LinearWeights:
    """The weights as small integers."""
    import numpy as np

    unit = float(np.abs(weights[:-1]).max()) / 127 or 1.0
    # Rounded, since the last digits depend on the machine.
    unit = float(f"{unit:.4g}")
    whole = np.clip(np.rint(weights[:-1] / unit), -127, 127).astype("int8")
    return LinearWeights(
        bits=BITS, unit=unit, bias=round(float(weights[-1]), 4), values=array("b", whole.tobytes()), about=about
    )


def _minimise(data: Matrix, labels: Array, counts: Array, prior: Array, penalty: float) -> Array:
    """L-BFGS with a fixed number of steps and a backtracking line search."""
    import numpy as np

    def loss(weights: Array) -> tuple[float, Array]:
        margins = labels * (data.times(weights[:-1]) + weights[-1])
        away = weights - prior
        away[-1] = 0.0
        value = float((counts * np.logaddexp(0.0, -margins)).sum() + penalty / 2 * (away * away).sum())
        slope = -labels * counts / (1.0 + np.exp(np.clip(margins, -500, 500)))
        return value, np.append(data.transposed_times(slope), slope.sum()) + penalty * away

    weights = prior.copy()
    value, gradient = loss(weights)
    steps: list[tuple[Array, Array, float]] = []
    for _ in range(ITERATIONS):
        direction = -_inverse_times(gradient, steps)
        slope, length = float((direction * gradient).sum()), 1.0
        while True:
            tried = weights + length * direction
            new_value, new_gradient = loss(tried)
            if new_value <= value + 1e-4 * length * slope or length < 1e-6:
                break
            length /= 2
        step, change = tried - weights, new_gradient - gradient
        curvature = float((step * change).sum())
        if curvature > 1e-12:
            steps = [*steps[1 - MEMORY :], (step, change, 1 / curvature)]
        weights, value, gradient = tried, new_value, new_gradient
        if float(np.abs(gradient).max()) < 1e-3:
            break
    return weights


def _inverse_times(gradient: Array, steps: Sequence[tuple[Array, Array, float]]) -> Array:
    rest, shares = gradient.copy(), []
    for step, change, inverse in reversed(steps):
        share = inverse * float((step * rest).sum())
        rest -= share * change
        shares.append(share)
    if steps:
        step, change, inverse = steps[-1]
        rest *= 1 / (inverse * float((change * change).sum()))
    for (step, change, inverse), share in zip(steps, reversed(shares), strict=True):
        rest += (share - inverse * float((change * rest).sum())) * step
    return rest
