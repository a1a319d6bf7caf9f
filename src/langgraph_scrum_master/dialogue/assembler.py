"""Assembles the prompt of a dialogue turn from instructions, history, entities and knowledge."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.shapes import content_text, items_of, read, text_of
from langgraph_scrum_master._internal.threads import off_loop, wait_for
from langgraph_scrum_master.config import TokenBudget
from langgraph_scrum_master.dialogue.assembly import Assembly, PromptRequest
from langgraph_scrum_master.dialogue.budgets import (
    STRATEGIES,
    BudgetStrategy,
    Demand,
    allocate_budget,
    redistribute_unused,
    strategy_name,
)
from langgraph_scrum_master.dialogue.chat import message_tokens, runnable, shorten_steps, to_messages, user_message
from langgraph_scrum_master.dialogue.compress import handle_overflow
from langgraph_scrum_master.dialogue.history import HISTORY_MARGIN, format_history, format_turns, recent_tokens
from langgraph_scrum_master.dialogue.model import (
    AgentPersonality,
    ContextContent,
    DialogueSession,
    DialogueTurn,
    EntityContext,
    InjectedContext,
    ResolvedEntity,
    RetrievedChunks,
    UserPreferences,
)
from langgraph_scrum_master.dialogue.prompt import prompt_text
from langgraph_scrum_master.dialogue.records import turn_record
from langgraph_scrum_master.dialogue.session import DEFAULT_SESSION, read_session, split_at_user_turn, thread_of
from langgraph_scrum_master.dialogue.settings import HistoryConfig
from langgraph_scrum_master.dialogue.summarize import SUMMARY_DEADLINE, ExtractiveSummarizer, summarize_or_extract
from langgraph_scrum_master.dialogue.system import system_prompt
from langgraph_scrum_master.errors import ConfigError, QueryTooLongError
from langgraph_scrum_master.model import SourceFailure, iso
from langgraph_scrum_master.protocols import Clock, EntityLookup, Follows, Knowledge, Summarizer, TokenCounter
from langgraph_scrum_master.retrieval.counting import reliable
from langgraph_scrum_master.retrieval.retrieve import OPENING, open_memory
from langgraph_scrum_master.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig

    from langgraph_scrum_master.dialogue.turn_store import TurnRecords

T = TypeVar("T")

MAX_TOKENS = 4096

_Place: TypeAlias = Literal["system", "human"]
"""Where retrieved context goes: at the end of the system message, or before the user's turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledPrompt(InjectedContext):
    """A turn's prompt as messages and as a single text, and its parts."""

    messages: list[BaseMessage] = field(default_factory=list)


class _Retrieval(NamedTuple):
    resolved: Sequence[ResolvedEntity] = ()
    entities: Sequence[EntityContext] = ()
    active: int = 0
    chunks: RetrievedChunks = RetrievedChunks()
    failures: tuple[SourceFailure, ...] = ()


