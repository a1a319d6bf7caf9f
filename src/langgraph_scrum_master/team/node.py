"""The scrum master as a LangGraph node and as a pre-model hook, and the check of a graph that contains it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.channels import LastValue
from langgraph.graph import StateGraph

from langgraph_scrum_master._internal.shapes import items_of
from langgraph_scrum_master.errors import GraphError, ScrumMasterWarning
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.team.history import CONTEXT_KEY, HANDOFF_KEY
from langgraph_scrum_master.team.reader import Reader
from langgraph_scrum_master.team.runtime import NODE_NAME, Step
from langgraph_scrum_master.team.state import STATE_KEYS, merge_payloads


class ScrumMasterNode(Runnable[Any, dict[str, Any]]):
    """The node for `add_node`. It writes nothing for a healthy team and never fails the graph."""

    name = NODE_NAME

    def __init__(self, step: Step) -> None:
        self._step = step

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """The update for a state."""
        return self._step.run(input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """The same without blocking the event loop."""
        return await self._step.arun(input)

    async def scrum_master(self, state: Any) -> dict[str, Any]:
        """The same as a coroutine function, which a node with a timeout requires."""
        return await self._step.arun(state)


class PreModelHook(Runnable[Any, dict[str, Any]]):
    """The hook for `create_react_agent` and `create_supervisor`: the model gets the context in the same step.

    The context is appended to the model's input as a human message; `messages` does not change.
    """

    name = NODE_NAME

    def __init__(self, step: Step, agent: str = "") -> None:
        self._step = step
        self._reader = Reader(agent=agent)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """The update for a state, with the model's input."""
        state = self._reader.at_turn(input)
        update = self._step.run(state, self._reader)
        whole = _with_update(state, update)
        return _with_prompt(state, update, self._step.text_for(self._reader, whole))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """The same without blocking the event loop."""
        state = self._reader.at_turn(input)
        update = await self._step.arun(state, self._reader)
        whole = _with_update(state, update)
        return _with_prompt(state, update, await self._step.atext_for(self._reader, whole))


def _with_update(state: State, update: dict[str, Any]) -> State:
    return {**state, **update, CONTEXT_KEY: merge_payloads(state.get(CONTEXT_KEY), update.get(CONTEXT_KEY))}


def _with_prompt(state: State, update: dict[str, Any], text: str) -> dict[str, Any]:
    # With an empty list the model reads `messages`; without the key it would read its previous input.
    prompt = [*items_of(state.get("messages")), HumanMessage(text, name=NODE_NAME)] if text else []
    return {**update, "llm_input_messages": prompt}


def check_graph(builder: StateGraph[Any, Any, Any, Any], *, deliver_message: bool = False) -> None:
    """Raise `GraphError` if the graph would lose what we write; warn if none of its nodes can read it."""
    builder = getattr(builder, "builder", builder)
    needed = (*STATE_KEYS, "messages") if deliver_message else STATE_KEYS
    missing = [key for key in needed if key not in builder.channels]
    if missing:
        raise GraphError(
            f"the graph would drop {', '.join(map(repr, missing))}: its state does not have "
            f"{'this key' if len(missing) == 1 else 'these keys'}. {_FIX}"
        )
    bare = [key for key in STATE_KEYS if isinstance(builder.channels[key], LastValue)]
    if bare:
        raise GraphError(f"the graph would overwrite {', '.join(map(repr, bare))}: there is no reducer on it. {_FIX}")
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


_FIX = "Mix ScrumMasterState into the state: `class State(MessagesState, ScrumMasterState): ...`"


def _warn(text: str) -> None:
    warnings.warn(text, ScrumMasterWarning, stacklevel=4)


def _is_ours(builder: StateGraph[Any, Any, Any, Any], name: str) -> bool:
    runnable = builder.nodes[name].runnable
    method = getattr(runnable, "afunc", None)
    return isinstance(runnable, ScrumMasterNode) or isinstance(getattr(method, "__self__", None), ScrumMasterNode)


def _can_receive(builder: StateGraph[Any, Any, Any, Any], name: str) -> bool:
    seen: Mapping[str, Any] = builder.schemas.get(builder.nodes[name].input_schema, {})
    return CONTEXT_KEY in seen or HANDOFF_KEY in seen
