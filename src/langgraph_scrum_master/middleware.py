"""Inside an agent of `langchain.agents.create_agent`, where its model is called: the scrum master, and prompts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime

from langgraph_scrum_master._internal.shapes import items_of, text_of
from langgraph_scrum_master._internal.threads import wait_for
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

ASKED = frozenset(("clarification_requested", "explicit_flag"))
"""The gaps with which an agent may end its turn: it asks, or says what it lacks."""

NOBODY = frozenset[str]()

_GO_ON = "What you asked for was looked up: it stands at the end of your instructions. Go on."


class AgentStateWithContext(AgentState[Any], ScrumMasterState):
    """The agent's state with the keys that the scrum master writes."""


class ScrumMasterMiddleware(AgentMiddleware[AgentStateWithContext, Any, Any]):
    """Gives an agent what it lacks: when it asks with `request_context`, repeats itself, or ends with a question.

    Takes a scrum master, or what one is made of. Put it last in `middleware`: what it adds then comes at the very end
    of the system message, and what stands before stays in the prompt cache. An agent that would end its turn with a
    question for which context is found is called again at once, unless `go_on` is False; a question for which there
    is none goes to whoever called the agent. `agent` is its name, if `create_agent` does not tell.
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
            raise ConfigError(f"give a ScrumMaster, or what one is made of, not both: got {sorted(options)} beside it")
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
        """What its nodes and its runs in traces are called."""
        return NODE_NAME

    def before_model(self, state: AgentStateWithContext, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Look for what the agent lacks, before its model is called."""
        reader = self._reader()
        return self._step.run(reader.at_turn(state), reader)

    async def abefore_model(self, state: AgentStateWithContext, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The same without blocking the event loop."""
        reader = self._reader()
        return await self._step.arun(reader.at_turn(state), reader)

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: AgentStateWithContext, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Take away what the agent has read, and call it again if it ends with a question that can be answered."""
        if not _has_ended(state):
            return None
        reader = self._last_reader()
        return _called_again(self._step.run(reader.at_turn(state), reader))

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: AgentStateWithContext, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """The same without blocking the event loop."""
        if not _has_ended(state):
            return None
        reader = self._last_reader()
        return _called_again(await self._step.arun(reader.at_turn(state), reader))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with what waits for the agent."""
        return handler(self._with_context(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Await the model with what waits for the agent."""
        return await handler(self._with_context(request))

    def _with_context(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        reader = self._reader()
        text = self._step.text_for(reader, reader.at_turn(request.state))
        if not text:
            return request
        request = request.override(system_message=_appended(request.system_message, text))
        # Models do not answer a conversation that ends with their own words.
        if request.messages and isinstance(request.messages[-1], AIMessage):
            request = request.override(messages=[*request.messages, HumanMessage(_GO_ON, name=NODE_NAME)])
        return request

    def _reader(self) -> Reader:
        return Reader(agent=self._agent or _configured_name(), talks_to_user=self._talks_to_user)

    def _last_reader(self) -> Reader:
        reasons = ASKED if self._go_on else NOBODY
        return Reader(agent=self._agent or _configured_name(), reasons=reasons, talks_to_user=self._talks_to_user)


class PromptMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Gives an agent's model, at each call, the prompt that an assembler makes of the dialogue; its state stays whole.

    The thread is the session, and the agent's own system prompt joins the assembler's instructions. Put it first in
    `middleware`: what others add then comes on top of it.
    """

    def __init__(self, assembler: PromptAssembler, max_tokens: int = MAX_TOKENS) -> None:
        if not isinstance(assembler, PromptAssembler):
            raise ConfigError(f"the assembler must be a PromptAssembler, got {assembler!r}")
        super().__init__()
        self._assembler = assembler
        self._max_tokens = checked_tokens(max_tokens)

    @property
    def name(self) -> str:
        """What it is called in traces."""
        return "prompt_assembler"

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with the prompt."""
        return handler(wait_for(self._prompted(request)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Await the model with the prompt."""
        return await handler(await self._prompted(request))

    async def _prompted(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        own = [] if request.system_message is None else [request.system_message]
        given = [*own, *request.messages]
        made: list[Any] = await self._assembler.afor_model(given, self._max_tokens, session_id=thread_of(_config()))
        system = made.pop(0) if made and isinstance(made[0], SystemMessage) else None
        return request.override(system_message=system, messages=made)


def _configured_name() -> str:
    metadata = _config().get("metadata") or {}
    return text_of(metadata.get("lc_agent_name"))


def _config() -> Mapping[str, Any]:
    try:
        return get_config()
    # Outside of a graph.
    except RuntimeError:
        return {}


def _has_ended(state: AgentStateWithContext) -> bool:
    last = items_of(state.get("messages"))[-1:]
    return not any(isinstance(message, AIMessage) and message.tool_calls for message in last)


def _called_again(update: dict[str, Any]) -> dict[str, Any]:
    result = update.get("injection_result")
    return {**update, "jump_to": "model"} if result is not None and result.injected else update


def _appended(message: SystemMessage | None, text: str) -> SystemMessage:
    if message is None:
        return SystemMessage(text)
    if isinstance(message.content, str):
        return message.model_copy(update={"content": f"{message.content}\n\n{text}"})
    # A block of its own: what stands before may be marked for the cache.
    return message.model_copy(update={"content": [*message.content, {"type": "text", "text": text}]})
