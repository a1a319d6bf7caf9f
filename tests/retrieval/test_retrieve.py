from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

import pytest

from builders import NOW, Given, a_context, a_gap, texts
from langgraph_scrum_master import ConfigError, InjectionConfig, RetrievedContext, ScrumMaster
from langgraph_scrum_master._internal.threads import off_loop
from langgraph_scrum_master.model import Query
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.retrieval.retrieve import retrieve
from langgraph_scrum_master.team.needs import build_queries
from langgraph_scrum_master.team.observe import observe
from langgraph_scrum_master.team.pipeline import Pipeline

QUERY = Query(text="which store?", agent="dev", now=NOW)
ASKING: dict[str, Any] = {
    "messages": [{"role": "assistant", "name": "dev", "content": "Which store do we use?", "id": "q"}]
}


class Failing:
    name = "failing"

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        raise ConnectionError("no route to memory")


class Hanging:
    name = "hanging"

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        await asyncio.sleep(60)
        return ()


class ByWord:
    """A source that has contexts of these scores for queries with the word."""

    name = "by_word"

    def __init__(self, **scores: tuple[float, ...]) -> None:
        self.scores = scores

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        return [
            a_context(f"{word} {i}", score)
            for word, scores in self.scores.items()
            if word in query.text
            for i, score in enumerate(scores)
        ]


class HangingInAThread:
    name = "stuck"

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        await off_loop(time.sleep, 12)
        return ()


async def test_a_failing_and_a_late_source_are_recorded_and_the_rest_goes_on() -> None:
    found, failures = await retrieve([QUERY], {}, [Failing(), Given(a_context()), Hanging()], deadline=0.05)

    assert texts(found) == [a_context().content]
    assert [(failure.source, failure.error) for failure in failures] == [
        ("failing", "ConnectionError: no route to memory"),
        ("hanging", "late: no answer within 0.05 s"),
    ]


async def test_contexts_of_all_sources_come_best_first() -> None:
    weak, strong = a_context("weak", 0.2), a_context("strong", 0.9)

    found, _ = await retrieve([QUERY], {}, [Given(weak, name="a"), Given(strong, name="b")], deadline=1)

    assert texts(found) == ["strong", "weak"]


def test_a_source_stuck_in_a_thread_does_not_hold_up_evaluate() -> None:
    master = ScrumMaster(sources=[HangingInAThread(), Given(a_context())], config=InjectionConfig(deadline=0.05))
    started = time.monotonic()

    result = master.evaluate(ASKING)

    assert time.monotonic() - started < 6
    assert result is not None
    assert (result.injected, [failure.source for failure in result.failures]) == (True, ["stuck"])


async def test_evaluate_works_inside_a_running_event_loop() -> None:
    result = ScrumMaster(sources=[Given(a_context())]).evaluate(ASKING)

    assert result is not None
    assert result.injected


async def test_sync_and_async_evaluation_agree() -> None:
    master = ScrumMaster(sources=[Given(a_context())], clock=lambda: 0.0)

    assert master.evaluate(ASKING) == await master.aevaluate(ASKING)


@pytest.mark.parametrize(
    ("contexts", "why"),
    [
        ((a_context(score=0.69),), "below_bar"),
        ((a_context("Which store do we use?"),), "already_seen"),
        ((a_context("one and the same thing"), a_context("One and the same thing!", 0.8)), "duplicate"),
        (tuple(a_context(f"thing number {i} of its own kind", 0.9) for i in range(6)), "over_items"),
        ((a_context("word" * 3000), a_context("short", 0.8)), "over_budget"),
    ],
)
def test_what_is_not_injected_is_recorded_with_the_reason(contexts: tuple[RetrievedContext, ...], why: str) -> None:
    config = InjectionConfig(max_context_tokens=250)

    result = ScrumMaster(sources=[Given(*contexts)], config=config).evaluate(ASKING)

    assert result is not None
    assert why in {drop.why for drop in result.dropped}
    assert len(result.contexts_retrieved) + len(result.dropped) == len(contexts)


def test_the_bar_itself_passes() -> None:
    result = ScrumMaster(sources=[Given(a_context(score=0.7))]).evaluate(ASKING)

    assert result is not None
    assert result.injected


def test_with_nothing_good_it_stays_silent_and_says_so() -> None:
    result = ScrumMaster(sources=[Given(a_context(score=0.3))]).evaluate(ASKING)

    assert result is not None
    assert (result.injected, result.text, result.total_context_size) == (False, "", 0)
    assert [drop.why for drop in result.dropped] == ["below_bar"]


async def test_a_private_history_makes_messages_of_others_unseen() -> None:
    said = {"role": "assistant", "name": "architect", "content": "The store for keys is Redis, as decided.", "id": "a"}
    state: dict[str, Any] = {"messages": [said, *ASKING["messages"]]}
    context = a_context("The store for keys is Redis, as decided.")

    for window, kept in ((50, 0), (0, 1)):
        pipeline = Pipeline(config=InjectionConfig(view_window=window), sources=(Given(context),))
        finding = await pipeline.find(a_gap(context_query="Which store?"), pipeline.sight(state), None)
        assert len(finding.contexts) == kept


