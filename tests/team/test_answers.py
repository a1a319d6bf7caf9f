"""From what an agent lacks to the passage that answers it."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from builders import Given, a_context, a_state
from langgraph_scrum_master import ChromaMemory, InjectionConfig, Memory, ScrumMaster, StoreMemory
from langgraph_scrum_master.rank.answers import answers_among
from langgraph_scrum_master.rank.embedders import embedder_for
from langgraph_scrum_master.team.needs import build_queries
from langgraph_scrum_master.text.passages import LEFT_OUT, passage_of, says_something

RECORDS: list[tuple[str, str, dict[str, Any]]] = [
    ("adr-1", "Orders: an order that nobody pays is kept for 30 days, then it is deleted.", {}),
    ("adr-2", "Parcels: a parcel that nobody fetches is kept for 14 days, then it goes back.", {}),
    ("adr-3", "Log files: a log line is kept for 7 days, then it is deleted.", {}),
    ("adr-4", "Prices are kept in cents, and are shown with two digits.", {}),
    ("adr-5", "The shop window is drawn on the server, and sent as one page.", {}),
    ("adr-6", "Pictures are made small at night, by a job of their own.", {}),
]
PARCELS = a_state(
    ("ops", "The branch in Lyon is full of parcels that nobody fetches."),
    ("dev", "I write the job that sends them back. How long do we keep one before that?"),
)
ORDERS = a_state(
    ("ops", "The table of orders is full of those that nobody pays."),
    ("dev", "I write the job that deletes them. How long do we keep one before that?"),
)


async def chroma() -> ChromaMemory:
    memory = ChromaMemory()
    await memory.store_many(RECORDS)
    return memory


async def store() -> StoreMemory:
    memory = StoreMemory(InMemoryStore())
    await memory.store_many(RECORDS)
    return memory


class Plain:
    """A memory of somebody else's, which can only be asked with a text."""

    capabilities: frozenset[str] = frozenset()

    def __init__(self, memory: ChromaMemory) -> None:
        self._memory = memory
        self.queries: list[str] = []

    async def search_similar(self, query: str, k: int = 5) -> Any:
        self.queries.append(query)
        return await self._memory.search_similar(query, k)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)


def keys(result: Any) -> list[str]:
    assert result is not None
    return [context.key for context in result.contexts_retrieved]


@pytest.mark.parametrize("made", [chroma, store])
@pytest.mark.parametrize(("state", "answer"), [(PARCELS, "adr-2"), (ORDERS, "adr-1")])
async def test_earlier_messages_decide_between_equally_similar_records(
    made: Any, state: dict[str, Any], answer: str
) -> None:
    result = await ScrumMaster(memory=await made()).aevaluate(state)

    assert keys(result)[:1] == [answer]


async def test_a_memory_without_answer_search_is_searched_with_the_need_and_with_the_conversation() -> None:
    memory = Plain(await chroma())

    await ScrumMaster(memory=memory).aevaluate(PARCELS)

    need, whole = memory.queries
    assert "Lyon" not in need
    assert "Lyon" in whole


async def test_nothing_is_given_where_no_record_answers() -> None:
    state = a_state(("ops", "Rosters are out."), ("dev", "Who is on call this weekend?"))

    result = await ScrumMaster(memory=await chroma()).aevaluate(state)

    assert result is not None

    assert not result.injected


async def test_few_items_are_given_though_many_would_be_allowed() -> None:
    result = await ScrumMaster(memory=await chroma(), config=InjectionConfig(max_context_items=5)).aevaluate(ORDERS)

    assert 1 <= len(keys(result)) <= 2


def test_the_names_of_those_who_speak_are_no_part_of_a_query() -> None:
    state = a_state(("docs", "The page is up."), ("dev", "@docs which port does the page use, docs?"))
    master = ScrumMaster()
    (gap,) = master.detect(state)

    (query,) = build_queries(gap, master.observe(state))

    assert all("docs" not in text.lower() for text, _ in query.around)
    assert any("page is up" in text for text, _ in query.around)


