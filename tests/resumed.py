"""A graph that two processes build alike."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, MessagesState, StateGraph

from builders import DECISION, QUESTION, Given, a_context, says
from langgraph_scrum_master import ScrumMaster, ScrumMasterState, context_for


class State(MessagesState, ScrumMasterState):
    pass


def dev(state: State) -> dict[str, Any]:
    known = DECISION in context_for(state, "dev")
    return {"messages": [says("dev", "Done: the keys go into Redis." if known else QUESTION)]}


def route(state: State) -> str:
    return END if "Done" in state["messages"][-1].text else "dev"


def build() -> StateGraph[State, None, State, State]:
    builder = StateGraph(State)
    builder.add_node("dev", dev)
    builder.add_node(ScrumMaster(sources=[Given(a_context())]).node)
    builder.add_edge(START, "dev")
    builder.add_edge("dev", "scrum_master")
    builder.add_conditional_edges("scrum_master", route, ["dev", END])
    return builder
