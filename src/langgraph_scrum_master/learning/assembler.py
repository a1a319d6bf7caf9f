"""What a project has learned, for a query or before risky work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, TypeAlias

from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master._internal.shapes import one_of
from langgraph_scrum_master._internal.threads import off_loop
from langgraph_scrum_master.errors import ConfigError, InvalidContextTypeError
from langgraph_scrum_master.learning.fit import capped, distinct_items, within
from langgraph_scrum_master.learning.records import ContextItem, Strategy, refuse_bad
from langgraph_scrum_master.learning.render import (
    SOURCE_SECTIONS,
    aspect_item,
    assembled,
    code_item,
    commit_item,
    experience_item,
    explained_item,
    memory_item,
    value_item,
)
from langgraph_scrum_master.learning.searcher import Searcher
from langgraph_scrum_master.model import SourceFailure, freeze
from langgraph_scrum_master.protocols import Clock, TokenCounter
from langgraph_scrum_master.rank.recency import get_recency_factor
from langgraph_scrum_master.retrieval.counting import reliable
from langgraph_scrum_master.retrieval.retrieve import failure_of
from langgraph_scrum_master.text.domains import Domain
from langgraph_scrum_master.text.tokens import estimate_tokens

WEIGHTS = {"memories": 1, "code": 2, "experiences": 3, "values": 1, "commits": 2}
"""How the tokens are shared, by how much there is to say of each."""

_PATIENCE = 0.05
"""Seconds after which the next source is asked while one is still at work."""

MIN_RELEVANCE = 0.35
"""Below this an item has no more to do with a query than any other: 0.7 serves, 0.3 is what a chance likeness has."""

PRINCIPLES = 5
"""Values that a premortem shows."""

FAILED = 2
"""What a failure ranks above all that went well."""

_SOURCES = {"memories": "memory", "code": "code", "experiences": "experience", "values": "value", "commits": "commit"}

Overflow: TypeAlias = Literal["soft", "hard"]
"""Whether a source that has anything gets one item said even if that is too much for the budget."""

Search: TypeAlias = Callable[[], Coroutine[Any, Any, list[ContextItem]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattedContext(Plain):
    """What was assembled, as Markdown, and what it is made of."""

    markdown: str = ""
    items: tuple[ContextItem, ...] = ()
    """The most relevant first."""
    token_count: int = 0
    sources_used: dict[str, int] = field(default_factory=dict, hash=False)
    """How many items of each source."""
    budget_exceeded: bool = False
    truncated_items: int = 0
    failures: tuple[SourceFailure, ...] = ()
    """Sources that failed or were late."""

    def __post_init__(self) -> None:
        freeze(self, "items", "failures")


class ContextAssembler:
    """Gathers memories, code, experiences, values and commits, as much as fits.

    What is less relevant than `min_relevance` is left out. With `overflow="soft"`, the default, a source that found
    anything is never left out, even if that is more than `max_tokens`, which the result then says. A premortem always
    keeps to its budget.
    """

    def __init__(
        self,
        searcher: Searcher,
        *,
        overflow: Overflow = "soft",
        min_relevance: float = MIN_RELEVANCE,
        deadline: float = 2.0,
        clock: Clock = time.time,
        count_tokens: TokenCounter = estimate_tokens,
    ) -> None:
        if overflow not in ("soft", "hard"):
            raise ConfigError(f"overflow must be 'soft' or 'hard', got {overflow!r}")
        if not 0 <= min_relevance <= 1:
            raise ConfigError(f"min_relevance must be from 0 to 1, got {min_relevance!r}")
        self._searcher = searcher
        self._overflow = overflow
        self._min_relevance = min_relevance
        self._deadline = deadline
        self._clock = clock
        self._count_tokens = count_tokens

    async def assemble_context(
        self, query: str, context_types: Sequence[str], limit: int = 20, max_tokens: int = 2000
    ) -> FormattedContext:
        """What serves the query, from these of memories, code, experiences, values and commits."""
        refuse_bad(query, limit=limit, max_tokens=max_tokens)
        types = _known(context_types)
        searches = {name: self._search(name, query, limit) for name in WEIGHTS if name in types}
        until = asyncio.get_running_loop().time() + self._deadline
        # Who brings a searcher of their own need not have that.
        at_once = getattr(self._searcher, "asked_before", lambda *_: nullcontext())
        try:
            async with at_once(query, list(searches), limit, self._deadline):
                found, failures = await self._asked(searches, until)
        except TimeoutError:
            found, failures = {}, self._late(searches)
        by_section = {SOURCE_SECTIONS[_SOURCES[name]]: self._serving(items) for name, items in found.items()}
        weights = {SOURCE_SECTIONS[_SOURCES[name]]: WEIGHTS[name] for name in found}
        made = await off_loop(self._fitted, "Context", by_section, weights, max_tokens, _total)
        return replace(made, failures=failures)

    async def get_premortem_context(
        self, domain: Domain | str, strategy: Strategy | str | None = None, limit: int = 10, max_tokens: int = 1500
    ) -> FormattedContext:
        """What went wrong before in this domain, or with this strategy: failures, surprises, causes, principles."""
        one_of("domain", domain, Domain)
        if strategy is not None:
            one_of("strategy", strategy, Strategy)
        refuse_bad(domain, limit=limit, max_tokens=max_tokens)
        until = asyncio.get_running_loop().time() + self._deadline
        found, failures = await self._asked(self._premortem(domain, strategy, limit), until)
        shown = _each_once(found)
        title = f"Premortem: {domain}{f' with {strategy}' if strategy else ''}"
        made = await off_loop(self._fitted, title, shown, dict.fromkeys(shown, 1), max_tokens, _based_on, "hard")
        return replace(made, failures=failures)

    def _serving(self, items: Sequence[ContextItem]) -> list[ContextItem]:
        return [item for item in items if item.relevance >= self._min_relevance]

    def _search(self, name: str, query: str, limit: int) -> Search:
        searcher, now = self._searcher, self._clock()

        def fresh(created_at: str) -> float:
            return 1 + (get_recency_factor(created_at, now) - 1) / 4

        async def memories() -> list[ContextItem]:
            return [memory_item(result) for result in await searcher.search_memories(query, limit)]

        async def code() -> list[ContextItem]:
            return [code_item(*found) for found in await searcher.search_code(query, limit)]

        async def experiences() -> list[ContextItem]:
            found = await searcher.search_experiences(query, limit=limit)
            return [experience_item(each, result, fresh(each.created_at)) for each, result in found]

        async def values() -> list[ContextItem]:
            return [value_item(*found) for found in await searcher.search_values(query, limit)]

        async def commits() -> list[ContextItem]:
            found = await searcher.search_commits(query, limit)
            return [commit_item(each, result, fresh(each.timestamp)) for each, result in found]

        return {"memories": memories, "code": code, "experiences": experiences, "values": values, "commits": commits}[
            name
        ]

    def _premortem(self, domain: str, strategy: str | None, limit: int) -> dict[str, Search]:
        search = self._searcher.search_experiences

        async def failures() -> list[ContextItem]:
            query = f"failures and issues in {domain}"
            found = await search(query, domain=domain, outcome="falsified", limit=limit)
            return [explained_item(*each) for each in found]

        async def performance() -> list[ContextItem]:
            query = f"outcomes using {strategy} strategy"
            found = await search(query, axis="strategy", strategy=strategy, limit=limit)
            items = [aspect_item("strategy", *each) for each in found]
            # Failures first: they are what a premortem is for.
            return [
                replace(item, rank=item.rank + FAILED * (item.metadata["outcome_status"] == "falsified"))
                for item in items
            ]

        async def surprises() -> list[ContextItem]:
            found = await search(f"unexpected outcomes in {domain}", axis="surprise", domain=domain, limit=limit)
            return [aspect_item("surprise", *each) for each in found]

        async def root_causes() -> list[ContextItem]:
            found = await search(f"why hypotheses fail in {domain}", axis="root_cause", domain=domain, limit=limit)
            return [aspect_item("root_cause", *each) for each in found]

        async def principles() -> list[ContextItem]:
            query = f"principles for {domain}{f' using {strategy}' if strategy else ''}"
            found = await self._searcher.search_values(query, 4 * PRINCIPLES)
            # One of other domains alone is no principle here.
            own = [each for each in found if domain in (each[0].domains or (domain,))]
            return [value_item(*each) for each in own[:PRINCIPLES]]

        return {
            "Common Failures": failures,
            **({"Strategy Performance": performance} if strategy else {}),
            "Unexpected Outcomes": surprises,
            "Root Causes to Watch": root_causes,
            "Relevant Principles": principles,
        }

    async def _asked(
        self, searches: Mapping[str, Search], until: float
    ) -> tuple[dict[str, list[ContextItem]], tuple[SourceFailure, ...]]:
        """What all of them found, asked nearly at once; one that fails or is late is told, and the others go on."""
        tasks: dict[str, asyncio.Future[list[ContextItem]]] = {}
        try:
            for name, search in searches.items():
                tasks[name] = asyncio.ensure_future(search())
                await asyncio.sleep(0)
                # Searches that compute would get in each other's way; those that wait for a server do not.
                if not tasks[name].done():
                    await asyncio.wait([tasks[name]], timeout=_PATIENCE)
            left = max(0.0, until - asyncio.get_running_loop().time())
            done, _ = await asyncio.wait(tasks.values(), timeout=left)
        finally:
            for task in tasks.values():
                task.cancel()
        failures = {
            name: failure
            for name, task in tasks.items()
            if (failure := failure_of(name, task, task in done, self._deadline))
        }
        _log(failures.values())
        found = {name: task.result() for name, task in tasks.items() if name not in failures}
        ranked = {name: sorted(items, key=lambda item: -item.rank) for name, items in found.items()}
        return ranked, tuple(failures.values())

    def _late(self, names: Iterable[str]) -> tuple[SourceFailure, ...]:
        """That none of these answered in time."""
        failures = tuple(SourceFailure.of(name, TimeoutError(), self._deadline) for name in names)
        _log(failures)
        return failures

    def _fitted(
        self,
        title: str,
        found: Mapping[str, Sequence[ContextItem]],
        weights: Mapping[str, int],
        max_tokens: int,
        footer: Callable[[Sequence[ContextItem]], str],
        overflow: Overflow | None = None,
    ) -> FormattedContext:
        # Most texts are counted again and again.
        count = cache(reliable(self._count_tokens))
        distinct = distinct_items(found)
        every = [item for each in distinct.values() for item in each]
        if not every:
            return FormattedContext()
        frame = assembled(
            title, {name: [ContextItem(source="", content="", relevance=0)] for name in distinct}, footer(every)
        )
        kept = within(distinct, weights, max(0, max_tokens - count(frame)), count)
        if (overflow or self._overflow) == "soft":
            kept = {name: items or _first(distinct[name], max_tokens, count) for name, items in kept.items()}
        return self._told(title, kept, max_tokens, footer, count, overflow or self._overflow)

    def _told(
        self,
        title: str,
        kept: dict[str, list[ContextItem]],
        max_tokens: int,
        footer: Callable[[Sequence[ContextItem]], str],
        count: TokenCounter,
        overflow: Overflow,
    ) -> FormattedContext:
        def written() -> str:
            return assembled(title, kept, footer([item for each in kept.values() for item in each]))

        # Whatever the counter makes of the whole, a hard budget holds.
        while (tokens := count(text := written())) > max_tokens and overflow == "hard":
            longest = max(kept.values(), key=len)
            longest.pop()
        items = sorted((item for each in kept.values() for item in each), key=lambda item: -item.relevance)
        used: dict[str, int] = {}
        for item in items:
            used[item.source] = used.get(item.source, 0) + 1
        if tokens > max_tokens:
            logger.warning("budget.exceeded", tokens=tokens, max_tokens=max_tokens, items=len(items))
        return FormattedContext(
            markdown=text,
            items=tuple(items),
            token_count=tokens,
            sources_used=used,
            budget_exceeded=tokens > max_tokens,
            truncated_items=sum(item.truncated for item in items),
        )


def _log(failures: Iterable[SourceFailure]) -> None:
    for failure in failures:
        logger.warning("source.failed", source=failure.source, error=failure.error)


def _first(items: Sequence[ContextItem], max_tokens: int, count: TokenCounter) -> list[ContextItem]:
    """The best item, cut to a quarter of all, or whole if even that is too little."""
    return [capped(items[0], max(1, max_tokens // 4), count) or items[0]] if items else []


def _each_once(found: Mapping[str, Sequence[ContextItem]]) -> dict[str, list[ContextItem]]:
    """Each experience in one section only: the sections take their best by turns."""
    waiting = {name: list(items) for name, items in found.items()}
    shown: dict[str, list[ContextItem]] = {name: [] for name in found}
    taken: set[object] = set()
    while any(waiting.values()):
        for name, items in waiting.items():
            while items:
                item = items.pop(0)
                if item.metadata["id"] not in taken:
                    taken.add(item.metadata["id"])
                    shown[name].append(item)
                    break
    return shown


def _total(items: Sequence[ContextItem]) -> str:
    sources = len({item.source for item in items})
    return f"{len(items)} item{'s' * (len(items) != 1)} from {sources} source{'s' * (sources != 1)}"


def _based_on(items: Sequence[ContextItem]) -> str:
    experiences = len({item.metadata["id"] for item in items if item.source == "experience"})
    return f"Based on {experiences} past experience{'s' * (experiences != 1)}"


def _known(types: Sequence[str]) -> Sequence[str]:
    unknown = types if isinstance(types, str) else [name for name in types if name not in WEIGHTS]
    if unknown or not types:
        told = f"context_types must be a list of names among {list(WEIGHTS)}, got {unknown or types!r}"
        raise InvalidContextTypeError(told)
    return types
