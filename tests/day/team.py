"""The team of the scripted day: a developer who lacks a decision, with a scrum master and a checkpoint database."""

import sqlite3
import sys

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from langgraph_scrum_master import InjectionConfig, ScrumMaster, ScrumMasterState, checkpoint_serde, context_for
from langgraph_scrum_master.team import JsonlRecorder


class State(MessagesState, ScrumMasterState):
    """The conversation plus the keys that the scrum master writes."""


def dev(state: State) -> dict[str, list[AIMessage]]:
    if "12 hours" in context_for(state, "dev"):
        return {"messages": [AIMessage("Done: the session cookie expires after 12 hours.", name="dev")]}
    return {"messages": [AIMessage("How do we keep sessions, and for how long?", name="dev")]}


def build() -> StateGraph[State]:
    config = InjectionConfig(enabled_sources=("memory", "state", "architecture"), architecture_path="docs/adr")
    scrum_master = ScrumMaster(config=config, recorder=JsonlRecorder("audit.jsonl"))
    builder = StateGraph(State)
    builder.add_node("dev", dev)
    builder.add_node(scrum_master.node)
    builder.add_edge(START, "dev")
    builder.add_edge("dev", "scrum_master")
    builder.add_conditional_edges("scrum_master", lambda state: END if "Done" in state["messages"][-1].text else "dev")
    scrum_master.check(builder)
    return builder


if __name__ == "__main__":
    saver = SqliteSaver(sqlite3.connect("app.sqlite", check_same_thread=False), serde=checkpoint_serde())
    graph = build().compile(checkpointer=saver)
    for thread in sys.argv[1:]:
        asked = {"messages": [HumanMessage("Build the login.")]}
        end = graph.invoke(asked, {"configurable": {"thread_id": thread}})  # type: ignore[call-overload]
        print(end["messages"][-1].text)
