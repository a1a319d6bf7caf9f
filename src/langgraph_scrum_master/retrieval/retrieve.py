"""Queries → contexts: all sources at once, against one deadline; a failing source is data."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from langgraph_scrum_master._internal import telemetry
from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.shapes import read
from langgraph_scrum_master._internal.threads import contained
from langgraph_scrum_master.errors import steers_the_graph
from langgraph_scrum_master.model import Query, RetrievedContext, SourceFailure, instant
from langgraph_scrum_master.protocols import Opens, Source, State
from langgraph_scrum_master.rank.query_time import asked_at

OPENING = 10
"""How many deadlines a memory may take to open, once."""


async def open_memory(memory: object, seconds: float) -> None:
    """Let a memory load what takes long, before a deadline begins to run."""
    if isinstance(memory, Opens):
        # What goes wrong here goes wrong in the search too, and is recorded there.
        with suppress(Exception):
            await asyncio.wait_for(memory.open(), seconds)


async def retrieve(
    queries: Sequence[Query], state: State, sources: Sequence[Source], deadline: float, must: Collection[str] = ()
) -> tuple[list[RetrievedContext], tuple[SourceFailure, ...]]:
    """What the sources found, the best for each query first, and which of them failed or were late.

    What a source raises that `must` not fail is raised here.
    """
    found, failures = await retrieve_each(queries, state, sources, deadline, must)
    return merged(found), failures


async def retrieve_each(
    queries: Sequence[Query], state: State, sources: Sequence[Source], deadline: float, must: Collection[str] = ()
) -> tuple[list[list[RetrievedContext]], tuple[SourceFailure, ...]]:
    """The same for each query by itself, best first."""
    if not sources or not queries:
        return [[] for _ in queries], ()
    tasks = {
        asyncio.ensure_future(_ask(source, query, state)): (i, source)
        for i, query in enumerate(queries)
        for source in sources
    }
    try:
        done, _ = await asyncio.wait(tasks, timeout=deadline)
    finally:
        for task in tasks:
            task.cancel()
    found: list[list[RetrievedContext]] = [[] for _ in queries]
    failures: dict[str, SourceFailure] = {}
    for task, (i, source) in tasks.items():
        if task in done and source.name in must and not task.cancelled() and (error := task.exception()):
            raise error
        if failure := failure_of(source.name, task, task in done, deadline):
            failures.setdefault(source.name, failure)
        else:
            found[i].extend(task.result())
    for failure in failures.values():
        logger.warning("source.failed", source=failure.source, error=failure.error)
    return [sorted(each, key=_by_score) for each in found], tuple(failures.values())


def merged(found: Sequence[Sequence[RetrievedContext]]) -> list[RetrievedContext]:
    """The best for each query, then the rest by score; what serves several queries stands once, where it is best."""
    best: dict[str, RetrievedContext] = {}
    for context in sorted((context for each in found for context in each), key=_by_score):
        best.setdefault(f"{context.source}\x00{context.key}", context)
    first = {f"{each[0].source}\x00{each[0].key}" for each in found if each}
    return sorted(best.values(), key=lambda c: (f"{c.source}\x00{c.key}" not in first, *_by_score(c)))


def _by_score(context: RetrievedContext) -> tuple[float, str]:
    return -context.relevance_score, context.key


async def _ask(source: Source, query: Query, state: State) -> list[RetrievedContext]:
    with telemetry.span(f"retrieve.{source.name}") as span, asked_at(instant(query.now)):
        found = await _find(source, query, state)
        telemetry.note(span, found=len(found))
        return [_stamped(_context(item), query.now) for item in found]


async def _find(source: Source, query: Query, state: State) -> list[object]:
    try:
        return list(await source.find(query, state))
    except (Exception, asyncio.CancelledError, GeneratorExit):
        raise
    # `SystemExit` and native panics of a source are its failures. Ctrl-C reaches the main thread and is the host's.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise
        raise contained(error) from error


def _stamped(context: RetrievedContext, now: str) -> RetrievedContext:
    return context if context.retrieved_at == now else replace(context, retrieved_at=now)


def _context(item: object) -> RetrievedContext:
    if isinstance(item, RetrievedContext) and isinstance(read(item, "content"), str):
        return item
    raise TypeError(f"a source must give RetrievedContext with text, got {type(item).__name__}")


def failure_of(source: str, task: asyncio.Future[Any], in_time: bool, deadline: float) -> SourceFailure | None:
    """What became of a source that was asked and gave no answer; None if it gave one."""
    if not in_time:
        return SourceFailure.of(source, TimeoutError(), deadline)
    if task.cancelled():
        return SourceFailure(source=source, error="cancelled: the source gave up")
    error = task.exception()
    if error is None:
        return None
    if steers_the_graph(error):
        raise error
    return SourceFailure(source=source, error=f"{type(error).__name__}: {error}")