async def test_a_decision_is_found_once_and_titled() -> None:
    from langgraph_scrum_master import Decision

    memory = await chroma()
    text = "We keep sessions of the cash desk in Redis for one hour."
    await memory.store_decision(Decision(id="D-7", agent_type="architect", context=text, rationale="It must be fast."))
    searched: list[str] = []
    search = memory.search_answers

    async def counted(*args: Any, **options: Any) -> Any:
        searched.append("answers")
        return await search(*args, **options)

    memory.search_answers = counted  # type: ignore[method-assign]
    state = a_state(("dev", "Where do we keep the sessions of the cash desk, and for how long?"))

    result = await ScrumMaster(memory=memory).aevaluate(state)

    assert keys(result) == ["D-7"]
    assert result is not None
    assert result.contexts_retrieved[0].title == "D-7, decision of architect"
    assert searched == ["answers"]


async def test_a_search_that_fails_is_a_failure_of_the_result() -> None:
    memory = await chroma()

    async def broken(*_: Any, **_options: Any) -> Any:
        raise OSError("the disk is gone")

    memory.search_answers = broken  # type: ignore[method-assign]

    result = await ScrumMaster(memory=memory).aevaluate(ORDERS)

    assert result is not None
    assert [failure.source for failure in result.failures] == ["memory"]


ADRS_ZH: list[tuple[str, str, dict[str, Any]]] = [
    ("adr-1", "订单服务使用 PostgreSQL 数据库，保存三年。", {}),
    ("adr-2", "图片存放在对象存储中，夜间压缩。", {}),
    ("adr-3", "日志保留七天，然后删除。", {}),
    ("adr-4", "价格以分为单位保存，显示两位小数。", {}),
    ("adr-5", "店面页面在服务器上渲染。", {}),
]


@pytest.mark.parametrize(
    ("question", "answer"), [("日志要保留多少天？", "adr-3"), ("订单服务使用哪个数据库？", "adr-1")]
)
async def test_a_chinese_question_finds_the_record_that_answers_it_and_not_all_of_them(
    question: str, answer: str
) -> None:
    memory = ChromaMemory()
    await memory.store_many(ADRS_ZH)

    result = await ScrumMaster(memory=memory).aevaluate(a_state(("dev", question)))

    assert keys(result)[:1] == [answer]
    assert len(keys(result)) <= 2


LONG = "Payments > Refunds\n" + "\n".join(
    [
        *(f"Paragraph {i} tells of the history of the shop and of who has built it." for i in range(14)),
        "A refund is refused after 45 days.",
        *(f"Paragraph {i} tells of plans that were given up." for i in range(14)),
    ]
)


async def test_a_long_record_is_cut_to_the_passage_that_answers_under_its_heading() -> None:
    memory = ChromaMemory()
    await memory.store_many([Memory(content=LONG, key="long"), *(Memory(content=t, key=k) for k, t, _ in RECORDS)])

    result = await ScrumMaster(memory=memory).aevaluate(a_state(("dev", "After how many days is a refund refused?")))

    assert result is not None
    (context,) = [each for each in result.contexts_retrieved if each.key == "long"]
    assert context.content.startswith("Payments > Refunds\n")
    assert "after 45 days" in context.content
    assert LEFT_OUT in context.content
    assert context.truncated
    assert len(context.content) < len(LONG) / 1.5


def test_a_text_that_fits_is_its_own_passage() -> None:
    assert passage_of("All of it.", {}, lambda _: True) == ("All of it.", True)


@pytest.mark.parametrize("text", ["one\ntwo", "x" * 5_000, "a. B. C. " * 500, "\n\n", "---\na: b\n---\nrest " * 200])
def test_a_passage_never_exceeds_the_limit_if_anything_fits(text: str) -> None:
    passage = passage_of(text, {"b": 1.0}, lambda part: len(part) <= 200)

    assert len(passage.text) <= 200 or not any(len(piece) <= 150 for piece in text.split("\n"))


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("# Heading", False),
        ("## A\n### B\n", False),
        ("---\ntitle: x\n---\n", False),
        ("Title\n=====\n", True),
        ("# Heading\nIt says so.", True),
        ("just words", True),
    ],
)
def test_a_heading_alone_says_nothing(text: str, filled: bool) -> None:
    assert says_something(text) is filled


