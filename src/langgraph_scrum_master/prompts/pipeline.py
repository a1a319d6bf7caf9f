"""Context for a prompt: the memories that serve it, how it differs from recent work, what the last session came to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import TypeAlias

from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.recorders import record
from langgraph_scrum_master._internal.threads import off_loop, wait_for
from langgraph_scrum_master.config import PROMPT_BUDGET, RecencyWeights, TokenBudget
from langgraph_scrum_master.errors import ConfigError, EmbeddingError, InjectionError
from langgraph_scrum_master.model import (
    HIGH_AGREEMENT,
    Dropped,
    Query,
    RetrievedContext,
    SourceFailure,
    instant,
)
from langgraph_scrum_master.prompts.divergence import DivergenceSource, goes_on
from langgraph_scrum_master.prompts.hints import hints
from langgraph_scrum_master.prompts.last_session import SessionSource
from langgraph_scrum_master.prompts.markdown import HEADINGS, TITLE, line, markdown
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
from langgraph_scrum_master.protocols import Clock, MemoryStore, Source, TokenCounter, checked_memory, missing, supports
from langgraph_scrum_master.retrieval.counting import reliable
from langgraph_scrum_master.retrieval.dedupe import dropped
from langgraph_scrum_master.retrieval.retrieve import OPENING, open_memory, retrieve
from langgraph_scrum_master.text.similarity import Whole
from langgraph_scrum_master.text.tokens import estimate_tokens

NOTHING_FOUND = "No relevant memories found. This appears to be a new topic."

_CANDIDATES = 100
"""Memories that are put in order."""

_LOOKED_AT = 4_000
"""Characters of a memory that are looked at: it is cut to far less."""

MOST_HINTING = 6
"""Contexts whose times are told of, the best."""

MIN_RELEVANCE_SCORE = 0.6
"""Below it a memory is left out, even if some space agrees on it."""


PromptRecorder: TypeAlias = Callable[[PromptResult], None]
"""Keeps a result for the audit trail, such as `JsonlRecorder`. May block; what it raises is logged."""


class InjectionPipeline:
    """Finds what a prompt should be answered with in mind, within a token budget, as Markdown.

    `session_summary` is what the last session came to, where the host knows; else it is asked of the memory, which
    learns it by `end_session`. Days and times of day are those of the time zone. `sources` are asked beside the memory,
    and what they give is ordered with the memories.
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
        self._sessions = memory if supports(memory, "sessions") else None
        self._sources = tuple(sources)
        self._summary = session_summary
        self._bar = min_relevance_score
        self._deadline = deadline
        self._zone = zone
        self._clock = clock
        self._count_tokens = count_tokens
        self._recorder = recorder
        self._opened = False
        self.set_token_budget(budget)
        self.configure_recency_weights(recency_weights or RecencyWeights())

    def set_token_budget(self, budget: TokenBudget) -> None:
        """The tokens of each section from now on; a section that is not named gets none."""
        if not isinstance(budget, TokenBudget):
            raise ConfigError(f"the budget must be a TokenBudget, such as {PROMPT_BUDGET!r}, got {budget!r}")
        self._budget = budget.only(*PROMPT_BUDGET)

    def configure_recency_weights(self, weights: RecencyWeights) -> None:
        """How much a memory counts by its age, from now on."""
        if not isinstance(weights, RecencyWeights):
            raise ConfigError(f"the weights must be RecencyWeights, got {weights!r}")
        self._weights = weights

    def inject_context(self, query: str, session_id: str) -> PromptResult:
        """Context for the prompt; also inside a running event loop, which it then holds up."""
        return wait_for(self.ainject_context(query, session_id))

    async def ainject_context(self, query: str, session_id: str) -> PromptResult:
        """Context for the prompt. Raises `InjectionError` if the query cannot be embedded or the memory fails.

        What is late by the deadline is left out, and told in the result's `failures`.
        """
        _refuse_unless_text(query, "query")
        _refuse_unless_text(session_id, "session_id")
        started = self._clock()
        if not self._opened:
            await open_memory(self._memory, OPENING * self._deadline)
            self._opened = True
        now = datetime.fromtimestamp(self._clock(), UTC).isoformat()
        asked = Query(text=query, agent="", now=now, k=_CANDIDATES, session=session_id)
        found, failures = await self._found(asked)
        try:
            result = await asyncio.wait_for(off_loop(self._fitted, asked, found, failures), self._deadline)
        except TimeoutError:
            late = SourceFailure(source="fit", error="", late=True)
            _, failures = self._timed_out([], (*failures, late), asked)
            result = self._fitted(asked, [], failures)
        result = replace(result, duration_ms=(self._clock() - started) * 1000)
        _log(result)
        await record(result, self._recorder, self._deadline)
        return result

    def end_session(self, session_id: str, summary: str) -> None:
        """Keep what the session came to: the next one is told of it."""
        wait_for(self.aend_session(session_id, summary))

    async def aend_session(self, session_id: str, summary: str) -> None:
        """Keep what the session came to: the next one is told of it."""
        if self._sessions is None:
            raise missing(self._memory, "end_session", "sessions")
        await self._sessions.end_session(session_id, summary, datetime.fromtimestamp(self._clock(), UTC).isoformat())

    async def _found(self, asked: Query) -> tuple[list[RetrievedContext], tuple[SourceFailure, ...]]:
        if not asked.text.strip():
            return [], ()
        # Started before the memory is asked, so that slow ones lose no time.
        others = asyncio.ensure_future(retrieve([asked], {}, self._sources, self._deadline)) if self._sources else None
        try:
            found, failures = await self._remembered(asked)
            more, further = _own(*await others) if others else ([], ())
        except EmbeddingError as error:
            raise InjectionError(f"Failed to embed query: {error}") from error
        except Exception as error:
            raise InjectionError(f"Failed to retrieve memories: {error}") from error
        finally:
            if others:
                others.cancel()
        return self._timed_out([*found, *more], (*failures, *further), asked)

    async def _remembered(self, asked: Query) -> tuple[list[RetrievedContext], tuple[SourceFailure, ...]]:
        """What the memory has; its searches one after the other, for in this process they would slow each other."""
        until = asyncio.get_running_loop().time() + self._deadline
        similar = SimilarSource(self._memory)
        found, failures = await retrieve([asked], {}, [similar], self._deadline, must=(similar.name,))
        left = max(0.0, until - asyncio.get_running_loop().time())
        more, further = await retrieve([asked], {}, self._about_sessions(asked, found), left)
        return [*found, *more], (*failures, *further)

    def _timed_out(
        self, found: list[RetrievedContext], failures: tuple[SourceFailure, ...], asked: Query
    ) -> tuple[list[RetrievedContext], tuple[SourceFailure, ...]]:
        """The same, with what was late told in the words for that."""
        told = f"Context injection timed out after {self._deadline * 1000:.0f}ms"
        if late := [failure.source for failure in failures if failure.late]:
            answered = sorted({context.source for context in found})
            logger.warning("injection.timed_out", error=told, late=late, answered=answered, session=asked.session)
        return found, tuple(replace(each, error=told) if each.late else each for each in failures)

    def _about_sessions(self, asked: Query, found: Sequence[RetrievedContext]) -> list[Source]:
        if self._sessions is None:
            return []
        last: list[Source] = [SessionSource(self._sessions)] if self._summary is None else []
        return last if goes_on(asked, found, MIN_RELEVANCE_SCORE) else [*last, DivergenceSource(self._sessions)]

    def _fitted(
        self, asked: Query, found: Sequence[RetrievedContext], failures: tuple[SourceFailure, ...]
    ) -> PromptResult:
        count = reliable(self._count_tokens)
        wanted, left, priorities = self._sorted_out(asked, found)
        costs = self._costs(asked, count)
        kept, over = allocate(wanted, self._budget, costs)
        best = [*kept[SESSION], *kept[CLOSE], *kept[RELATED]][:MOST_HINTING]
        hinted, unsaid = allocate({HINTS: hints(asked, best, self._zone)}, self._budget, costs)
        kept[HINTS] = hinted[HINTS]
        text, tokens, excess = self._written(asked, kept, count)
        contexts = tuple(
            replace(context, priority=priorities[context.key]) if context.key in priorities else context
            for each in kept.values()
            for context in each
        )
        _tell_cut(contexts, wanted, count)
        if not any(wanted.values()) and not failures and (needed := count(NOTHING_FOUND)) <= self._budget.total:
            text, tokens = NOTHING_FOUND, needed
        return PromptResult(
            query=asked.text,
            session_id=asked.session,
            at=asked.now,
            contexts_retrieved=contexts,
            text=text,
            total_tokens=tokens,
            dropped=(*left, *over, *unsaid, *excess),
            failures=failures,
        )

    def _sorted_out(
        self, asked: Query, found: Sequence[RetrievedContext]
    ) -> tuple[dict[str, list[RetrievedContext]], list[Dropped], dict[str, float]]:
        """What was found by sections, the best first, what is left as weak, told or asked, and the priorities."""
        summaries = [context for context in found if context.source == "session"]
        if self._summary and asked.text.strip():
            summaries = [_summary(asked, self._summary)]
        told = {context.key for context in summaries}
        others = [_head(context) for context in found if context.source not in ("alert", "session")]
        ranked, weak = prioritized(others, self._bar, instant(asked.now), self._weights)
        good = [context for _, context in ranked]
        question, near = Whole(asked.text), 20 + len(asked.text) // 2
        known = [
            each
            for each in good
            if each.key in told or (abs(len(each.content) - len(asked.text)) < near and each.content in question)
        ]
        new = [each for each in good if each not in known] if known else good
        sections = {
            ALERTS: [context for context in found if context.source == "alert"],
            CLOSE: [context for context in new if context.weighted_agreement >= HIGH_AGREEMENT],
            RELATED: [context for context in new if context.weighted_agreement < HIGH_AGREEMENT],
            SESSION: summaries,
        }
        left = [*weak, *(dropped(each, "already_seen") for each in known)]
        return sections, left, {context.key: priority for priority, context in ranked}

    def _costs(self, asked: Query, count: TokenCounter) -> Costs:
        now, known = instant(asked.now), dict[tuple[str, str], int]()

        def cost(context: RetrievedContext) -> int:
            shown = (context.content, context.created_at)
            if shown not in known:
                known[shown] = count(line(context, now, self._zone) + "\n")
            return known[shown]

        headings = {name: count(f"{heading}\n\n") for name, heading in HEADINGS.items()}
        return Costs(count(f"{TITLE}\n\n"), headings, cost, count)

    def _written(
        self, asked: Query, kept: dict[str, list[RetrievedContext]], count: TokenCounter
    ) -> tuple[str, int, list[Dropped]]:
        """The text and its tokens, within the budget whatever a counter makes of the whole; the least goes first."""
        excess: list[Dropped] = []
        while (tokens := count(text := markdown(kept, instant(asked.now), self._zone))) > self._budget.total:
            last = next((each for each in reversed(kept.values()) if each), None)
            if last is None:
                return "", 0, excess
            excess.append(dropped(last.pop(), "over_budget"))
        return text, tokens, excess


