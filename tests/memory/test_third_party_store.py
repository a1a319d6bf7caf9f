"""A third party's store in one file, with public imports only: it passes the suite and serves every entry point."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from langgraph_scrum_master import (
    ConfigError,
    ContextAssembler,
    Decision,
    InjectionConfig,
    InjectionPipeline,
    Memory,
    ScrumMaster,
    ScrumMasterState,
)
from langgraph_scrum_master.dialogue import Document, KnowledgeBase
from langgraph_scrum_master.learning import Experience, Searcher, index_code
from langgraph_scrum_master.mcp import Tools, mcp_server
from langgraph_scrum_master.memory import (
    CodePattern,
    DecisionFilter,
    DecisionResult,
    MemoryResult,
    PatternResult,
)
from langgraph_scrum_master.protocols import CAPABILITIES, MemoryStore, methods_of, supports
from langgraph_scrum_master.testing import MemoryConformance, assert_injected

QUESTION = "To which queue do refunds go?"
ANSWER = "Refunds go to the queue billing-v2."
_STOP = frozenset(["a", "are", "do", "how", "is", "of", "the", "to", "what", "which"])


class WordStore:
    """Texts in this process, ranked by the share of the query's words that they have, weighted by idf."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[str, frozenset[str], dict[str, Any]]] = {}
        self._decisions: dict[str, Decision] = {}
        self._patterns: dict[str, CodePattern] = {}
        self._lock = Lock()

    async def store_embedding(self, key: str, content: str, metadata: Mapping[str, Any]) -> None:
        with self._lock:
            self._texts[key] = content, _words(content), dict(metadata)

    async def search_similar(self, query: str, k: int = 5) -> Sequence[MemoryResult]:
        return (await asyncio.to_thread(self._ranked, query))[:k]

    async def store_relationship(self, source: str, target: str, relation: str) -> None:
        """Ignored: relationships are not used for ranking."""

    async def store_decision(self, decision: Decision) -> str:
        self._decisions[decision.id] = decision
        await self.store_embedding(decision.id, decision.text, {"kind": "decision", "agent_type": decision.agent_type})
        return decision.id

    async def search_decisions(
        self, query: str, filters: DecisionFilter | None = None, k: int = 5
    ) -> Sequence[DecisionResult]:
        found = await asyncio.to_thread(self._ranked, query)
        hits = [
            DecisionResult(decision=self._decisions[each.key], similarity=each.score)
            for each in found
            if each.key in self._decisions and (filters is None or filters.accepts(self._decisions[each.key]))
        ]
        return hits[:k]

    async def get_decisions_by_agent(self, agent_type: str, limit: int = 10) -> Sequence[Decision]:
        own = [decision for decision in self._decisions.values() if decision.agent_type == agent_type]
        return sorted(own, key=lambda decision: decision.timestamp, reverse=True)[:limit]

    async def store_pattern(self, pattern: CodePattern) -> str:
        self._patterns[pattern.id] = pattern
        await self.store_embedding(pattern.id, pattern.text, {"kind": "pattern", "name": pattern.name})
        return pattern.id

    async def search_patterns(
        self, query: str = "", pattern_type: str | None = None, k: int = 5
    ) -> Sequence[PatternResult]:
        scores = {each.key: each.score for each in await asyncio.to_thread(self._ranked, query)}
        wanted = [each for each in self._patterns.values() if pattern_type in (None, each.pattern_type)]
        hits = [
            PatternResult(pattern=each, similarity=scores.get(each.id, 0.0))
            for each in wanted
            if not query or each.id in scores
        ]
        return sorted(hits, key=lambda hit: -hit.similarity)[:k]

    async def get_patterns_by_type(self, pattern_type: str) -> Sequence[CodePattern]:
        return [pattern for pattern in self._patterns.values() if pattern.pattern_type == pattern_type]

    def _ranked(self, query: str) -> list[MemoryResult]:
        with self._lock:
            texts = dict(self._texts)
        idf = {
            word: math.log(1 + len(texts) / (1 + sum(word in words for _, words, _ in texts.values())))
            for word in _words(query)
        }
        best = sum(idf.values()) or 1.0
        found = [
            MemoryResult(key=key, content=content, score=score, metadata=metadata)
            for key, (content, words, metadata) in texts.items()
            if (score := min(1.0, sum(weight for word, weight in idf.items() if word in words) / best)) > 0
        ]
        return sorted(found, key=lambda result: (-result.score, result.key))


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower())) - _STOP


