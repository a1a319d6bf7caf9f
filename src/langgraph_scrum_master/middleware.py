"""Middleware for `langchain.agents.create_agent`: the scrum master, and prompts from a `PromptAssembler`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime

from langgraph_scrum_master._internal.shapes import items_of, text_of
from langgraph_scrum_master._internal.threads import off_loop, wait_for
from langgraph_scrum_master.dialogue.assembler import MAX_TOKENS, PromptAssembler, checked_tokens
from langgraph_scrum_master.dialogue.session import thread_of
from langgraph_scrum_master.errors import ConfigError, how_to_get
from langgraph_scrum_master.scrum_master import ScrumMaster
from langgraph_scrum_master.team.reader import Reader
from langgraph_scrum_master.team.runtime import NODE_NAME
from langgraph_scrum_master.team.state import ScrumMasterState
from langgraph_scrum_master.team.tools import request_context

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse, hook_config
except ModuleNotFoundError:
    raise ConfigError(f"the middleware needs 'langchain': {how_to_get('agents')}") from None

OWN_REASONS = frozenset(("clarification_requested", "explicit_flag"))
"""Reasons of gaps with which an agent may end its turn: it asks, or reports what is missing."""

NO_REASONS = frozenset[str]()

_GO_ON = "The context that you asked for is at the end of your instructions. Continue."


class AgentStateWithContext(AgentState[Any], ScrumMasterState):
    """The agent's state plus the keys that the scrum master writes."""


class ScrumMasterMiddleware(AgentMiddleware[AgentStateWithContext, Any, Any]):
    """Serves an agent that calls `request_context`, repeats itself, or ends with a question.

    Takes a `ScrumMaster` or the arguments of one. Put it last in `middleware`: the context then comes at the end of the
    system message, and everything before it stays in the prompt cache. If an agent ends its turn with a question and
    context is found, the agent is called again at once, unless `go_on` is False; otherwise the question goes to the
    caller. `agent` is the agent's name, if `create_agent` was called without one.
    """

    state_schema = AgentStateWithContext

    def __init__(
        self,
        master: ScrumMaster | None = None,
        *,
        agent: str = "",
        request_tool: bool = True,
        go_on: bool = True,
        **options: Any,
    ) -> None:
        if master is not None and options:
            raise ConfigError(
                f"pass either a ScrumMaster or its arguments, not both; got a ScrumMaster and {sorted(options)}"
            )
        if master is not None and not isinstance(master, ScrumMaster):
            raise ConfigError(f"the scrum master must be a ScrumMaster, got {master!r}")
        super().__init__()
        master = master or ScrumMaster(**options)
        self._step = master.step
        self._talks_to_user = master.config.user_questions != "serve"
        self._agent = agent
        self._go_on = go_on
        self.tools = [request_context] if request_tool else []

    @property
    def name(self) -> str:
        """The name of its nodes and of its runs in traces."""
        return NODE_NAME

    def before_model(self, state: AgentStateWithContext, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Serve the agent's gaps before its model is called."""
        reader = self._reader()
        return self._step.run(reader.at_turn(state), reader)

    async def abefore_model(self, state: AgentStateWithContext, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The same without blocking the event loop."""
        reader = self._reader()
        return await self._step.arun(reader.at_turn(state), reader)

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: AgentStateWithContext, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Remove payloads that were read; call the agent again if it ends with a question that has an answer."""
        if not _has_ended(state):
            return None
        reader = self._last_reader()
        return _with_jump(self._step.run(reader.at_turn(state), reader))

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: AgentStateWithContext, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The same without blocking the event loop."""
        if not _has_ended(state):
            return None
        reader = self._last_reader()
        return _with_jump(await self._step.arun(reader.at_turn(state), reader))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with the context that waits for the agent."""
        return handler(self._with_context(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Await the model with the context that waits for the agent."""
        # It may have to read the conversation.
        return await handler(
            await off_loop(self._with_context, request) if self._step.has_waiting(request.state) else request
        )

    def _with_context(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        reader = self._reader()
        text = self._step.text_for(reader, reader.at_turn(request.state))
        if not text:
            return request
        request = request.override(system_message=_append(request.system_message, text))
        # Models do not answer a conversation that ends with their own message.
        if request.messages and isinstance(request.messages[-1], AIMessage):
            request = request.override(messages=[*request.messages, HumanMessage(_GO_ON, name=NODE_NAME)])
        return request

    def _reader(self) -> Reader:
        return Reader(agent=self._agent or _configured_name(), talks_to_user=self._talks_to_user)

    def _last_reader(self) -> Reader:
        reasons = OWN_REASONS if self._go_on else NO_REASONS
        return Reader(agent=self._agent or _configured_name(), reasons=reasons, talks_to_user=self._talks_to_user)


class PromptMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Replaces the model's input, at each call, with the prompt of a `PromptAssembler`; the state does not change.

    The thread is the session, and the agent's system prompt is added to the assembler's instructions. Put it first in
    `middleware`, so that other middleware adds to its prompt.
    """

    def __init__(self, assembler: PromptAssembler, max_tokens: int = MAX_TOKENS) -> None:
        if not isinstance(assembler, PromptAssembler):
            raise ConfigError(f"the assembler must be a PromptAssembler, got {assembler!r}")
        super().__init__()
        self._assembler = assembler
        self._max_tokens = checked_tokens(max_tokens)

    @property
    def name(self) -> str:
        """Its name in traces."""
        return "prompt_assembler"

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with the prompt."""
        return handler(wait_for(self._with_prompt(request)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Await the model with the prompt."""
        return await handler(await self._with_prompt(request))

    async def _with_prompt(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        own = [] if request.system_message is None else [request.system_message]
        messages = [*own, *request.messages]
        prompt: list[Any] = await self._assembler.afor_model(
            messages, self._max_tokens, session_id=thread_of(_config())
        )
        system = prompt.pop(0) if prompt and isinstance(prompt[0], SystemMessage) else None
        return request.override(system_message=system, messages=prompt)


def _configured_name() -> str:
    metadata = _config().get("metadata") or {}
    return text_of(metadata.get("lc_agent_name"))


def _config() -> Mapping[str, Any]:
    try:
        return get_config()
    # Outside a graph.
    except RuntimeError:
        return {}


def _has_ended(state: AgentStateWithContext) -> bool:
    last = items_of(state.get("messages"))[-1:]
    return not any(isinstance(message, AIMessage) and message.tool_calls for message in last)


def _with_jump(update: dict[str, Any]) -> dict[str, Any]:
    result = update.get("injection_result")
    return {**update, "jump_to": "model"} if result is not None and result.injected else update


def _append(message: SystemMessage | None, text: str) -> SystemMessage:
    if message is None:
        return SystemMessage(text)
    if isinstance(message.content, str):
        return message.model_copy(update={"content": f"{message.content}\n\n{text}"})
    # A separate block: earlier ones may be marked for the cache.
    return message.model_copy(update={"content": [*message.content, {"type": "text", "text": text}]})
