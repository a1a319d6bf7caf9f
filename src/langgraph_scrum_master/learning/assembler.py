"""Context for a query, or a premortem before risky work, within a token budget."""

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
from langgraph_scrum_master.learning.fit import capped, choose_items, distinct_items
from langgraph_scrum_master.learning.records import ContextItem, Strategy, check_search
from langgraph_scrum_master.learning.render import (
    SOURCE_SECTIONS,
    aspect_item,
    code_item,
    commit_item,
    experience_item,
    explained_item,
    memory_item,
    render_sections,
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
"""How sources share the tokens, by hand: larger records get a larger share."""

_HEAD_START = 0.05
"""Seconds to wait for one source before the next search starts."""

MIN_RELEVANCE = 0.35
"""The minimum score of an item. Unrelated texts score about 0.3, useful ones 0.7 or more."""

MAX_PRINCIPLES = 5
"""The number of values in a premortem."""

FAILURE_BOOST = 2
"""Added to the rank of failures, so that they precede successes."""

_SOURCES = {"memories": "memory", "code": "code", "experiences": "experience", "values": "value", "commits": "commit"}

Overflow: TypeAlias = Literal["soft", "hard"]
"""Whether each source with results keeps at least one item, even beyond the budget."""

Search: TypeAlias = Callable[[], Coroutine[Any, Any, list[ContextItem]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattedContext(Plain):
    """Assembled context: the Markdown text and its items."""

    markdown: str = ""
    items: tuple[ContextItem, ...] = ()
    """Most relevant first."""
    token_count: int = 0
    sources_used: dict[str, int] = field(default_factory=dict, hash=False)
    """The number of items per source."""
    budget_exceeded: bool = False
    truncated_items: int = 0
    failures: tuple[SourceFailure, ...] = ()
    """Sources that failed or missed the deadline."""

    def __post_init__(self) -> None:
        freeze(self, "items", "failures")


class ContextAssembler:
    """Assembles memories, code, experiences, values and commits within a token budget.

    Items below `min_relevance` are dropped. With `overflow="soft"`, the default, every source with results keeps at
    least one item; if that exceeds `max_tokens`, the result has `budget_exceeded` set. A premortem never exceeds its
    budget.
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
        """Context for the query from these types: memories, code, experiences, values or commits."""
        check_search(query, limit=limit, max_tokens=max_tokens)
        types = _valid_types(context_types)
        searches = {name: self._search(name, query, limit) for name in WEIGHTS if name in types}
        until = asyncio.get_running_loop().time() + self._deadline
        # A custom searcher may lack it.
        prefetch = getattr(self._searcher, "prefetch", lambda *_: nullcontext())
        try:
            async with prefetch(query, list(searches), limit, self._deadline):
                results, failures = await self._gather(searches, until)
        except TimeoutError:
            results, failures = {}, self._timed_out(searches)
        by_section = {SOURCE_SECTIONS[_SOURCES[name]]: self._relevant(items) for name, items in results.items()}
        weights = {SOURCE_SECTIONS[_SOURCES[name]]: WEIGHTS[name] for name in results}
        context = await off_loop(self._fit, "Context", by_section, weights, max_tokens, _total)
        return replace(context, failures=failures)

    async def get_premortem_context(
        self, domain: Domain | str, strategy: Strategy | str | None = None, limit: int = 10, max_tokens: int = 1500
    ) -> FormattedContext:
        """Past failures, surprises, root causes and principles for this domain and strategy."""
        one_of("domain", domain, Domain)
        if strategy is not None:
            one_of("strategy", strategy, Strategy)
        check_search(domain, limit=limit, max_tokens=max_tokens)
        until = asyncio.get_running_loop().time() + self._deadline
        results, failures = await self._gather(self._premortem(domain, strategy, limit), until)
        sections = _each_once(results)
        title = f"Premortem: {domain}{f' with {strategy}' if strategy else ''}"
        context = await off_loop(self._fit, title, sections, dict.fromkeys(sections, 1), max_tokens, _based_on, "hard")
        return replace(context, failures=failures)

    def _relevant(self, items: Sequence[ContextItem]) -> list[ContextItem]:
        return [item for item in items if item.relevance >= self._min_relevance]

    def _search(self, name: str, query: str, limit: int) -> Search:
        searcher, now = self._searcher, self._clock()

        def fresh(created_at: str) -> float:
            return 1 + (get_recency_factor(created_at, now) - 1) / 4

        async def memories() -> list[ContextItem]:
            return [memory_item(result) for result in await searcher.search_memories(query, limit)]

        async def code() -> list[ContextItem]:
            return [code_item(*match) for match in await searcher.search_code(query, limit)]

        async def experiences() -> list[ContextItem]:
            matches = await searcher.search_experiences(query, limit=limit)
            return [experience_item(each, result, fresh(each.created_at)) for each, result in matches]

        async def values() -> list[ContextItem]:
            return [value_item(*match) for match in await searcher.search_values(query, limit)]

        async def commits() -> list[ContextItem]:
            matches = await searcher.search_commits(query, limit)
            return [commit_item(each, result, fresh(each.timestamp)) for each, result in matches]

        return {"memories": memories, "code": code, "experiences": experiences, "values": values, "commits": commits}[
            name
        ]

    def _premortem(self, domain: str, strategy: str | None, limit: int) -> dict[str, Search]:
        search = self._searcher.search_experiences

        async def failures() -> list[ContextItem]:
            query = f"failures and issues in {domain}"
            matches = await search(query, domain=domain, outcome="falsified", limit=limit)
            return [explained_item(*match) for match in matches]

        async def performance() -> list[ContextItem]:
            query = f"outcomes using {strategy} strategy"
            matches = await search(query, axis="strategy", strategy=strategy, limit=limit)
            items = [aspect_item("strategy", *match) for match in matches]
            return [
                replace(item, rank=item.rank + FAILURE_BOOST * (item.metadata["outcome_status"] == "falsified"))
                for item in items
            ]

        async def surprises() -> list[ContextItem]:
            matches = await search(f"unexpected outcomes in {domain}", axis="surprise", domain=domain, limit=limit)
            return [aspect_item("surprise", *match) for match in matches]

        async def root_causes() -> list[ContextItem]:
            matches = await search(f"why hypotheses fail in {domain}", axis="root_cause", domain=domain, limit=limit)
            return [aspect_item("root_cause", *match) for match in matches]

        async def principles() -> list[ContextItem]:
            query = f"principles for {domain}{f' using {strategy}' if strategy else ''}"
            matches = await self._searcher.search_values(query, 4 * MAX_PRINCIPLES)
            # A value without domains applies to all of them.
            applicable = [match for match in matches if domain in (match[0].domains or (domain,))]
            return [value_item(*match) for match in applicable[:MAX_PRINCIPLES]]

        return {
            "Common Failures": failures,
            **({"Strategy Performance": performance} if strategy else {}),
            "Unexpected Outcomes": surprises,
            "Root Causes to Watch": root_causes,
            "Relevant Principles": principles,
        }

    async def _gather(
        self, searches: Mapping[str, Search], until: float
    ) -> tuple[dict[str, list[ContextItem]], tuple[SourceFailure, ...]]:
        """Run the searches concurrently. Those that fail or miss the deadline become failures."""
        tasks: dict[str, asyncio.Future[list[ContextItem]]] = {}
        try:
            for name, search in searches.items():
                tasks[name] = asyncio.ensure_future(search())
                await asyncio.sleep(0)
                # CPU-bound searches would slow each other down; those that wait for a server overlap.
                if not tasks[name].done():
                    await asyncio.wait([tasks[name]], timeout=_HEAD_START)
            remaining = max(0.0, until - asyncio.get_running_loop().time())
            done, _ = await asyncio.wait(tasks.values(), timeout=remaining)
        finally:
            for task in tasks.values():
                task.cancel()
        failures = {
            name: failure
            for name, task in tasks.items()
            if (failure := failure_of(name, task, task in done, self._deadline))
        }
        _log(failures.values())
        results = {name: task.result() for name, task in tasks.items() if name not in failures}
        ranked = {name: sorted(items, key=lambda item: -item.rank) for name, items in results.items()}
        return ranked, tuple(failures.values())

    def _timed_out(self, names: Iterable[str]) -> tuple[SourceFailure, ...]:
        failures = tuple(SourceFailure.of(name, TimeoutError(), self._deadline) for name in names)
        _log(failures)
        return failures

    def _fit(
        self,
        title: str,
        sections: Mapping[str, Sequence[ContextItem]],
        weights: Mapping[str, int],
        max_tokens: int,
        footer: Callable[[Sequence[ContextItem]], str],
        overflow: Overflow | None = None,
    ) -> FormattedContext:
        # Most texts are counted several times.
        count = cache(reliable(self._count_tokens))
        distinct = distinct_items(sections)
        every = [item for each in distinct.values() for item in each]
        if not every:
            return FormattedContext()
        frame = render_sections(
            title, {name: [ContextItem(source="", content="", relevance=0)] for name in distinct}, footer(every)
        )
        chosen = choose_items(distinct, weights, max(0, max_tokens - count(frame)), count)
        if (overflow or self._overflow) == "soft":
            chosen = {name: items or _first(distinct[name], max_tokens, count) for name, items in chosen.items()}
        return self._formatted(title, chosen, max_tokens, footer, count, overflow or self._overflow)

    def _formatted(
        self,
        title: str,
        chosen: dict[str, list[ContextItem]],
        max_tokens: int,
        footer: Callable[[Sequence[ContextItem]], str],
        count: TokenCounter,
        overflow: Overflow,
    ) -> FormattedContext:
        def render() -> str:
            return render_sections(title, chosen, footer([item for each in chosen.values() for item in each]))

        # The whole text can have more tokens than the sum of its parts.
        while (tokens := count(text := render())) > max_tokens and overflow == "hard":
            max(chosen.values(), key=len).pop()
        items = sorted((item for each in chosen.values() for item in each), key=lambda item: -item.relevance)
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
    """The best item, cut to a quarter of the budget; whole if that leaves nothing of it."""
    return [capped(items[0], max(1, max_tokens // 4), count) or items[0]] if items else []


def _each_once(results: Mapping[str, Sequence[ContextItem]]) -> dict[str, list[ContextItem]]:
    """Assign each experience to one section: the sections take turns in picking their best."""
    remaining = {name: list(items) for name, items in results.items()}
    sections: dict[str, list[ContextItem]] = {name: [] for name in results}
    taken: set[object] = set()
    while any(remaining.values()):
        for name, items in remaining.items():
            while items:
                item = items.pop(0)
                if item.metadata["id"] not in taken:
                    taken.add(item.metadata["id"])
                    sections[name].append(item)
                    break
    return sections


def _total(items: Sequence[ContextItem]) -> str:
    sources = len({item.source for item in items})
    return f"{len(items)} item{'s' * (len(items) != 1)} from {sources} source{'s' * (sources != 1)}"


def _based_on(items: Sequence[ContextItem]) -> str:
    experiences = len({item.metadata["id"] for item in items if item.source == "experience"})
    return f"Based on {experiences} past experience{'s' * (experiences != 1)}"


def _valid_types(types: Sequence[str]) -> Sequence[str]:
    unknown = types if isinstance(types, str) else [name for name in types if name not in WEIGHTS]
    if unknown or not types:
        message = f"context_types must be a list of names among {list(WEIGHTS)}, got {unknown or types!r}"
        raise InvalidContextTypeError(message)
    return types
