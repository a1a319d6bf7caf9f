"""Runs all sources concurrently against one deadline. Failures of sources are part of the result."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from langgraph_scrum_master._internal import telemetry
from langgraph_scrum_master._internal.foreign import awaited
from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.shapes import read
from langgraph_scrum_master.errors import steers_the_graph
from langgraph_scrum_master.model import Query, RetrievedContext, SourceFailure, instant
from langgraph_scrum_master.protocols import Opens, Source, State
from langgraph_scrum_master.rank.query_time import asked_at

OPENING = 10
"""The timeout for opening a memory, as a multiple of the deadline."""


async def open_memory(memory: object, seconds: float) -> None:
    """Let a memory load its data and models before the deadline starts."""
    if isinstance(memory, Opens):
        # An error here recurs in the search, which records it.
        with suppress(Exception):
            await asyncio.wait_for(memory.open(), seconds)


async def retrieve(
    queries: Sequence[Query], state: State, sources: Sequence[Source], deadline: float, must: Collection[str] = ()
) -> tuple[list[RetrievedContext], tuple[SourceFailure, ...]]:
    """The contexts of all sources, the best for each query first, and the failures.

    Exceptions of the sources named in `must` are raised.
    """
    results, failures = await retrieve_each(queries, state, sources, deadline, must)
    return merged(results), failures


async def retrieve_each(
    queries: Sequence[Query], state: State, sources: Sequence[Source], deadline: float, must: Collection[str] = ()
) -> tuple[list[list[RetrievedContext]], tuple[SourceFailure, ...]]:
    """Like `retrieve`, with a list per query, best first."""
    if not sources or not queries:
        return [[] for _ in queries], ()
    tasks = {
        asyncio.ensure_future(_run(source, query, state)): (i, source)
        for i, query in enumerate(queries)
        for source in sources
    }
    try:
        done, _ = await asyncio.wait(tasks, timeout=deadline)
    finally:
        for task in tasks:
            task.cancel()
    results: list[list[RetrievedContext]] = [[] for _ in queries]
    failures: dict[str, SourceFailure] = {}
    for task, (i, source) in tasks.items():
        if task in done and source.name in must and not task.cancelled() and (error := task.exception()):
            raise error
        if failure := failure_of(source.name, task, task in done, deadline):
            failures.setdefault(source.name, failure)
        else:
            results[i].extend(task.result())
    for failure in failures.values():
        logger.warning("source.failed", source=failure.source, error=failure.error)
    return [sorted(each, key=_by_score) for each in results], tuple(failures.values())


def merged(results: Sequence[Sequence[RetrievedContext]]) -> list[RetrievedContext]:
    """The best context for each query, then the rest by score. Duplicates keep their best score."""
    best: dict[str, RetrievedContext] = {}
    for context in sorted((context for each in results for context in each), key=_by_score):
        best.setdefault(f"{context.source}\x00{context.key}", context)
    first = {f"{each[0].source}\x00{each[0].key}" for each in results if each}
    return sorted(best.values(), key=lambda c: (f"{c.source}\x00{c.key}" not in first, *_by_score(c)))


def _by_score(context: RetrievedContext) -> tuple[float, str]:
    return -context.relevance_score, context.key


async def _run(source: Source, query: Query, state: State) -> list[RetrievedContext]:
    with telemetry.span(f"retrieve.{source.name}") as span, asked_at(instant(query.now)):
        items = list(await awaited(lambda: source.find(query, state)))
        telemetry.note(span, found=len(items))
        return [_stamped(_checked(item), query.now) for item in items]


def _stamped(context: RetrievedContext, now: str) -> RetrievedContext:
    return context if context.retrieved_at == now else replace(context, retrieved_at=now)


def _checked(item: object) -> RetrievedContext:
    if isinstance(item, RetrievedContext) and isinstance(read(item, "content"), str):
        return item
    raise TypeError(f"a source must return RetrievedContext with text, got {type(item).__name__}")


def failure_of(source: str, task: asyncio.Future[Any], in_time: bool, deadline: float) -> SourceFailure | None:
    """The failure of a source; None if it succeeded. Exceptions that control the graph are raised."""
    if not in_time:
        return SourceFailure.of(source, TimeoutError(), deadline)
    if task.cancelled():
        return SourceFailure(source=source, error="cancelled by the source")
    error = task.exception()
    if error is None:
        return None
    if steers_the_graph(error):
        raise error
    return SourceFailure(source=source, error=f"{type(error).__name__}: {error}")
