"""What a project has learned, as an agent of a compiled graph reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from builders import says
from langgraph_scrum_master import (
    ChromaMemory,
    InjectionConfig,
    InjectionResult,
    Memory,
    ScrumMaster,
    ScrumMasterState,
    StoreMemory,
    context_for,
)
from langgraph_scrum_master.learning import CodeUnit, Commit, Experience, Searcher, Value
from langgraph_scrum_master.memory import MemoryResult
from langgraph_scrum_master.memory.record_memory import RecordMemory
from langgraph_scrum_master.text.domains import DOMAINS, domain_of

LEARNED: Any = ("memory", "state", "experiences", "code", "commits", "values")

FIXTURES = Experience(
    id="exp-fixtures",
    domain="testing",
    strategy="trial-and-error",
    goal="Raise the coverage of the payment module to 80 %",
    hypothesis="More tests of the refund path are enough",
    action="Wrote twelve tests with shared fixtures",
    outcome_status="falsified",
    outcome_result="The tests passed only in one order",
    surprise="A fixture kept the database open between tests",
    root_cause="Fixtures were shared by the whole session",
    root_cause_category="test-isolation",
    created_at="2026-09-01T10:00:00Z",
)
SNAPSHOT = Experience(
    id="exp-snapshot",
    domain="testing",
    strategy="research-first",
    goal="Stop the picture of the login page from flickering",
    outcome_status="falsified",
    outcome_result="It flickers still",
    created_at="2026-09-02T10:00:00Z",
)
TOKENS = Experience(
    id="exp-tokens",
    domain="security",
    strategy="ask-user",
    goal="Keep the coverage report of the payment module away from strangers",
    outcome_status="falsified",
    outcome_result="The report was public, fixtures of payments included",
    created_at="2026-09-03T10:00:00Z",
)
EVICT = CodeUnit(
    file_path="shop/cache.py",
    qualified_name="PriceCache.evict",
    unit_type="method",
    signature="def evict(self, price: Price, *, quietly: bool = False) -> None:",
    docstring="Drop a price from the cache; with `quietly` no event is sent.",
    start_line=11,
    end_line=30,
)
TIMER = Commit(
    sha="0123456789abcdef",
    message="Invalidate the price cache on writes instead of by timer\n\nThe timer was two seconds late.",
    author="Maria",
    timestamp="2026-09-03",
    files_changed=("shop/cache.py",),
)
TRIGGER = Value(
    axis="root_cause", text="Check what triggers a cache before blaming the cache.", cluster_id="3", cluster_size=7
)

GATE: dict[str, Any] = {
    "gate_blocked": True,
    "gate_results": [
        {
            "gate_name": "test_coverage",
            "passed": False,
            "reason": "Coverage of payments is 61 %: the policy for sharing fixtures is not documented.",
        }
    ],
}


async def filled(memory: RecordMemory) -> RecordMemory:
    searcher = Searcher(memory)
    await searcher.shelf("code").store_many([EVICT.to_memory()])
    await searcher.shelf("commits").store_many([TIMER.to_memory()])
    await searcher.shelf("values").store_many([TRIGGER.to_memory()])
    for experience in (FIXTURES, SNAPSHOT, TOKENS):
        await searcher.keep_experience(experience)
    return memory


class State(MessagesState, ScrumMasterState):
    gate_blocked: bool
    gate_results: list[dict[str, Any]]


async def read_by_dev(
    master: ScrumMaster, said: str, store: InMemoryStore | None = None, **keys: Any
) -> tuple[str, InjectionResult]:
    """What the developer of a compiled graph reads after it said this, and the result of that step."""
    read: list[str] = []

    def dev(state: State) -> dict[str, Any]:
        read.append(context_for(state, "dev"))
        return {"messages": [says("dev", said if len(read) == 1 else "Done.")]}

    builder = StateGraph(State)
    builder.add_node("dev", dev)
    builder.add_node("scrum_master", master.node)
    builder.add_edge(START, "dev")
    builder.add_edge("dev", "scrum_master")
    builder.add_conditional_edges("scrum_master", lambda _state: END if len(read) == 2 else "dev", ["dev", END])
    start: Any = {"messages": [HumanMessage("Add refunds to the payment module.")], **keys}
    results = []
    async for update in builder.compile(store=store).astream(start, stream_mode="updates"):
        results += [u["injection_result"] for u in update.values() if u and u.get("injection_result")]
    return read[1], results[0]


def master(memory: Any = None, sources: Any = LEARNED) -> ScrumMaster:
    return ScrumMaster(memory=memory, config=InjectionConfig(enabled_sources=sources))


@pytest.fixture(scope="module")
def memory() -> RecordMemory:
    return asyncio.run(filled(ChromaMemory()))


QUESTIONS = {
    "code": (
        "What does the quietly argument of PriceCache.evict do?",
        '<context_item source="code" title="method PriceCache.evict in shop/cache.py:11">\n```python\ndef evict(',
        EVICT.key,
    ),
    "commits": (
        "Why was the timer of the price cache replaced by invalidation on writes?",
        '<context_item source="commit" title="Commit 0123456 by Maria on 2026-09-03" date="2026-09-03">\n'
        "Invalidate the price cache on writes instead of by timer\nThe timer was two seconds late.\n"
        "*Files: shop/cache.py*",
        TIMER.sha,
    ),
    "values": (
        "What should we check before blaming the cache?",
        '<context_item source="value" title="Value (root_cause, cluster size: 7)">\nCheck what triggers a cache',
        TRIGGER.id,
    ),
    "experiences": (
        "What came of the tests with shared fixtures for the coverage of the payment module?",
        '<context_item source="experience" title="Experience: testing | trial-and-error" date="2026-09-01">\n'
        "- **Goal**: Raise the coverage",
        FIXTURES.id,
    ),
}


@pytest.mark.parametrize("source", QUESTIONS)
async def test_an_agents_question_is_answered_from_what_was_learned(memory: RecordMemory, source: str) -> None:
    question, answer, key = QUESTIONS[source]

    read, result = await read_by_dev(master(memory), question)

    assert answer in read
    assert result.contexts_retrieved[0].key == key
    assert result.contexts_retrieved[0].relevance_score >= 0.7
    assert result.failures == ()


@pytest.mark.parametrize("kind", ["chroma", "the graph's store"])
async def test_after_a_gate_failure_the_agent_reads_what_went_wrong_before_in_that_domain(
    memory: RecordMemory, kind: str
) -> None:
    store = InMemoryStore() if kind == "the graph's store" else None
    if store is not None:
        await filled(StoreMemory(store))

    read, result = await read_by_dev(master(None if store else memory), "On it.", store, **GATE)

    assert '<context_item source="experience" title="Premortem: testing | trial-and-error" date="2026-09-01">' in read
    assert "- **Outcome**: falsified - The tests passed only in one order" in read
    assert "- **Surprise**: A fixture kept the database open between tests" in read
    assert "- **Root cause**: test-isolation - Fixtures were shared by the whole session" in read
    assert result.gap.reason == "gate_failure"
    shown = [context.key for context in result.contexts_retrieved]
    assert shown.count(FIXTURES.id) == 1
    # Of the domain, but of nothing that this failure is about; and about it, but of another domain.
    assert SNAPSHOT.id not in shown
    assert not any(context.title.startswith("Premortem: security") for context in result.contexts_retrieved)


async def test_a_domain_in_which_nothing_went_wrong_has_no_premortem() -> None:
    searcher = Searcher(ChromaMemory())
    await searcher.keep_experience(TOKENS)

    _, result = await read_by_dev(master(searcher._memory, ("experiences",)), "On it.", **GATE)

    titles = [context.title for context in result.contexts_retrieved]
    assert not any(title.startswith("Premortem") for title in titles)


async def test_a_premortem_is_small_and_has_the_likest_failures_only() -> None:
    searcher = Searcher(ChromaMemory())
    for i in range(8):
        await searcher.keep_experience(
            Experience(
                id=f"exp-{i}",
                domain="testing",
                strategy="read-the-error",
                goal=f"Raise the coverage of payments with fixtures for case {i}",
                outcome_status="confirmed" if i == 0 else "falsified",
                outcome_result=f"Case {i} hid the failure number {i} of sharing",
                created_at="2026-09-02T10:00:00Z",
            )
        )

    _, result = await read_by_dev(master(searcher._memory, ("experiences",)), "On it.", **GATE)

    warned = [context.key for context in result.contexts_retrieved if context.title.startswith("Premortem")]
    assert 1 <= len(warned) <= 3
    assert "exp-0" not in warned


@pytest.mark.parametrize(("said", "keys"), [(QUESTIONS["code"][0], {}), ("On it.", GATE)], ids=["question", "gate"])
async def test_without_these_sources_enabled_nothing_of_them_is_read(
    memory: RecordMemory, said: str, keys: dict[str, Any]
) -> None:
    read, result = await read_by_dev(ScrumMaster(memory=memory), said, **keys)

    assert read == ""
    assert not result.injected
    assert {each.source for each in result.dropped} <= {"memory", "state"}


async def test_shelves_of_another_namespace_are_not_seen() -> None:
    store = InMemoryStore()
    await filled(StoreMemory(store, namespace="theirs"))

    read, result = await read_by_dev(master(StoreMemory(store, namespace="ours")), QUESTIONS["code"][0])

    assert read == ""
    assert (result.contexts_retrieved, result.dropped, result.failures) == ((), (), ())


class OtherEmbedder:
    """A model that puts everything into one place."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0, 0.0, 0.0]


