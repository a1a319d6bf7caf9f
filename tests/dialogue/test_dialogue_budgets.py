"""Token budgets of a dialogue's prompt."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from langgraph_scrum_master import ConfigError
from langgraph_scrum_master.config import TokenBudget
from langgraph_scrum_master.dialogue import DynamicBudget, FixedBudget, PrioritizedBudget
from langgraph_scrum_master.dialogue.budgets import (
    BUDGET_SECTIONS,
    STRATEGIES,
    Demand,
    allocate_budget,
    redistribute_unused,
    strategy_name,
)
from langgraph_scrum_master.dialogue.settings import DIALOGUE_BUDGET

TABLE = {"system": 500, "history": 1000, "entities": 500, "rag": 1500, "query": 596}


def a_demand(total: int = 4096, query: int = 20, turns: int = 5, entities: int = 3, chunks: int = 4) -> Demand:
    return Demand(total=total, query=query, turns=turns, entities=entities, chunks=chunks)


def test_the_default_budget_is_the_table_for_4096_tokens() -> None:
    assert dict(DIALOGUE_BUDGET) == TABLE
    assert DIALOGUE_BUDGET.total == 4096


def test_fixed_shares_give_the_table_at_4096_and_the_same_shares_of_another_total() -> None:
    assert dict(FixedBudget()(a_demand(4096))) == TABLE
    assert dict(FixedBudget()(a_demand(8192))) == {name: 2 * tokens for name, tokens in TABLE.items()}


def test_fixed_shares_can_be_given() -> None:
    strategy = FixedBudget(system=0.1, history=0.2, entities=0.3, rag=0.3, query=0.1)

    assert dict(strategy(a_demand(1000))) == {"system": 100, "history": 200, "entities": 300, "rag": 300, "query": 100}


def test_a_query_longer_than_its_fixed_share_shrinks_the_others() -> None:
    budget = FixedBudget()(a_demand(4096, query=2346))

    assert dict(budget) == {"system": 250, "history": 500, "entities": 250, "rag": 750, "query": 2346}


@pytest.mark.parametrize(
    ("turns", "history", "entities", "rag"),
    [(0, 15, 15, 60), (3, 15, 15, 60), (4, 30, 20, 40), (10, 30, 20, 40), (11, 40, 25, 25), (200, 40, 25, 25)],
)
def test_the_longer_a_dialogue_the_more_history_and_the_less_knowledge(
    turns: int, history: int, entities: int, rag: int
) -> None:
    budget = DynamicBudget()(a_demand(total=10_120, query=20, turns=turns))

    assert dict(budget) == {
        "system": 400,
        "history": 100 * history,
        "entities": 100 * entities,
        "rag": 100 * rag,
        "query": 120,
    }


def test_the_system_prompt_gets_400_tokens_or_what_the_others_leave() -> None:
    roomy, tight = DynamicBudget()(a_demand(total=10_120)), DynamicBudget()(a_demand(total=1120))

    assert roomy["system"] == 400
    assert (tight["history"], tight["entities"], tight["rag"], tight["system"]) == (300, 200, 400, 100)


@pytest.mark.parametrize(("entities", "tokens", "rag"), [(10, 2000, 4000), (11, 2600, 4000)])
def test_more_than_ten_entities_get_1_3_times_their_share_and_knowledge_what_is_left(
    entities: int, tokens: int, rag: int
) -> None:
    budget = DynamicBudget()(a_demand(total=10_120, entities=entities))

    assert budget["entities"] == tokens
    assert budget["rag"] == (rag if entities == 10 else 10_000 - 400 - 3000 - 2600)


def test_many_entities_in_a_small_prompt_leave_no_knowledge_and_never_less_than_none() -> None:
    budget = DynamicBudget()(a_demand(total=620, turns=11, entities=11))

    assert dict(budget) == {"system": 138, "history": 200, "entities": 162, "rag": 0, "query": 120}


def test_without_knowledge_its_tokens_go_half_to_the_history_and_half_to_the_entities() -> None:
    budget = DynamicBudget()(a_demand(total=10_120, chunks=0))

    assert (budget["history"], budget["entities"], budget["rag"]) == (3000 + 2000, 2000 + 2000, 0)


def test_a_query_and_its_reserve_beyond_the_total_get_all_of_it() -> None:
    for strategy in (DynamicBudget(), PrioritizedBudget()):
        assert dict(strategy(a_demand(total=150, query=80))) == {
            "system": 0,
            "history": 0,
            "entities": 0,
            "rag": 0,
            "query": 150,
        }


def test_prioritized_sections_get_their_demand_in_order_until_the_tokens_run_out() -> None:
    wanted = {"system": 100, "history": 700, "entities": 50, "rag": 900}
    demand = Demand(total=1120, query=20, wanted=wanted)

    assert dict(PrioritizedBudget(order=("rag", "system", "entities", "history"))(demand)) == {
        "system": 100,
        "history": 0,
        "entities": 0,
        "rag": 900,
        "query": 120,
    }
    assert PrioritizedBudget(order=("history", "entities", "rag"))(demand)["rag"] == 250


@given(
    strategy=st.sampled_from([*STRATEGIES.values(), FixedBudget(system=0.7, rag=0.3, history=0, entities=0, query=0)]),
    total=st.integers(1, 20_000),
    query=st.integers(0, 25_000),
    turns=st.integers(0, 30),
    entities=st.integers(0, 30),
    chunks=st.integers(0, 3),
)
def test_no_strategy_gives_more_than_the_total(
    strategy: DynamicBudget, total: int, query: int, turns: int, entities: int, chunks: int
) -> None:
    budget = strategy(a_demand(total, query, turns, entities, chunks))

    assert budget.total <= total
    assert budget["query"] >= min(query, total)
    assert tuple(budget) == BUDGET_SECTIONS


def test_an_excessive_custom_budget_is_cut_with_the_query_last() -> None:
    def generous(demand: Demand) -> TokenBudget:
        return TokenBudget(system=600, history=600, query=300)

    assert dict(allocate_budget(generous, a_demand(total=1000))) == {
        "system": 600,
        "history": 100,
        "entities": 0,
        "rag": 0,
        "query": 300,
    }
    assert strategy_name(generous) == "generous"


def test_tokens_unused_by_entities_and_knowledge_go_to_the_system_prompt_and_then_to_the_history() -> None:
    used = {"entities": 120, "rag": 0}

    assert dict(redistribute_unused(DIALOGUE_BUDGET, used, 80)) == TABLE | used | {"history": 1000 + 380 + 1500}
    assert dict(redistribute_unused(DIALOGUE_BUDGET, used, 600)) == TABLE | used | {
        "system": 600,
        "history": 1000 + 280 + 1500,
    }
    assert redistribute_unused(DIALOGUE_BUDGET, used, 9_000).total == 4096


@pytest.mark.parametrize(
    "bad",
    [
        lambda: FixedBudget(system=0.9, history=0.9),
        lambda: FixedBudget(system=-0.1),
        lambda: PrioritizedBudget(order=("system", "jokes")),
        lambda: PrioritizedBudget(order=("system", "system")),
    ],
)
def test_invalid_shares_and_orders_are_rejected(bad: object) -> None:
    assert callable(bad)
    with pytest.raises(ConfigError, match="must"):
        bad()
