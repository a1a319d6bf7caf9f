"""What a project has learned, as a user of `ContextAssembler` sees it."""

from __future__ import annotations

import asyncio
import re
import time
import tracemalloc
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st
from langgraph.store.memory import InMemoryStore

from langgraph_scrum_master import ChromaMemory, ConfigError, ContextAssembler, Memory, StoreError, StoreMemory
from langgraph_scrum_master.errors import InvalidContextTypeError
from langgraph_scrum_master.learning import FormattedContext, Searcher
from langgraph_scrum_master.learning.fit import capped, shares
from langgraph_scrum_master.learning.records import CodeUnit, Commit, ContextItem, Experience, Value
from langgraph_scrum_master.memory import MemoryResult
from langgraph_scrum_master.text.tokens import estimate_tokens

ALL = ["memories", "code", "experiences", "values", "commits"]
NOW = 1_790_000_000.0

CACHE = Experience(
    id="exp-1",
    domain="debugging",
    strategy="root-cause-analysis",
    goal="Find out why the cache returns stale prices",
    hypothesis="The cache is never invalidated",
    action="Logged every write to the cache",
    prediction="No invalidation is seen after a price change",
    outcome_status="falsified",
    outcome_result="The invalidation comes, two seconds late",
    surprise="The cache was invalidated by a timer",
    root_cause="We took the timer for an event",
    root_cause_category="wrong-assumption",
    what_worked="Reading the logs of the cache itself",
    confidence_tier="gold",
    created_at="2026-09-01T10:00:00Z",
)
MIGRATION = Experience(
    id="exp-2",
    domain="feature",
    strategy="research-first",
    goal="Add a currency column to the price table",
    action="Read the guide for online migrations",
    outcome_status="confirmed",
    outcome_result="No downtime",
    created_at="2026-09-02T10:00:00Z",
)
UNITS = [
    CodeUnit(
        file_path="shop/cache.py",
        qualified_name=f"PriceCache.{name}",
        unit_type="method",
        signature=f"def {name}(self, price: Price) -> None:",
        docstring=text,
        start_line=10 * i + 1,
        end_line=10 * i + 9,
    )
    for i, (name, text) in enumerate(
        [
            ("store", "Keep a price in the cache."),
            ("evict", "Drop a price from the cache."),
            ("warm", "Fill the cache."),
        ]
    )
]
COMMIT = Commit(
    sha="0123456789abcdef",
    message="Invalidate the price cache on writes\n\nThe timer was too slow.",
    author="Maria",
    timestamp="2026-09-03T09:00:00Z",
    files_changed=("shop/cache.py", "tests/test_cache.py"),
    insertions=12,
    deletions=3,
)
VALUE = Value(
    axis="root_cause", text="Check what really triggers a cache before blaming it.", cluster_id="3", cluster_size=7
)
LIMIT = Memory(
    content="Prices are kept in the cache for 60 seconds.", key="m1", importance=0.9, metadata={"category": "fact"}
)


async def a_searcher(**extra: Any) -> Searcher:
    searcher = Searcher(ChromaMemory())
    await searcher.shelf("code").store_many([unit.to_memory() for unit in extra.get("code", UNITS)])
    await searcher.shelf("commits").store_many([commit.to_memory() for commit in extra.get("commits", [COMMIT])])
    await searcher.shelf("values").store_many([value.to_memory() for value in extra.get("values", [VALUE])])
    for experience in extra.get("experiences", [CACHE, MIGRATION]):
        await searcher.keep_experience(experience)
    await searcher._memory.store_many(extra.get("memories", [LIMIT]))
    return searcher


async def assembled(
    query: str = "How is the price cache invalidated?", types: list[str] = ALL, **options: Any
) -> FormattedContext:
    return await ContextAssembler(await a_searcher(), clock=lambda: NOW).assemble_context(query, types, **options)


