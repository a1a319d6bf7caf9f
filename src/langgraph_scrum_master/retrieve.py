"""Query → contexts: all sources at once, against one deadline; a failing source is data."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from langgraph_scrum_master.model import Query, RetrievedContext, SourceFailure
from langgraph_scrum_master.protocols import Source, State

logger = structlog.get_logger("langgraph_scrum_master")


async def retrieve(
    query: Query, state: State, sources: Sequence[Source], deadline: float
) -> tuple[list[RetrievedContext], tuple[SourceFailure, ...]]:
    """What the sources found, best first, and which of them failed or were late."""
    if not sources or not query.text:
        return [], ()
    tasks = {asyncio.ensure_future(_ask(source, query, state)): source for source in sources}
    done, late = await asyncio.wait(tasks, timeout=deadline)
    for task in late:
        task.cancel()
    found: list[RetrievedContext] = []
    failures: list[SourceFailure] = []
    for task, source in tasks.items():
        if task not in done:
            failures.append(SourceFailure(source=source.name, error=f"late: no answer within {deadline:g} s"))
        elif error := task.exception():
            failures.append(SourceFailure(source=source.name, error=f"{type(error).__name__}: {error}"))
        else:
            found.extend(task.result())
    for failure in failures:
        logger.warning("source.failed", source=failure.source, error=failure.error)
    return sorted(found, key=lambda context: (-context.relevance_score, context.key)), tuple(failures)


async def _ask(source: Source, query: Query, state: State) -> list[RetrievedContext]:
    return list(await source.find(query, state))