def _own(
    found: list[RetrievedContext], failures: tuple[SourceFailure, ...]
) -> tuple[list[RetrievedContext], tuple[SourceFailure, ...]]:
    """What others' sources gave, without what only the pipeline itself may say."""
    ours = [context for context in found if context.source in ("alert", "session", "hint")]
    refused = {
        context.source: SourceFailure(source=context.source, error=f"a source must not give {context.source!r}")
        for context in ours
    }
    return [context for context in found if context.source not in refused], (*failures, *refused.values())


def _head(context: RetrievedContext) -> RetrievedContext:
    """As much of a context as can be shown, and more: the rest need not be looked at."""
    return replace(context, content=context.content[:_LOOKED_AT]) if len(context.content) > _LOOKED_AT else context


def _refuse_unless_text(value: object, name: str) -> None:
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


def _summary(asked: Query, text: str) -> RetrievedContext:
    return RetrievedContext(source="session", content=text, relevance_score=1.0, retrieved_at=asked.now, key="session")


def _tell_cut(contexts: Sequence[RetrievedContext], wanted: Sections, count: TokenCounter) -> None:
    """Log which memories were cut because there is no room for them."""
    before = {context.key: context.content for each in wanted.values() for context in each}
    for context in contexts:
        if context.truncated and context.key in before:
            whole, left = count(before[context.key]), count(context.content)
            told = f"Truncated memory {context.key} from {whole} to {left} tokens"
            logger.info("memory.truncated", key=context.key, tokens=whole, kept=left, told=told)
