from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from builders import DECISION, QUESTION, a_state
from langgraph_scrum_master import ChromaMemory, ConfigError, Decision, Memory, ScrumMaster, StoreError, StoreMemory
from langgraph_scrum_master.errors import ScrumMasterWarning
from langgraph_scrum_master.memory import DecisionFilter
from langgraph_scrum_master.memory.record_memory import RecordMemory
from langgraph_scrum_master.model import Query
from langgraph_scrum_master.rank import embedders
from langgraph_scrum_master.retrieval.sources import MemorySource

Opened = Callable[[str], RecordMemory]


@pytest.fixture(params=["ephemeral", "folder", "client", "store"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Opens a memory of each kind by namespace, always in the same store."""
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


async def test_a_relationship_is_stored_once(memory: RecordMemory) -> None:
    for _ in range(2):
        await memory.store_relationship("PAY-42", "ADR-12", "implements")

    (record,) = await memory.list_all("relationship")
    assert record.data == {"source": "PAY-42", "target": "ADR-12", "relation": "implements"}


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


async def test_an_unwritable_folder_is_reported_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")

    with pytest.raises(StoreError, match=r"ChromaMemory\(.*file/memory.* cannot be used: NotADirectoryError"):
        await ChromaMemory(tmp_path / "file" / "memory").search_similar("x")


async def test_a_corrupt_folder_is_reported_and_stays_unchanged(tmp_path: Path) -> None:
    garbage = b"this is no database" * 100
    (tmp_path / "memory.sqlite3").write_bytes(garbage)

    with pytest.raises(StoreError, match="cannot be used: DatabaseError: file is not a database"):
        await ChromaMemory(tmp_path).search_similar("x")
    assert (tmp_path / "memory.sqlite3").read_bytes() == garbage


def test_a_memory_that_cannot_be_used_is_a_recorded_failure_and_the_rest_serves(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    state = a_state(("dev", QUESTION), decisions=[{"agent": "architect", "summary": DECISION}])

    result = ScrumMaster(memory=ChromaMemory(tmp_path / "file" / "memory")).evaluate(state)

    assert result is not None
    assert result.injected
    assert [failure.source for failure in result.failures] == ["memory"]
    assert "StoreError" in result.failures[0].error


async def test_a_memory_filled_with_another_embedder_is_rejected(tmp_path: Path) -> None:
    await ChromaMemory(tmp_path, embedder="hash").store_embedding("keys", DECISION, {})

    with pytest.raises(StoreError, match="was filled with 'HashEmbedder'"):
        await ChromaMemory(tmp_path).search_similar("x")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"embedder": "magic"}, r"embedder must be among \('static', 'minilm', 'hash'\), or an object .*, got 'magic'"),
        ({"namespace": ""}, "namespace must be a non-empty text without control characters, got ''"),
        ({"namespace": "acme\x1fcode"}, "namespace must be a non-empty text without control characters"),
        ({"durability": "none"}, r"durability must be among \('full', 'normal'\), got 'none'"),
        ({"most_records": 0}, "most_records must be at least 1"),
        ({"path": "x", "client": object()}, "pass a path or a client, not both"),
    ],
)
def test_bad_options_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
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


async def test_items_of_the_application_in_the_graphs_store_are_found() -> None:
    store = InMemoryStore()
    store.put(("scrum_master", "default", "memory"), "keys", {"text": DECISION, "title": "Keys"})

    (found,) = await StoreMemory(store).search_similar(QUESTION)

    assert (found.key, found.content, found.metadata["title"]) == ("keys", DECISION, "Keys")


async def test_one_bad_record_does_not_cost_the_others() -> None:
    store = InMemoryStore()
    memory = StoreMemory(store)
    await memory.store_decision(Decision(agent_type="architect", context=DECISION))
    store.put(memory.labels("decision"), "odd", {"content": "Idempotency keys, but no decision."})
    store.put(memory.labels("memory"), "note", {"content": "Idempotency keys expire.", "data": "not a dict"})

    assert [hit.decision.context for hit in await memory.search_decisions(QUESTION)] == [DECISION]
    assert len(await memory.search_similar(QUESTION)) == 3
    assert len(list(await MemorySource(memory).find(Query(text=QUESTION, agent="dev", now=""), {}))) == 3


async def test_items_of_a_longer_namespace_are_not_found() -> None:
    store = InMemoryStore()
    store.put((*StoreMemory(store).labels("memory"), "deeper"), "keys", {"text": DECISION})

    assert await StoreMemory(store).search_similar(QUESTION) == []


async def test_odd_texts_and_metadata_are_stored(memory: RecordMemory) -> None:
    await memory.store_embedding("a", "lone \ud800 surrogate about idempotency keys", {})
    await memory.store_embedding("b", "idempotency keys without metadata", None)  # type: ignore[arg-type]
    await memory.store_embedding("c", "idempotency \x00 keys 👩‍💻 مفتاح", {"n": 2**70})

    assert {result.key for result in await memory.search_similar("idempotency keys \udfff")} == {"a", "b", "c"}


async def test_a_filter_finds_what_many_nearer_ones_would_hide(memory: RecordMemory) -> None:
    for i in range(120):
        await memory.store_decision(Decision(id=f"dev-{i}", agent_type="dev", context=f"{QUESTION} Part {i}."))
    await memory.store_decision(Decision(id="arch", agent_type="architect", context="Keys are in Redis."))

    found = await memory.search_decisions(QUESTION, DecisionFilter(agent_type="architect"))

    assert [hit.decision.id for hit in found] == ["arch"]


@pytest.mark.parametrize(
    ("question", "memory_text"),
    [
        ("Which database do we use?", "We use PostgreSQL 16 for all durable data."),
        ("How long do tokens live?", "JWTs expire after 15 minutes."),
        ("Where do we keep secrets?", "Passwords and credentials are stored in Vault."),
        ("How do we deploy?", "Releases go to Kubernetes with Helm charts."),
        ("What is the time limit of a checkout?", "A purchase must answer within 800 milliseconds."),
    ],
)
async def test_a_paraphrase_comes_first_among_others(question: str, memory_text: str) -> None:
    memory = ChromaMemory()
    others = ["The front end is React.", "Amounts are whole numbers of cents.", "Errors are problem details."]
    await memory.store_many([("right", memory_text, {}), *((f"o{i}", text, {}) for i, text in enumerate(others))])

    found = await memory.search_similar(question)

    assert found[0].key == "right"


def test_a_forked_process_has_connections_of_its_own(tmp_path: Path) -> None:
    script = """
import asyncio, os, sys
from langgraph_scrum_master import ChromaMemory, ScrumMaster
memory = ChromaMemory(sys.argv[1])
asyncio.run(memory.store_embedding("keys", "Idempotency keys are in Redis.", {}))
state = {"messages": [{"role": "assistant", "name": "dev", "content": "Where are the idempotency keys?"}]}
master = ScrumMaster(memory=memory)
assert master.evaluate(state).injected
if os.fork() == 0:
    asyncio.run(memory.store_embedding("queue", "Refunds go to the queue billing-v2.", {}))
    print(master.evaluate(state).injected, flush=True)
    os._exit(0)
os.wait()
print([each.key for each in asyncio.run(memory.search_similar("Which queue do refunds go to?", k=1))])
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.split("\n")[-3:] == ["True", "['queue']", ""]


class Slow:
    """A slow embedder that records its threads."""

    def __init__(self) -> None:
        self.threads: set[threading.Thread] = set()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.threads.add(threading.current_thread())
        time.sleep(0.2)
        return [1.0, 0.0]


async def test_a_slow_embedder_does_not_hold_up_the_event_loop() -> None:
    embedder = Slow()
    memory = ChromaMemory(embedder=embedder)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticker = asyncio.create_task(tick())
    await memory.store_embedding("a", "text", {})
    await memory.search_similar("text")
    ticker.cancel()

    assert ticks >= 10
    assert threading.main_thread() not in embedder.threads


async def test_the_sentence_model_finds_a_paraphrase_that_shares_no_word() -> None:
    memory = ChromaMemory(embedder="minilm")
    texts = {
        "right": "People who forgot their credentials receive a reset link by mail.",
        "other": "Our servers run in the data centre in Frankfurt.",
        "third": "Goods that are sold out go on a waiting list.",
    }
    await memory.store_many([(key, text, {}) for key, text in texts.items()])

    found = await memory.search_similar("How does a user recover a lost password?")

    assert found[0].key == "right"
    assert found[0].score > 2 * found[1].score


async def test_a_memory_comes_back_with_its_fields(memory: RecordMemory) -> None:
    kept = Memory(
        content="Refunds go to the queue billing-v2.",
        agent="architect",
        session="s1",
        created_at="2026-03-02T12:00:00Z",
        references=("STORY-7", "src/refunds.py"),
        importance=0.9,
        confidence=0.6,
        observations=3,
        metadata={"team": "billing", "kind": "bug"},
    )

    await memory.store_many([kept, kept, ("bare", "Refunds take a day.", {"importance": 0.2, "team": "billing"})])

    found = {result.key: result.memory for result in await memory.search_similar("Where do refunds go?")}
    assert found[kept.key] == kept
    assert (found["bare"].importance, found["bare"].observations, found["bare"].metadata) == (
        0.2,
        1,
        {"team": "billing"},
    )


def test_numbers_out_of_range_are_clamped_and_logged(logged: list[dict[str, Any]]) -> None:
    odd: Any = "high"

    kept = Memory(content="x", importance=7, confidence=odd, observations=0)

    assert (kept.importance, kept.confidence, kept.observations) == (1.0, 0.0, 1)
    assert [entry["field"] for entry in logged] == ["importance", "confidence", "observations"]


async def test_a_question_about_a_record_that_is_not_there_is_not_answered_with_another(memory: RecordMemory) -> None:
    await memory.store_many(
        [
            ("one", "STORY-1: Refund mails. Status: done, reviewed by Ana.", {}),
            ("two", "STORY-2: Parcel labels. Status: in progress, waits for STORY-9.", {}),
            ("db", "We use PostgreSQL 16 for all durable data.", {}),
        ]
    )

    async def served(question: str) -> set[str]:
        return {result.key for result in await memory.search_similar(question) if result.score >= 0.7}

    assert await served("What is the status of STORY-7?") == set()
    assert await served("What is the status of STORY-1?") == {"one"}
    assert await served("What is the status of STORY-9?") == {"two"}
    assert "db" in await served("I work on STORY-7: which database do we use for durable data?")
    assert "one" in await served("STORY-12: send a mail for each refund, and have it reviewed")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("What is in FR-3?", "FR-3.1: users can export their data"),
        ("Can we replace SHA-1 for signing?", "SHA-256 is used for signing releases"),
        ("fix issue 5 retries in the payment worker", "Issue 4: payment worker retries forever"),
        ("Which stories from STORY-1 to STORY-5 touch the payments module?", "STORY-3: payments module refactoring"),
    ],
)
async def test_a_number_that_differs_hides_no_answer(memory: RecordMemory, query: str, text: str) -> None:
    await memory.store_many([("right", text, {}), ("lunch", "Team lunch is on Friday", {})])

    found = await memory.search_similar(query)

    assert found[0].key == "right"
    assert found[0].score >= 0.7