class TestWordStore(MemoryConformance):
    @pytest.fixture(autouse=True)
    def _stores(self) -> None:
        self.stores: dict[str, WordStore] = {}

    def open(self, namespace: str) -> MemoryStore:
        return self.stores.setdefault(namespace, WordStore())


class Promising(WordStore):
    """Declares sessions but lacks some of their methods."""

    capabilities: ClassVar[frozenset[str]] = frozenset({"sessions"})

    async def last_session(self) -> None:
        return None


class Misspelt(WordStore):
    capabilities: ClassVar[frozenset[str]] = frozenset({"session"})


def suite_of(store: WordStore) -> MemoryConformance:
    class Suite(MemoryConformance):
        def open(self, namespace: str) -> MemoryStore:
            return store

    return Suite()


def test_the_suite_names_the_methods_that_a_declared_capability_lacks() -> None:
    with pytest.raises(AssertionError, match="Promising declares the capability 'sessions', and has no recent, end_s"):
        suite_of(Promising()).test_it_has_the_methods_of_what_it_declares()
    with pytest.raises(
        AssertionError, match=r"capabilities of Misspelt must be .*'sessions'.*got frozenset\({'session'}"
    ):
        suite_of(Misspelt()).test_it_has_the_methods_of_what_it_declares()


@pytest.mark.parametrize("store", [Promising(), Misspelt()])
@pytest.mark.parametrize("entry", [lambda store: ScrumMaster(memory=store), InjectionPipeline, Searcher, mcp_server])
def test_every_entry_point_rejects_a_store_without_its_declared_methods(entry: Any, store: WordStore) -> None:
    with pytest.raises(ConfigError, match=r"declares the capability 'sessions'|capabilities of Misspelt must be"):
        entry(store)


def test_an_object_that_is_not_a_store_is_rejected_with_its_missing_methods() -> None:
    with pytest.raises(ConfigError, match=r"must be a MemoryStore, .* which has no store_embedding, search_similar, "):
        ScrumMaster(memory=object())  # type: ignore[arg-type]


def test_a_store_that_declares_nothing_has_the_core_only() -> None:
    assert not any(supports(WordStore(), capability) for capability in CAPABILITIES)
    assert all(methods_of(capability) for capability in CAPABILITIES)


@pytest.fixture
def store() -> WordStore:
    memory = WordStore()
    asyncio.run(memory.store_embedding("queue", ANSWER, {"title": "Queue"}))
    asyncio.run(memory.store_embedding("colour", "The landing page has a teal header.", {}))
    return memory


def compiled(master: ScrumMaster) -> Any:
    class Team(MessagesState, ScrumMasterState):
        pass

    builder = StateGraph(Team)
    builder.add_node("dev", lambda state: {"messages": [AIMessage(QUESTION, name="dev")]})
    builder.add_node(master.node)
    builder.add_edge(START, "dev")
    builder.add_edge("dev", "scrum_master")
    return builder.compile()


ALL_SOURCES = InjectionConfig(enabled_sources=("memory", "state", "code", "commits", "values", "experiences"))


@pytest.mark.parametrize("config", [InjectionConfig(), ALL_SOURCES], ids=["default", "all sources"])
def test_it_serves_a_compiled_graph(store: WordStore, config: InjectionConfig) -> None:
    end = compiled(ScrumMaster(memory=store, config=config)).invoke({"messages": []})

    result = assert_injected(end, agent="dev", containing=ANSWER, source="memory")
    assert result.failures == ()


def test_a_run_with_a_namespace_reports_the_missing_capability(store: WordStore) -> None:
    end = compiled(ScrumMaster(memory=store)).invoke({"messages": []}, context={"namespace": "acme"})

    assert "'namespaces' (namespace, for_namespace)" in str(end["sm_output"])


