"""The pipeline from a prompt to its context."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import TypeAlias

from langgraph_scrum_master._internal.breakers import Breakers
from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.recorders import record
from langgraph_scrum_master._internal.threads import off_loop, wait_for
from langgraph_scrum_master.config import PROMPT_BUDGET, TokenBudget
from langgraph_scrum_master.errors import ConfigError, EmbeddingError, InjectionError
from langgraph_scrum_master.model import (
    HIGH_AGREEMENT,
    Dropped,
    Query,
    RetrievedContext,
    SourceFailure,
    instant,
)
from langgraph_scrum_master.prompts.divergence import DivergenceSource, continues
from langgraph_scrum_master.prompts.hints import hints
from langgraph_scrum_master.prompts.last_session import TURN, SessionSource
from langgraph_scrum_master.prompts.markdown import HEADINGS, TITLE, closing, line, markdown
from langgraph_scrum_master.prompts.priority import prioritized
from langgraph_scrum_master.prompts.result import PromptResult
from langgraph_scrum_master.prompts.sections import (
    ALERTS,
    CLOSE,
    HINTS,
    RELATED,
    SESSION,
    Costs,
    Sections,
    allocate,
)
from langgraph_scrum_master.prompts.similar import SimilarSource
from langgraph_scrum_master.protocols import (
    Clock,
    MemoryStore,
    SessionMemory,
    Source,
    TokenCounter,
    checked_memory,
    missing,
    supports,
)
from langgraph_scrum_master.rank.recency import RecencyWeights
from langgraph_scrum_master.retrieval.counting import reliable
from langgraph_scrum_master.retrieval.dedupe import dropped
from langgraph_scrum_master.retrieval.retrieve import OPENING, open_memory, retrieve
from langgraph_scrum_master.text.similarity import ExactTexts
from langgraph_scrum_master.text.terms import terms
from langgraph_scrum_master.text.tokens import estimate_tokens

NOTHING_FOUND = "No relevant memories found. This appears to be a new topic."

_CANDIDATES = 100
"""The number of memories to rank."""

_MAX_CHARACTERS = 40_000
"""The maximum number of characters of a memory that are searched for the passage to show."""

MAX_HINTED = 6
"""The number of contexts, best first, that hints are made for."""

MIN_RELEVANCE_SCORE = 0.6
"""The minimum score of a memory."""

PromptRecorder: TypeAlias = Callable[[PromptResult], None]
"""Records a result for the audit trail, such as `JsonlRecorder`. It may block; exceptions are logged."""


class InjectionPipeline:
    """Retrieves context for a prompt, as Markdown within a token budget.

    `session_summary` is the summary of the last session; by default the memory has it from `end_session`. Contexts
    from additional `sources` are ranked together with the memories. Days and times of day are those of `zone`.

    `sessions` is the memory with the turns and summaries of sessions, by default the memory itself. `alerts=False`
    switches alerts off. With `precise`, only what is about the prompt is given: memories that may answer it and have
    several of its words in one place, and the last session's summary if the prompt is about that session.
    """

    def __init__(
        self,
        memory: MemoryStore,
        *,
        budget: TokenBudget = PROMPT_BUDGET,
        recency_weights: RecencyWeights | None = None,
        min_relevance_score: float = MIN_RELEVANCE_SCORE,
        deadline: float = 2.0,
        session_summary: str | None = None,
        sessions: SessionMemory | None = None,
        alerts: bool = True,
        precise: bool = False,
        sources: Iterable[Source] = (),
        zone: tzinfo = UTC,
        clock: Clock = time.time,
        count_tokens: TokenCounter = estimate_tokens,
        recorder: PromptRecorder | None = None,
    ) -> None:
        if not 0 <= min_relevance_score <= 1:
            raise ConfigError(f"min_relevance_score must be a number from 0 to 1, got {min_relevance_score!r}")
        if not isinstance(zone, tzinfo):
            raise ConfigError(f"zone must be a tzinfo, such as ZoneInfo('Europe/Berlin'), got {zone!r}")
        if not deadline > 0:
            raise ConfigError(f"deadline must be a number of seconds above 0, got {deadline!r}")
        self._memory = checked_memory(memory)
        self._sessions = sessions or (memory if supports(memory, "sessions") else None)
        self._alerts = alerts
        self._precise = precise
        self._sources = tuple(sources)
        self._summary = session_summary
        self._bar = min_relevance_score
        self._deadline = deadline
        self._zone = zone
        self._clock = clock
        self._count_tokens = count_tokens
        self._recorder = recorder
        self._opened = False
        self._breakers = Breakers()
        self.set_token_budget(budget)
        self.configure_recency_weights(recency_weights or RecencyWeights())

    def set_token_budget(self, budget: TokenBudget) -> None:
        """Set the tokens of each section. A section that is not named gets none."""
        if not isinstance(budget, TokenBudget):
            raise ConfigError(f"budget must be a TokenBudget, such as {PROMPT_BUDGET!r}, got {budget!r}")
        self._budget = budget.only(*PROMPT_BUDGET)

    def configure_recency_weights(self, weights: RecencyWeights) -> None:
        """Set the factors by which the age of a memory changes its priority."""
        if not isinstance(weights, RecencyWeights):
            raise ConfigError(f"weights must be RecencyWeights, got {weights!r}")
        self._weights = weights

    def inject_context(self, query: str, session_id: str) -> PromptResult:
        """Like `ainject_context`, for synchronous code. Inside a running event loop it blocks the loop."""
        return wait_for(self.ainject_context(query, session_id))

    async def ainject_context(self, query: str, session_id: str) -> PromptResult:
        """Context for the prompt. Raises `InjectionError` if the query cannot be embedded or the memory fails.

        Sources that miss the deadline are recorded in the result's `failures`.
        """
        _check_text(query, "query")
        _check_text(session_id, "session_id")
        started = self._clock()
        if not self._opened:
            await open_memory(self._memory, OPENING * self._deadline)
            self._opened = True
        now = datetime.fromtimestamp(self._clock(), UTC).isoformat()
        request = Query(text=query, agent="", now=now, k=_CANDIDATES, session=session_id)
        contexts, failures = await self._retrieve(request)
        try:
            result = await asyncio.wait_for(off_loop(self._fit, request, contexts, failures), self._deadline)
        except TimeoutError:
            late = SourceFailure(source="fit", error="", late=True)
            failures = self._describe_timeouts(request, [], (*failures, late))
            result = self._fit(request, [], failures)
        result = replace(result, duration_ms=(self._clock() - started) * 1000)
        _log(result)
        await record(result, self._recorder, self._deadline)
        return result

    def end_session(self, session_id: str, summary: str) -> None:
        """Store the summary of a session for the next one."""
        wait_for(self.aend_session(session_id, summary))

    async def aend_session(self, session_id: str, summary: str) -> None:
        """Store the summary of a session for the next one."""
        if self._sessions is None:
            raise missing(self._memory, "end_session", "sessions")
        await self._sessions.end_session(session_id, summary, datetime.fromtimestamp(self._clock(), UTC).isoformat())

    async def _retrieve(self, query: Query) -> tuple[list[RetrievedContext], tuple[SourceFailure, ...]]:
        if not query.text.strip():
            return [], ()
        # Started first, so that slow sources overlap with the memory.
        others = asyncio.ensure_future(self._found_in(query, self._sources, self._deadline)) if self._sources else None
        try:
            contexts, failures = await self._search_memory(query)
            more, further = _without_reserved(*await others) if others else ([], ())
        except EmbeddingError as error:
            raise InjectionError(f"Failed to embed query: {error}") from error
        except BaseException as raised:
            failure = recordable(raised)
            raise InjectionError(f"Failed to retrieve memories: {failure}") from raised
        finally:
            if others:
                others.cancel()
        contexts = [*contexts, *more]
        return contexts, self._describe_timeouts(query, contexts, (*failures, *further))

    async def _search_memory(self, query: Query) -> tuple[list[RetrievedContext], tuple[SourceFailure, ...]]:
        """Search the memory, sequentially: in one process, concurrent searches slow each other down."""
        until = asyncio.get_running_loop().time() + self._deadline
        similar = SimilarSource(self._memory, self._precise)
        contexts, failures = await self._found_in(query, [similar], self._deadline, must=(similar.name,))
        remaining = max(0.0, until - asyncio.get_running_loop().time())
        more, further = await self._found_in(query, self._session_sources(query, contexts), remaining)
        return [*contexts, *more], (*failures, *further)

    async def _found_in(
        self, query: Query, sources: Sequence[Source], deadline: float, must: Sequence[str] = ()
    ) -> tuple[list[RetrievedContext], tuple[SourceFailure, ...]]:
        return await retrieve([query], {}, sources, deadline, must, self._breakers)

    def _describe_timeouts(
        self, query: Query, contexts: Sequence[RetrievedContext], failures: tuple[SourceFailure, ...]
    ) -> tuple[SourceFailure, ...]:
        """The failures, with one message for all timeouts, which are logged."""
        message = f"Context injection timed out after {self._deadline * 1000:.0f}ms"
        if late := [failure.source for failure in failures if failure.late]:
            answered = sorted({context.source for context in contexts})
            logger.warning("injection.timed_out", error=message, late=late, answered=answered, session=query.session)
        return tuple(replace(each, error=message) if each.late else each for each in failures)

    def _session_sources(self, query: Query, contexts: Sequence[RetrievedContext]) -> list[Source]:
        if self._sessions is None:
            return []
        last: list[Source] = []
        if self._summary is None:
            last.append(SessionSource(self._sessions, self._precise))
        if not self._alerts or continues(query, contexts, MIN_RELEVANCE_SCORE):
            return last
        return [*last, DivergenceSource(self._sessions)]

    def _fit(
        self, query: Query, contexts: Sequence[RetrievedContext], failures: tuple[SourceFailure, ...]
    ) -> PromptResult:
        count = reliable(self._count_tokens)
        wanted, left, priorities = self._by_section(query, contexts)
        costs = self._costs(query, count)
        kept, over = allocate(wanted, self._budget, costs)
        best = [*kept[SESSION], *kept[CLOSE], *kept[RELATED]][:MAX_HINTED]
        turns = [context for context in contexts if context.source == TURN] if best else []
        hinted = {HINTS: hints(query, best, self._zone, turns)}
        fitting_hints, other_hints = allocate(hinted, self._budget, costs)
        kept[HINTS] = fitting_hints[HINTS]
        text, tokens, excess = self._render(query, kept, count)
        included = tuple(
            replace(context, priority=priorities[context.key]) if context.key in priorities else context
            for each in kept.values()
            for context in each
        )
        _log_cuts(included, wanted, count)
        if not any(wanted.values()) and not failures and (needed := count(NOTHING_FOUND)) <= self._budget.total:
            text, tokens = NOTHING_FOUND, needed
        return PromptResult(
            query=query.text,
            session_id=query.session,
            at=query.now,
            contexts_retrieved=included,
            text=text,
            total_tokens=tokens,
            dropped=(*left, *over, *other_hints, *excess),
            failures=failures,
        )

    def _by_section(
        self, query: Query, contexts: Sequence[RetrievedContext]
    ) -> tuple[dict[str, list[RetrievedContext]], list[Dropped], dict[str, float]]:
        """The contexts by section, best first; the dropped ones; and priorities by key."""
        summaries = [context for context in contexts if context.source == "session"]
        if self._summary and query.text.strip():
            summaries = [_summary(query, self._summary)]
        summary_keys = {context.key for context in summaries}
        others = [_head(context) for context in contexts if context.source not in ("alert", "session", TURN)]
        ranked, weak = prioritized(others, self._bar, instant(query.now), self._weights)
        good = [context for _, context in ranked]
        question, tolerance = ExactTexts(query.text), 20 + len(query.text) // 2
        known = [
            each
            for each in good
            if each.key in summary_keys
            or (abs(len(each.content) - len(query.text)) < tolerance and each.content in question)
        ]
        new = [each for each in good if each not in known] if known else good
        sections = {
            ALERTS: [context for context in contexts if context.source == "alert"],
            CLOSE: [context for context in new if context.weighted_agreement >= HIGH_AGREEMENT],
            RELATED: [context for context in new if context.weighted_agreement < HIGH_AGREEMENT],
            SESSION: summaries,
        }
        left = [*weak, *(dropped(each, "already_seen") for each in known)]
        return sections, left, {context.key: priority for priority, context in ranked}

    def _costs(self, query: Query, count: TokenCounter) -> Costs:
        now, cache = instant(query.now), dict[tuple[str, str], int]()

        def cost(context: RetrievedContext) -> int:
            key = (context.content, context.created_at)
            if key not in cache:
                cache[key] = count(line(context, now, self._zone) + "\n")
            return cache[key]

        headings = {name: count("\n".join([heading, *closing(name), "\n"])) for name, heading in HEADINGS.items()}
        return Costs(count(f"{TITLE}\n\n"), headings, cost, count, dict.fromkeys(terms(query.text), 1.0))

    def _render(
        self, query: Query, kept: dict[str, list[RetrievedContext]], count: TokenCounter
    ) -> tuple[str, int, list[Dropped]]:
        """The text and its tokens. The last contexts are dropped if the whole exceeds the budget."""
        excess: list[Dropped] = []
        while (tokens := count(text := markdown(kept, instant(query.now), self._zone))) > self._budget.total:
            last = next((each for each in reversed(kept.values()) if each), None)
            if last is None:
                return "", 0, excess
            excess.append(dropped(last.pop(), "over_budget"))
        return text, tokens, excess


def _without_reserved(
    contexts: list[RetrievedContext], failures: tuple[SourceFailure, ...]
) -> tuple[list[RetrievedContext], tuple[SourceFailure, ...]]:
    """The contexts of custom sources. Names that the pipeline uses itself are rejected as failures."""
    reserved = [context for context in contexts if context.source in ("alert", "session", "hint", TURN)]
    rejected = {
        context.source: SourceFailure(source=context.source, error=f"a source must not return {context.source!r}")
        for context in reserved
    }
    return [context for context in contexts if context.source not in rejected], (*failures, *rejected.values())


def _head(context: RetrievedContext) -> RetrievedContext:
    """The start of a context, if that is very long."""
    too_long = len(context.content) > _MAX_CHARACTERS
    return replace(context, content=context.content[:_MAX_CHARACTERS]) if too_long else context


def _check_text(value: object, name: str) -> None:
    if not isinstance(value, str):
        raise InjectionError(f"{name} must be a text, got {value!r}")


def _log(result: PromptResult) -> None:
    logger.info(
        "prompt.injected" if result.injected else "prompt.abstained",
        session=result.session_id,
        contexts=[context.key for context in result.contexts_retrieved],
        dropped=len(result.dropped),
        failures=[failure.source for failure in result.failures],
        tokens=result.total_tokens,
        duration_ms=round(result.duration_ms, 3),
    )


def _summary(query: Query, text: str) -> RetrievedContext:
    return RetrievedContext(source="session", content=text, relevance_score=1.0, retrieved_at=query.now, key="session")


def _log_cuts(contexts: Sequence[RetrievedContext], wanted: Sections, count: TokenCounter) -> None:
    """Log the memories that were cut."""
    before = {context.key: context.content for each in wanted.values() for context in each}
    for context in contexts:
        if context.truncated and context.key in before:
            whole, left = count(before[context.key]), count(context.content)
            message = f"Truncated memory {context.key} from {whole} to {left} tokens"
            logger.info("memory.truncated", key=context.key, tokens=whole, kept=left, detail=message)
