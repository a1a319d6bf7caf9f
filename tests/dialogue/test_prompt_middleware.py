"""`PromptMiddleware` in agents of `create_agent`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from builders import DECISION, QUESTION, Given, a_context
from dialogue_builders import Books, a_chunk
from langgraph_scrum_master import (
    ConfigError,
    PromptAssembler,
    PromptMiddleware,
    ScrumMasterMiddleware,
    SessionBriefing,
)
from langgraph_scrum_master.dialogue import TurnRecords
from langgraph_scrum_master.dialogue.chat import message_tokens
from langgraph_scrum_master.testing import ScriptedChatModel
from langgraph_scrum_master.text.tokens import estimate_tokens

ROLE = "You answer for the mill."
FACT = "The locker of the night shift opens with 4711."
QUERY = "How does the locker of the night shift open?"
THREAD: Any = {"configurable": {"thread_id": "mill"}}


def look(place: str) -> str:
    """Look at a place."""
    return f"{place}: " + "a very long list of things, " * 400


class Clerk:
    """A model that looks once, then says what stands in its prompt, and what it was prompted with."""

    def __init__(self, looks: bool = True) -> None:
        self.prompts: list[list[BaseMessage]] = []
        self._looks = looks

    def __call__(self, prompt: list[BaseMessage]) -> str | AIMessage:
        self.prompts.append(prompt)
        if self._looks and prompt[-1].type != "tool":
            return AIMessage(
                "", tool_calls=[{"name": "look", "args": {"place": "attic"}, "id": f"c{len(self.prompts)}"}]
            )
        return "With 4711." if any("4711" in message.text for message in prompt) else QUESTION

    def agent(self, *middleware: Any, **options: Any) -> Any:
        model = ScriptedChatModel(script=self)
        return create_agent(model, tools=[look], system_prompt=ROLE, middleware=middleware, **options)


@pytest.mark.parametrize("awaited", [False, True], ids=["invoke", "ainvoke"])
def test_an_agent_with_a_long_thread_answers_from_its_third_turn_within_its_tokens(awaited: bool) -> None:
    clerk, records = Clerk(), TurnRecords(InMemoryStore())
    assembler = PromptAssembler(instructions="Be brief.", personality=None, records=records)
    agent = clerk.agent(PromptMiddleware(assembler, max_tokens=800), checkpointer=InMemorySaver())
    said = [HumanMessage(FACT if i == 2 else f"Street {i} is long and has old houses.") for i in range(200)]
    given = {"messages": [*said, HumanMessage(QUERY, id="m200")]}

    end = asyncio.run(agent.ainvoke(given, THREAD)) if awaited else agent.invoke(given, THREAD)

    assert end["messages"][-1].text == "With 4711."
    assert all(message_tokens(prompt, estimate_tokens) <= 800 for prompt in clerk.prompts)
    assert [message.type for message in clerk.prompts[-1]].count("system") == 1
    assert clerk.prompts[-1][0].text.startswith(f"Be brief.\n\n{ROLE}\n\n<injected_context>")
    assert [message.type for message in clerk.prompts[-1]][-3:] == ["human", "ai", "tool"]
    assert len(end["messages"]) == 204
    assert (records.sessions(), records.turns("mill")) == (["mill"], ["m200"])


def test_the_scrum_masters_context_is_added_on_top_of_the_prompt() -> None:
    clerk = Clerk(looks=False)
    paper = Books(a_chunk("The paper machine stops on Friday."))
    scrum_master = ScrumMasterMiddleware(sources=[Given(a_context())], agent="clerk")
    agent = clerk.agent(PromptMiddleware(PromptAssembler(knowledge=paper)), scrum_master)

    agent.invoke({"messages": [HumanMessage("When does the machine stop?")]})

    assert "stops on Friday" in clerk.prompts[0][0].text
    assert DECISION not in clerk.prompts[0][0].text
    assert "stops on Friday" in clerk.prompts[1][0].text
    assert clerk.prompts[1][0].text.index(DECISION) > clerk.prompts[1][0].text.index("stops on Friday")


def test_the_agent_gets_its_messages_if_the_prompt_cannot_be_assembled(logged: list[dict[str, object]]) -> None:
    clerk = Clerk(looks=False)
    asked = HumanMessage("word " * 900)

    clerk.agent(PromptMiddleware(PromptAssembler(), max_tokens=100)).invoke({"messages": [asked]})

    assert [message.text for message in clerk.prompts[0]] == [ROLE, asked.text]
    assert [entry["event"] for entry in logged] == ["prompt.failed"]


def test_an_assembler_and_its_tokens_are_checked() -> None:
    made: Any = PromptMiddleware
    with pytest.raises(ConfigError, match="the assembler must be a PromptAssembler, got None"):
        made(None)
    with pytest.raises(ConfigError, match="max_tokens must be a whole number, 1 or more, got 0"):
        made(PromptAssembler(), max_tokens=0)


def test_a_briefing_is_data_in_every_prompt_of_its_thread(tmp_path: Path) -> None:
    bank = tmp_path / "docs" / "knowledge-bank"
    bank.mkdir(parents=True)
    (bank / "patterns.md").write_text(f"### Pattern: Lockers\n{FACT}\n")
    clerk = Clerk(looks=False)
    builder = StateGraph(MessagesState)
    builder.add_node("session_briefing", SessionBriefing(tmp_path).node)
    builder.add_node("clerk", clerk.agent(PromptMiddleware(PromptAssembler())))
    builder.add_edge(START, "session_briefing")
    builder.add_edge("session_briefing", "clerk")
    graph = builder.compile(checkpointer=InMemorySaver())

    for i in range(12):
        graph.invoke({"messages": [HumanMessage(f"Street {i} is long.")]}, THREAD)
    end = graph.invoke({"messages": [HumanMessage(QUERY)]}, THREAD)

    assert end["messages"][-1].text == "With 4711."
    assert [prompt[-1].text for prompt in clerk.prompts] == [*(f"Street {i} is long." for i in range(12)), QUERY]
    assert FACT in clerk.prompts[0][0].text
