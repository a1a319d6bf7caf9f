"""The parameters of ranking can be replaced."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from langgraph_scrum_master import ChromaMemory
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.rank import tuning
from langgraph_scrum_master.rank.tuning import DEFAULT_TUNING, AnswerWeights, RankTuning

ROWS: list[tuple[str, str, dict[str, Any]]] = [
    ("keys", "We keep idempotency keys of payments in Redis. See ADR-7.", {"session": "s"}),
    ("outage", "The outage happened because the disk was full.", {"session": "s"}),
    ("adr", "ADR-7: Idempotency keys expire after a day.", {}),
    ("lunch", "Lunch is at noon.", {}),
]
QUERY = "Where are the idempotency keys kept?"


async def filled(**settings: Any) -> ChromaMemory:
    memory = ChromaMemory(**settings)
    await memory.store_many(ROWS)
    return memory


async def test_the_default_recipe_ranks_as_no_recipe_does() -> None:
    plain, given = await filled(), await filled(tuning=RankTuning())

    assert await given.search_similar(QUERY) == await plain.search_similar(QUERY)
    assert await given.search_answers(QUERY) == await plain.search_answers(QUERY)


@pytest.mark.parametrize(
    "changed",
    [
        {"relevance_bar": 0.4},
        {"steepness": 4.0},
        {"semantic_weight": 0.2},
        {"structural_weight": 0.0},
        {"neighbours": ((1, 0.9),)},
        {"cited": 0.0},
        {"unrelated": 0.3},
        {"bm25_k1": 2.0},
        {"bm25_b": 0.0},
        {"by_chance": 0.0},
        {"related_words": 0.3},
        {"length_floor": 1.0},
        {"query_terms": 1},
    ],
)
async def test_a_recipe_reaches_the_scores_of_a_search(changed: dict[str, Any]) -> None:
    plain, tuned = await filled(), await filled(tuning=RankTuning(**changed))

    assert await tuned.search_similar(QUERY) != await plain.search_similar(QUERY)


@pytest.mark.parametrize(
    "changed", [{"answer_bar": 0.5}, {"answer_weights": AnswerWeights(always=-1, need=3)}, {"behind": 1}]
)
async def test_a_recipe_reaches_the_scores_of_answers(changed: dict[str, Any]) -> None:
    plain, tuned = await filled(), await filled(tuning=RankTuning(**changed))

    assert await tuned.search_answers(QUERY) != await plain.search_answers(QUERY)


async def test_the_shelves_of_a_memory_rank_by_its_recipe() -> None:
    strict = (await filled(tuning=RankTuning(relevance_bar=0.9))).beside("code")
    await strict.store_many(ROWS)

    (best, *_), (plain, *_) = await strict.search_similar(QUERY), await (await filled()).search_similar(QUERY)

    assert best.score < 0.98 * plain.score


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"relevance_bar": 1.0}, "relevance_bar must be between 0 and 1, got 1.0"),
        ({"steepness": float("nan")}, "steepness must be a finite number of at least 0, got nan"),
        ({"semantic_weight": -1}, "semantic_weight must be a finite number of at least 0, got -1"),
        ({"unrelated": 0.8}, "unrelated must be below same, got 0.8 and 0.7"),
    ],
)
def test_numbers_that_cannot_rank_are_rejected(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RankTuning(**changed)


def test_a_recipe_must_be_one() -> None:
    with pytest.raises(ConfigError, match="tuning must be a RankTuning, got dict"):
        ChromaMemory(tuning={"steepness": 3})  # type: ignore[arg-type]


def test_each_number_says_where_it_comes_from() -> None:
    (recipe,) = (
        node
        for node in ast.parse(Path(tuning.__file__).read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == "RankTuning"
    )
    docstrings = {
        field.target.id: " ".join(note.value.value.split())
        for field, note in zip(recipe.body, recipe.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(note, ast.Expr)
        and isinstance(note.value, ast.Constant)
        and isinstance(note.value.value, str)
    }

    assert docstrings.keys() == {each.name for each in fields(DEFAULT_TUNING)}
    assert [
        name for name, note in docstrings.items() if not any(s in note for s in ("y hand", "benchmarks/", "usual"))
    ] == []
