"""A chat model may turn down doubtful gaps."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from builders import Given, a_context, a_state
from langgraph_scrum_master import InjectionConfig, ScrumMaster
from langgraph_scrum_master.testing import ScriptedChatModel

LOOPING = a_state(*[("dev", "I will rerun the migration of the orders.")] * 4)
ASKING = a_state(("dev", "Which database do we use?"))


class Model:
    """A scripted model that keeps what it was asked."""

    def __init__(self, answer: str) -> None:
        self.prompts: list[list[BaseMessage]] = []
        self.answer = answer

    def script(self, prompt: list[BaseMessage]) -> str:
        self.prompts.append(prompt)
        if self.answer == "fail":
            raise ConnectionError("the model is down")
        return self.answer

    def master(self, **options: Any) -> ScrumMaster:
        return ScrumMaster(judge=ScriptedChatModel(script=self.script), sources=[Given(a_context())], **options)


@pytest.mark.parametrize(("answer", "served"), [("no", False), ("No.", False), ("yes", True), ("Yes, it is.", True)])
async def test_a_doubtful_gap_is_served_only_if_the_model_confirms_it(answer: str, served: bool) -> None:
    result = await Model(answer).master().aevaluate(LOOPING)

    assert (result is not None) == served


async def test_the_model_sees_the_agent_the_suspicion_and_the_conversation_and_is_asked_once() -> None:
    model = Model("no")
    master = model.master()

    for _ in range(3):
        await master.aevaluate(LOOPING)

    ((_, question),) = model.prompts
    assert "Agent: dev" in question.text
    assert "circular_logic" in question.text
    assert "[dev] I will rerun the migration" in question.text


async def test_a_sure_gap_is_not_shown_to_the_model() -> None:
    model = Model("no")

    assert await model.master().aevaluate(ASKING) is not None
    assert model.prompts == []


async def test_a_model_that_fails_changes_nothing(logged: list[dict[str, Any]]) -> None:
    result = await Model("fail").master(config=InjectionConfig(log_injections=False)).aevaluate(LOOPING)

    assert result is not None
    assert [entry["event"] for entry in logged] == ["judge.failed"]


def test_a_call_that_is_not_awaited_asks_it_too() -> None:
    assert Model("no").master().evaluate(LOOPING) is None
    assert Model("yes").master().evaluate(LOOPING) is not None
    assert Model("no").master().node.invoke(LOOPING) == {}


LIKELY = a_state(("dev", "The spec could be clearer about the retention period."))


def test_a_question_that_is_only_likely_is_a_gap_if_the_model_says_so() -> None:
    """A score between the thresholds: nobody but the model confirms it."""
    (doubtful,) = ScrumMaster(judge=ScriptedChatModel(script=lambda _: "yes")).observe(LIKELY).questions

    assert not doubtful.confirmed
    assert ScrumMaster().detect(LIKELY) == ()
    assert Model("yes").master().evaluate(LIKELY) is not None
    assert Model("no").master().evaluate(LIKELY) is None
    assert Model("fail").master().evaluate(LIKELY) is None


async def test_an_awaited_node_asks_it_too() -> None:
    assert await Model("no").master().node.ainvoke(LOOPING) == {}