class PromptAssembler:
    """Builds the prompt of each dialogue turn within a token limit.

    Entities, knowledge and records are optional. A source that fails or misses the deadline is left out, logged and
    listed in the result's `failures`.
    """

    def __init__(
        self,
        *,
        instructions: str = "",
        personality: AgentPersonality | None = AgentPersonality(),  # noqa: B008 - frozen
        preferences: UserPreferences | None = None,
        entities: EntityLookup | None = None,
        knowledge: Knowledge | None = None,
        summarizer: Summarizer | None = None,
        strategy: str | BudgetStrategy = "dynamic",
        history: HistoryConfig = HistoryConfig(),  # noqa: B008 - frozen
        place: _Place = "system",
        records: TurnRecords | None = None,
        deadline: float = SUMMARY_DEADLINE,
        clock: Clock = time.time,
        count_tokens: TokenCounter = estimate_tokens,
    ) -> None:
        if place not in get_args(_Place):
            raise ConfigError(f"place must be one of {get_args(_Place)}, got {place!r}")
        _check_types(instructions=(instructions, str), history=(history, HistoryConfig))
        _check_types(
            personality=(personality, AgentPersonality, None), preferences=(preferences, UserPreferences, None)
        )
        _check_types(entities=(entities, EntityLookup, None), knowledge=(knowledge, Knowledge, None))
        _check_types(summarizer=(summarizer, Summarizer, None))
        if not deadline > 0:
            raise ConfigError(f"deadline must be a number of seconds above 0, got {deadline!r}")
        self._instructions = instructions
        self._personality = personality
        self._preferences = preferences
        self._entities = entities
        self._knowledge = knowledge
        self._summarizer = summarizer or ExtractiveSummarizer(count_tokens)
        self._strategy = _strategy(strategy)
        self._history = history
        self._place = place
        self._records = records
        self._deadline = deadline
        self._clock = clock
        self._count_tokens = count_tokens

    def assemble(
        self, query: str, session: object = (), max_tokens: int = MAX_TOKENS, *, turn_id: str = ""
    ) -> AssembledPrompt:
        """Like `aassemble`, for synchronous code."""
        return wait_for(self.aassemble(query, session, max_tokens, turn_id=turn_id))

    async def aassemble(
        self, query: str, session: object = (), max_tokens: int = MAX_TOKENS, *, turn_id: str = ""
    ) -> AssembledPrompt:
        """Build the prompt for the user's turn in a session: a `DialogueSession` or the messages before it."""
        request = _request(query, turn_id)
        return await self._assemble(request, await off_loop(read_session, session), max_tokens)

    def allocate(self, query: str, session: object = (), max_tokens: int = MAX_TOKENS) -> TokenBudget:
        """Like `aallocate`, for synchronous code."""
        return wait_for(self.aallocate(query, session, max_tokens))

    async def aallocate(self, query: str, session: object = (), max_tokens: int = MAX_TOKENS) -> TokenBudget:
        """Allocate the token budget, before unused tokens are redistributed."""
        assembly = self._assembly(_request(query), max_tokens)
        dialogue = await off_loop(read_session, session)
        turns = _previous_turns(query, dialogue.turns)
        retrieval = await self._retrieve(query, turns)
        draft = self._draft(dialogue.instructions, retrieval)
        return allocate_budget(self._strategy, self._demand(assembly, turns, draft, retrieval.active))

    def for_model(
        self, messages: Sequence[Any], max_tokens: int = MAX_TOKENS, *, session_id: str = DEFAULT_SESSION
    ) -> list[BaseMessage]:
        """Like `afor_model`, for synchronous code."""
        return wait_for(self.afor_model(messages, max_tokens, session_id=session_id))

    async def afor_model(
        self, messages: Sequence[Any], max_tokens: int = MAX_TOKENS, *, session_id: str = DEFAULT_SESSION
    ) -> list[BaseMessage]:
        """Build the messages for a model from all messages of a dialogue.

        The last human message is the user's turn. The agent's steps after it are kept, with tool results cut to fit. If
        assembly fails, the messages are returned unchanged and the failure is logged.
        """
        checked_tokens(max_tokens)
        try:
            before, user_turn, after = split_at_user_turn(messages)
            if user_turn is None:
                return list(messages)
            message, *since = to_messages([user_turn, *after])
            query = content_text(message.content)
            count = reliable(self._count_tokens)
            steps = shorten_steps(since, (max_tokens - count(query)) // 2, count)
            session = await off_loop(read_session, before, session_id)
            request = PromptRequest(query, message, steps, text_of(message.id))
            return (await self._assemble(request, session, max_tokens)).messages
        # The application's agent continues without the prompt.
        except BaseException as raised:
            error = recordable(raised)
            logger.error("prompt.failed", error=f"{type(error).__name__}: {error}")
            return list(messages)

    def hook(self, max_tokens: int = MAX_TOKENS) -> Runnable[Any, dict[str, Any]]:
        """A `pre_model_hook` for LangGraph's prebuilt agents: `afor_model` with the thread id as the session id."""
        checked_tokens(max_tokens)

        async def llm_input(state: object, config: RunnableConfig) -> dict[str, Any]:
            messages = items_of(read(state, "messages"))
            return {"llm_input_messages": await self.afor_model(messages, max_tokens, session_id=thread_of(config))}

        return runnable(llm_input)

    async def _assemble(self, request: PromptRequest, session: DialogueSession, max_tokens: int) -> AssembledPrompt:
        assembly = self._assembly(request, max_tokens)
        turns = _previous_turns(request.query, session.turns)
        retrieval = await self._retrieve(request.query, turns)
        content, budget = await self._content(assembly, session.instructions, turns, retrieval)
        prompt = AssembledPrompt(
            session_id=session.id,
            turn_id=request.turn_id or f"turn-{len(turns) + 1}",
            query=request.query,
            content=content,
            text=prompt_text(content, request.query),
            messages=assembly.messages(content),
            token_count=assembly.size(content),
            max_tokens=max_tokens,
            budget=budget,
            tokens=content.tokens(assembly.count),
            strategy=strategy_name(self._strategy),
            resolved=tuple(retrieval.resolved),
            chunks_retrieved=retrieval.chunks.looked_at,
            reranking_used=retrieval.chunks.reranked,
            personality=self._personality.kind if self._personality else "",
            failures=retrieval.failures,
            at=iso(self._clock()),
        )
        _log(prompt)
        await self._record(prompt, assembly.count)
        return prompt

    def _assembly(self, request: PromptRequest, max_tokens: int) -> Assembly:
        checked_tokens(max_tokens)
        count = reliable(self._count_tokens)

        async def summarize(text: str, room: int) -> str:
            limit = min(room, self._history.max_summary_tokens)
            return await summarize_or_extract(
                self._summarizer, text, limit, request.query, deadline=self._deadline, count=count
            )

        assembly = Assembly(request, max_tokens, self._place == "system", count, summarize)
        if (least := assembly.size(ContextContent())) > max_tokens:
            raise QueryTooLongError(
                f"the query alone takes {least} tokens, more than max_tokens {max_tokens!r}: shorten it, "
                f"or allow at least {least}"
            )
        return assembly

    async def _content(
        self, assembly: Assembly, instructions: str, turns: Sequence[DialogueTurn], retrieval: _Retrieval
    ) -> tuple[ContextContent, TokenBudget]:
        """Fit each section to its budget, then the whole prompt to its limit."""
        draft = self._draft(instructions, retrieval)
        demand = self._demand(assembly, turns, draft, retrieval.active)
        budget = allocate_budget(self._strategy, demand)
        chosen = await handle_overflow(draft, budget, assembly.summarize, assembly.count)
        budget = redistribute_unused(budget, chosen.tokens(assembly.count), demand.wanted["system"])
        history = await format_history(turns, budget["history"], assembly.summarize, assembly.count, self._history)
        content = replace(chosen, system=draft.system, history=history)
        content = await assembly.fit(await handle_overflow(content, budget, assembly.summarize, assembly.count))
        return assembly.with_more_system(content, draft.system, budget)

    def _draft(self, instructions: str, retrieval: _Retrieval) -> ContextContent:
        """The uncut content, without the history."""
        joined = "\n\n".join(part for part in (self._instructions, instructions) if part)
        return ContextContent(
            system=system_prompt(joined, self._personality, self._preferences),
            entities=tuple(retrieval.entities),
            rag_chunks=tuple(retrieval.chunks),
        )

    def _demand(self, assembly: Assembly, turns: Sequence[DialogueTurn], draft: ContextContent, active: int) -> Demand:
        last = self._history.verbatim_turns
        recent = recent_tokens(format_turns(turns[-last:], self._history), assembly.count)
        summary = self._history.max_summary_tokens if len(turns) > last else 0
        return Demand(
            total=assembly.max_tokens - message_tokens(assembly.request.after, assembly.count),
            query=assembly.count(assembly.request.query),
            turns=len(turns),
            entities=active,
            chunks=len(draft.rag_chunks),
            wanted=draft.tokens(assembly.count) | {"history": recent + HISTORY_MARGIN + summary if turns else 0},
        )

    async def _retrieve(self, query: str, turns: Sequence[DialogueTurn]) -> _Retrieval:
        if not query.strip():
            return _Retrieval()
        failures: list[SourceFailure] = []

        async def attempt(name: str, work: Awaitable[T], default: T) -> T:
            try:
                return await asyncio.wait_for(work, self._deadline)
            # A custom source may raise anything.
            except BaseException as raised:
                error = recordable(raised)
                failures.append(SourceFailure.of(name, error, self._deadline))
                logger.warning("source.failed", source=name, error=failures[-1].error)
                return default

        retrieval = _Retrieval()
        if self._entities is not None:
            retrieval = await attempt("entities", off_loop(_look_up_entities, self._entities, query, turns), retrieval)
        if self._knowledge is not None:
            await open_memory(self._knowledge, OPENING * self._deadline)
            chunks = await attempt(
                "knowledge", _retrieve_chunks(self._knowledge, query, retrieval.resolved), retrieval.chunks
            )
            retrieval = retrieval._replace(chunks=chunks)
        return retrieval._replace(failures=tuple(failures))

    async def _record(self, prompt: AssembledPrompt, count: TokenCounter) -> None:
        if self._records is None:
            return
        try:
            record = turn_record(prompt, count)
            work = off_loop(self._records.keep, prompt.session_id, prompt.turn_id, record)
            await asyncio.wait_for(work, self._deadline)
        # The prompt must not depend on whether its record can be stored.
        except BaseException as raised:
            error = recordable(raised)
            logger.error("recorder.failed", turn_id=prompt.turn_id, error=f"{type(error).__name__}: {error}")


def checked_tokens(value: object) -> int:
    """Return the value if it is a valid number of tokens."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"max_tokens must be a whole number, 1 or more, got {value!r}")
    return value


def _check_types(**options: tuple[object, *tuple[type | None, ...]]) -> None:
    """Reject options of the wrong type."""
    for name, (value, *kinds) in options.items():
        if not any(value is None if kind is None else isinstance(value, kind) for kind in kinds):
            expected = " or ".join("None" if kind is None else kind.__name__ for kind in kinds)
            raise ConfigError(f"{name} must be {expected}, got {value!r}")


def _look_up_entities(lookup: EntityLookup, query: str, turns: Sequence[DialogueTurn]) -> _Retrieval:
    if isinstance(lookup, Follows):
        lookup = lookup.after([turn.effective_text for turn in turns if turn.role in ("user", "assistant")])
    resolved = lookup.resolve(query)
    return _Retrieval(resolved, lookup.contexts(resolved), lookup.active_count)


async def _retrieve_chunks(knowledge: Knowledge, query: str, resolved: Sequence[ResolvedEntity]) -> RetrievedChunks:
    chunks = await knowledge.retrieve(query, resolved)
    return chunks if isinstance(chunks, RetrievedChunks) else RetrievedChunks(chunks)


def _request(query: str, turn_id: str = "") -> PromptRequest:
    if not text_of(query).strip():
        raise ConfigError(f"query must be a non-empty string, got {query!r}")
    return PromptRequest(query, user_message(query), turn_id=turn_id)


def _previous_turns(query: str, turns: Sequence[DialogueTurn]) -> tuple[DialogueTurn, ...]:
    """The turns before the user's turn, which may already be the last of them."""
    last = turns[-1] if turns else None
    includes_query = last is not None and last.role == "user" and last.text.strip() == query.strip()
    return tuple(turns[:-1] if includes_query else turns)


def _strategy(strategy: str | BudgetStrategy) -> BudgetStrategy:
    if callable(strategy):
        return strategy
    if strategy not in STRATEGIES:
        raise ConfigError(f"strategy must be one of {', '.join(STRATEGIES)}, or a function, got {strategy!r}")
    return STRATEGIES[strategy]


def _log(prompt: AssembledPrompt) -> None:
    logger.info(
        "prompt.assembled",
        session_id=prompt.session_id,
        turn_id=prompt.turn_id,
        tokens=prompt.token_count,
        max_tokens=prompt.max_tokens,
        sections=dict(prompt.tokens),
        compression=prompt.content.history.level,
        entities=len(prompt.content.entities),
        chunks=len(prompt.content.rag_chunks),
        failures=[failure.source for failure in prompt.failures],
    )
