"""The guarantees of a memory in a folder: isolation, durability, recovery."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from langgraph.store.memory import InMemoryStore

from langgraph_scrum_master import ChromaMemory, ConfigError, Decision, Memory, StoreError, StoreMemory
from langgraph_scrum_master.memory import CodePattern, DecisionFilter, MemoryResult
from langgraph_scrum_master.memory.record_memory import RecordMemory
from langgraph_scrum_master.memory.sqlite import SqliteStatements
from langgraph_scrum_master.rank.embedders import embedder_for

KEYS = "We keep idempotency keys of payment requests in Redis, each for 24 hours."
QUEUE = "Refunds go to the queue billing-v2."
LEASE = "Which batch has a lease?"
WORDS = ("cache", "order", "retry", "token", "queue", "price", "refund", "batch", "index", "alert", "shard", "lease")

Rows = list[tuple[str, str, dict[str, Any]]]


def rows(count: int, seed: int = 1) -> Rows:
    """Many similar texts."""
    chosen = random.Random(seed)
    return [(f"k{i}", f"Number {i}: {' '.join(chosen.choices(WORDS, k=9))}.", {}) for i in range(count)]


def file_of(folder: Path) -> Path:
    return folder / "memory.sqlite3"


def change(folder: Path, *statements: str) -> None:
    """Change the file directly."""
    with closing(sqlite3.connect(file_of(folder))) as database, database:
        for statement in statements:
            database.execute(statement)


def read(folder: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(file_of(folder))) as database:
        return database.execute(query).fetchall()


def contents(folder: Path) -> bytes:
    """All bytes of all files in a folder."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def scores(results: Sequence[MemoryResult]) -> dict[str, float]:
    return {result.key: result.score for result in results}