FORMS = [
    "**Memory**: Prices are kept in the cache for 60 seconds.\n*Category: fact, Importance: 0.9*",
    "**method** `PriceCache.evict` in `shop/cache.py:11`\n```python\ndef evict(self, price: Price) -> None:\nDrop",
    "**Experience**: debugging | root-cause-analysis\n- **Goal**: Find out why",
    "- **Outcome**: falsified - The invalidation comes, two seconds late\n- **Surprise**:",
    "- **Lesson**: Reading the logs of the cache itself",
    "**Value** (root_cause, cluster size: 7):\nCheck what really triggers",
    "**Commit** `0123456` by Maria on 2026-09-03T09:00:00Z\nInvalidate the price cache on writes\nThe timer",
    "\n*Files: shop/cache.py, tests/test_cache.py*",
]


async def test_all_sources_that_are_asked_for_answer_in_their_form() -> None:
    context = await assembled()

    assert set(context.sources_used) == {"memory", "code", "experience", "value", "commit"}
    assert [form for form in FORMS if form not in context.markdown] == []


async def test_the_sections_stand_in_order_and_the_foot_counts_them() -> None:
    context = await assembled()

    titles = re.findall(r"^#+ .*", context.markdown, re.M)
    assert titles == ["# Context", "## Memories", "## Code", "## Experiences", "## Values", "## Commits"]
    assert context.markdown.endswith(f"---\n*{len(context.items)} items from 5 sources*")
    assert context.token_count == estimate_tokens(context.markdown) <= 2000
    assert not context.budget_exceeded


async def test_only_what_was_asked_for_is_there_and_empty_sections_are_not() -> None:
    searcher = await a_searcher(values=[])

    context = await ContextAssembler(searcher).assemble_context("cache invalidated", ["values", "commits"])

    assert context.sources_used == {"commit": 1}
    assert "## Values" not in context.markdown


async def test_nothing_learned_is_an_empty_context_and_no_error() -> None:
    assert await ContextAssembler(Searcher(ChromaMemory())).assemble_context("anything", ALL) == FormattedContext()


@pytest.mark.parametrize("strategy", [None, "ask-user"])
async def test_a_premortem_of_nothing_is_an_empty_context_and_no_error(strategy: str | None) -> None:
    assembler = ContextAssembler(Searcher(ChromaMemory()))

    assert await assembler.get_premortem_context("debugging", strategy) == FormattedContext()


async def test_items_come_with_what_is_known_of_them_the_most_relevant_first() -> None:
    context = await assembled()

    by_source = {item.source: item.metadata for item in context.items}
    assert {"id", "category", "importance", "created_at"} == by_source["memory"].keys()
    assert {"file_path", "start_line", "end_line", "language", "qualified_name"} == by_source["code"].keys()
    assert by_source["experience"]["confidence_tier"] in ("gold", "silver")
    assert by_source["commit"]["files_changed"] == ["shop/cache.py", "tests/test_cache.py"]
    assert by_source["value"]["cluster_size"] == 7
    relevance = [item.relevance for item in context.items]
    assert relevance == sorted(relevance, reverse=True)


@pytest.mark.parametrize("types", [["memory"], ["memories", "wikis"], [], "memories"])
async def test_a_source_that_there_is_not_is_refused_with_those_that_there_are(types: Any) -> None:
    with pytest.raises(
        InvalidContextTypeError, match=r"among \['memories', 'code', 'experiences', 'values', 'commits'\]"
    ):
        await assembled(types=types)


@pytest.mark.parametrize(
    ("query", "options", "told"),
    [(" ", {}, "query"), ("x", {"limit": 0}, "limit"), ("x", {"max_tokens": -5}, "max_tokens")],
)
async def test_bad_input_is_refused(query: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=f"{told} must be"):
        await assembled(query, **options)


class FailingSearcher(Searcher):
    async def search_code(self, query: str, limit: int = 20) -> Any:
        raise StoreError("the index is damaged")

    async def search_commits(self, query: str, limit: int = 20) -> Any:
        await asyncio.sleep(30)


