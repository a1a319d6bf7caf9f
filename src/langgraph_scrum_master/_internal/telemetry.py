"""Spans and metrics for OpenTelemetry, where the host has set it up; without it, nothing is loaded and nothing done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram
    from opentelemetry.trace import Span, Tracer

INSTRUMENTATION = "langgraph_scrum_master"
"""The name of our tracer and our meter."""

METRIC_PREFIX = "scrum_master."
"""What the names of our spans, attributes and metrics begin with."""


@contextmanager
def span(name: str, began: int | None = None, **attributes: Any) -> Iterator[Span | None]:
    """A span around what is done within; what is raised there marks it as failed, by its type alone."""
    tracer = _tracer()
    if tracer is None:
        yield None
        return
    with tracer.start_as_current_span(
        METRIC_PREFIX + name,
        start_time=began,
        attributes=_named(attributes),
        record_exception=False,
        set_status_on_exception=False,
    ) as opened:
        try:
            yield opened
        except BaseException as error:
            failed(opened, type(error).__name__)
            raise


def past(name: str, began: int, ended: int) -> None:
    """A span of something that is over, in nanoseconds since the epoch."""
    if (tracer := _tracer()) is not None:
        tracer.start_span(METRIC_PREFIX + name, start_time=began).end(ended)


def note(opened: Span | None, **attributes: Any) -> None:
    """Write attributes to a span."""
    if opened is not None:
        opened.set_attributes(_named(attributes))


def failed(opened: Span | None, kind: str) -> None:
    """Mark a span as failed: only the kind of error is told, its text may quote anything."""
    if opened is None:
        return
    from opentelemetry.trace import Status, StatusCode

    opened.set_status(Status(StatusCode.ERROR, kind))


def count(name: str, by: int = 1, **attributes: Any) -> None:
    """Add to a counter."""
    if (meters := _meters()) is not None:
        meters.counters[name].add(by, _named(attributes))


def measure(name: str, value: float, **attributes: Any) -> None:
    """Record a value of a histogram."""
    if (meters := _meters()) is not None:
        meters.histograms[name].record(value, _named(attributes))


COUNTERS = {
    "gaps": "Gaps that were looked into.",
    "injections": "Gaps for which an agent was given context.",
    "abstentions": "Gaps for which nothing good enough was found.",
    "escalations": "Needs that came up again after all attempts.",
    "outcomes": "Injections of which it shows what became of them.",
    "source_failures": "Sources that failed or were late.",
}
HISTOGRAMS = {
    "tokens": ("{token}", "Tokens that an agent was given."),
    "duration": ("s", "From the gap to the result."),
}


class _Meters(NamedTuple):
    counters: dict[str, Counter]
    histograms: dict[str, Histogram]


def _tracer() -> Tracer | None:
    # Who has not even imported it has not set it up.
    return _our_tracer() if "opentelemetry.trace" in sys.modules else None


def _meters() -> _Meters | None:
    return _our_meters() if "opentelemetry.metrics" in sys.modules else None


@lru_cache(maxsize=1)
def _our_tracer() -> Tracer:
    from opentelemetry.trace import get_tracer

    return get_tracer(INSTRUMENTATION)


@lru_cache(maxsize=1)
def _our_meters() -> _Meters:
    from opentelemetry.metrics import get_meter

    meter = get_meter(INSTRUMENTATION)
    return _Meters(
        {name: meter.create_counter(METRIC_PREFIX + name, description=what) for name, what in COUNTERS.items()},
        {name: meter.create_histogram(METRIC_PREFIX + name, unit, what) for name, (unit, what) in HISTOGRAMS.items()},
    )


def _named(attributes: dict[str, Any]) -> dict[str, Any]:
    return {METRIC_PREFIX + name: value for name, value in attributes.items()}