def started(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Another process that runs a script."""
    command, pipe = [sys.executable, "-c", script, *map(str, arguments)], subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def write_line(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip()


def output(process: subprocess.Popen[str]) -> str:
    """The remaining output of a process, which must have succeeded."""
    printed, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return printed


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks and frequent snapshots: 16 records instead of 4,096 and 2,048."""
    monkeypatch.setattr("langgraph_scrum_master.memory.blocks.BLOCK", 16)
    monkeypatch.setattr("langgraph_scrum_master.memory.writer.SAVED_EVERY", 16)


# Forgetting.

SECRET = "xylophonist"


Step = Callable[[ChromaMemory], Awaitable[object]]

DECISION = Decision(id="D", agent_type=SECRET, context=f"Hire the {SECRET}.")
PATTERN = CodePattern(pattern_type=SECRET, name=SECRET, value=f"A {SECRET}.")
FORGETTING: dict[str, tuple[Step, Step]] = {
    "a long text and its metadata": (
        lambda memory: memory.store_embedding("k", f"The {SECRET} hides. " * 500, {"who": SECRET}),
        lambda memory: memory.forget("k"),
    ),
    "a replaced text": (
        lambda memory: memory.store_embedding("k", f"The {SECRET} hides.", {"who": SECRET}),
        lambda memory: memory.store_embedding("k", "Nobody hides.", {"who": "nobody"}),
    ),
    "a decision": (lambda memory: memory.store_decision(DECISION), lambda memory: memory.forget("D")),
    "a pattern": (lambda memory: memory.store_pattern(PATTERN), lambda memory: memory.forget(PATTERN.id)),
    "a summary": (
        lambda memory: memory.end_session("s", f"We hired the {SECRET}."),
        lambda memory: memory.end_session("s", ""),
    ),
    "a session": (
        lambda memory: memory.store_many([Memory(content="They hide.", session=SECRET)] * 2),
        lambda memory: memory.forget_where(session=SECRET),
    ),
    "a note": (
        lambda memory: memory.save_notes("book", {"k": {"who": SECRET}}),
        lambda memory: memory.save_notes("book", {"k": None}),
    ),
    "code on a shelf": (
        lambda memory: memory.beside("code").store_embedding("k", f"def {SECRET}(): ...", {}),
        lambda memory: memory.beside("code").forget("k"),
    ),
}


@pytest.mark.parametrize(("store", "forget"), FORGETTING.values(), ids=FORGETTING)
async def test_forgotten_text_is_in_no_file(tmp_path: Path, store: Step, forget: Step) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_many([("keys", KEYS, {}), ("queue", QUEUE, {})])
    await store(memory)
    memory.close()
    before = contents(tmp_path)

    await forget(memory)
    memory.close()

    assert SECRET.encode() in before
    assert SECRET.encode() not in contents(tmp_path)
    assert {each.key for each in await memory.every()} >= {"keys", "queue"}


async def test_after_a_checkpoint_forgotten_text_is_in_no_file_of_an_open_memory(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_many([("k", f"The {SECRET} hides.", {}), ("keys", KEYS, {})])
    await memory.search_similar(SECRET)
    await memory.forget("k")
    before = contents(tmp_path)

    change(tmp_path, "PRAGMA wal_checkpoint(TRUNCATE)")

    assert SECRET.encode() in before
    assert SECRET.encode() not in contents(tmp_path)
    assert [each.key for each in await memory.search_similar(SECRET)] == ["keys"]


@pytest.mark.usefixtures("small_blocks")
async def test_forgotten_words_are_not_in_the_saved_statistics(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_many([("k", f"The {SECRET} hides.", {}), *rows(40)])

    def saved() -> bytes:
        ((content,),) = read(tmp_path, "SELECT content FROM statistics")
        return zlib.decompress(content)

    before = saved()
    await memory.forget("k")

    assert SECRET.encode() in before
    assert SECRET.encode() not in saved()


@pytest.mark.usefixtures("small_blocks")
async def test_forgotten_records_do_not_come_back(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_many([("k", f"The {SECRET} hides.", {"session": "s"}), *rows(40)])
    await memory.forget("k")

    found = scores(await memory.search_similar(SECRET, k=100))
    await memory.check(rebuild=True)
    rebuilt = scores(await memory.search_similar(SECRET, k=100))
    memory.close()
    opened = scores(await ChromaMemory(tmp_path).search_similar(SECRET, k=100))

    assert found.keys() == opened.keys() == {key for key, *_ in rows(40)}
    assert "k" not in rebuilt
    assert await memory.get_many(["k"]) == {}


async def test_a_key_that_is_forgotten_twice_in_one_call_is_forgotten_and_can_be_stored_again() -> None:
    memory = ChromaMemory()
    await memory.store_many([("keys", KEYS, {}), ("queue", QUEUE, {})])

    await memory.forget("keys", "queue", "keys")
    await memory.store_embedding("queue", QUEUE, {})

    assert [result.key for result in await memory.search_similar("Where do refunds go?")] == ["queue"]
    assert (await memory.check()).sound


async def test_a_forgotten_turn_lends_its_meaning_no_more() -> None:
    memory, fresh = ChromaMemory(), ChromaMemory()
    await memory.store_many([("a", "The volcano erupted.", {"session": 0}), ("b", "Indeed.", {"session": 0})])
    await fresh.store_many([("b", "Indeed.", {"session": 0})])
    (beside,) = [each for each in await memory.search_similar("volcano eruption") if each.key == "b"]

    await memory.forget("a")

    (left,) = await memory.search_similar("volcano eruption")
    (never,) = await fresh.search_similar("volcano eruption")
    assert beside.score > left.score == never.score


@pytest.mark.usefixtures("small_blocks")
async def test_forgotten_records_change_no_score(tmp_path: Path) -> None:
    kept, lost = ChromaMemory(tmp_path / "kept"), ChromaMemory(tmp_path / "lost")
    mascots: Rows = [(f"n{i}", f"The queue of team {i} keeps a badger for refunds.", {}) for i in range(60)]
    for memory in (kept, lost):
        await memory.store_many([("keys", KEYS, {}), ("queue", QUEUE, {})])
    await lost.store_many(mascots)
    noisy = scores(await lost.search_similar("To which queue do refunds go?", k=100))

    await lost.forget(*(key for key, *_ in mascots))

    before = scores(await kept.search_similar("To which queue do refunds go?"))
    after = scores(await lost.search_similar("To which queue do refunds go?"))
    assert after == pytest.approx(before, abs=1e-6)
    assert noisy["queue"] != pytest.approx(before["queue"], abs=1e-6)


# Updates.


async def test_an_updated_text_is_found_by_its_new_words_and_not_by_its_old() -> None:
    memory = ChromaMemory()
    await memory.store_embedding("store", "Sessions are kept in Memcached.", {})

    await memory.store_embedding("store", "Invoices are printed in Berlin.", {})

    (by_new,) = await memory.search_similar("Where are invoices printed?")
    (by_old,) = await memory.search_similar("Where are sessions kept in Memcached?")
    assert by_new.score >= 0.7 > by_old.score
    assert by_new.content == by_old.content == "Invoices are printed in Berlin."


async def test_updated_metadata_are_found_by_their_new_values_and_not_by_their_old(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_embedding("queue", QUEUE, {"team": "billing"})

    await memory.store_embedding("queue", QUEUE, {"team": "payments"})

    assert await memory.search_where("refunds", {"team": "billing"}) == []
    assert [each.key for each in await memory.search_where("refunds", {"team": "payments"})] == ["queue"]


async def test_a_memory_is_found_by_any_of_its_metadata() -> None:
    memory = ChromaMemory()
    await memory.store_embedding("queue", QUEUE, {f"field {i:02}": f"value {i}" for i in range(40)})

    found = [await memory.search_where("refunds", {f"field {i:02}": f"value {i}"}) for i in range(40)]

    assert [[each.key for each in results] for results in found] == [["queue"]] * 40


async def test_an_updated_turn_keeps_its_place_in_its_session(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    said = ("Which store do we take for idempotency keys?", "Noodles.", "Fine, I will write it down.")
    await memory.store_many([(f"a{i}", text, {"session": "a"}) for i, text in enumerate(said)])
    await memory.store_many([(f"b{i}", "What is for lunch?", {"session": "b"}) for i in range(3)])

    await memory.store_many([("a0", said[0] + " And locks?", {"session": "a"}), ("b0", "Lunch?", {"session": "b"})])
    await memory.store_many([(f"{name}1", "Redis, for a day.", {"session": name}) for name in ("a", "b")])

    in_order = read(tmp_path, "SELECT key FROM records WHERE session = 'a' ORDER BY position")
    assert in_order == [("a0",), ("a1",), ("a2",)]
    found = scores(await memory.search_similar("Where are idempotency keys stored?", k=6))
    assert found["a1"] > found["b1"]


class Counting:
    """The static embedder, counting the texts it embeds."""

    def __init__(self) -> None:
        self.texts = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += len(texts)
        return embedder_for("static").embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return embedder_for("static").embed_query(text)


async def test_unchanged_records_are_not_embedded_again(tmp_path: Path) -> None:
    embedder = Counting()
    stored: Rows = [("keys", KEYS, {"agent": "architect", "n": 1}), ("queue", QUEUE, {})]
    await ChromaMemory(tmp_path, embedder=embedder).store_many(stored)

    memory = ChromaMemory(tmp_path, embedder=embedder)
    await memory.store_many([("keys", KEYS, {"n": 1, "agent": "architect"}), *stored[1:]])
    unchanged = embedder.texts
    await memory.store_embedding("queue", QUEUE, {"agent": "pm"})

    assert (unchanged, embedder.texts) == (2, 3)


async def test_storing_many_reports_its_progress(tmp_path: Path) -> None:
    reported: list[int] = []

    await ChromaMemory(tmp_path).store_many(
        ((f"m{i}", f"Fact {i}.", {}) for i in range(2500)), progress=reported.append
    )

    assert reported == [1000, 2000, 2500]


# What stands around a text.


async def test_a_turn_is_understood_from_its_neighbours() -> None:
    memory = ChromaMemory()
    talk = ["Which store do we take for idempotency keys?", "Redis, for a day.", "Fine, I will write it down."]
    other = ["What do we have for lunch?", "Noodles, for a change.", "Fine, I am hungry."]
    await memory.store_many(
        [
            (f"{name}{i}", text, {"session": name})
            for name, said in (("a", talk), ("b", other))
            for i, text in enumerate(said)
        ]
    )

    found = scores(await memory.search_similar("Where are idempotency keys stored?", k=6))

    assert found["a1"] > found["b1"]


async def test_a_record_cited_by_a_match_is_found_too() -> None:
    memory = ChromaMemory()
    await memory.store_many(
        [
            ("adr7", "ADR-007: Outbox pattern\nEvents are written to a table and sent later.", {}),
            ("adr8", "ADR-008: Colour palette\nButtons are navy.", {}),
            ("story", "Story 4.2: Refund notifications\nCustomers get a mail for each refund, see ADR-7.", {}),
            ("listed", "Story 4.3: Parcel labels are printed in the warehouse.", {"references": ["ADR-008"]}),
        ]
    )

    by_text = scores(await memory.search_similar("How are customers told about a refund?"))
    by_list = scores(await memory.search_similar("Where are the labels of parcels printed?"))

    assert by_text["adr7"] > by_text["adr8"]
    assert by_list["adr8"] > by_list["adr7"]


async def test_decisions_are_found_among_many_memories() -> None:
    memory = ChromaMemory()
    await memory.store_many([(f"m{i}", f"The refund queue was mentioned in meeting {i}.", {}) for i in range(400)])
    await memory.store_decision(Decision(id="D-1", agent_type="pm", context="The refund queue is billing-v2."))

    found = await memory.search_decisions("Which is the refund queue?")

    assert [hit.decision.id for hit in found] == ["D-1"]


@pytest.fixture(params=["chroma", "store"])
def either(request: pytest.FixtureRequest) -> RecordMemory:
    return ChromaMemory() if request.param == "chroma" else StoreMemory(InMemoryStore())


async def test_a_record_linked_with_a_match_is_found_too(either: RecordMemory) -> None:
    await either.store_many(
        [
            ("outbox", "Events are written to a table and sent later.", {}),
            ("palette", "Buttons are navy.", {}),
            ("refunds", "Customers get a mail for each refund.", {}),
        ]
    )
    question = "How are customers told about a refund?"
    before = scores(await either.search_similar(question))

    await either.store_relationship("refunds", "OUTBOX", "relies on")

    after = scores(await either.search_similar(question))
    assert after["outbox"] > before["outbox"]
    assert after["palette"] == before["palette"]
    assert after["refunds"] == before["refunds"]


@pytest.mark.parametrize(
    "text", ["Kafka consumers lag, see ADR-7", "UTF-8 Kafka consumers lag often", "STORY-7: Kafka lags"]
)
async def test_a_record_is_known_by_its_key_whatever_its_text_says(either: RecordMemory, text: str) -> None:
    await either.store_many(
        [("n1", text, {}), ("docs/ADR-9.md", "The plants need water", {}), ("x", "Nothing here", {})]
    )
    before = scores(await either.search_similar("Which Kafka consumers lag?"))

    await either.store_relationship("n1", "docs/ADR-9.md", "concerns")
    await either.store_relationship("n1", "n1", "is")
    await either.store_many([("n2", "Kafka consumers lag a lot", {"references": ["docs/ADR-9.md"]})])

    after = scores(await either.search_similar("Which Kafka consumers lag?"))
    assert after["docs/ADR-9.md"] > before["docs/ADR-9.md"]


async def test_a_record_that_is_linked_with_the_one_a_query_names_serves_more(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    texts = {"cache": "The cache is cleared at midnight.", "quota": "The quota is renewed at midnight."}
    await memory.store_relationship("quota", "STORY-12", "comes from")
    await memory.store_many([(key, text, {}) for key, text in texts.items()])

    async def best() -> str:
        return (await ChromaMemory(tmp_path).search_similar("What happens at midnight, for story 12?", k=1))[0].key

    linked = await best()
    await memory.store_relationship("cache", "STORY-12", "comes from")
    gone = [each.key for each in await memory.list_all("relationship") if each.data["source"] == "quota"]
    await memory.drop(("relationship",), gone)

    assert (linked, await best()) == ("quota", "cache")


async def test_the_words_of_relationships_change_no_score() -> None:
    memory = ChromaMemory()
    await memory.store_many([("keys", KEYS, {}), ("queue", QUEUE, {})])
    before = scores(await memory.search_similar("Which queue do refunds go to?"))

    for i in range(50):
        await memory.store_relationship(f"refund {i}", "the queue", "goes to")

    assert scores(await memory.search_similar("Which queue do refunds go to?")) == before


@pytest.mark.parametrize("odd", [("ID-" + "1" * 5000, {}), ("fine", {"session": "\ud800"}), ("[/k]", {"session": 0})])
async def test_odd_texts_and_sessions_cost_no_other_record(odd: tuple[str, dict[str, Any]]) -> None:
    memory = ChromaMemory()

    await memory.store_many([("keys", KEYS, {}), ("odd", *odd)])

    assert len(await memory.search_similar(f"{odd[0]} idempotency keys")) == 2


# Embedders and models.


class Fixed:
    """An embedder that returns the same vector for every text."""

    def __init__(self, *vector: float) -> None:
        self.vector = list(vector)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.vector for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.vector


class AlsoFixed(Fixed):
    """The same embedder under another name."""


@pytest.mark.parametrize(
    ("embedder", "message"),
    [
        (Fixed(1.0, 0.0, 0.0), "has vectors of 2 dimensions, the embedder returns 3"),
        (Fixed(float("nan"), 1.0), "one vector of finite numbers per text"),
        (AlsoFixed(1.0, 0.0), "was filled with 'Fixed': open it with that embedder, not 'AlsoFixed'"),
    ],
)
async def test_vectors_that_do_not_fit_are_rejected_and_stored_records_stay(
    tmp_path: Path, embedder: Fixed, message: str
) -> None:
    await ChromaMemory(tmp_path, embedder=Fixed(1.0, 0.0)).store_embedding("keys", KEYS, {})

    with pytest.raises(StoreError, match=message):
        await ChromaMemory(tmp_path, embedder=embedder).store_embedding("queue", QUEUE, {})
    with pytest.raises(StoreError, match=message):
        await ChromaMemory(tmp_path, embedder=embedder).search_similar("Where are the keys?")

    found = await ChromaMemory(tmp_path, embedder=Fixed(1.0, 0.0)).search_similar(KEYS)
    assert [result.key for result in found] == ["keys"]


async def test_each_namespace_may_have_an_embedder_of_its_own(tmp_path: Path) -> None:
    await ChromaMemory(tmp_path).store_embedding("keys", KEYS, {})
    other = ChromaMemory(tmp_path, namespace="other", embedder=Fixed(1.0, 0.0))

    await other.store_embedding("queue", QUEUE, {})

    assert [result.key for result in await other.search_similar("refunds")] == ["queue"]
    assert [result.key for result in await ChromaMemory(tmp_path).search_similar("keys")] == ["keys"]


async def test_how_long_an_embedders_vectors_are_does_not_matter() -> None:
    found = []
    for length in (1.0, 100.0):
        memory = ChromaMemory(embedder=Fixed(length, 0.0))
        await memory.store_embedding("keys", KEYS, {})
        found.append((await memory.search_similar("Who waters the plants?"))[0].score)

    assert found[0] == found[1]


@pytest.mark.parametrize("vector", [(float("nan"), 0.0), (float("inf"), 0.0)])
async def test_a_query_that_an_embedder_makes_nothing_of_is_an_error(vector: tuple[float, ...]) -> None:
    class Odd(Fixed):
        def embed_query(self, text: str) -> list[float]:
            return list(vector)

    memory = ChromaMemory(embedder=Odd(1.0, 0.0))
    await memory.store_many(ALIKE)

    with pytest.raises(StoreError, match="one vector of finite numbers"):
        await memory.search_similar("What wilts in the hall?")


class Topics:
    """A model that knows of plants and of money, and counts how many texts it has embedded."""

    def __init__(self, length: int = 3) -> None:
        self.texts = 0
        self._length = length

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += len(texts)
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._vector(text)

    def _vector(self, text: str) -> list[float]:
        topics = [any(word in text.lower() for word in words) for words in (("fern", "wilt"), ("budget", "refund"))]
        return [0.01, *map(float, topics), *[0.0] * (self._length - 3)]


LEAVES = "The fern in the hall has brown leaves."
ALIKE: Rows = [("fern", LEAVES, {}), ("budget", "The budget in the hall has brown covers.", {})]


async def test_a_model_takes_the_place_of_a_space(tmp_path: Path) -> None:
    model = Topics()
    memory = ChromaMemory(tmp_path, spaces={"E10": model, "E7": model})
    await memory.store_many(ALIKE)
    stored = model.texts

    found = await memory.search_similar("What wilts in the hall?")
    plain = await ChromaMemory(tmp_path).search_similar("What wilts in the hall?")

    assert (stored, model.texts) == (4, 4)
    assert found[0].key == "fern"
    margins = [results[0].score - results[1].score for results in (found, plain)]
    assert margins[0] > margins[1]


async def test_records_from_before_a_model_are_embedded_when_they_are_first_compared(tmp_path: Path) -> None:
    await ChromaMemory(tmp_path).store_many(ALIKE)
    model, longer = Topics(), Topics(length=4)

    memory = ChromaMemory(tmp_path, spaces={"E10": model})
    for _ in range(2):
        assert (await memory.search_similar("What wilts in the hall?"))[0].key == "fern"
    await memory.store_embedding("fern", f"{LEAVES} It is old.", {})
    await memory.search_similar("What wilts in the hall?")
    await ChromaMemory(tmp_path, spaces={"E10": longer}).search_similar("What wilts in the hall?")

    assert (model.texts, longer.texts) == (3, 2)


async def test_two_models_of_one_class_are_two(tmp_path: Path) -> None:
    await ChromaMemory(tmp_path, spaces={"E10": Fixed(1.0, 0.0)}).store_many(ALIKE)
    other = Fixed(0.0, 1.0)

    one = await ChromaMemory(tmp_path, spaces={"E10": other}).search_similar("What wilts in the hall?")
    fresh = ChromaMemory(spaces={"E10": other})
    await fresh.store_many(ALIKE)

    assert scores(one) == pytest.approx(scores(await fresh.search_similar("What wilts in the hall?")))


async def test_a_models_vectors_are_forgotten_with_their_records(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path, spaces={"E10": Topics()})
    await memory.store_many(ALIKE)
    before = read(tmp_path, "SELECT count(*) FROM model_vectors")

    await memory.forget("fern")

    assert (before, read(tmp_path, "SELECT count(*) FROM model_vectors")) == ([(2,)], [(1,)])


@pytest.mark.parametrize(
    ("spaces", "message"),
    [
        ({"E1": Topics()}, "pass the model for E1 as `embedder`"),
        ({"E2": Topics()}, "spaces has a model for 'E2'"),
        ({"E14": Topics()}, "spaces has a model for 'E14': it must be among"),
        ({"E10": "minilm"}, "the model for E10 must have embed_documents and embed_query, got str"),
    ],
)
def test_a_model_for_a_space_that_takes_none_is_rejected(spaces: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ChromaMemory(spaces=spaces)


# Namespaces.


async def test_many_namespaces_in_one_folder_do_not_see_each_other(tmp_path: Path) -> None:
    tenants = ["a", "A", "ä", "a ", "a%", "a'b", "a/code", *(f"team {i}" for i in range(73))]
    memory = ChromaMemory(tmp_path)
    for number, name in enumerate(tenants):
        own = memory.for_namespace(name)
        await own.store_embedding("secret", f"The code word is zebra{number}.", {"session": "s", "who": "us"})
        await own.beside("code").store_embedding("secret", f"def zebra{number}(): ...", {})
        await own.save_notes("book", {"number": number})
    await memory.for_namespace("a").forget("secret")

    for number, name in enumerate(tenants[1:], 1):
        own = memory.for_namespace(name)
        found = [
            *await own.search_similar("What is the code word?", k=100),
            *await own.every(),
            *await own.recent("code word", "s", "2026-01-01", k=100),
            *await own.search_where("code word", {"who": "us"}, k=100),
            *(await own.get_many(["secret"])).values(),
        ]
        assert [each.content for each in found] == [f"The code word is zebra{number}."] * 5
        assert [each.content for each in await own.beside("code").every()] == [f"def zebra{number}(): ..."]
        assert (await own.shelves(), await own.notes("book")) == (["code"], {"number": number})
    assert await memory.for_namespace("a").every() == []


@pytest.mark.parametrize("name", ["", "  ", "acme\x1fcode", "a\nb", "\x00"])
def test_an_empty_namespace_or_one_with_control_characters_is_rejected(tmp_path: Path, name: str) -> None:
    message = "namespace must be a non-empty text without control characters"

    with pytest.raises(ConfigError, match=message):
        ChromaMemory(tmp_path, namespace=name)
    with pytest.raises(ConfigError, match=message):
        ChromaMemory(tmp_path).for_namespace(name)


# Quotas.


async def test_a_namespace_rejects_records_above_its_limit(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path, most_records=30)

    with pytest.raises(StoreError, match="'default' has 0 of at most 30 records: 31 more do not fit"):
        await memory.store_many(rows(31))
    nothing = await memory.every()
    await memory.store_many(rows(30))
    with pytest.raises(StoreError, match="'default' has 30 of at most 30 records: 1 more do not fit"):
        await memory.beside("code").store_embedding("x", "One more.", {})
    with pytest.raises(StoreError, match="2 more do not fit"):
        await memory.store_many([("k1", "changed", {}), ("new", "One more.", {}), ("newer", "Two more.", {})])

    assert nothing == []
    assert {each.key: each.content for each in await memory.every()} == {key: text for key, text, _ in rows(30)}
    assert (await memory.check()).sound


async def test_a_full_namespace_accepts_updates_and_forgetting_makes_room(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path, most_records=30)
    await memory.store_many(rows(30))

    await memory.store_many(rows(30, seed=2))
    await memory.for_namespace("other").store_many(rows(30))
    await memory.forget("k0", "k1")
    await memory.store_many([("new", "One more.", {})])
    await memory.beside("code").store_embedding("newer", "Two more.", {})
    with pytest.raises(StoreError, match="at most 30 records"):
        await memory.store_embedding("newest", "Three more.", {})

    assert {each.key for each in await memory.every()} == {"new", *(f"k{i}" for i in range(2, 30))}


# Indexes.


async def test_filters_sessions_and_decisions_by_agent_are_read_through_indexes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_many([(f"k{i}", f"Fact {i}.", {"session": f"s{i % 3}", "colour": f"c{i}"}) for i in range(9)])
    await memory.store_decision(Decision(id="D-1", agent_type="pm", context="We ship on Fridays."))
    plans: list[str] = []
    execute = SqliteStatements.execute

    def explained(self: SqliteStatements, query: str, values: Any = ()) -> list[Any]:
        if query.startswith("SELECT"):
            plans.extend(step for *_, step in execute(self, f"EXPLAIN QUERY PLAN {query}", values))
        return execute(self, query, values)

    monkeypatch.setattr(SqliteStatements, "execute", explained)

    filtered = await memory.search_where("Which fact?", {"colour": "c7"})
    of_session = await memory.recent("Which fact?", "s1", "2199-01-01")
    by_agent = await memory.get_decisions_by_agent("pm")
    found = await memory.search_decisions("ship", DecisionFilter(agent_type="pm"))

    assert (len(filtered), len(of_session), len(by_agent), len(found)) == (1, 3, 1, 1)
    assert [plan for plan in plans if plan.startswith("SCAN records")] == []
    used = "\n".join(plans)
    for index in ("postings VIRTUAL TABLE INDEX", "records_by_session", "records_by_agent"):
        assert index in used


# Readers and writers.


@contextmanager
def held_by_a_writer(folder: Path) -> Iterator[None]:
    """Another connection with an uncommitted change."""
    with closing(sqlite3.connect(file_of(folder), isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE records SET text = 'half a write'")
        yield
        writer.execute("ROLLBACK")


async def test_a_reader_does_not_wait_for_a_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langgraph_scrum_master.memory.sqlite.BUSY", 0.5)
    open_before = ChromaMemory(tmp_path)
    await open_before.store_many(rows(20))

    with held_by_a_writer(tmp_path):
        for memory in (open_before, ChromaMemory(tmp_path)):
            found = await memory.search_similar(LEASE, k=20)
            assert {each.key: each.content for each in found} == {key: text for key, text, _ in rows(20)}
            assert len(await memory.statistics()) == 1
            assert len(list(memory.export())) == 20
            await memory.backup(tmp_path / f"backup {memory is open_before}")
        with pytest.raises(StoreError, match="database is locked"):
            await open_before.store_embedding("k", "Later.", {})


async def test_a_check_does_not_take_a_writer_for_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langgraph_scrum_master.memory.sqlite.BUSY", 0.5)
    memory = ChromaMemory(tmp_path)
    await memory.store_many(rows(20))

    with held_by_a_writer(tmp_path):
        assert (await memory.check()).sound


async def test_a_search_with_a_new_model_does_not_wait_for_a_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langgraph_scrum_master.memory.sqlite.BUSY", 0.5)
    await ChromaMemory(tmp_path).store_many(ALIKE)

    with held_by_a_writer(tmp_path):
        found = await ChromaMemory(tmp_path, spaces={"E10": Topics()}).search_similar("What wilts in the hall?")

    assert [each.key for each in found] == ["fern", "budget"]


async def test_a_writer_waits_for_another_one(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_many(rows(5))
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with held_by_a_writer(tmp_path):
            held.set()
            done.wait(0.3)

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    await memory.store_embedding("queue", QUEUE, {})
    done.set()
    other.join()

    assert (await memory.search_similar("Where do refunds go?"))[0].key == "queue"


async def test_storing_and_forgetting_at_the_same_time_leaves_nothing_half_done() -> None:
    memory = ChromaMemory()
    await memory.store_embedding("keys", KEYS, {})
    for i in range(10):
        await asyncio.gather(
            memory.store_embedding(f"k{i}", QUEUE, {}),
            memory.forget(f"k{i}"),
            memory.store_embedding(f"k{i}", KEYS, {}),
        )

    found = {each.key: each.content for each in await memory.search_similar(KEYS, k=100)}

    assert found == {each.key: each.content for each in await memory.every()}
    assert (await memory.check()).sound


def test_shelves_that_are_opened_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    async def fill() -> list[int]:
        shelves = [ChromaMemory(tmp_path).beside(str(i)) for i in range(8)]
        await asyncio.gather(*(shelf.store_embedding("k", "a lease", {}) for shelf in shelves))
        return [len(await shelf.search_similar("a lease")) for shelf in shelves]

    assert asyncio.run(fill()) == [1] * 8


# Several instances and processes.


async def test_instances_see_each_others_commits_at_the_next_search(tmp_path: Path) -> None:
    one, other = ChromaMemory(tmp_path), ChromaMemory(tmp_path)
    await one.store_many(rows(5))
    first = {each.key for each in await other.search_similar(LEASE, k=100)}

    await one.forget("k1", "k3")
    await other.store_many([("k2", "Something else", {}), ("k9", "Something new", {})])
    await one.end_session("s", "We agreed on a badger.")
    await one.save_notes("book", {"a": 1})
    await one.store_decision(Decision(id="D", agent_type="pm", context="We ship on Fridays."))

    assert first == {f"k{i}" for i in range(5)}
    for memory in (one, other):
        found = {each.key for each in await memory.search_similar(LEASE, k=100)}
        assert found == {"k0", "k2", "k4", "k9", "session:s", "D"}
        assert (await memory.search_similar("Something else", k=1))[0].key == "k2"
        summary = await memory.last_session()
        assert summary is not None
        assert summary.content == "We agreed on a badger."
        assert await memory.notes("book") == {"a": 1}
        assert [each.id for each in await memory.get_decisions_by_agent("pm")] == ["D"]


WRITING = """
import asyncio, sys
from langgraph_scrum_master import ChromaMemory
memory = ChromaMemory(sys.argv[1])
for line in sys.stdin:
    command, key, text = line.rstrip().split("|")
    asyncio.run(memory.store_embedding(key, text, {}) if command == "store" else memory.forget(key))
    found = asyncio.run(memory.search_similar("Where are the idempotency keys?", k=100))
    print(sorted(each.key for each in found), flush=True)
"""


async def test_processes_see_each_others_commits_at_the_next_search(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_embedding("queue", QUEUE, {})
    process = started(WRITING, tmp_path)

    write_line(process, f"store|keys|{KEYS}")
    stored = read_line(process)
    (best, *_) = await memory.search_similar("Where are the idempotency keys?")
    await memory.forget("queue")
    write_line(process, "store|keys|Keys are in Memcached now.")
    forgotten = read_line(process)
    (updated,) = await memory.search_similar("Where are the idempotency keys?")
    write_line(process, "forget|keys|")
    gone = output(process)

    assert stored == "['keys', 'queue']"
    assert best.content == KEYS
    assert forgotten == "['keys']"
    assert updated.content == "Keys are in Memcached now."
    assert gone == "[]\n"
    assert await memory.search_similar("Where are the idempotency keys?") == []


CREATING = """
import asyncio, pathlib, sys, time
from langgraph_scrum_master import ChromaMemory
memory = ChromaMemory(sys.argv[1])
asyncio.run(ChromaMemory().store_embedding("warm", "up", {}))
print("ready", flush=True)
sys.stdin.readline()
for i in range(5):
    asyncio.run(memory.store_embedding(f"{sys.argv[2]}-{i}", f"The zebra{sys.argv[2]}x{i} is striped.", {}))
"""


async def test_four_processes_may_create_the_folder_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "memory"
    processes = [started(CREATING, folder, number) for number in range(4)]
    ready = [read_line(process) for process in processes]

    for process in processes:
        write_line(process, "go")
    for process in processes:
        output(process)

    assert ready == ["ready"] * 4
    memory = ChromaMemory(folder)
    found = {each.key for each in await memory.search_similar("Which zebra is striped?", k=100)}
    assert found == {f"{number}-{i}" for number in range(4) for i in range(5)}
    assert (await memory.check()).sound


FORKING = """
import asyncio, os, sys
from langgraph_scrum_master import ChromaMemory
memory = ChromaMemory(sys.argv[1])
def write(who):
    for i in range(10):
        asyncio.run(memory.store_embedding(f"{who}{i}", f"The {who} counts to {i}.", {}))
        assert asyncio.run(memory.search_similar(f"Who counts to {i}?"))
write("ancestor")
child = os.fork()
if not child:
    write("child")
    asyncio.run(memory.forget("ancestor0"))
    os._exit(0)
write("parent")
assert os.waitpid(child, 0)[1] == 0
print(sorted(each.key for each in asyncio.run(memory.search_similar("Who counts?", k=100))))
print(asyncio.run(memory.check()).sound)
"""


def test_a_fork_reads_and_writes_while_its_parent_goes_on(tmp_path: Path) -> None:
    found, sound = output(started(FORKING, tmp_path)).splitlines()

    everybody = [f"{who}{i}" for who in ("ancestor", "child", "parent") for i in range(10)]
    assert found == str(sorted({*everybody} - {"ancestor0"}))
    assert sound == "True"


USING = """
import asyncio, sys
from langgraph_scrum_master import ChromaMemory
memory = ChromaMemory(sys.argv[1])
async def use():
    await memory.store_embedding("k", "a lease for a shard", {})
    found = await memory.search_similar("a lease")
    await memory.forget("k")
    return len(found), (await memory.check(rebuild=True)).sound
print(asyncio.run(use()), "chromadb" in sys.modules)
"""


def test_using_a_folder_does_not_import_chromadb(tmp_path: Path) -> None:
    assert output(started(USING, tmp_path)) == "(1, True) False\n"


async def test_whether_a_memory_has_begun_is_found_out_without_beginning_it(tmp_path: Path) -> None:
    await ChromaMemory(tmp_path / "filled").store_many(rows(3))

    assert not ChromaMemory(tmp_path / "none").begun
    assert not ChromaMemory(tmp_path / "filled", namespace="nobody").begun
    assert not ChromaMemory(tmp_path / "filled").beside("code").begun
    assert ChromaMemory(tmp_path / "filled").begun
    assert ChromaMemory().begun

    assert names(tmp_path) == ["filled"]


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("normal", 1)])
async def test_either_durability_keeps_stored_records(tmp_path: Path, durability: Any, synchronous: int) -> None:
    memory: Any = ChromaMemory(tmp_path, durability=durability)
    await memory.store_many(rows(3))

    with memory._backend.store.database.transaction() as statements:
        assert statements.one("PRAGMA synchronous") == (synchronous,)
    assert len(await ChromaMemory(tmp_path).every()) == 3


# What may happen to a folder.


def in_rollback_mode(folder: Path) -> None:
    with closing(sqlite3.connect(file_of(folder))) as database:
        database.execute("PRAGMA journal_mode = DELETE")


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(lambda folder: None, id="as it was"),
        pytest.param(
            in_rollback_mode,
            id="a backup",
        ),
    ],
)
async def test_a_folder_of_a_newer_version_is_rejected_and_stays_unchanged(
    tmp_path: Path, prepare: Callable[[Path], None]
) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_many(rows(3))
    memory.close()
    change(tmp_path, "PRAGMA user_version = 99")
    prepare(tmp_path)
    before = contents(tmp_path)

    for call in (memory.search_similar("x"), memory.store_embedding("k", "x", {}), memory.check(rebuild=True)):
        with pytest.raises(StoreError, match=r"written by a newer version .*schema 99.*upgrade langgraph-scrum-master"):
            await call

    assert contents(tmp_path) == before
    assert names(tmp_path) == ["memory.sqlite3"]


async def test_a_folder_that_is_removed_while_it_is_open_is_an_error_until_it_is_back(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    memory = ChromaMemory(folder)
    await memory.store_many(rows(3))
    await memory.search_similar(LEASE)
    folder.rename(tmp_path / "away")

    for call in (memory.search_similar("x"), memory.store_embedding("k", "x", {}), memory.every()):
        with pytest.raises(StoreError, match="was removed while it was in use: put the folder back, or close"):
            await call
    absent = not folder.exists()
    (tmp_path / "away").rename(folder)

    assert absent
    assert {each.key for each in await memory.search_similar(LEASE)} == {"k0", "k1", "k2"}


async def test_a_folder_that_is_removed_after_its_memory_was_closed_begins_anew(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path / "memory")
    await memory.store_many(rows(3))
    memory.close()
    shutil.rmtree(tmp_path / "memory")

    await memory.store_embedding("queue", QUEUE, {})

    assert [each.key for each in await memory.search_similar(QUEUE)] == ["queue"]


async def replaced(folder: Path, others: Rows) -> ChromaMemory:
    """A memory that has been searched, and whose folder has been replaced by one with other records since."""
    memory, other = ChromaMemory(folder), ChromaMemory(folder.with_name("other"))
    await memory.store_many([*rows(3), ("k", "The volcano erupted at night.", {})])
    await memory.search_similar("Where are invoices printed?")
    await other.store_many([*others, ("k", "Invoices are printed in Berlin.", {})])
    other.close()
    shutil.rmtree(folder)
    folder.with_name("other").rename(folder)
    return memory


async def test_a_folder_that_is_replaced_by_another_is_read(tmp_path: Path) -> None:
    memory = await replaced(tmp_path / "memory", rows(7))

    found = await memory.search_similar("Where are invoices printed?", k=100)
    await memory.store_embedding("queue", QUEUE, {})

    assert found[0].content == "Invoices are printed in Berlin."
    assert {each.key for each in found} == {"k", *(f"k{i}" for i in range(7))}
    assert {each.key for each in await ChromaMemory(tmp_path / "memory").every()} == {*scores(found), "queue"}


@pytest.mark.parametrize("others", [rows(7), rows(3, seed=2)], ids=["of another size", "of the same size"])
async def test_a_folder_that_is_replaced_by_another_is_searched_as_if_it_were_opened_now(
    tmp_path: Path, others: Rows
) -> None:
    memory = await replaced(tmp_path / "memory", others)

    found = await memory.search_similar("Where are invoices printed?")

    fresh = await ChromaMemory(tmp_path / "memory").search_similar("Where are invoices printed?")
    assert scores(found) == pytest.approx(scores(fresh))


async def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("not a folder")

    with pytest.raises(StoreError, match=r"ChromaMemory\(.*memory.* cannot be used: (FileExists|NotADirectory)Error"):
        await ChromaMemory(tmp_path / "memory").store_embedding("k", "x", {})

    assert (tmp_path / "memory").read_text() == "not a folder"


def in_own_mounts(commands: str, script: str, folder: Path) -> str:
    """The output of a script that runs in a mount namespace prepared by these commands."""
    isolated = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec"]
    if subprocess.run([*isolated, "mount -t tmpfs tmpfs /mnt"], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    command = [*isolated, f'{commands}\nexec "$2" -c "$3" "$1"', "sh", str(folder), sys.executable, script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


FILLING_UP = """
import asyncio, os, sys
from pathlib import Path
from langgraph_scrum_master import ChromaMemory, StoreError
memory = ChromaMemory(sys.argv[1])
texts = [(f"k{i}", f"The zebra number {i} is striped.", {}) for i in range(300)]
asyncio.run(memory.store_many(texts[:20]))
filler = Path(sys.argv[1], "filler")
with filler.open("wb", buffering=0) as file:
    try:
        while file.write(bytes(4096)):
            pass
    except OSError as error:
        print(error.strerror)
for texts_and_not in (texts, texts[:20]):
    try:
        asyncio.run(memory.store_many(texts_and_not))
        print("stored")
    except StoreError as error:
        print(error)
print(len(asyncio.run(memory.search_similar("Which zebra is striped?", k=1000))))
filler.unlink()
asyncio.run(memory.store_many(texts))
print(len(asyncio.run(memory.search_similar("Which zebra is number 299?", k=100))), len(asyncio.run(memory.every())))
print(asyncio.run(memory.check()).sound)
"""


def test_a_full_disk_is_an_error_that_loses_nothing_and_passes(tmp_path: Path) -> None:
    printed = in_own_mounts('mount -t tmpfs -o size=4m tmpfs "$1"', FILLING_UP, tmp_path).splitlines()

    assert printed[0] == "No space left on device"
    assert "database or disk is full" in printed[1] or "disk I/O error" in printed[1]
    assert printed[2:] == ["stored", "20", "100 300", "True"]


async def test_a_file_that_may_not_grow_is_an_error_that_loses_nothing_and_passes(tmp_path: Path) -> None:
    memory: Any = ChromaMemory(tmp_path)
    await memory.store_many(rows(40))
    before = scores(await memory.search_similar(LEASE, k=100))

    def limit(pages: int) -> None:
        with memory._backend.store.database.transaction() as statements:
            statements.execute(f"PRAGMA max_page_count = {pages}")

    ((pages,),) = read(tmp_path, "PRAGMA page_count")
    limit(pages + 2)
    with pytest.raises(StoreError, match="cannot be used: OperationalError: database or disk is full"):
        await memory.store_many(rows(400, seed=2))
    after = scores(await memory.search_similar(LEASE, k=100))
    limit(1_000_000)
    await memory.store_many(rows(400, seed=2))

    assert after == before
    assert {each.key for each in await memory.every()} == {f"k{i}" for i in range(400)}
    assert (await memory.check()).sound


READ_ONLY = """
import asyncio, sys
from langgraph_scrum_master import ChromaMemory, StoreError
memory = ChromaMemory(sys.argv[1])
for call in (memory.store_embedding("k", "x", {}), memory.forget("queue")):
    try:
        asyncio.run(call)
        print("written")
    except StoreError as error:
        print(error)
"""


async def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_embedding("queue", QUEUE, {})
    memory.close()
    before = contents(tmp_path)

    printed = in_own_mounts('mount --bind "$1" "$1"\nmount -o remount,ro,bind "$1"', READ_ONLY, tmp_path)

    assert len(printed.splitlines()) == 2
    assert all("cannot be used: OperationalError" in line for line in printed.splitlines())
    assert contents(tmp_path) == before


@pytest.fixture(scope="module")
def sound_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a memory of 100 records."""
    folder = tmp_path_factory.mktemp("sound")
    memory = ChromaMemory(folder)
    asyncio.run(memory.store_many(rows(100)))
    memory.close()
    return file_of(folder).read_bytes()


async def try_everything(memory: ChromaMemory) -> list[str]:
    """The calls that fail with `StoreError`. Any other error is raised."""
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "search": lambda: memory.search_similar(LEASE, k=100),
        "list": memory.every,
        "store": lambda: memory.store_many([("new", "Something new.", {}), ("k1", "Something else.", {})]),
        "forget": lambda: memory.forget("k2", "k3"),
        "check": memory.check,
        "rebuild": lambda: memory.check(rebuild=True),
        "export": lambda: asyncio.to_thread(lambda: list(memory.export())),
    }
    failed = []
    for name, call in calls.items():
        try:
            await call()
        except StoreError:
            failed.append(name)
    return failed


@pytest.mark.parametrize("seed", range(8))
async def test_a_file_with_wrong_bytes_is_an_error_and_no_crash(tmp_path: Path, sound_file: bytes, seed: int) -> None:
    chosen, damaged = random.Random(seed), bytearray(sound_file)
    for _ in range(100):
        at = chosen.randrange(100, len(damaged) - 64)
        damaged[at : at + 64] = chosen.randbytes(64)
    file_of(tmp_path).write_bytes(damaged)

    failed = await try_everything(ChromaMemory(tmp_path))

    assert "check" in failed


@pytest.mark.parametrize("page", range(1, 24, 3))
async def test_a_page_of_wrong_bytes_is_noticed_by_whatever_reads_it(
    tmp_path: Path, sound_file: bytes, page: int
) -> None:
    damaged = bytearray(sound_file)
    damaged[page * 4096 : (page + 1) * 4096] = random.Random(page).randbytes(4096)
    file_of(tmp_path).write_bytes(damaged)

    try:
        sound = (await ChromaMemory(tmp_path).check()).sound
    except StoreError:
        sound = False
    await try_everything(ChromaMemory(tmp_path))

    assert not sound


@pytest.mark.parametrize("share", [0.001, 0.01, 0.5, 0.99])
async def test_a_file_that_is_cut_short_is_an_error_and_no_crash(
    tmp_path: Path, sound_file: bytes, share: float
) -> None:
    file_of(tmp_path).write_bytes(sound_file[: int(len(sound_file) * share)])

    assert {"search", "check"} <= set(await try_everything(ChromaMemory(tmp_path)))


# Derived data.

RARE = "Physicians examine patients."
PARAPHRASE = "doctors look at sick people"
"""Shares no word with any text, so only vectors find it."""


@pytest.fixture
async def packed(tmp_path: Path, small_blocks: None) -> Path:
    """A folder of 131 records, 128 of which are in blocks; one answers `PARAPHRASE`."""
    memory = ChromaMemory(tmp_path)
    alike = rows(130)
    texts = [*alike[:60], ("right", RARE, {}), *alike[60:]]
    for start in range(0, len(texts), 16):
        await memory.store_many(texts[start : start + 16])
    memory.close()
    assert read(tmp_path, "SELECT count(*) FROM blocks") == [(8,)]
    return tmp_path


async def answers(memory: ChromaMemory) -> list[dict[str, float]]:
    return [scores(await memory.search_similar(query, k=5)) for query in (PARAPHRASE, LEASE, "Number 77", RARE)]


def turned_around(folder: Path) -> None:
    """Negate the vectors in the blocks, so that the nearest become the farthest."""
    with closing(sqlite3.connect(file_of(folder))) as database, database:
        for number, *parts in database.execute("SELECT number, ids, rows, scales FROM blocks").fetchall():
            ids, rows, scales = parts
            turned = np.negative(np.frombuffer(rows, "i1")).tobytes()
            checksum = crc32(turned, crc32(scales, crc32(ids)))
            database.execute("UPDATE blocks SET rows = ?, checksum = ? WHERE number = ?", (turned, checksum, number))


def by_sql(*statements: str) -> Callable[[Path], None]:
    return lambda folder: change(folder, *statements)


DAMAGE = [
    pytest.param(turned_around, "128 vectors of kind 'memory' differ", id="wrong vectors"),
    pytest.param(by_sql("DELETE FROM blocks WHERE number = 2"), "16 vectors of kind 'memory' differ", id="no block"),
    pytest.param(by_sql("UPDATE blocks SET rows = x'0102' WHERE number = 2"), "vectors", id="vectors cut"),
    pytest.param(by_sql("UPDATE blocks SET ids = x'01' WHERE number = 2"), "vectors", id="ids cut"),
    pytest.param(by_sql("UPDATE statistics SET content = x'00'"), "statistics cannot be read", id="statistics cut"),
    pytest.param(
        by_sql("INSERT INTO postings(postings) VALUES ('delete-all')"), "131 records have no postings", id="no postings"
    ),
    pytest.param(
        by_sql("UPDATE postings_data SET block = x'ff00ff' WHERE id > 10"),
        "full-text index|malformed",
        id="wrong postings",
    ),
    pytest.param(by_sql("UPDATE shelves SET records = 7"), "the shelf counts 7 records, but has 131", id="wrong count"),
]


@pytest.mark.parametrize(("damage", "problem"), DAMAGE)
async def test_damaged_derived_data_is_detected_and_rebuilt(
    packed: Path, damage: Callable[[Path], None], problem: str
) -> None:
    expected = await answers(ChromaMemory(packed))
    damage(packed)

    memory = ChromaMemory(packed)
    found = await memory.check()
    cured = await memory.check(rebuild=True)

    assert not found.sound
    problems = [*found.problems, *(each for shelf in found.shelves for each in shelf.problems)]
    assert any(part in each for part in problem.split("|") for each in problems), problems
    assert (cured.sound, cured.rebuilt, cured.records) == (True, True, 131)
    assert (await ChromaMemory(packed).check()).sound
    assert await answers(memory) == await answers(ChromaMemory(packed)) == expected


async def test_statistics_of_other_records_are_detected_and_rebuilt(packed: Path, tmp_path_factory: Any) -> None:
    other = tmp_path_factory.mktemp("other")
    await ChromaMemory(other).store_many(rows(40, seed=7))
    ((content,),) = read(other, "SELECT content FROM statistics")
    expected = await answers(ChromaMemory(packed))
    with closing(sqlite3.connect(file_of(packed))) as database, database:
        database.execute("UPDATE statistics SET content = ?", (content,))

    memory = ChromaMemory(packed)
    found = await memory.check()
    cured = await memory.check(rebuild=True)

    assert [shelf.problems for shelf in found.shelves] == [("the statistics differ from the records",)]
    assert cured.sound
    assert await answers(memory) == expected


@pytest.mark.parametrize("lost", ["DELETE FROM blocks", "DELETE FROM statistics"])
async def test_missing_derived_data_is_not_damage(packed: Path, lost: str) -> None:
    expected = await answers(ChromaMemory(packed))

    change(packed, lost)

    assert await answers(ChromaMemory(packed)) == expected
    assert (await ChromaMemory(packed).check()).sound


async def test_a_rebuild_is_followed_by_instances_that_have_searched_before(packed: Path) -> None:
    expected = await answers(ChromaMemory(packed))
    turned_around(packed)
    memory, other = ChromaMemory(packed), ChromaMemory(packed)
    wrong = [await answers(each) for each in (memory, other)]

    await memory.check(rebuild=True)

    assert all("right" not in each[0] for each in wrong)
    assert await answers(memory) == await answers(other) == expected


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "text",
    [
        "The parcel arrived.",
        pytest.param(
            "ok thanks",
        ),
    ],
)
async def test_many_records_that_say_the_same_are_no_damage(tmp_path: Path, text: str) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_many([(f"m{i}", text, {}) for i in range(60)])

    assert len(await memory.search_similar(text, k=100)) == 60
    assert (await memory.check()).sound


CHILD_WRITES_ON = """
import asyncio, os, sys
from langgraph_scrum_master import ChromaMemory
memory = ChromaMemory(sys.argv[1])
asyncio.run(memory.store_embedding("parent", "First.", {}))
ready, closed = os.pipe(), os.pipe()
if not (child := os.fork()):
    asyncio.run(memory.store_embedding("child0", "Second.", {}))
    os.write(ready[1], b"x")
    os.read(closed[0], 1)
    for i in (1, 2, 3):
        asyncio.run(memory.store_embedding(f"child{i}", f"Child {i}.", {}))
    os._exit(0)
os.read(ready[0], 1)
memory.close()
os.write(closed[1], b"x")
os.waitpid(child, 0)
print(sorted(each.key for each in asyncio.run(ChromaMemory(sys.argv[1]).every())))
"""


def test_writes_of_a_forked_process_survive_closing_in_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD_WRITES_ON, str(tmp_path)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout == "['child0', 'child1', 'child2', 'child3', 'parent']\n", done.stderr


FORKS_WHILE_OTHERS_SEARCH = """
import asyncio, os, sys, threading, time
from langgraph_scrum_master import ChromaMemory
memory = ChromaMemory(sys.argv[1])
asyncio.run(memory.store_many([(f"k{i}", f"Number {i} is a zebra.", {}) for i in range(50)]))
failures, stop = [], threading.Event()

def work(call):
    while not stop.is_set():
        try:
            asyncio.run(call())
        except Exception as error:
            failures.append(repr(error))

calls = (lambda: memory.search_similar("zebra"), lambda: memory.store_embedding("k0", "Number 0 is a zebra.", {}))
threads = [threading.Thread(target=work, args=(call,)) for call in calls]
for thread in threads:
    thread.start()
for _ in range(20):
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.02)
stop.set()
for thread in threads:
    thread.join()
print(failures)
"""


def test_threads_go_on_searching_and_writing_while_their_process_forks(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKS_WHILE_OTHERS_SEARCH, str(tmp_path)]

    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)

    assert done.stdout == "[]\n", done.stderr


async def test_a_check_while_others_write_reports_no_damage(tmp_path: Path) -> None:
    memory, writer = ChromaMemory(tmp_path), ChromaMemory(tmp_path)
    await memory.store_many(rows(40))
    stop = threading.Event()

    def write() -> None:
        for i in range(400):
            if stop.is_set():
                return
            asyncio.run(writer.store_many([(f"k{i % 20}", f"Text {i} about refunds.", {})]))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        found = [await memory.check() for _ in range(25)]
    finally:
        stop.set()
        thread.join()

    assert [each for each in found if not each.sound] == []


async def test_postings_that_lack_words_of_the_records_are_damage(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_many(rows(40))
    ((number,),) = read(tmp_path, "SELECT min(id) FROM records")
    terms = "1t999 1kmemory"
    memory.close()
    change(tmp_path, f"INSERT INTO postings(rowid, body) VALUES ({number}, '{terms}')")

    memory = ChromaMemory(tmp_path)

    assert "the postings differ from the words of the records" in (await memory.check()).shelves[0].problems
    assert (await memory.check(rebuild=True)).sound


async def test_records_newer_than_the_shelf_row_are_detected_and_repaired(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_many([(f"k{i}", f"Number {i} is a zebra.", {}) for i in range(80)])
    memory.close()
    change(tmp_path, "UPDATE shelves SET last = 30")

    memory = ChromaMemory(tmp_path)
    found = await memory.check()
    cured = await memory.check(rebuild=True)

    assert any("the newest record is 80, but searches end at 30" in each for each in found.shelves[0].problems)
    assert (cured.sound, cured.records) == (True, 80)
    assert len(await memory.search_similar("Which number is a zebra?", k=1000)) == 80


async def test_a_folder_deleted_after_a_failed_reopening_is_not_created_again(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    memory = ChromaMemory(folder)
    await memory.store_many(rows(3))
    folder.rename(tmp_path / "away")
    folder.mkdir()
    (folder / "memory.sqlite3").write_text("not a database")
    with pytest.raises(StoreError, match="not a database"):
        await memory.every()
    shutil.rmtree(folder)

    with pytest.raises(StoreError, match="was removed while it was in use"):
        await memory.store_embedding("new", "A new one.", {})

    assert not folder.exists()