async def test_a_source_that_fails_or_hangs_is_reported_and_the_others_are_given(logged: list[dict[str, Any]]) -> None:
    whole = await a_searcher()
    failing = FailingSearcher(whole._memory)

    context = await ContextAssembler(failing, deadline=1.0).assemble_context("How is the price cache invalidated?", ALL)

    assert set(context.sources_used) == {"memory", "experience", "value"}
    assert [(failure.source, failure.late) for failure in context.failures] == [("code", False), ("commits", True)]
    assert [entry["source"] for entry in logged if entry["event"] == "source.failed"] == ["code", "commits"]


class Slow:
    """A model that takes its time for a query."""

    def __init__(self) -> None:
        self.asked = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, len(text) / 100, 0.5] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.asked += 1
        time.sleep(0.6)
        return self.embed_documents([text])[0]


@pytest.mark.parametrize(("deadline", "late"), [(10.0, []), (0.2, ["memories", "code"])])
async def test_a_slow_model_is_asked_once_and_the_deadline_holds(deadline: float, late: list[str]) -> None:
    model = Slow()
    memory = ChromaMemory(embedder=model)
    await memory.store_many([LIMIT])
    await memory.beside("code").store_many([unit.to_memory() for unit in UNITS])
    started = time.monotonic()

    assembler = ContextAssembler(Searcher(memory), deadline=deadline, min_relevance=0)
    context = await assembler.assemble_context("price cache", ["memories", "code"])

    assert [failure.source for failure in context.failures if failure.late] == late
    assert bool(context.items) == (not late)
    assert time.monotonic() - started < deadline + 0.5
    await asyncio.sleep(0.7 if late else 0)
    assert model.asked == 1


class Elsewhere:
    """A searcher that knows no memory of ours."""

    async def search_memories(self, query: str, limit: int = 20) -> list[MemoryResult]:
        return [MemoryResult(key="m9", content="Prices are cached elsewhere.", score=0.9, metadata={})]


async def test_a_searcher_of_ones_own_need_only_search() -> None:
    context = await ContextAssembler(cast("Searcher", Elsewhere())).assemble_context("price cache", ["memories"])

    assert "Prices are cached elsewhere." in context.markdown


async def test_what_each_source_finds_is_asked_in_one_search_and_is_what_it_finds_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searcher, query = await a_searcher(), "How is the price cache invalidated?"
    alone = {result.key for result in await searcher.search_memories(query)}
    alone |= {result.key for _, result in await searcher.search_code(query)}
    threads: list[object] = []
    made = ChromaMemory._call

    async def counted(memory: ChromaMemory, *call: Any) -> Any:
        threads.append(call)
        return await made(memory, *call)

    monkeypatch.setattr(ChromaMemory, "_call", counted)
    assembler = ContextAssembler(searcher, min_relevance=0)

    context = await assembler.assemble_context(query, ["memories", "code"], max_tokens=20_000)

    assert len(threads) == 1
    units = {unit.qualified_name: unit.to_memory().key for unit in UNITS}
    shown = [item.metadata for item in context.items]
    assert {units[each["qualified_name"]] if "qualified_name" in each else each["id"] for each in shown} == alone


