"""An agent that fills a gap by assuming is noticed, where that is wanted."""

from __future__ import annotations

import pytest

from builders import a_state
from langgraph_scrum_master import ChromaMemory, InjectionConfig, ScrumMaster

ON = InjectionConfig(assumptions=True)


@pytest.mark.parametrize(
    "said",
    [
        "Let's assume $1 per can. Then the total is $12.",
        "I'll use 30 days as a default since none is given.",
        "The price is not stated, so I am assuming 2 euros.",
        "For now I will set it to 90 days as a default.",
        "Assuming the discount is 10 percent, the price falls to 45.",
        "We can assume that the train leaves at noon.",
        "I'm going to pick Postgres unless told otherwise.",
        "Ich nehme an, dass die Frist 30 Tage beträgt.",
        "Je vais supposer que le délai est de 30 jours.",
        "Voy a suponer que el plazo es de 30 días.",
        "我们假设每罐 1 美元。",
    ],
)
def test_an_assumption_is_a_gap_if_the_setting_says_so(said: str) -> None:
    state = a_state(("dev", said))

    (gap,) = ScrumMaster(config=ON).detect(state)

    assert (gap.reason, gap.agent, gap.confidence) == ("assumption_made", "dev", 0.6)
    assert gap.spans
    assert ScrumMaster().detect(state) == ()


@pytest.mark.parametrize(
    "said",
    [
        "The tests pass, and the parser takes the default branch.",
        "Assume for contradiction that the root is rational.",
        "If we assume nothing, the proof still holds.",
        "The module makes no network calls.",
        "We assume nothing; all values come from config.",
        "I removed the assumption that ids are ints.",
        "As we assumed, the cache was cold.",
        "I guess that's it, all done.",
        "I use the store of the graph.",
    ],
)
def test_what_only_sounds_like_one_is_none(said: str) -> None:
    assert ScrumMaster(config=ON).detect(a_state(("dev", said))) == ()


def test_a_person_may_assume_what_it_likes() -> None:
    assert ScrumMaster(config=ON).detect(a_state(("user", "Let's assume $1 per can."))) == ()


async def test_what_memory_knows_takes_the_place_of_the_assumption() -> None:
    memory = ChromaMemory()
    await memory.store_many([("task", "Each can of juice costs 2 dollars at the stand of Eric.", {})])
    state = a_state(("user", "Eric sells 12 cans of juice."), ("dev", "Let's assume $1 per can of juice: $12."))

    result = await ScrumMaster(memory=memory, config=ON).aevaluate(state)

    assert result is not None
    assert [context.key for context in result.contexts_retrieved] == ["task"]
