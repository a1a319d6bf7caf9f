"""An evaluation as a node of a LangGraph graph, sync and async, and the check of a graph that has one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import structlog
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.graph import StateGraph
from langgraph.runtime import Runtime, get_runtime

from langgraph_scrum_master.blocking import wait_for
from langgraph_scrum_master.errors import GraphError, ScrumMasterWarning
from langgraph_scrum_master.inject import CONTEXT_KEY, HANDOFF_KEY
from langgraph_scrum_master.model import InjectionResult, SMOutput
from langgraph_scrum_master.pipeline import Pipeline, Sighting
from langgraph_scrum_master.protocols import MemoryStore
from langgraph_scrum_master.shapes import items_of, read
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
        try:
            sighting = self._pipeline.sight(input)
            result = wait_for(self._serve(sighting, _runtime())) if sighting.gaps else None
            return self._update(sighting, result)
        except GraphBubbleUp:
            raise
        except Exception as error:
            return self._failed(error)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """The same without blocking the event loop."""
        try:
            sighting = self._pipeline.sight(input)
            result = await self._serve(sighting, _runtime()) if sighting.gaps else None
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

        return await self._pipeline.serve(sighting, self._memory or self._graphs_store(runtime), emit)

    def _graphs_store(self, runtime: Runtime[Any]) -> MemoryStore | None:
        if runtime.store is None:
            return None
        from langgraph_scrum_master.memory.langgraph_store import StoreMemory

        return StoreMemory(runtime.store, namespace=self._pipeline.config.namespace)

    def _update(self, sighting: Sighting, result: InjectionResult | None) -> dict[str, Any]:
        update = self._pipeline.update(sighting, result)
        if self._pipeline.config.deliver == "message" and result is not None and result.injected:
            update |= _as_message(result, sighting)
        return update

    def _failed(self, error: Exception) -> dict[str, Any]:
        told = f"{type(error).__name__}: {error}"
        logger.error("scrum_master.failed", error=told)
        account = SMOutput(
            observed_at=datetime.fromtimestamp(self._pipeline.clock(), UTC).isoformat(),
            current_agent="",
            circular_logic_detected=False,
            gate_blocked=False,
            gaps=(),
            injection_result=None,
            processing_notes=f"failed, the graph goes on: {told}",
        )
        return {"sm_output": account}


def check(builder: StateGraph[Any, Any, Any, Any], *, deliver_message: bool = False) -> None:
    """Raise `GraphError` if the graph would drop a key that we write; warn if no node of it can read it."""
    needed = (*STATE_KEYS, "messages") if deliver_message else STATE_KEYS
    missing = [key for key in needed if key not in builder.channels]
    if missing:
        raise GraphError(
            f"the graph would drop {', '.join(map(repr, missing))}: its state does not have "
            f"{'this key' if len(missing) == 1 else 'these keys'}. Mix ScrumMasterState into the state: "
            "`class State(MessagesState, ScrumMasterState): ...`"
        )
    if not any(_can_receive(builder, name) for name in builder.nodes):
        warnings.warn(
            f"no node of the graph can receive the context: give an agent's node a state that has {CONTEXT_KEY!r}, "
            "and let it read `context_for(state, agent)`",
            ScrumMasterWarning,
            stacklevel=3,
        )


def _can_receive(builder: StateGraph[Any, Any, Any, Any], name: str) -> bool:
    spec = builder.nodes[name]
    ours = isinstance(spec.runnable, ScrumMasterNode) or isinstance(
        getattr(getattr(spec.runnable, "afunc", None), "__self__", None), ScrumMasterNode
    )
    seen: Mapping[str, Any] = builder.schemas.get(spec.input_schema, {})
    return not ours and (CONTEXT_KEY in seen or HANDOFF_KEY in seen)


def _runtime() -> Runtime[Any]:
    try:
        return get_runtime()
    except (RuntimeError, KeyError):
        return _OUTSIDE


def _as_message(result: InjectionResult, sighting: Sighting) -> dict[str, Any]:
    from langchain_core.messages import HumanMessage

    # Providers refuse a conversation in which something stands between a tool call and its answer.
    messages = items_of(sighting.state.get("messages"))
    if messages and items_of(read(messages[-1], "tool_calls")):
        return {}
    message = HumanMessage(
        content=result.text,
        name=NAME,
        id=f"{NAME}-{result.gap.gap_id}",
        additional_kwargs={"lc_source": NAME, "gap_id": result.gap.gap_id},
    )
    return {"messages": [message]}