def test_a_given_source_replaces_its_namesake() -> None:
    mine = Given(a_context(source="state"), name="state")

    result = ScrumMaster(sources=[mine]).evaluate(ASKING)

    assert result is not None
    assert result.injected
    assert [query.text for query in mine.queries] == ["Which store do we use?"]


@pytest.mark.parametrize(
    "item",
    [{"content": "x"}, "text", RetrievedContext(source="memory", content=None, relevance_score=1.0, key="k")],  # type: ignore[arg-type]
)
def test_a_source_that_gives_something_else_is_a_recorded_failure(item: Any) -> None:
    result = ScrumMaster(sources=[Given(item), Given(a_context(), name="good")]).evaluate(ASKING)

    assert result is not None
    assert result.injected
    assert [failure.source for failure in result.failures] == ["given"]


def test_a_source_that_gives_up_is_a_recorded_failure() -> None:
    class GivesUp:
        name = "quitter"

        async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
            raise asyncio.CancelledError

    result = ScrumMaster(sources=[GivesUp(), Given(a_context())]).evaluate(ASKING)

    assert result is not None
    assert result.injected
    assert [failure.error for failure in result.failures] == ["cancelled by the source"]


def test_what_is_no_source_or_no_memory_is_refused_when_it_is_given() -> None:
    with pytest.raises(ConfigError, match="a source must have a name and a coroutine method find, got <object"):
        ScrumMaster(sources=[object()])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match=r"such as ChromaMemory\('folder'\), got 'folder'"):
        ScrumMaster(memory="folder")  # type: ignore[arg-type]


def test_calls_that_hang_do_not_use_up_anything() -> None:
    master = ScrumMaster(sources=[HangingInAThread(), Given(a_context())], config=InjectionConfig(deadline=0.02))
    started = time.monotonic()

    for _ in range(40):
        master.evaluate(ASKING)

    assert time.monotonic() - started < 60


def test_a_slow_recorder_holds_nobody_up_beyond_the_deadline() -> None:
    master = ScrumMaster(
        sources=[Given(a_context())], config=InjectionConfig(deadline=0.05), recorder=lambda result: time.sleep(12)
    )
    started = time.monotonic()

    result = master.evaluate(ASKING)

    assert result is not None
    assert time.monotonic() - started < 6


async def test_large_contexts_are_ranked_and_fitted_off_the_event_loop() -> None:
    large = [a_context(f"Fact {i} stands in a long text. " * 3000, 0.9) for i in range(6)]
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.005)

    ticker = asyncio.create_task(tick())
    started = time.monotonic()
    await ScrumMaster(sources=[Given(*large)]).aevaluate(ASKING)
    ended = time.monotonic()
    ticker.cancel()

    assert sum(started < at < ended for at in ticks) >= (ended - started) / 0.1


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Do we use optimistic locking for the orders table?", "We use optimistic locking for the orders table."),
        ("Should we store sessions in Redis or in PostgreSQL?", "We store sessions in Redis."),
        ("Is the retention period 30 days or 90 days?", "Retention period: 30 days"),
        ("Which one is it: Redis or PostgreSQL?", "PostgreSQL."),
    ],
)
def test_the_words_of_a_question_do_not_hide_its_answer(question: str, answer: str) -> None:
    state = {"messages": [{"role": "assistant", "name": "dev", "content": question, "id": "q"}]}

    result = ScrumMaster(sources=[Given(a_context(answer))]).evaluate(state)

    assert result is not None
    assert texts(result.contexts_retrieved) == [answer]


def test_a_context_stamps_no_time_of_its_own() -> None:
    late = RetrievedContext(source="memory", content="The store is Redis.", relevance_score=0.9)
    master = ScrumMaster(sources=[Given(late)], clock=lambda: 0.0)

    result = master.evaluate(ASKING)

    assert result is not None
    assert result.contexts_retrieved[0].retrieved_at == "1970-01-01T00:00:00+00:00"


def test_texts_that_are_no_valid_unicode_do_no_harm() -> None:
    state = {
        "messages": [{"role": "assistant", "name": "dev", "content": "Which store \ud800 holds the keys?"}],
        "decisions": [{"agent": "a", "summary": "The keys \udfff are in the Redis store."}],
    }

    result = ScrumMaster().evaluate(state)

    assert result is not None
    assert result.injected
    assert result.failures == ()
    assert result.to_dict()["text"]


async def test_each_need_is_looked_for_by_itself_and_the_best_for_each_comes_first() -> None:
    gap = a_gap(context_query="Which queue? Which retention?", parts=("Which queue?", "Which retention?"))
    source = ByWord(queue=(0.9, 0.85, 0.8), retention=(0.75,))

    finding = await Pipeline(sources=(source,)).find(gap, Pipeline().sight({}), None)

    assert [context.content for context in finding.contexts] == ["queue 0", "retention 0", "queue 1", "queue 2"]


def test_a_need_that_names_nothing_is_looked_for_with_the_task() -> None:
    observation = observe({"current_story": "Refunds of orders"}, now=NOW)

    assert [query.text for query in build_queries(a_gap(context_query="I am blocked."), observation)] == [
        "I am blocked. Refunds of orders"
    ]