def test_it_serves_prompts_and_knows_no_sessions(store: WordStore) -> None:
    pipeline = InjectionPipeline(store)

    result = pipeline.inject_context(QUESTION, "s1")

    assert ANSWER in result.text
    assert result.failures == ()
    with pytest.raises(ConfigError, match=r"end_session needs .* 'sessions' \(recent, end_session, last_session\)"):
        pipeline.end_session("s1", "We agreed.")


async def test_its_memories_are_assembled_and_shelves_are_reported_as_missing(store: WordStore) -> None:
    assembler = ContextAssembler(Searcher(store))

    found = await assembler.assemble_context(QUESTION, ["memories", "code"])

    assert ANSWER in found.markdown
    assert [failure.source for failure in found.failures] == ["code"]
    assert (
        "needs a memory with the capability 'shelves' (beside), and WordStore declares none" in found.failures[0].error
    )


async def test_a_missing_capability_is_reported_before_anything_is_written(store: WordStore, tmp_path: Path) -> None:
    experience = Experience(domain="feature", strategy="research-first", goal="Build the refunds.")

    with pytest.raises(ConfigError, match=r"KnowledgeBase needs .* 'shelves' .*'notes' .*'deletion'"):
        KnowledgeBase(store)
    with pytest.raises(ConfigError, match=r"index_code needs .* 'lookup' \(get_many, every\)"):
        await index_code(store, tmp_path)
    with pytest.raises(ConfigError, match="keep_experience needs"):
        await Searcher(store).keep_experience(experience)


async def test_an_mcp_server_keeps_and_finds_its_memories(store: WordStore) -> None:
    tools = Tools(store)

    key = await tools.remember("The mascot of the team is a badger.")
    found = await tools.search("What is the mascot of the team?")

    assert key
    assert "badger" in found[0]["content"]
    with pytest.raises(ConfigError, match=r"'shelves' \(beside\)"):
        await tools.search("badger", "code")


class Shelved(WordStore):
    """A store with some capabilities."""

    capabilities: ClassVar[frozenset[str]] = frozenset({"shelves", "deletion", "notes"})

    def __init__(self) -> None:
        super().__init__()
        self._shelves: dict[str, Shelved] = {}
        self._books: dict[str, dict[str, Any]] = {}

    def beside(self, name: str) -> Shelved:
        return self._shelves.setdefault(name, Shelved())

    async def forget(self, *keys: str) -> None:
        with self._lock:
            for key in keys:
                for kept in (self._texts, self._decisions, self._patterns):
                    kept.pop(key, None)

    async def notes(self, book: str, keys: Sequence[str] | None = None) -> dict[str, Any]:
        kept = self._books.get(book, {})
        return {key: kept[key] for key in (kept if keys is None else keys) if key in kept}

    async def save_notes(self, book: str, notes: Mapping[str, Any]) -> None:
        kept = {**self._books.get(book, {}), **notes}
        self._books[book] = {key: value for key, value in kept.items() if value is not None}


class TestShelved(MemoryConformance):
    many = 1_000

    @pytest.fixture(autouse=True)
    def _stores(self) -> None:
        self.stores: dict[str, Shelved] = {}

    def open(self, namespace: str) -> MemoryStore:
        return self.stores.setdefault(namespace, Shelved())


async def test_features_of_declared_capabilities_work() -> None:
    store = Shelved()
    base = KnowledgeBase(store)
    await base.index_document(Document(id="refunds", title="Refunds", text=ANSWER))
    searcher = Searcher(store)
    await searcher.shelf("commits").store_many([Memory(content="The header became teal.", key="c1")])

    found = await base.retrieve(QUESTION)
    removed = await base.remove_document("refunds")

    assert [ANSWER in chunk.content for chunk in found] == [True]
    assert removed
    assert not await base.retrieve(QUESTION)
    assert (await store.beside("commits").search_similar("teal header"))[0].key == "c1"
    with pytest.raises(ConfigError, match="index_code needs"):
        await index_code(store, ".")
