"""E2, E3 and E4 are computed for every candidate and change no score."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pydoc_data.topics import topics

import pytest
from hypothesis import given, strategies as st

from langgraph_scrum_master import ChromaMemory, InjectionPipeline
from langgraph_scrum_master.memory import Memory, MemoryResult
from langgraph_scrum_master.rank.corpus import TextCorpus
from langgraph_scrum_master.rank.features import features_of
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.query_time import asked_at
from langgraph_scrum_master.rank.spaces import SPACES, positional
from langgraph_scrum_master.rank.table import Candidate
from langgraph_scrum_master.rank.tuning import RankTuning

NOW = 1772452800.0
HOUR, DAY = 3_600.0, 86_400.0
TEMPORAL = {"E2", "E3", "E4"}

QUESTIONS = ("How are names resolved in a class body?", "Why is it evaluated once, see ADR-7?", "lunch in Berlin")


def at(seconds_ago: float) -> str:
    return datetime.fromtimestamp(NOW - seconds_ago, UTC).isoformat()


def many() -> list[Memory]:
    paragraphs = [
        (name, text) for name in sorted(topics) for text in topics[name].split("\n\n")[:6] if len(text.strip()) > 40
    ]
    return [
        Memory(key=str(i), content=text, session=name if i % 3 else "", created_at=at(i * HOUR))
        for i, (name, text) in enumerate(paragraphs[:300])
    ]


def without_time(found: Sequence[MemoryResult]) -> list[tuple[object, ...]]:
    return [
        (
            each.key,
            each.score,
            each.weighted_agreement,
            {code: strength for code, strength in each.strengths.items() if code not in TEMPORAL},
        )
        for each in found
    ]


async def test_time_changes_no_score_no_order_and_no_agreement() -> None:
    timeless, timed = ChromaMemory(), ChromaMemory(clock=lambda: NOW)
    for memory in (timeless, timed):
        await memory.store_many(many())

    for question in QUESTIONS:
        plain, with_time = await timeless.search_similar(question, k=50), await timed.search_similar(question, k=50)
        assert without_time(with_time) == without_time(plain)
        assert all(each.strengths.keys() >= TEMPORAL for each in with_time)
        assert all(each.strengths.keys() & TEMPORAL == {"E4"} for each in plain)
        assert without_time(await timed.search_answers(question)) == without_time(
            await timeless.search_answers(question)
        )


async def test_the_strengths_tell_how_recent_how_periodic_and_how_late_in_its_session_a_text_is() -> None:
    memory = ChromaMemory(clock=lambda: NOW)
    ages = {"new": 0.0, "week": 7 * DAY, "half": 3.5 * DAY}
    await memory.store_many(
        [
            Memory(key=key, content=f"Retry payments: {key}.", created_at=at(age), session="s")
            for key, age in ages.items()
        ]
    )
    await memory.store_many([Memory(key="lone", content="Retry payments: lone.", created_at="")])

    found = {each.key: each.strengths for each in await memory.search_similar("retry payments")}

    assert {key: each["E2"] for key, each in found.items() if key != "lone"} == {
        "new": 1.0,
        "week": 0.5,
        "half": 0.707107,
    }
    assert [found[key]["E3"] for key in ages] == [1.0, 1.0, 0.0]
    assert [found[key]["E4"] for key in ages] == [0.333, 0.5, 1.0]
    assert found["lone"]["E4"] == 0


async def test_the_time_of_the_query_comes_before_the_memorys_clock() -> None:
    memory = ChromaMemory(clock=lambda: NOW + 14 * DAY)
    await memory.store_many([Memory(key="m", content="Retry payments.", created_at=at(0))])

    with asked_at(NOW + 7 * DAY):
        (inside,) = await memory.search_similar("retry payments")
    with asked_at(float("-inf")):
        (unknown,) = await memory.search_similar("retry payments")
    (outside,) = await memory.search_similar("retry payments")

    assert [each.strengths["E2"] for each in (inside, unknown, outside)] == [0.5, 0.25, 0.25]


async def test_the_same_clock_gives_the_same_results() -> None:
    memory = ChromaMemory(clock=lambda: NOW)
    await memory.store_many(many()[:40])

    assert await memory.search_similar(QUESTIONS[0]) == await memory.search_similar(QUESTIONS[0])


async def test_time_counts_if_it_is_given_a_weight() -> None:
    memory = ChromaMemory(clock=lambda: NOW, tuning=RankTuning(temporal_weight=1.0))
    same = "Payments are retried five times."
    await memory.store_many(
        [Memory(key=key, content=same, created_at=at(age)) for key, age in (("old", 60 * DAY), ("new", 0))]
    )

    best, other = await memory.search_similar("How often are payments retried?")

    assert best.key == "new"
    assert best.score > other.score


@pytest.mark.parametrize(
    ("age", "mentioned"), [(0.9 * HOUR, True), (HOUR - 2, True), (HOUR + 2, False), (2 * HOUR, False)]
)
async def test_a_prompt_mentions_recent_activity_by_the_strength_in_e2(age: float, mentioned: bool) -> None:
    memory = ChromaMemory(clock=lambda: NOW)
    await memory.store_many(
        [Memory(key="m", content="Authentication hashes passwords with bcrypt.", created_at=at(age))]
    )
    pipeline = InjectionPipeline(memory, clock=lambda: NOW)

    result = await pipeline.ainject_context("How does authentication hash passwords?", "s1")

    (context,) = (each for each in result.contexts_retrieved if each.source == "memory")
    assert context.strengths["E2"] == pytest.approx(0.5 ** (age / (7 * DAY)), abs=1e-6)
    assert ("Recent activity (within last hour): authentication hashes passwords" in result.text) is mentioned


EMPTY = features_of(["x"])[0].pack()


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.integers(0, 50)), min_size=1, max_size=20))
def test_a_texts_place_is_counted_from_the_end_of_its_own_session(places: list[tuple[str, int]]) -> None:
    found = [Candidate(EMPTY, b"", b"", session, position) for session, position in places]

    strengths = positional.strengths(_any_query(), Candidates(found)).tolist()

    last = {session: max(position for each, position in places if each == session) for session, _ in places}
    assert strengths == pytest.approx(
        [1 / (1 + last[session] - position) if session else 0 for session, position in places]
    )


def _any_query() -> RankQuery:
    return RankQuery("q", TextCorpus([]), None)


def test_a_query_without_a_time_has_nothing_to_say_about_recency() -> None:
    speaking = {space.code for space in SPACES if space.category == "temporal" and space.speaks(_any_query())}

    assert speaking == {"E4"}
