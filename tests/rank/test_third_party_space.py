"""User-defined spaces, with public imports only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from langgraph_scrum_master import ChromaMemory
from langgraph_scrum_master.errors import ConfigError

NUMBER = re.compile(r"\d+")


class Numbers:
    """The share of the query's numbers that a text has."""

    code = "X1"
    name = "numbers"

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight

    def speaks(self, query: Any) -> bool:
        return bool(NUMBER.search(query.text))

    def strengths(self, query: Any, candidates: Any) -> Sequence[float]:
        wanted = set(NUMBER.findall(query.text))
        return [len(wanted & set(NUMBER.findall(text))) / len(wanted) for text in candidates.texts]


class Given:
    """Returns fixed strengths."""

    code = "X1"
    name = "given"
    weight = 1.0

    def __init__(self, made: Any) -> None:
        self.made = made

    def strengths(self, query: Any, candidates: Any) -> Any:
        return self.made


ROWS: list[tuple[str, str, dict[str, Any]]] = [
    ("timeout", "The gateway gives up after 30 seconds.", {}),
    ("retry", "The gateway gives up after 45 seconds.", {}),
]


async def filled(**settings: Any) -> ChromaMemory:
    memory = ChromaMemory(**settings)
    await memory.store_many(ROWS)
    return memory


async def test_a_space_of_the_users_takes_part_in_strengths_and_agreement() -> None:
    plain, extended = await filled(), await filled(spaces={"X1": Numbers()})
    query = "When does the gateway give up: 45?"

    before = {each.key: each for each in await plain.search_similar(query)}
    after = {each.key: each for each in await extended.search_similar(query)}

    assert [after[key].strengths["X1"] for key in ("timeout", "retry")] == [0.0, 1.0]
    assert after["retry"].weighted_agreement == pytest.approx(before["retry"].weighted_agreement + 1, abs=0.002)
    assert after["retry"].score > before["retry"].score
    assert after["timeout"].score < before["timeout"].score


async def test_it_takes_part_where_answers_are_searched_and_where_words_alone_count() -> None:
    memory = await filled(spaces={"X1": Numbers()})

    for search in (memory.search_answers, memory.search_by_words):
        found = {each.key: each for each in await search("When does the gateway give up: 45?")}
        assert found["retry"].strengths["X1"] == 1


async def test_a_query_that_it_says_nothing_about_is_ranked_without_it() -> None:
    plain, extended = await filled(), await filled(spaces={"X1": Numbers()})

    query = "When does the gateway give up?"

    assert await extended.search_similar(query) == await plain.search_similar(query)


async def test_a_space_without_weight_is_reported_and_counts_nothing() -> None:
    plain, extended = await filled(), await filled(spaces={"X1": Numbers(weight=0)})
    query = "When does the gateway give up: 45?"

    found, known = await extended.search_similar(query), await plain.search_similar(query)

    assert [(each.key, each.score) for each in found] == [(each.key, each.score) for each in known]
    assert all("X1" in each.strengths for each in found)


async def test_it_works_beside_a_model_and_on_other_shelves() -> None:
    class Model:
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0, float(len(text))] for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return [1.0, float(len(text))]

    memory = (await filled(spaces={"E10": Model(), "X1": Numbers()})).beside("code")
    await memory.store_many(ROWS)

    assert (await memory.search_similar("45"))[0].strengths.keys() >= {"E10", "X1"}


async def test_strengths_beyond_0_and_1_are_clipped() -> None:
    memory = await filled(spaces={"X1": Given([7.0, -1.0])})

    assert sorted(each.strengths["X1"] for each in await memory.search_similar("gateway")) == [0.0, 1.0]


@pytest.mark.parametrize("made", [[0.5], [0.5, float("nan")], "many", None])
async def test_a_space_that_does_not_give_a_number_per_candidate_is_reported(made: Any) -> None:
    memory = await filled(spaces={"X1": Given(made)})

    with pytest.raises(ConfigError, match="the space X1 must return a finite number for each of 2 candidates"):
        await memory.search_similar("gateway")


@pytest.mark.parametrize(
    ("spaces", "message"),
    [
        ({"E6": Numbers()}, "for 'E6', which is built in"),
        ({"X2": Numbers()}, "must be passed under its code, a single word, got 'X2' for 'X1'"),
        ({"X1": Numbers(weight=-1)}, "the weight of X1 must be a finite number of at least 0, got -1"),
        ({"X1": object()}, "a custom space has code, name, weight and strengths"),
    ],
)
def test_a_space_that_cannot_be_used_is_rejected(spaces: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ChromaMemory(spaces=spaces)
