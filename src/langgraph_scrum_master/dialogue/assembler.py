"""The prompt of each turn in a dialogue: instructions, history, entities and knowledge within so many tokens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master._internal.shapes import content_text, items_of, read, text_of
from langgraph_scrum_master._internal.threads import off_loop, wait_for
from langgraph_scrum_master.config import HistoryConfig, TokenBudget
from langgraph_scrum_master.dialogue.assembly import Assembly, PromptRequest
from langgraph_scrum_master.dialogue.budgets import STRATEGIES, BudgetStrategy, Demand, budgeted, name_of, spilled
from langgraph_scrum_master.dialogue.chat import cost, messages_of, runnable, shortened_messages, user_message
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
from langgraph_scrum_master.dialogue.session import UNKNOWN, divided, read_session, thread_of
from langgraph_scrum_master.dialogue.summarize import SUMMARY_DEADLINE, ExtractiveSummarizer, summarized
from langgraph_scrum_master.dialogue.system import system_prompt
from langgraph_scrum_master.errors import ConfigError, QueryTooLongError, steers_the_graph
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
"""Where what was found stands in the messages: at the end of the system message, or before the user's turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledPrompt(InjectedContext):
    """A turn's prompt, as messages and as one text, and what it is made of."""

    messages: list[BaseMessage] = field(default_factory=list)


class _Found(NamedTuple):
    resolved: Sequence[ResolvedEntity] = ()
    entities: Sequence[EntityContext] = ()
    active: int = 0
    chunks: RetrievedChunks = RetrievedChunks()
    failures: tuple[SourceFailure, ...] = ()


