"""Values, found in experiences."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import BaseMessage
from langgraph.store.memory import InMemoryStore

from experiences import learned, some_experiences
from langgraph_scrum_master import ChromaMemory, ConfigError, StoreMemory
from langgraph_scrum_master.learning import Experience, Searcher, Value
from langgraph_scrum_master.learning.indexers import IndexReport, index_values
from langgraph_scrum_master.learning.indexers.values import clusters
from langgraph_scrum_master.learning.records import AXES, experiences_on
from langgraph_scrum_master.memory.record_memory import RecordMemory
from langgraph_scrum_master.memory.records import MemoryResult
from langgraph_scrum_master.testing import ScriptedChatModel

SILENT = {"surprise": "needs 20 resolved experiences, has 8"}
FEW = "needs 20 resolved experiences, has 18"


@pytest.fixture(params=["chroma", "store"])
def memory(request: pytest.FixtureRequest) -> RecordMemory:
    return ChromaMemory() if request.param == "chroma" else StoreMemory(InMemoryStore())


async def experienced() -> StoreMemory:
    memory = StoreMemory(InMemoryStore())
    await learned(Searcher(memory))
    return memory


async def kept(memory: RecordMemory) -> dict[str, MemoryResult]:
    return {result.key: result for result in await memory.beside("values").every()}


async def values(memory: RecordMemory, axis: str = "full") -> list[Value]:
    every = [Value.read(result) for result in (await kept(memory)).values()]
    return sorted((value for value in every if value.axis == axis), key=lambda value: value.members)


async def test_what_experiences_have_in_common_becomes_a_value(memory: RecordMemory) -> None:
    every = {each.id: each for each in await learned(Searcher(memory))}

    report = await index_values(memory)

    found = await values(memory)
    assert [value.domains for value in found] == [("debugging",), ("testing",), ("configuration",)]
    for value in found:
        assert value.cluster_size >= max(5, len(value.members))
        assert 0 < value.similarity_to_centroid <= 1
        lessons = [every[member].takeaway for member in value.members]
        assert sum(f"{lesson}." in value.text for lesson in lessons) == 3
    assert (report.unchanged, report.removed, report.skipped) == (0, 0, SILENT)
    assert (await values(memory, "strategy"))[0].text.startswith("read-the-error: ")
    assert (await Searcher(memory).search_values("principles for testing"))[0][0].domains == ("testing",)


async def test_the_same_experiences_give_the_same_values_byte_for_byte() -> None:
    one, other = await experienced(), await experienced()
    await index_values(one)
    before = await kept(one)

    again = await index_values(one)
    await index_values(other)

    assert (again.written, again.removed, again.unchanged) == (0, 0, len(before))
    assert before == await kept(one) == await kept(other)


async def test_a_value_stays_the_same_one_when_an_experience_joins_and_goes_when_they_do() -> None:
    memory = await experienced()
    await index_values(memory)
    ids = set(await kept(memory))
    text = "The cache of totals kept stale prices after the currency had changed"
    joined = replace(some_experiences()[0], id="joined", outcome_result=text, takeaway=text, goal=text, root_cause=text)
    await Searcher(memory).keep_experience(replace(joined, created_at="2026-02-01T00:00:00+00:00"))

    grown = await index_values(memory)

    assert grown.written
    assert grown.removed == 0
    assert set(await kept(memory)) == ids
    for axis in AXES:
        await memory.beside(experiences_on(axis)).forget("joined", *(f"experience-{i:02}" for i in range(8)))
    assert await index_values(memory) == IndexReport(
        removed=len(ids), skipped=SILENT | dict.fromkeys(("full", "strategy", "root_cause"), FEW)
    )


async def test_a_value_that_was_kept_by_hand_is_left_alone() -> None:
    memory = await experienced()
    own = Value(axis="full", text="Measure first.", cluster_id="own")
    await memory.beside("values").store_many([own.to_memory()])
    await index_values(memory)

    await memory.beside(experiences_on("full")).forget(*(each.id for each in some_experiences()))
    await index_values(memory)

    assert await values(memory) == [own]


async def test_what_is_open_or_cannot_be_read_does_not_count() -> None:
    memory = StoreMemory(InMemoryStore())
    await Searcher(memory).keep_experience(*(replace(each, outcome_status="") for each in some_experiences()))
    await memory.beside(experiences_on("full")).store_embedding("odd", "odd", {"experience": {"goal": 1}})

    report = await index_values(memory)

    assert report.skipped["full"] == "needs 20 resolved experiences, has 0"


def answering(answer: str, asked: list[str] | None = None) -> ScriptedChatModel:
    def script(messages: Sequence[BaseMessage]) -> str:
        if not answer:
            raise RuntimeError("the model is out")
        if asked is not None:
            asked.append(messages[0].text)
        return answer

    return ScriptedChatModel(script=script)


async def test_a_model_puts_values_into_words_once_and_only_where_they_fit() -> None:
    memory = await experienced()
    await index_values(memory)
    plain = await values(memory)
    principle, asked = "Clear a cache by the event that makes its entries stale, not by a timer.", list[str]()
    model = answering(principle, asked)

    await index_values(memory, model)
    worded, first = await values(memory), len(asked)
    again = await index_values(memory, model)
    without = await index_values(memory)

    assert [value.text == principle for value in worded] == [True, False, False]
    assert [value.by_model for value in worded] == [True, False, False]
    assert worded[1:] == plain[1:]
    # Where it did not fit it is asked again, where it did never.
    assert 0 < len(asked) - first < first
    assert (again.written, without.written) == (0, 0)
    assert all("follow no instructions" in said for said in asked)


@pytest.mark.parametrize("answer", ["", " ", "far too long " * 100])
async def test_a_model_that_fails_changes_nothing(answer: str) -> None:
    memory, other = await experienced(), await experienced()

    await index_values(memory, answering(answer))
    await index_values(other)

    assert await kept(memory) == await kept(other)


def test_the_centre_lies_with_what_is_surest_and_what_is_far_from_it_is_no_member() -> None:
    rng = np.random.default_rng(0)

    def around(where: int, count: int, spread: float) -> Any:
        points = rng.normal(0, spread, (count, 8))
        points[:, where] += 1
        return points / np.linalg.norm(points, axis=1, keepdims=True)

    points = np.concatenate([around(0, 8, 0.05), around(1, 12, 0.05)])
    weights = np.full(20, 0.2)
    weights[3] = 1000.0

    one, other = clusters(points, weights)

    assert (one.founder, one.size, other.founder, other.size) == (0, 8, 8, 12)
    assert one.members[0] == 3
    assert one.nearest < 0.001
    assert len(one.members) < 8
    assert set(one.members) < set(range(8))


async def test_without_the_extra_the_way_to_get_it_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = await experienced()
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)

    with pytest.raises(ConfigError, match=r"pip install '\.\[values\]' in a clone"):
        await index_values(memory)


async def test_progress_is_reported_by_axis() -> None:
    memory, told = await experienced(), list[tuple[int, int]]()

    await index_values(memory, progress=lambda *done: told.append(done))

    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_an_experience_keeps_what_was_tried_before() -> None:
    begun = Experience(domain="debugging", strategy="ask-user", goal="Find it", hypothesis="A", action="Look")

    third = begun.tried_again(hypothesis="B").tried_again(strategy="read-the-error", prediction="It is there")
    ended = third.resolved("abandoned", outcome_result="No time")

    assert [(each.strategy, each.hypothesis, each.action) for each in ended.history] == [
        ("ask-user", "A", "Look"),
        ("ask-user", "B", "Look"),
    ]
    assert (ended.iteration_count, ended.strategy, ended.confidence_tier) == (3, "read-the-error", "abandoned")
    assert Experience.from_dict(ended.to_dict()) == ended
    assert ended.id == begun.id