async def test_a_shelf_that_fails_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    await ChromaMemory(tmp_path, embedder=OtherEmbedder()).beside("code").store_many([TIMER.to_memory()])
    memory = ChromaMemory(tmp_path)
    for name, rows in (("commits", [TIMER.to_memory()]), ("values", [TRIGGER.to_memory()])):
        await memory.beside(name).store_many(rows)

    read, result = await read_by_dev(master(memory), QUESTIONS["commits"][0])

    assert "Invalidate the price cache on writes" in read
    assert [failure.source for failure in result.failures] == ["code"]
    assert "filled with 'OtherEmbedder'" in result.failures[0].error


class PlainMemory:
    """A memory that keeps to the protocol and has nothing beside it."""

    def __init__(self) -> None:
        self._inner = ChromaMemory()

    async def search_similar(self, query: str, k: int = 5) -> Sequence[MemoryResult]:
        return await self._inner.search_similar(query, k)

    async def store_embedding(self, key: str, content: str, metadata: Mapping[str, Any]) -> None:
        await self._inner.store_embedding(key, content, metadata)

    async def _nothing(self, *_: Any, **__: Any) -> Any:
        return []

    store_relationship = store_pattern = store_decision = search_patterns = _nothing
    get_patterns_by_type = search_decisions = get_decisions_by_agent = _nothing