async def test_a_record_that_is_only_a_heading_is_never_injected() -> None:
    result = await ScrumMaster(sources=[Given(a_context("## Which database do we use", 0.99))]).aevaluate(
        a_state(("dev", "Which database do we use?"))
    )

    assert result is not None

    assert not result.injected
    assert [drop.why for drop in result.dropped] == ["only_a_heading"]


async def test_an_item_far_below_the_best_is_dropped_even_above_the_bar() -> None:
    offered = (a_context("PostgreSQL, since 2019.", 0.97), a_context("The cache is Redis.", 0.75))

    result = await ScrumMaster(sources=[Given(*offered)]).aevaluate(a_state(("dev", "Which database do we use?")))

    assert result is not None

    assert len(result.contexts_retrieved) == 1
    assert [drop.why for drop in result.dropped] == ["far_below_best"]


async def test_a_record_with_one_new_fact_among_known_ones_is_new() -> None:
    known = "Anna buys four cans of juice. Ben buys six cans of milk. They share the bill. They pay at the desk."
    state = a_state(("user", known), ("dev", "What does a can of juice cost? The task does not say."))
    memory = ChromaMemory()
    await memory.store_many([("task", f"{known} A can of juice costs 2 euros.", {})])

    result = await ScrumMaster(memory=memory).aevaluate(state)

    assert keys(result) == ["task"]


def test_scores_do_not_depend_on_the_order_of_the_texts() -> None:
    texts = [text for _, text, _ in RECORDS]
    around = [("The branch is full of parcels.", 0.9)]

    there = answers_among("How long do we keep one?", around, texts, embedder_for("static"))
    back = answers_among("How long do we keep one?", around, texts[::-1], embedder_for("static"))

    assert [match.score for match in there] == pytest.approx([match.score for match in back[::-1]])
    assert all(0 <= match.score <= 1 for match in there)


@pytest.mark.parametrize("need", ["", "   "])
def test_nothing_answers_no_need(need: str) -> None:
    assert [match.score for match in answers_among(need, (), ["a text"], embedder_for("static"))] == [0.0]


SAID = "The retention period of an order that nobody pays is 30 days, and then the nightly job deletes it."


@pytest.mark.parametrize(
    "again",
    [
        "Retention period of order that nobody pays is 30 days and then nightly job deletes it",
        "The retention period of an order that nobody pays is 30 days; and then, the nightly job deletes it!",
        "Then the nightly job deletes it: 30 days is the retention period of an order that nobody pays.",
        "The retenton period of an order that nobody pays is 30 days, and then the nightly job deletes it.",
        "The retention peroid of an order that nobody pays is 30 days, and then the nightly job deletes it.",
    ],
)
async def test_typing_errors_articles_punctuation_and_word_order_make_no_other_item(again: str) -> None:
    offered = (a_context(SAID, 0.95), a_context(again, 0.94))

    result = await ScrumMaster(sources=[Given(*offered)]).aevaluate(a_state(("dev", "Which database do we use?")))

    assert result is not None

    assert len(result.contexts_retrieved) == 1
    assert [drop.why for drop in result.dropped] == ["duplicate"]


@pytest.mark.parametrize(
    "other",
    [
        SAID.replace("30", "31"),
        SAID.replace("is 30", "is not 30"),
        SAID.replace("an order", "a parcel"),
        SAID.replace("nightly job", "nightly job of Mario"),
        SAID.replace("pays", "fetches"),
    ],
)
async def test_another_number_name_or_word_makes_another_item(other: str) -> None:
    offered = (a_context(SAID, 0.95), a_context(other, 0.94))

    result = await ScrumMaster(sources=[Given(*offered)]).aevaluate(a_state(("dev", "Which database do we use?")))

    assert result is not None

    assert len(result.contexts_retrieved) == 2