async def test_what_surer_newer_or_more_important_counts_more_among_its_like() -> None:
    def twin(tier: str, day: int) -> Experience:
        return replace(CACHE, id=f"{tier}-{day}", confidence_tier=tier, created_at=f"2026-0{day}-01T00:00:00Z")

    rows = [twin("abandoned", 1), twin("gold", 1), twin("silver", 1), twin("bronze", 1), twin("gold", 9)]
    # Said in words of their own, or they would be told as one.
    apart = [replace(each, takeaway=f"lesson{i} " * 9) for i, each in enumerate(rows)]
    facts = [Memory(content=f"Price fact{i} stays cached.", key=str(i), importance=i / 3) for i in range(4)]
    commits = [
        Commit(sha=f"{day}" * 40, message=f"Cache change{day} of prices", timestamp=f"2026-0{day}-01T00:00:00Z")
        for day in (1, 9)
    ]
    searcher = await a_searcher(experiences=apart, memories=facts, commits=commits)

    context = await ContextAssembler(searcher, clock=lambda: NOW).assemble_context(
        "stale prices in the cache", ["memories", "experiences", "commits"], max_tokens=9000
    )

    def shown(pattern: str) -> list[str]:
        return re.findall(pattern, context.markdown)

    ordered = sorted((item for item in context.items if item.source == "experience"), key=lambda item: -item.rank)
    assert [item.metadata["id"] for item in ordered] == ["gold-9", "gold-1", "silver-1", "bronze-1", "abandoned-1"]
    assert shown(r"Price fact(\d)") == ["3", "2", "1", "0"]
    assert shown(r"Cache change(\d)") == ["9", "1"]


