"""OpenTelemetry spans and metrics. Does nothing unless the host has set up OpenTelemetry."""

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
"""The name of the tracer and the meter."""

METRIC_PREFIX = "scrum_master."
"""The prefix of spans, attributes and metrics."""


@contextmanager
def span(name: str, began: int | None = None, **attributes: Any) -> Iterator[Span | None]:
    """A span around the block. An exception marks it as failed, with its type but not its text."""
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
    """A span that has already ended, in nanoseconds since the epoch."""
    if (tracer := _tracer()) is not None:
        tracer.start_span(METRIC_PREFIX + name, start_time=began).end(ended)


def note(opened: Span | None, **attributes: Any) -> None:
    """Set attributes of a span."""
    if opened is not None:
        opened.set_attributes(_named(attributes))


def failed(opened: Span | None, kind: str) -> None:
    """Mark a span as failed, with the type of the error. Its text could contain private data."""
    if opened is None:
        return
    from opentelemetry.trace import Status, StatusCode

    opened.set_status(Status(StatusCode.ERROR, kind))


def count(name: str, by: int = 1, **attributes: Any) -> None:
    """Add to a counter."""
    if (meters := _meters()) is not None:
        meters.counters[name].add(by, _named(attributes))


def measure(name: str, value: float, **attributes: Any) -> None:
    """Record a value in a histogram."""
    if (meters := _meters()) is not None:
        meters.histograms[name].record(value, _named(attributes))


COUNTERS = {
    "gaps": "Gaps that were detected.",
    "injections": "Gaps for which context was injected.",
    "abstentions": "Gaps for which no context reached the bar.",
    "escalations": "Needs that recurred after all attempts.",
    "outcomes": "Injections with a known outcome.",
    "source_failures": "Sources that failed or missed the deadline.",
    "breakers": "Sources that were suspended after repeated timeouts, or resumed.",
}
HISTOGRAMS = {
    "tokens": ("{token}", "Injected tokens."),
    "duration": ("s", "Time from the gap to the result."),
}


class _Meters(NamedTuple):
    counters: dict[str, Counter]
    histograms: dict[str, Histogram]


def _tracer() -> Tracer | None:
    # If it is not imported, the host has not set it up.
    return _package_tracer() if "opentelemetry.trace" in sys.modules else None


def _meters() -> _Meters | None:
    return _package_meters() if "opentelemetry.metrics" in sys.modules else None


@lru_cache(maxsize=1)
def _package_tracer() -> Tracer:
    from opentelemetry.trace import get_tracer

    return get_tracer(INSTRUMENTATION)


@lru_cache(maxsize=1)
def _package_meters() -> _Meters:
    from opentelemetry.metrics import get_meter

    meter = get_meter(INSTRUMENTATION)
    return _Meters(
        {name: meter.create_counter(METRIC_PREFIX + name, description=what) for name, what in COUNTERS.items()},
        {name: meter.create_histogram(METRIC_PREFIX + name, unit, what) for name, (unit, what) in HISTOGRAMS.items()},
    )


def _named(attributes: dict[str, Any]) -> dict[str, Any]:
    return {METRIC_PREFIX + name: value for name, value in attributes.items()}