async def test_a_memory_without_shelves_serves_with_what_it_has() -> None:
    memory = PlainMemory()
    await memory.store_embedding("m1", "The quietly argument of PriceCache.evict keeps events from being sent.", {})

    read, result = await read_by_dev(master(memory), QUESTIONS["code"][0])

    assert "keeps events from being sent" in read
    assert result.failures == ()


async def test_what_a_memory_and_a_commit_both_say_is_read_once() -> None:
    memory = ChromaMemory()
    said = "The timer of the price cache was replaced by an event from the database."
    await memory.store_many([Memory(content=said)])
    await memory.beside("commits").store_many([Commit(sha="f" * 40, message=said).to_memory()])

    read, result = await read_by_dev(master(memory), "Why was the timer of the price cache replaced?")

    assert read.count("replaced by an event") == 1
    assert [each.why for each in result.dropped if each.relevance_score >= 0.7] == ["duplicate"]


async def test_what_cannot_be_read_is_passed_over(logged: list[dict[str, Any]]) -> None:
    memory = ChromaMemory()
    await memory.beside("code").store_many([EVICT.to_memory()])
    await memory.beside("code").store_embedding("odd", "What quietly does in PriceCache.evict", {"code": {"x": 1}})

    read, _ = await read_by_dev(master(memory), QUESTIONS["code"][0])

    assert "def evict(" in read
    assert [entry["key"] for entry in logged if entry["event"] == "record.skipped"] == ["odd"]


def test_the_sources_can_be_enabled_from_the_environment() -> None:
    config = InjectionConfig.from_env({"SCRUM_MASTER_ENABLED_SOURCES": "memory, experiences, code, commits, values"})

    assert config.enabled_sources == ("memory", "experiences", "code", "commits", "values")


@pytest.mark.parametrize(
    ("texts", "domain"),
    [
        (("test_coverage", "The security policy is missing"), "testing"),
        (("security_review", ""), "security"),
        (("lint", ""), "debugging"),
        (("type-check", ""), "debugging"),
        (("docs", ""), "documentation"),
        (("perf", ""), "performance"),
        (("api_contract", ""), "integration"),
        (("quality", "The deployment target is not specified"), "integration"),
        (("", "coverage_config is missing"), "testing"),
        (("", "The config is missing"), "configuration"),
        (("definition of done", "The author of the story is not documented"), "feature"),
        ((), "feature"),
    ],
)
def test_a_gates_name_or_else_its_reason_tells_the_domain(texts: tuple[str, ...], domain: str) -> None:
    assert domain_of(*texts) == domain
    assert domain in DOMAINS
