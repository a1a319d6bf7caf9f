"""An evaluation as a node of a LangGraph graph, sync and async, and the check of a graph that has one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.channels import LastValue
from langgraph.errors import GraphBubbleUp
from langgraph.graph import StateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import interrupt

from langgraph_scrum_master.blocking import wait_for
from langgraph_scrum_master.errors import GraphError, ScrumMasterWarning
from langgraph_scrum_master.history import CONTEXT_KEY, HANDOFF_KEY, unread
from langgraph_scrum_master.model import InjectionResult
from langgraph_scrum_master.pipeline import Pipeline, Sighting, failed_output
from langgraph_scrum_master.protocols import MemoryStore
from langgraph_scrum_master.shapes import fields_text, items_of, read, text_of
from langgraph_scrum_master.state import STATE_KEYS

NAME = "scrum_master"

logger = structlog.get_logger("langgraph_scrum_master")

_OUTSIDE: Runtime[Any] = Runtime()


class ScrumMasterNode(Runnable[Any, dict[str, Any]]):
    """The node: give it to `add_node`. It writes nothing on a healthy team, and never fails the graph."""

    name = NAME

    def __init__(self, pipeline: Pipeline, memory: MemoryStore | None) -> None:
        self._pipeline = pipeline
        self._memory = memory

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """The update for a state; without a gap no event loop is touched."""
        if (quiet := self._pipeline.glance(input)) is not None:
            return quiet
        try:
            sighting = self._pipeline.sight(input)
            if not sighting.gaps and not sighting.given_up:
                return self._update(sighting, None)
            runtime = _runtime()
            result = wait_for(self._serve(sighting, runtime))
            if answer := self._ask_a_person(result):
                result = wait_for(self._answered(result, answer, sighting, runtime))
            return self._update(sighting, result)
        except GraphBubbleUp:
            raise
        except Exception as error:
            return self._failed(error)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """The same without blocking the event loop."""
        if (quiet := self._pipeline.glance(input)) is not None:
            return quiet
        try:
            sighting = await self._pipeline.judged(self._pipeline.sight(input))
            if not sighting.gaps and not sighting.given_up:
                return self._update(sighting, None)
            runtime = _runtime()
            result = await self._serve(sighting, runtime)
            if answer := self._ask_a_person(result):
                result = await self._answered(result, answer, sighting, runtime)
            return self._update(sighting, result)
        except GraphBubbleUp:
            raise
        except Exception as error:
            return self._failed(error)

    async def scrum_master(self, state: Any) -> dict[str, Any]:
        """The same as a coroutine function only, which a node with a timeout must be."""
        return await self.ainvoke(state)

    async def _serve(self, sighting: Sighting, runtime: Runtime[Any]) -> InjectionResult | None:
        def emit(event: str, facts: dict[str, Any]) -> None:
            runtime.stream_writer({"event": f"{NAME}.{event}", **facts})

        threaded = replace(sighting, thread=_thread(runtime))
        return await self._pipeline.serve(threaded, self._memory_in(runtime), emit)

    def _ask_a_person(self, result: InjectionResult | None) -> str:
        """The answer of the person to whom a need goes that context did not help, if that is wanted."""
        if result is None or not result.escalated or self._pipeline.config.escalate != "interrupt":
            return ""
        gap = result.gap
        question = {"agent": gap.agent, "question": gap.context_query, "reason": gap.reason, "gap_id": gap.gap_id}
        answer: object = interrupt(question)
        return answer.strip() if isinstance(answer, str) else fields_text(answer)

    async def _answered(
        self, result: InjectionResult | None, answer: str, sighting: Sighting, runtime: Runtime[Any]
    ) -> InjectionResult | None:
        if result is None:
            return None
        return await self._pipeline.answer(result, answer, sighting, self._memory_in(runtime))

    def _memory_in(self, runtime: Runtime[Any]) -> MemoryStore | None:
        return self._memory if self._memory is not None else self._graphs_store(runtime)

    def _graphs_store(self, runtime: Runtime[Any]) -> MemoryStore | None:
        if runtime.store is None:
            return None
        from langgraph_scrum_master.memory.langgraph_store import StoreMemory

        return StoreMemory(runtime.store, namespace=self._pipeline.config.namespace)

    def _update(self, sighting: Sighting, result: InjectionResult | None) -> dict[str, Any]:
        update = self._pipeline.update(sighting, result)
        if self._pipeline.config.deliver == "message":
            update |= _as_messages(sighting, update)
        return update

    def _failed(self, error: Exception) -> dict[str, Any]:
        told = f"{type(error).__name__}: {error}"
        logger.error("scrum_master.failed", error=told)
        return {"sm_output": failed_output(told, "")}


def check(builder: StateGraph[Any, Any, Any, Any], *, deliver_message: bool = False) -> None:
    """Raise `GraphError` if the graph would lose what we write; warn if no node of it can read it."""
    builder = getattr(builder, "builder", builder)
    needed = (*STATE_KEYS, "messages") if deliver_message else STATE_KEYS
    missing = [key for key in needed if key not in builder.channels]
    if missing:
        raise GraphError(
            f"the graph would drop {', '.join(map(repr, missing))}: its state does not have "
            f"{'this key' if len(missing) == 1 else 'these keys'}. {_CURE}"
        )
    bare = [key for key in STATE_KEYS if isinstance(builder.channels[key], LastValue)]
    if bare:
        raise GraphError(f"the graph would overwrite {', '.join(map(repr, bare))}: there is no reducer on it. {_CURE}")
    ours = [name for name in builder.nodes if _is_ours(builder, name)]
    if not any(_can_receive(builder, name) for name in builder.nodes if name not in ours):
        _warn(
            f"no node of the graph can receive the context: give an agent's node a state that has {CONTEXT_KEY!r}, "
            "and let it read `context_for(state, agent)`"
        )
    if len(ours) > 1 and isinstance(builder.channels.get(HANDOFF_KEY), LastValue):
        _warn(
            f"{HANDOFF_KEY!r} has no reducer, and {len(ours)} scrum masters may write it in one step, which LangGraph "
            "refuses: give it one, such as `operator.or_`"
        )


_CURE = "Mix ScrumMasterState into the state: `class State(MessagesState, ScrumMasterState): ...`"


def _warn(text: str) -> None:
    warnings.warn(text, ScrumMasterWarning, stacklevel=4)


def _is_ours(builder: StateGraph[Any, Any, Any, Any], name: str) -> bool:
    runnable = builder.nodes[name].runnable
    method = getattr(runnable, "afunc", None)
    return isinstance(runnable, ScrumMasterNode) or isinstance(getattr(method, "__self__", None), ScrumMasterNode)


def _can_receive(builder: StateGraph[Any, Any, Any, Any], name: str) -> bool:
    seen: Mapping[str, Any] = builder.schemas.get(builder.nodes[name].input_schema, {})
    return CONTEXT_KEY in seen or HANDOFF_KEY in seen


def _runtime() -> Runtime[Any]:
    try:
        return get_runtime()
    except (RuntimeError, KeyError):
        return _OUTSIDE


def _thread(runtime: Runtime[Any]) -> str:
    return text_of(read(runtime.execution_info, "thread_id"))


def _as_messages(sighting: Sighting, update: dict[str, Any]) -> dict[str, Any]:
    """The payloads that nobody has read as messages, unless they are there already or must wait for a tool's answer."""
    state = {**sighting.state, **update}
    messages = items_of(state.get("messages"))
    sent = {read(message, "id") for message in messages}
    texts = {f"{NAME}-{payload['gap_id']}": payload for payload in unread(state, sighting.observation.turns)}
    fresh = {key: payload for key, payload in texts.items() if key not in sent and payload.get("text")}
    if not fresh or _waits_for_a_tool(messages):
        return {}
    from langchain_core.messages import HumanMessage

    return {
        "messages": [
            HumanMessage(
                content=str(payload["text"]),
                name=NAME,
                id=key,
                additional_kwargs={"lc_source": NAME, "gap_id": payload["gap_id"]},
            )
            for key, payload in fresh.items()
        ]
    }


def _waits_for_a_tool(messages: Sequence[Any]) -> bool:
    # Providers refuse a conversation in which something stands between a tool call and its answer.
    answered = {read(message, "tool_call_id") for message in messages}
    calls = next((items_of(read(m, "tool_calls")) for m in reversed(messages) if items_of(read(m, "tool_calls"))), ())
    return any(read(call, "id") not in answered for call in calls)