class PromptAssembler:
    """Makes the prompt of each turn of a dialogue, never longer than it may be.

    Entities, knowledge and records are used as far as they are given. What fails or is late is left out, logged, and
    named in the result.
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
        _refuse_others(instructions=(instructions, str), history=(history, HistoryConfig))
        _refuse_others(
            personality=(personality, AgentPersonality, None), preferences=(preferences, UserPreferences, None)
        )
        _refuse_others(entities=(entities, EntityLookup, None), knowledge=(knowledge, Knowledge, None))
        _refuse_others(summarizer=(summarizer, Summarizer, None))
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
        """The prompt for the user's turn, from code that cannot await."""
        return wait_for(self.aassemble(query, session, max_tokens, turn_id=turn_id))

    async def aassemble(
        self, query: str, session: object = (), max_tokens: int = MAX_TOKENS, *, turn_id: str = ""
    ) -> AssembledPrompt:
        """The prompt for the user's turn in a session: a `DialogueSession`, or the messages before it."""
        asked = _asked(query, turn_id)
        return await self._assembled(asked, await off_loop(read_session, session), max_tokens)

    def allocate(self, query: str, session: object = (), max_tokens: int = MAX_TOKENS) -> TokenBudget:
        """What each section of the prompt may take, from code that cannot await."""
        return wait_for(self.aallocate(query, session, max_tokens))

    async def aallocate(self, query: str, session: object = (), max_tokens: int = MAX_TOKENS) -> TokenBudget:
        """What each section of the prompt may take, before it is known what one leaves to another."""
        assembly = self._assembly(_asked(query), max_tokens)
        given = await off_loop(read_session, session)
        turns = _before(query, given.turns)
        found = await self._found(query, turns)
        return budgeted(
            self._strategy, self._demand(assembly, turns, self._draft(given.instructions, found), found.active)
        )

    def for_model(
        self, messages: Sequence[Any], max_tokens: int = MAX_TOKENS, *, session_id: str = UNKNOWN
    ) -> list[BaseMessage]:
        """What a model gets in the place of all messages of a dialogue, from code that cannot await."""
        return wait_for(self.afor_model(messages, max_tokens, session_id=session_id))

    async def afor_model(
        self, messages: Sequence[Any], max_tokens: int = MAX_TOKENS, *, session_id: str = UNKNOWN
    ) -> list[BaseMessage]:
        """What a model gets in the place of all messages of a dialogue.

        The last message of a person is the user's turn; the steps since are kept, results of tools cut where they must
        be. If it fails these are the messages as they are, and the failure is logged.
        """
        checked_tokens(max_tokens)
        try:
            before, asked, after = divided(messages)
            if asked is None:
                return list(messages)
            message, *since = messages_of([asked, *after])
            query = content_text(message.content)
            count = reliable(self._count_tokens)
            kept = shortened_messages(since, (max_tokens - count(query)) // 2, count)
            session = await off_loop(read_session, before, session_id)
            turn = PromptRequest(query, message, kept, text_of(message.id))
            return (await self._assembled(turn, session, max_tokens)).messages
        # The host's agent goes on without us.
        except Exception as error:
            if steers_the_graph(error):
                raise
            logger.error("prompt.failed", error=f"{type(error).__name__}: {error}")
            return list(messages)

    def hook(self, max_tokens: int = MAX_TOKENS) -> Runnable[Any, dict[str, Any]]:
        """A `pre_model_hook` for LangGraph's ready-made agents: `afor_model`, with the thread as the session."""
        checked_tokens(max_tokens)

        async def assembled(state: object, config: RunnableConfig) -> dict[str, Any]:
            given = items_of(read(state, "messages"))
            return {"llm_input_messages": await self.afor_model(given, max_tokens, session_id=thread_of(config))}

        return runnable(assembled)

    async def _assembled(self, asked: PromptRequest, session: DialogueSession, max_tokens: int) -> AssembledPrompt:
        assembly = self._assembly(asked, max_tokens)
        turns = _before(asked.query, session.turns)
        found = await self._found(asked.query, turns)
        content, budget = await self._content(assembly, session.instructions, turns, found)
        prompt = AssembledPrompt(
            session_id=session.id,
            turn_id=asked.turn_id or f"turn-{len(turns) + 1}",
            query=asked.query,
            content=content,
            text=prompt_text(content, asked.query),
            messages=assembly.messages(content),
            token_count=assembly.size(content),
            max_tokens=max_tokens,
            budget=budget,
            tokens=content.tokens(assembly.count),
            strategy=name_of(self._strategy),
            resolved=tuple(found.resolved),
            chunks_retrieved=found.chunks.looked_at,
            reranking_used=found.chunks.reranked,
            personality=self._personality.kind if self._personality else "",
            failures=found.failures,
            at=iso(self._clock()),
        )
        _log(prompt)
        await self._keep(prompt, assembly.count)
        return prompt

    def _assembly(self, asked: PromptRequest, max_tokens: int) -> Assembly:
        checked_tokens(max_tokens)
        count = reliable(self._count_tokens)

        async def summarize(text: str, room: int) -> str:
            most = min(room, self._history.max_summary_tokens)
            return await summarized(self._summarizer, text, most, asked.query, deadline=self._deadline, count=count)

        assembly = Assembly(asked, max_tokens, self._place == "system", count, summarize)
        if (least := assembly.size(ContextContent())) > max_tokens:
            raise QueryTooLongError(
                f"the query takes {least} tokens by itself, more than max_tokens {max_tokens!r}: shorten it, "
                f"or allow {least} or more"
            )
        return assembly

    async def _content(
        self, assembly: Assembly, instructions: str, turns: Sequence[DialogueTurn], found: _Found
    ) -> tuple[ContextContent, TokenBudget]:
        """Each section in its budget, then all of them, with what goes around them, in the whole."""
        draft = self._draft(instructions, found)
        demand = self._demand(assembly, turns, draft, found.active)
        budget = budgeted(self._strategy, demand)
        chosen = await handle_overflow(draft, budget, assembly.summarize, assembly.count)
        budget = spilled(budget, chosen.tokens(assembly.count), demand.wanted["system"])
        history = await format_history(turns, budget["history"], assembly.summarize, assembly.count, self._history)
        content = replace(chosen, system=draft.system, history=history)
        content = await assembly.fitted(await handle_overflow(content, budget, assembly.summarize, assembly.count))
        return assembly.with_more_system(content, draft.system, budget)

    def _draft(self, instructions: str, found: _Found) -> ContextContent:
        """All that there is to tell but the history, however long it is."""
        told = "\n\n".join(part for part in (self._instructions, instructions) if part)
        return ContextContent(
            system=system_prompt(told, self._personality, self._preferences),
            entities=tuple(found.entities),
            rag_chunks=tuple(found.chunks),
        )

    def _demand(self, assembly: Assembly, turns: Sequence[DialogueTurn], draft: ContextContent, active: int) -> Demand:
        last = self._history.verbatim_turns
        recent = recent_tokens(format_turns(turns[-last:], self._history), assembly.count)
        summary = self._history.max_summary_tokens if len(turns) > last else 0
        return Demand(
            total=assembly.max_tokens - cost(assembly.asked.after, assembly.count),
            query=assembly.count(assembly.asked.query),
            turns=len(turns),
            entities=active,
            chunks=len(draft.rag_chunks),
            wanted=draft.tokens(assembly.count) | {"history": recent + HISTORY_MARGIN + summary if turns else 0},
        )

    async def _found(self, query: str, turns: Sequence[DialogueTurn]) -> _Found:
        if not query.strip():
            return _Found()
        failures: list[SourceFailure] = []

        async def tried(name: str, work: Awaitable[T], otherwise: T) -> T:
            try:
                return await asyncio.wait_for(work, self._deadline)
            # Whatever a source of the host's raises.
            except Exception as error:
                failures.append(SourceFailure.of(name, error, self._deadline))
                logger.warning("source.failed", source=name, error=failures[-1].error)
                return otherwise

        found = _Found()
        if self._entities is not None:
            found = await tried("entities", off_loop(_looked_up, self._entities, query, turns), found)
        if self._knowledge is not None:
            await open_memory(self._knowledge, OPENING * self._deadline)
            chunks = await tried("knowledge", _retrieved(self._knowledge, query, found.resolved), found.chunks)
            found = found._replace(chunks=chunks)
        return found._replace(failures=tuple(failures))

    async def _keep(self, prompt: AssembledPrompt, count: TokenCounter) -> None:
        if self._records is None:
            return
        try:
            record = turn_record(prompt, count)
            work = off_loop(self._records.keep, prompt.session_id, prompt.turn_id, record)
            await asyncio.wait_for(work, self._deadline)
        # A record that cannot be kept must not cost the turn its prompt.
        except Exception as error:
            logger.error("recorder.failed", turn_id=prompt.turn_id, error=f"{type(error).__name__}: {error}")


def checked_tokens(value: object) -> int:
    """The value, if it is a number of tokens."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"max_tokens must be a whole number, 1 or more, got {value!r}")
    return value


def _refuse_others(**given: tuple[object, *tuple[type | None, ...]]) -> None:
    """Refuse an option that is none of what it may be."""
    for name, (value, *kinds) in given.items():
        if not any(value is None if kind is None else isinstance(value, kind) for kind in kinds):
            expected = " or ".join("None" if kind is None else kind.__name__ for kind in kinds)
            raise ConfigError(f"{name} must be {expected}, got {value!r}")


def _looked_up(lookup: EntityLookup, query: str, turns: Sequence[DialogueTurn]) -> _Found:
    if isinstance(lookup, Follows):
        lookup = lookup.after([turn.said for turn in turns if turn.role in ("user", "assistant")])
    resolved = lookup.resolve(query)
    return _Found(resolved, lookup.contexts(resolved), lookup.active_count)


async def _retrieved(knowledge: Knowledge, query: str, resolved: Sequence[ResolvedEntity]) -> RetrievedChunks:
    chunks = await knowledge.retrieve(query, resolved)
    return chunks if isinstance(chunks, RetrievedChunks) else RetrievedChunks(chunks)


def _asked(query: str, turn_id: str = "") -> PromptRequest:
    if not text_of(query).strip():
        raise ConfigError(f"query must be a text that is not empty, got {query!r}")
    return PromptRequest(query, user_message(query), turn_id=turn_id)


def _before(query: str, turns: Sequence[DialogueTurn]) -> tuple[DialogueTurn, ...]:
    """The turns before the user's, which may be the last of them already."""
    last = turns[-1] if turns else None
    asked_already = last is not None and last.role == "user" and last.text.strip() == query.strip()
    return tuple(turns[:-1] if asked_already else turns)


def _strategy(given: str | BudgetStrategy) -> BudgetStrategy:
    if callable(given):
        return given
    if given not in STRATEGIES:
        raise ConfigError(f"strategy must be one of {', '.join(STRATEGIES)}, or a function, got {given!r}")
    return STRATEGIES[given]


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