@pytest.mark.parametrize(
    ("metadata", "name", "expected"),
    [
        ({"references": "STORY-7"}, "references", ("STORY-7",)),
        ({"session": 0}, "session", "0"),
        ({"importance": None}, "importance", 0.5),
    ],
)
def test_the_fields_of_a_memory_are_read_as_they_were_meant(
    metadata: dict[str, Any], name: str, expected: object
) -> None:
    assert getattr(Memory.of("k", "text", metadata), name) == expected


async def test_a_result_says_why_it_was_found(memory: RecordMemory) -> None:
    await memory.store_many([("keys", "We keep idempotency keys in Redis.", {}), ("lunch", "Lunch is at noon.", {})])

    best, other = await memory.search_similar("Where are the idempotency keys of ADR-7 kept?")

    assert {"E1", "E6", "E8", "E12"} <= best.strengths.keys() <= {f"E{i}" for i in range(1, 14)}
    assert all(0 <= strength <= 1 for strength in best.strengths.values())
    assert best.strengths["E6"] > other.strengths["E6"]
    assert 8.5 >= best.weighted_agreement > other.weighted_agreement >= 0
    assert best.weighted_agreement == pytest.approx(
        sum(strength * (0.5 if space in ("E8", "E9", "E11") else 1) for space, strength in best.strengths.items()),
        abs=0.01,
    )


async def test_memories_beside_each_other_may_be_opened_at_once(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path / "new")

    found = await asyncio.gather(*(memory.beside(f"shelf-{i}").search_similar("anything") for i in range(8)))

    assert found == [[]] * 8