class Counting:
    """A model that counts what it is asked, and cannot be hashed, as models of LangChain cannot."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[len(text) % 7 + 1.0, text.count("c") + 1.0, 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.asked.append(text)
        return self.embed_documents([text])[0]


async def test_a_query_is_embedded_once_for_all_sources() -> None:
    model = Counting()
    searcher = Searcher(ChromaMemory(embedder=model))
    await searcher.shelf("code").store_many([unit.to_memory() for unit in UNITS])
    await searcher.shelf("commits").store_many([COMMIT.to_memory()])
    await searcher._memory.store_many([LIMIT])

    context = await ContextAssembler(searcher).assemble_context("price cache", ALL)

    assert set(context.sources_used) == {"memory", "code", "commit"}
    assert model.asked.count("price cache") == 1


async def test_who_gives_up_waiting_leaves_no_search_behind() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    class Hanging(Searcher):
        async def search_code(self, query: str, limit: int = 20) -> Any:
            begun.set()
            try:
                await asyncio.sleep(30)
            finally:
                ended.set()

    assembling = asyncio.create_task(
        ContextAssembler(Hanging(ChromaMemory()), deadline=30).assemble_context("price cache", ["code"])
    )
    await begun.wait()
    assembling.cancel()

    with pytest.raises(asyncio.CancelledError):
        await assembling
    await asyncio.wait_for(ended.wait(), 5)


async def test_an_assembly_takes_little_memory() -> None:
    assembler = ContextAssembler(await a_searcher(experiences=[long_experience(i) for i in range(20)]))
    await assembler.assemble_context("cache crash", ALL)

    tracemalloc.start()
    try:
        await assembler.assemble_context("price cache crash", ALL)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 50_000_000


# Duplicates


async def test_nine_of_ten_that_say_nearly_the_same_are_told_once() -> None:
    topics = ["prices", "refunds", "invoices", "sessions", "tokens", "carts", "orders", "reports", "alerts", "queues"]
    said = [
        f"The cache of {topic} is emptied by an event from the database of {topic} whenever one of them changes there."
        for topic in topics
    ]
    again = [
        f"So, the cache {text[10:-1]}!".upper() if i % 2 else f"{text} And that is so." for i, text in enumerate(said)
    ]
    searcher = await a_searcher(
        memories=[Memory(content=text) for text in said],
        commits=[Commit(sha=f"{i:040x}", message=text) for i, text in enumerate(again)],
    )

    context = await ContextAssembler(searcher).assemble_context(
        "which event empties the cache", ["memories", "commits"], max_tokens=9000
    )

    assert 10 <= len(context.items) <= 11


async def test_functions_of_one_file_are_items_of_their_own() -> None:
    context = await assembled(types=["code"])

    assert context.sources_used == {"code": 3}


async def test_a_memory_with_a_typo_or_without_articles_is_told_once() -> None:
    said = [
        "The nightly backup copies all the databases to the second data center.",
        "The nightly backup copies all the databses to the second data center.",
        "Nightly backup copies all databases to second data center.",
        "The nightly backup never copies all the databases to the second data center.",
    ]
    searcher = await a_searcher(memories=[Memory(content=text, key=str(i)) for i, text in enumerate(said)])

    context = await ContextAssembler(searcher).assemble_context("What does the nightly backup copy?", ["memories"])

    assert context.sources_used == {"memory": 2}


async def test_texts_that_differ_in_a_number_are_two() -> None:
    limits = [
        Memory(content=f"The upload limit of the service is {n} megabytes for all.", key=str(n)) for n in (100, 500)
    ]
    searcher = await a_searcher(memories=limits)

    context = await ContextAssembler(searcher).assemble_context("What is the upload limit?", ["memories"])

    assert context.sources_used == {"memory": 2}


async def test_what_two_sources_say_is_said_once_by_the_more_relevant() -> None:
    said = "The timer of the price cache was replaced by an event from the database."
    searcher = await a_searcher(memories=[Memory(content=said)], commits=[Commit(sha="f" * 40, message=said)])

    context = await ContextAssembler(searcher).assemble_context("the timer of the price cache", ["memories", "commits"])

    assert len(context.items) == 1
    assert context.markdown.count("replaced by an event") == 1


async def test_a_value_stays_beside_the_experience_whose_words_it_has() -> None:
    value = Value(axis="full", text=CACHE.text("full"), cluster_id="1", cluster_size=5, members=(CACHE.id,))
    searcher = await a_searcher(values=[value])

    context = await ContextAssembler(searcher).assemble_context("stale prices in the cache", ["experiences", "values"])

    assert {"experience", "value"} == set(context.sources_used)


async def test_a_value_of_a_single_experience_is_shown_once_by_the_more_relevant_of_the_two() -> None:
    value = Value(axis="full", text="Ask what invalidates the cache.", cluster_id="1", members=(CACHE.id,))
    searcher = await a_searcher(values=[value])

    context = await ContextAssembler(searcher).assemble_context("stale prices in the cache", ["experiences", "values"])

    assert sum(CACHE.id in (item.metadata["id"], *item.metadata.get("members", ())) for item in context.items) == 1


# Budget


def long_experience(i: int) -> Experience:
    return Experience(
        id=f"long-{i}",
        domain="debugging",
        strategy="trial-and-error",
        goal=f"Fix crash number {i} of the cache",
        action=f"Tried setting {i} of the cache first. " * 30,
        outcome_status="falsified",
        outcome_result=f"Crash {i} came again.",
        surprise=f"Crash {i} needs two machines.",
        root_cause=f"Clock {i} was wrong.",
        root_cause_category="environment-issue",
    )


async def test_tokens_are_shared_by_weight_and_none_are_left_lying() -> None:
    experiences = [long_experience(i) for i in range(20)]
    commits = [
        Commit(sha=f"{i:040x}", message=f"Cache change {i}: " + "and so on, until it works. " * 20) for i in range(20)
    ]
    searcher = await a_searcher(experiences=experiences, commits=commits)

    both = await ContextAssembler(searcher).assemble_context("cache crash change", ["experiences", "commits"])
    one = await ContextAssembler(searcher).assemble_context("cache crash", ["experiences"])

    tokens = {
        source: sum(estimate_tokens(item.content) for item in both.items if item.source == source)
        for source in ("experience", "commit")
    }
    assert 1.2 < tokens["experience"] / tokens["commit"] < 1.8
    assert 1700 < both.token_count <= 2000
    assert 1700 < one.token_count <= 2000


async def test_no_item_takes_more_than_a_quarter_and_a_cut_one_says_where_the_rest_is() -> None:
    searcher = await a_searcher(experiences=[long_experience(i) for i in range(3)])

    context = await ContextAssembler(searcher).assemble_context("cache crash", ["experiences"], max_tokens=800)

    cut = [item for item in context.items if item.truncated]
    assert cut
    assert context.truncated_items == len(cut)
    for item in cut:
        assert estimate_tokens(item.content) <= 200
        assert item.content.endswith(f"...\n\n*(truncated, full experience ID: {item.metadata['id']})*")


async def test_what_has_nothing_to_do_with_the_query_is_left_out() -> None:
    searcher = await a_searcher()

    silent = await ContextAssembler(searcher).assemble_context("zebra quantum flux capacitor", ALL)
    told = await ContextAssembler(searcher, min_relevance=0).assemble_context("zebra quantum flux capacitor", ALL)

    assert (silent.markdown, silent.items) == ("", ())
    assert told.items


@pytest.mark.parametrize("kind", ["memories", "code", "commits", "values", "experiences"])
@pytest.mark.parametrize(
    ("query", "limit", "told"),
    [(" ", 5, "query must be a non-empty text"), ("cache", 0, "limit must be 1 or more, got 0")],
)
async def test_no_search_takes_an_empty_query_or_no_limit(kind: str, query: str, limit: int, told: str) -> None:
    search = getattr(Searcher(ChromaMemory()), f"search_{kind}")

    with pytest.raises(ConfigError, match=told):
        await search(query, limit=limit)


def test_cut_code_is_closed_and_points_to_its_place() -> None:
    content = "**function** `f` in `a.py:7`\n```python\ndef f():\n" + "It does many things. " * 60 + "\n```"
    item = ContextItem(source="code", content=content, relevance=1, pointer="*(truncated, see full at a.py:7)*")

    short = capped(item, 100, estimate_tokens)

    assert short is not None
    assert estimate_tokens(short.content) <= 100
    assert short.content.count("```") == 2
    assert short.content.endswith("*(truncated, see full at a.py:7)*")


def test_backticks_inside_a_line_open_no_block_that_would_be_closed() -> None:
    item = ContextItem(source="memory", content="**Memory**: Run ```sh make ." + " Then look at it." * 60, relevance=1)

    short = capped(item, 50, estimate_tokens)

    assert short is not None
    assert "\n```" not in short.content


async def test_a_budget_for_nearly_nothing_still_says_one_thing_of_each_source_and_tells(
    logged: list[dict[str, Any]],
) -> None:
    soft = await assembled(max_tokens=10)
    hard = await ContextAssembler(await a_searcher(), overflow="hard").assemble_context(
        "price cache", ALL, max_tokens=10
    )

    assert set(soft.sources_used) == {"memory", "code", "experience", "value", "commit"}
    assert soft.budget_exceeded
    assert [(entry["event"], entry["max_tokens"]) for entry in logged if "max_tokens" in entry] == [
        ("budget.exceeded", 10)
    ]
    assert hard.token_count <= 10
    assert not hard.budget_exceeded


@given(
    st.dictionaries(st.sampled_from("abcde"), st.integers(0, 500), min_size=1),
    st.fixed_dictionaries(dict.fromkeys("abcde", st.integers(1, 4))),
    st.integers(0, 2000),
)
def test_shares_are_never_more_than_there_is_nor_than_is_needed(
    wanted: dict[str, int], weights: dict[str, int], tokens: int
) -> None:
    budget = shares(wanted, weights, tokens)

    assert sum(budget.values()) <= tokens
    assert all(0 <= budget[name] <= wanted[name] for name in wanted)
    needed = sum(wanted.values())
    assert sum(budget.values()) >= min(needed, tokens) - len(wanted)


items_of = st.lists(
    st.builds(
        ContextItem,
        source=st.sampled_from(["memory", "code", "value"]),
        content=st.text(min_size=1, max_size=800),
        relevance=st.floats(0, 1),
        rank=st.floats(0, 1),
        said=st.uuids().map(str),
    ),
    max_size=10,
)


@settings(max_examples=100)
@given(items_of, items_of, st.integers(1, 600))
def test_a_hard_budget_holds_whatever_was_found(one: list[ContextItem], other: list[ContextItem], tokens: int) -> None:
    assembler = ContextAssembler(Searcher(ChromaMemory()), overflow="hard")

    made = assembler._fit(
        "Context", {"A": one, "B": other}, {"A": 1, "B": 3}, tokens, lambda items: f"{len(items)} items"
    )

    assert made.token_count == estimate_tokens(made.markdown) <= tokens
    assert len(made.items) <= len(one) + len(other)


# Premortem


def resolved(identity: str, outcome: str, **fields: Any) -> Experience:
    told = {"domain": "debugging", "strategy": "ask-user", "goal": f"Goal of {identity}", "created_at": "2026-09-01"}
    return Experience(**{"id": identity, "outcome_status": outcome, **told, **fields})


async def test_a_premortem_asks_all_axes_and_filters_them_by_domain_and_strategy() -> None:
    searcher = await a_searcher(
        experiences=[
            resolved("failed", "falsified"),
            resolved("same strategy", "confirmed", domain="feature", strategy="root-cause-analysis"),
            resolved("surprising", "confirmed", surprise="The clock went backwards"),
            resolved("explained", "confirmed", root_cause="The clock was wrong", root_cause_category="timing-issue"),
            resolved("went well", "confirmed"),
            resolved("of another domain", "falsified", domain="security", surprise="Yes", root_cause="A leak"),
        ]
    )

    context = await ContextAssembler(searcher).get_premortem_context("debugging", "root-cause-analysis")

    sections = re.split(r"^#+ ", context.markdown, flags=re.M)[1:]
    assert {section.partition("\n")[0]: re.findall(r"Goal of ([a-z ]+)", section) for section in sections} == {
        "Premortem: debugging with root-cause-analysis": [],
        "Common Failures": ["failed"],
        "Strategy Performance": ["same strategy"],
        "Unexpected Outcomes": ["surprising"],
        "Root Causes to Watch": ["explained"],
        "Relevant Principles": [],
    }
    assert VALUE.text in sections[-1]
    assert context.markdown.endswith("---\n*Based on 4 past experiences*")


async def test_a_premortem_of_a_strategy_begins_with_its_failures() -> None:
    searcher = await a_searcher(
        experiences=[
            resolved("well", "confirmed", domain="feature", action="Used the strategy", confidence_tier="gold"),
            resolved("badly", "falsified", domain="feature", confidence_tier="bronze"),
        ]
    )

    context = await ContextAssembler(searcher).get_premortem_context("debugging", "ask-user")

    assert re.findall(r"Goal of (\w+)", context.markdown) == ["badly", "well"]


async def test_a_premortem_says_why_a_failure_came_about() -> None:
    why = {"root_cause": "The clock was wrong", "root_cause_category": "timing-issue"}
    searcher = await a_searcher(experiences=[resolved("failed", "falsified", **why)])

    context = await ContextAssembler(searcher).get_premortem_context("debugging")

    assert "\n- **Root cause**: timing-issue - The clock was wrong\n" in context.markdown


async def test_a_premortem_keeps_to_its_domain_and_shows_each_experience_once() -> None:
    searcher = await a_searcher(experiences=[CACHE, MIGRATION, *(long_experience(i) for i in range(6))])

    context = await ContextAssembler(searcher).get_premortem_context("debugging", max_tokens=1500)
    other = await ContextAssembler(searcher).get_premortem_context("security")

    shown = [item.metadata["id"] for item in context.items if item.source == "experience"]
    assert len(shown) == len(set(shown)) >= 5
    assert "## Strategy Performance" not in context.markdown
    assert other.sources_used.keys() <= {"value"}


async def test_a_premortem_has_no_principles_of_other_domains() -> None:
    searcher = await a_searcher(experiences=[resolved("failed", "falsified")])
    kinds = {"Check the clock first": ("debugging", "feature"), "Give each test its own fixtures": ("testing",)}
    values = [Value(axis="full", text=text, cluster_id=text, domains=domains) for text, domains in kinds.items()]
    await searcher.shelf("values").store_many([value.to_memory() for value in values])

    context = await ContextAssembler(searcher).get_premortem_context("debugging")

    assert [text for text in kinds if text in context.markdown] == ["Check the clock first"]


@pytest.mark.parametrize("tokens", [30, 60, 200, 600])
async def test_a_premortem_obeys_its_budget(tokens: int) -> None:
    searcher = await a_searcher(experiences=[CACHE, *(long_experience(i) for i in range(8))])

    context = await ContextAssembler(searcher).get_premortem_context("debugging", max_tokens=tokens)

    assert context.token_count <= tokens


@pytest.mark.parametrize(
    ("domain", "strategy", "told"),
    [
        ("gardening", None, "domain must be one of debugging,"),
        ("debugging", "luck", "strategy must be one of systematic-elimination,"),
    ],
)
async def test_an_unknown_domain_or_strategy_is_refused_with_the_valid_ones(
    domain: str, strategy: str | None, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        await ContextAssembler(Searcher(ChromaMemory())).get_premortem_context(domain, strategy)


# What is kept is what is read


@pytest.mark.parametrize("kind", ["chroma", "store"])
async def test_each_kind_is_read_as_it_was_kept(kind: str) -> None:
    searcher = Searcher(ChromaMemory() if kind == "chroma" else StoreMemory(InMemoryStore()))
    await searcher.shelf("code").store_many([unit.to_memory() for unit in UNITS])
    await searcher.shelf("commits").store_many([COMMIT.to_memory()])
    await searcher.shelf("values").store_many([VALUE.to_memory()])
    await searcher.keep_experience(CACHE)
    await searcher.keep_experience(MIGRATION)

    assert (await searcher.search_code("evict a price"))[0][0] == UNITS[1]
    assert (await searcher.search_commits("invalidate the cache"))[0][0] == COMMIT
    assert (await searcher.search_values("what triggers a cache"))[0][0] == VALUE
    assert [each for each, _ in await searcher.search_experiences("stale prices", limit=1)] == [CACHE]
    by_axis = {
        axis: [each.id for each, _ in await searcher.search_experiences("cache", axis=axis)]
        for axis in ("full", "strategy", "surprise", "root_cause")
    }
    assert by_axis["surprise"] == by_axis["root_cause"] == ["exp-1"]
    assert sorted(by_axis["full"]) == sorted(by_axis["strategy"]) == ["exp-1", "exp-2"]
    assert [each.id for each, _ in await searcher.search_experiences("x", domain="feature", outcome="confirmed")] == [
        "exp-2"
    ]
    assert await searcher.search_experiences("x", domain="feature", outcome="falsified") == []


async def test_code_and_commits_do_not_get_among_the_memories() -> None:
    searcher = await a_searcher()

    assert [result.key for result in await searcher.search_memories("price cache")] == ["m1"]


async def test_all_experiences_are_listed_however_many_they_are_the_newest_first() -> None:
    searcher = Searcher(StoreMemory(InMemoryStore()))
    some = [replace(MIGRATION, id=f"e{i}", created_at=f"2026-01-01T{i // 60:02}:{i % 60:02}:00Z") for i in range(520)]
    await searcher.shelf("experiences-full").store_many([each.to_memory("full") for each in some])  # type: ignore[misc]

    assert await searcher.all_experiences() == some[::-1]


async def test_an_experience_that_loses_its_surprise_leaves_that_axis() -> None:
    searcher = await a_searcher()

    await searcher.keep_experience(replace(CACHE, surprise=""))

    assert await searcher.search_experiences("cache timer", axis="surprise") == []


@pytest.mark.parametrize(
    "fields",
    [
        {"domain": "x"},
        {"strategy": "x"},
        {"outcome_status": "x"},
        {"confidence_tier": "x"},
        {"root_cause_category": "x"},
    ],
)
def test_an_experience_has_only_values_that_there_are(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="must be one of"):
        Experience(**({"domain": "debugging", "strategy": "ask-user", "goal": "g"} | fields))
