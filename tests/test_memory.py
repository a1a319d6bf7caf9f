from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from builders import DECISION, QUESTION, a_state
from langgraph_scrum_master import (
    ChromaMemory,
    CodePattern,
    ConfigError,
    Decision,
    DecisionFilter,
    MemoryStore,
    ScrumMaster,
    ScrumMasterWarning,
    StoreError,
    StoreMemory,
)
from langgraph_scrum_master.memory.records import RecordMemory
from langgraph_scrum_master.rank import embedders

Opened = Callable[[str], RecordMemory]


@pytest.fixture(params=["ephemeral", "folder", "client", "store"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """How to open a memory of each kind, by namespace; the same place every time."""
    if request.param == "folder":
        return lambda namespace: ChromaMemory(tmp_path / "memory", namespace=namespace)
    if request.param == "client":
        import chromadb
        from chromadb.config import Settings

        client = chromadb.PersistentClient(str(tmp_path / "client"), Settings(anonymized_telemetry=False))
        return lambda namespace: ChromaMemory(client=client, namespace=namespace)
    if request.param == "store":
        store = InMemoryStore()
        return lambda namespace: StoreMemory(store, namespace=namespace)
    kept: dict[str, ChromaMemory] = {}
    return lambda namespace: kept.setdefault(namespace, ChromaMemory(namespace=namespace))


@pytest.fixture
async def memory(opened: Opened) -> RecordMemory:
    return opened("default")


async def test_every_backend_keeps_the_protocol(memory: RecordMemory) -> None:
    assert isinstance(memory, MemoryStore)


async def test_what_was_stored_is_found_best_first_with_scores_from_0_to_1(memory: RecordMemory) -> None:
    await memory.store_many(
        [
            ("keys", DECISION, {"title": "Keys", "session": "s1"}),
            ("front", "The front end is written in TypeScript.", {}),
            ("deploy", "We deploy with Helm charts.", {}),
        ]
    )

    found = await memory.search_similar(QUESTION, k=2)

    assert found[0].key == "keys"
    assert len(found) == 2
    assert 1 >= found[0].score >= 0.7 > found[1].score >= 0
    assert (found[0].content, found[0].metadata["title"], found[0].metadata["kind"]) == (DECISION, "Keys", "memory")


async def test_a_paraphrase_is_found(memory: RecordMemory) -> None:
    await memory.store_embedding("db", "We use PostgreSQL 16 for all durable data.", {})

    (found,) = await memory.search_similar("Which database do we use?")

    assert found.score >= 0.7


async def test_punctuation_does_not_matter(memory: RecordMemory) -> None:
    await memory.store_embedding("auth", "Signed tokens are used for authentication.", {})

    (found,) = await memory.search_similar("authentication?")

    assert found.score >= 0.7


async def test_a_question_about_something_never_mentioned_scores_low(memory: RecordMemory) -> None:
    await memory.store_many([("keys", DECISION, {}), ("front", "The front end is written in TypeScript.", {})])

    found = await memory.search_similar("Who approves holidays in the Berlin office?")

    assert all(result.score < 0.7 for result in found)


async def test_storing_again_replaces(memory: RecordMemory) -> None:
    for text in ("The limit is 100.", "The limit is 500."):
        await memory.store_embedding("limit", text, {})

    assert [result.content for result in await memory.search_similar("limit", k=9)] == ["The limit is 500."]


async def test_one_namespace_never_sees_another(opened: Opened) -> None:
    mine, yours = opened("acme"), opened("acme.eu/@x")
    await mine.store_embedding("keys", DECISION, {})
    await mine.store_decision(Decision(agent_type="dev", context="Ours alone."))

    assert await yours.search_similar(QUESTION) == []
    assert await yours.get_decisions_by_agent("dev") == []
    assert len(await mine.search_similar(QUESTION)) == 2


async def test_an_empty_memory_gives_nothing(memory: RecordMemory) -> None:
    assert await memory.search_similar("anything") == []
    assert await memory.search_decisions("anything") == []
    assert await memory.search_patterns() == []
    assert await memory.get_patterns_by_type("import_style") == []


async def test_an_empty_query_and_an_empty_text_do_no_harm(memory: RecordMemory) -> None:
    await memory.store_many([("blank", " ", {}), ("odd", "…?!", {}), ("keys", DECISION, {})])

    assert await memory.search_similar("   ") == []
    assert (await memory.search_similar(QUESTION))[0].key == "keys"


async def test_decisions_come_back_whole_filtered_and_by_agent_newest_first(memory: RecordMemory) -> None:
    old = Decision(
        id="D-1",
        agent_type="architect",
        context="Keep idempotency keys in Redis.",
        rationale="Locks",
        outcome="Faster",
        decision_type="architecture_choice",
        artifact_type="adr",
        artifact_ids=("ADR-12",),
        timestamp="2026-01-01T00:00:00+00:00",
    )
    new = Decision(
        id="D-2", agent_type="architect", context="Idempotency keys expire.", timestamp="2026-02-01T01:00:00+02:00"
    )
    for decision in (old, new):
        assert await memory.store_decision(decision) == decision.id

    assert await memory.get_decisions_by_agent("architect") == [new, old]
    assert await memory.get_decisions_by_agent("architect", limit=1) == [new]
    assert await memory.get_decisions_by_agent("dev") == []

    async def ids(**conditions: Any) -> set[str]:
        found = await memory.search_decisions("idempotency keys", DecisionFilter(**conditions))
        return {hit.decision.id for hit in found}

    assert await ids() == {"D-1", "D-2"}
    assert await ids(decision_type="architecture_choice") == {"D-1"}
    assert await ids(artifact_type="adr", agent_type="architect") == {"D-1"}
    assert await ids(agent_type="dev") == set()
    assert await ids(time_range_start="2026-01-15T00:00:00+00:00") == {"D-2"}
    assert await ids(time_range_end="2026-01-31T23:00:00+00:00") == {"D-1", "D-2"}
    assert await ids(time_range_end="2026-01-31T22:59:59+00:00") == {"D-1"}


async def test_patterns_are_found_by_words_and_by_type(memory: RecordMemory) -> None:
    naming = CodePattern(pattern_type="naming_function", name="verbs", value="functions start with a verb")
    imports = CodePattern(
        pattern_type="import_style", name="absolute", value="absolute imports", examples=("from a import b",)
    )
    for pattern in (naming, imports):
        await memory.store_pattern(pattern)

    assert [hit.pattern for hit in await memory.search_patterns("how are functions named?", k=1)] == [naming]
    assert [hit.pattern for hit in await memory.search_patterns(pattern_type="import_style")] == [imports]
    assert await memory.get_patterns_by_type("import_style") == [imports]


async def test_relationships_are_kept_once(memory: RecordMemory) -> None:
    for _ in range(2):
        await memory.store_relationship("PAY-42", "ADR-12", "implements")

    (record,) = await memory.list_all("relationship")
    assert record.data == {"source": "PAY-42", "target": "ADR-12", "relation": "implements"}


async def test_the_event_loop_goes_on_while_memory_works(memory: RecordMemory) -> None:
    await memory.store_many([(f"k{i}", f"Memory number {i} about idempotency keys.", {}) for i in range(200)])
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticker = asyncio.create_task(tick())
    for _ in range(20):
        await memory.search_similar(QUESTION)
    ticker.cancel()

    assert ticks >= 20


def test_a_folder_keeps_its_memory_for_the_next_process(tmp_path: Path) -> None:
    asyncio.run(ChromaMemory(tmp_path).store_embedding("keys", DECISION, {"title": "Keys"}))

    script = (
        "import asyncio, sys\nfrom langgraph_scrum_master import ChromaMemory\n"
        "print(asyncio.run(ChromaMemory(sys.argv[1]).search_similar('idempotency keys'))[0].metadata['title'])"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)

    assert done.stdout == "Keys\n"


async def test_two_ephemeral_memories_are_two() -> None:
    first, second = ChromaMemory(), ChromaMemory()
    await first.store_embedding("keys", DECISION, {})

    assert await second.search_similar(QUESTION) == []


def test_nothing_is_opened_before_it_is_used(tmp_path: Path) -> None:
    ChromaMemory(tmp_path / "memory")

    assert list(tmp_path.iterdir()) == []


async def test_an_unwritable_folder_is_told_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")

    with pytest.raises(StoreError, match=r"ChromaMemory\(.*file/memory.* cannot be used: NotADirectoryError"):
        await ChromaMemory(tmp_path / "file" / "memory").search_similar("x")


async def test_a_corrupt_folder_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    garbage = b"this is no database" * 100
    (tmp_path / "chroma.sqlite3").write_bytes(garbage)

    with pytest.raises(StoreError, match="cannot be used"):
        await ChromaMemory(tmp_path).search_similar("x")
    assert (tmp_path / "chroma.sqlite3").read_bytes() == garbage


def test_a_memory_that_cannot_be_used_is_a_recorded_failure_and_the_rest_serves(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    state = a_state(("dev", QUESTION), decisions=[{"agent": "architect", "summary": DECISION}])

    result = ScrumMaster(memory=ChromaMemory(tmp_path / "file" / "memory")).evaluate(state)

    assert result is not None
    assert result.injected
    assert [failure.source for failure in result.failures] == ["memory"]
    assert "StoreError" in result.failures[0].error


async def test_a_memory_filled_with_another_embedder_is_told(tmp_path: Path) -> None:
    await ChromaMemory(tmp_path, embedder="hash").store_embedding("keys", DECISION, {})

    with pytest.raises(StoreError, match="was filled with 'HashEmbedder'"):
        await ChromaMemory(tmp_path).search_similar("x")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"embedder": "magic"}, r"embedder must be among \('static', 'hash'\), or an object .*, got 'magic'"),
        ({"namespace": ""}, "namespace must be a non-empty text, got ''"),
        ({"path": "x", "client": object()}, "give a path or a client, not both"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        ChromaMemory(**options)


async def test_any_embeddings_object_can_be_plugged_in() -> None:
    class Embeddings:
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return [float("redis" in text.lower()), float("react" in text.lower()), 0.0]

    memory = ChromaMemory(embedder=Embeddings())
    await memory.store_many([("a", "Redis it is.", {}), ("b", "React it is.", {})])

    assert (await memory.search_similar("what about redis"))[0].key == "a"


async def test_without_the_weights_a_named_fallback_serves_and_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(embedders, "distribution", missing)
    embedders._static_or_hash.cache_clear()
    try:
        with pytest.warns(ScrumMasterWarning, match="using embedder='hash'") as warned:
            first, second = embedders.embedder_for("static"), embedders.embedder_for("static")
    finally:
        embedders._static_or_hash.cache_clear()

    assert isinstance(first, embedders.HashEmbedder)
    assert first is second
    assert len(warned) == 1


async def test_what_a_host_puts_into_the_graphs_store_is_found() -> None:
    store = InMemoryStore()
    store.put(("scrum_master", "default", "memory"), "keys", {"text": DECISION, "title": "Keys"})

    (found,) = await StoreMemory(store).search_similar(QUESTION)

    assert (found.key, found.content, found.metadata["title"]) == ("keys", DECISION, "Keys")
