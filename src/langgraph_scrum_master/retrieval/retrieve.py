"""Runs all sources concurrently against one deadline. Failures of sources are part of the result."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from langgraph_scrum_master._internal import telemetry
from langgraph_scrum_master._internal.breakers import Breaker, Breakers, current_breaker
from langgraph_scrum_master._internal.foreign import awaited, recordable
from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.shapes import well_formed
from langgraph_scrum_master.errors import steers_the_graph
from langgraph_scrum_master.model import Query, RetrievedContext, SourceFailure, instant
from langgraph_scrum_master.protocols import Opens, Source, State
from langgraph_scrum_master.rank.query_time import asked_at

OPENING = 10
"""The timeout for the first opening of a memory, as a multiple of the deadline."""


async def open_memory(memory: object, seconds: float) -> None:
    """Let a memory load its data and models before the deadline starts. An error here recurs in the search."""
    with suppress(TimeoutError):
        await _opened(memory, seconds)


async def _opened(memory: object, seconds: float) -> None:
    if isinstance(memory, Opens):
        try:
            await asyncio.wait_for(awaited(memory.open), seconds)
        except TimeoutError:
            raise
        # The search raises it again and records it.
        except Exception as error:
            recordable(error)


async def retrieve(
    queries: Sequence[Query],
    state: State,
    sources: Sequence[Source],
    deadline: float,
    must: Collection[str] = (),
    breakers: Breakers | None = None,
) -> tuple[list[RetrievedContext], tuple[SourceFailure, ...]]:
    """The contexts of all sources, the best for each query first, and the failures.

    Exceptions of the sources named in `must` are raised.
    """
    results, failures = await retrieve_each(queries, state, sources, deadline, must, breakers)
    return merged(results), failures


async def retrieve_each(
    queries: Sequence[Query],
    state: State,
    sources: Sequence[Source],
    deadline: float,
    must: Collection[str] = (),
    breakers: Breakers | None = None,
) -> tuple[list[list[RetrievedContext]], tuple[SourceFailure, ...]]:
    """Like `retrieve`, with a list per query, best first.

    Before its first search a source is opened, in `OPENING` deadlines at most. A source whose breaker is open is not
    searched.
    """
    if not sources or not queries:
        return [[] for _ in queries], ()
    breakers = breakers or Breakers()
    searches = [_Search(source, breakers.of(source.name, source), deadline) for source in sources]
    finished = False
    try:
        await asyncio.gather(*(search.open() for search in searches))
        tasks = [task for search in searches for task in search.start(queries, state)]
        if tasks:
            await asyncio.wait(tasks, timeout=deadline)
        finished = True
    finally:
        for search in searches:
            search.end(finished)
    results: list[list[RetrievedContext]] = [[] for _ in queries]
    failures = [failure for search in searches if (failure := search.collect(results, must))]
    for failure in failures:
        logger.warning("source.failed", source=failure.source, error=failure.error)
    return [sorted(each, key=_by_score) for each in results], tuple(failures)


class _Search:
    """The search of one source for all queries."""

    def __init__(self, source: Source, breaker: Breaker, deadline: float) -> None:
        self._source = source
        self._breaker = breaker
        self._deadline = deadline
        self._tasks: list[asyncio.Future[_Found]] = []
        self._failure: SourceFailure | None = None
        if refusal := breaker.refusal():
            self._failure = SourceFailure(source=source.name, error=refusal)
        self._refused = bool(refusal)

    async def open(self) -> None:
        """Open a source that was never opened. If that takes too long, it is not searched this time."""
        if self._failure is not None or self._breaker.opened != "never":
            return
        token = current_breaker.set(self._breaker)
        try:
            await _opened(self._source, OPENING * self._deadline)
            self._breaker.opened = "yes"
        except TimeoutError:
            self._breaker.opened = "late"
            error = f"late: not open within {OPENING * self._deadline:g} s"
            self._failure = SourceFailure(source=self._source.name, error=error, late=True)
        finally:
            current_breaker.reset(token)

    def start(self, queries: Sequence[Query], state: State) -> Sequence[asyncio.Future[_Found]]:
        """Start to search for each query."""
        if self._failure is None:
            self._tasks = [asyncio.ensure_future(self._run(query, state)) for query in queries]
        return self._tasks

    async def _run(self, query: Query, state: State) -> _Found:
        source = self._source
        current_breaker.set(self._breaker)
        with (
            telemetry.span(f"retrieve.{source.name}", breaker=self._breaker.state) as span,
            asked_at(instant(query.now)),
        ):
            if self._breaker.opened == "late":
                await _opened(source, self._deadline)
                self._breaker.opened = "yes"
            found = _checked(list(await awaited(lambda: source.find(query, state))), query.now)
            telemetry.note(span, found=len(found.contexts))
            return found

    def end(self, finished: bool) -> None:
        """Cancel what is late. Unless the caller was cancelled, tell the breaker whether the source has answered."""
        in_time = all(task.done() and not isinstance(_error(task), TimeoutError) for task in self._tasks)
        for task in self._tasks:
            task.cancel()
        if not self._refused:
            self._breaker.settle(self._failure is None and in_time if finished else None, self._deadline)

    def collect(self, results: Sequence[list[RetrievedContext]], must: Collection[str]) -> SourceFailure | None:
        """Add what was found for each query to its results, and return the first failure."""
        failure = self._failure
        for task, contexts in zip(self._tasks, results, strict=False):
            if task.done() and self._source.name in must and (error := _error(task)):
                raise error
            late_or_failed = failure_of(self._source.name, task, task.done(), self._deadline)
            if late_or_failed is None:
                contexts.extend(task.result().contexts)
                late_or_failed = task.result().failure(self._source.name)
            failure = failure or late_or_failed
        return failure


class _Found(NamedTuple):
    """The usable items that a source returned, and what was wrong with the others."""

    contexts: list[RetrievedContext]
    problems: list[str]

    def failure(self, source: str) -> SourceFailure | None:
        if not self.problems:
            return None
        total = len(self.contexts) + len(self.problems)
        return SourceFailure(source=source, error=f"{len(self.problems)} of {total} items dropped: {self.problems[0]}")


def _error(task: asyncio.Future[Any]) -> BaseException | None:
    return None if task.cancelled() else task.exception()


def merged(results: Sequence[Sequence[RetrievedContext]]) -> list[RetrievedContext]:
    """The best context for each query, then the rest by score. Duplicates keep their best score."""
    best: dict[str, RetrievedContext] = {}
    for context in sorted((context for each in results for context in each), key=_by_score):
        best.setdefault(f"{context.source}\x00{context.key}", context)
    first = {f"{each[0].source}\x00{each[0].key}" for each in results if each}
    return sorted(best.values(), key=lambda c: (f"{c.source}\x00{c.key}" not in first, *_by_score(c)))


def _by_score(context: RetrievedContext) -> tuple[float, str]:
    return -context.relevance_score, context.key


def _checked(items: Sequence[object], now: str) -> _Found:
    found = _Found([], [])
    for item in items:
        try:
            found.contexts.append(_item(item, now))
        # Attributes of a source's own type may raise anything. Only this item is lost.
        except BaseException as raised:
            error = recordable(raised)
            found.problems.append(f"{type(error).__name__}: {error}")
    return found


def _item(item: object, now: str) -> RetrievedContext:
    if isinstance(item, Exception):
        raise item
    if not isinstance(item, RetrievedContext):
        raise TypeError(f"a source must return RetrievedContext with text, got {type(item).__name__}")
    changed = {"retrieved_at": now} if item.retrieved_at != now else {}
    for name, longest in _LONGEST.items():
        text = getattr(item, name)
        if not isinstance(text, str):
            raise TypeError(f"its {name} must be a text, got {type(text).__name__}")
        if len(text) > longest:
            raise ValueError(f"its {name} has {len(text):,} characters, at most {longest:,} are read")
        if (usable := well_formed(str.__str__(text))) is not text:
            changed[name] = usable
    return replace(item, **changed) if changed else item  # type: ignore[arg-type]


_LONGEST = {"content": 10_000_000, "title": 10_000, "key": 10_000, "source": 10_000, "created_at": 10_000}
"""Maximum characters of an item's texts."""


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
