"""The ledger beside Chroma: nothing is lost between the two, and ranking has what it needs."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import chromadb
import pytest
from chromadb.config import Settings
from langgraph.store.memory import InMemoryStore
from typer.testing import CliRunner

from langgraph_scrum_master import ChromaMemory, ConfigError, Decision, StoreError
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.memory.langgraph_store import StoreMemory
from langgraph_scrum_master.memory.ledger import LEAVING, PENDING
from langgraph_scrum_master.rank.embedders import embedder_for
from langgraph_scrum_master.replay.borrowed import copied

KEYS = "We keep idempotency keys of payment requests in Redis, each for 24 hours."
QUEUE = "Refunds go to the queue billing-v2."


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


CRASHING = """
import asyncio, os, sys
from langgraph_scrum_master import ChromaMemory
memory = ChromaMemory(sys.argv[1])
asyncio.run(memory.store_embedding("queue", "Refunds go to the queue billing-v2.", {}))
memory._send = lambda rows: os._exit(9)
asyncio.run(memory.store_embedding("keys", "We keep idempotency keys of payment requests in Redis.", {}))
"""


async def test_a_write_that_a_crash_cut_in_two_is_repaired_at_the_next_start(
    tmp_path: Path, logged: list[dict[str, Any]]
) -> None:
    assert run(CRASHING, str(tmp_path)).returncode == 9

    memory = ChromaMemory(tmp_path)
    found = await memory.search_similar("Where are the idempotency keys?")

    assert [result.key for result in found] == ["keys", "queue"]
    assert [event["records"] for event in logged if event["event"] == "memory.repaired"] == [1]
    assert (await memory.check()).sound


async def test_what_is_forgotten_is_found_no_more_and_can_be_told_again() -> None:
    memory = ChromaMemory()
    await memory.store_many([("keys", KEYS, {}), ("queue", QUEUE, {})])

    await memory.forget("keys", "never there")

    assert [result.key for result in await memory.search_similar(KEYS)] == ["queue"]
    assert (await memory.check()).records == 1
    await memory.store_embedding("keys", KEYS, {})
    assert [result.key for result in await memory.search_similar(KEYS)] == ["keys", "queue"]


async def test_an_updated_text_is_found_by_its_new_words_and_not_by_its_old() -> None:
    memory = ChromaMemory()
    await memory.store_embedding("store", "Sessions are kept in Memcached.", {})

    await memory.store_embedding("store", "Invoices are printed in Berlin.", {})

    (by_new,) = await memory.search_similar("Where are invoices printed?")
    (by_old,) = await memory.search_similar("Where are sessions kept in Memcached?")
    assert by_new.score >= 0.7 > by_old.score
    assert by_new.content == by_old.content == "Invoices are printed in Berlin."


class Counting:
    """The static embedder, and how many texts it was given."""

    def __init__(self) -> None:
        self.texts = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += len(texts)
        return embedder_for("static").embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return embedder_for("static").embed_query(text)


async def test_what_is_kept_already_is_not_written_again() -> None:
    embedder = Counting()
    memory = ChromaMemory(embedder=embedder)
    rows = [("keys", KEYS, {"agent": "architect"}), ("queue", QUEUE, {})]
    await memory.store_many(rows)

    await memory.store_many(rows)
    await memory.store_embedding("queue", QUEUE, {"agent": "pm"})

    assert embedder.texts == 3


async def test_bulk_loading_tells_its_progress() -> None:
    told: list[int] = []

    await ChromaMemory().store_many(((f"m{i}", f"Fact {i}.", {}) for i in range(2500)), progress=told.append)

    assert told == [1000, 2000, 2500]


async def test_a_folder_without_its_ledger_gets_a_new_one(tmp_path: Path) -> None:
    first = ChromaMemory(tmp_path)
    await first.store_many([("keys", KEYS, {"title": "Keys"}), ("queue", QUEUE, {})])
    await first.store_decision(Decision(id="D-1", agent_type="pm", context="We ship on Fridays."))
    other = tmp_path.parent / "copied"
    copied(tmp_path, other)
    for ledger in other.glob("ledger-*"):
        ledger.unlink()

    found = await ChromaMemory(other).search_similar("Where are the idempotency keys?")

    assert (found[0].key, found[0].metadata["title"], len(found)) == ("keys", "Keys", 3)


WRITING = """
import asyncio, sys
from langgraph_scrum_master import ChromaMemory
asyncio.run(ChromaMemory(sys.argv[1]).store_embedding("keys", sys.argv[2], {}))
"""


async def test_what_another_process_writes_is_found(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_embedding("queue", QUEUE, {})
    assert run(WRITING, str(tmp_path), KEYS).returncode == 0

    found = await memory.search_similar("Where are the idempotency keys?")

    assert found[0].key == "keys"


async def test_a_damaged_index_is_noticed_and_repaired(tmp_path: Path) -> None:
    rows: list[tuple[str, str, dict[str, Any]]] = [
        (f"m{i}", f"Fact number {i} about the {word}.", {}) for i, word in enumerate(["cat", "dog", "cow"] * 20)
    ]
    await ChromaMemory(tmp_path / "a").store_many(rows)
    folder = tmp_path / "b"
    await ChromaMemory(folder).store_many(rows[:30])
    # The ledger of the larger memory beside the vectors of the smaller one.
    for ledger in folder.glob("ledger-*"):
        ledger.unlink()
    for ledger in (tmp_path / "a").glob("ledger-*"):
        shutil.copy(ledger, folder / ledger.name)
    moved = tmp_path / "moved"
    folder.rename(moved)

    memory = ChromaMemory(moved)
    found = await memory.check()
    repaired = await memory.check(repair=True)

    assert (found.sound, len(found.missing), found.damaged) == (False, 30, ("memory",))
    assert repaired.repaired == 60
    assert (await memory.check()).sound


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

    found = await memory.search_similar("Where are idempotency keys stored?", k=6)

    scores = {result.key: result.score for result in found}
    assert scores["a1"] > scores["b1"]


async def test_what_a_serving_text_refers_to_serves_too() -> None:
    memory = ChromaMemory()
    await memory.store_many(
        [
            ("adr7", "ADR-007: Outbox pattern\nEvents are written to a table and sent later.", {}),
            ("adr8", "ADR-008: Colour palette\nButtons are navy.", {}),
            ("story", "Story 4.2: Refund notifications\nCustomers get a mail for each refund, see ADR-7.", {}),
            ("listed", "Story 4.3: Parcel labels are printed in the warehouse.", {"references": ["ADR-008"]}),
        ]
    )

    by_text = {r.key: r.score for r in await memory.search_similar("How are customers told about a refund?")}
    by_list = {r.key: r.score for r in await memory.search_similar("Where are the labels of parcels printed?")}

    assert by_text["adr7"] > by_text["adr8"]
    assert by_list["adr8"] > by_list["adr7"]


async def test_decisions_are_found_among_many_memories() -> None:
    memory = ChromaMemory()
    await memory.store_many([(f"m{i}", f"The refund queue was mentioned in meeting {i}.", {}) for i in range(400)])
    await memory.store_decision(Decision(id="D-1", agent_type="pm", context="The refund queue is billing-v2."))

    found = await memory.search_decisions("Which is the refund queue?")

    assert [hit.decision.id for hit in found] == ["D-1"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        f"{json.dumps({'key': 'keys', 'content': KEYS})}\n\n"
        f"{json.dumps({'key': 'queue', 'content': QUEUE, 'metadata': {}})}\n"
    )
    loaded = CliRunner().invoke(app, ["memory", "load", "-m", str(tmp_path / "memory"), str(rows)])
    assert "Kept 2 texts" in loaded.output
    return tmp_path / "memory"


def test_a_memory_is_filled_searched_and_checked_from_the_shell(folder: Path) -> None:
    shell = CliRunner()

    searched = shell.invoke(app, ["memory", "search", "-m", str(folder), "Where are idempotency keys kept?", "-k", "1"])
    checked = shell.invoke(app, ["memory", "check", "-m", str(folder)])

    assert "keys" in searched.output
    assert "queue" not in searched.output
    assert (checked.exit_code, checked.output) == (0, "Sound: 2 records, all where they belong, and found.\n")


def test_a_check_looks_at_each_shelf_beside_the_memory_and_repairs_it(folder: Path) -> None:
    code = ChromaMemory(folder).beside("code")
    mine = ChromaMemory(folder).beside("mine")
    for shelf in (code, code.beside("index-code"), mine, ChromaMemory(folder, namespace="other").beside("code")):
        asyncio.run(shelf.store_many([("keys", KEYS, {}), ("queue", QUEUE, {})]))
    # One shelf has lost its collection, and the other its ledger.
    code._chroma.delete("memory")
    assert mine._ledger_path is not None
    mine._ledger_path.unlink()

    def check(*options: str) -> Any:
        done = CliRunner().invoke(app, ["memory", "check", "-m", str(folder), "--json", *options])
        told = json.loads(done.output)
        return done.exit_code, {name: (each["records"], len(each["missing"])) for name, each in told["shelves"].items()}

    shown = CliRunner().invoke(app, ["memory", "check", "-m", str(folder)])
    assert "code: 2 of 2 records are not in Chroma: keys, queue" in shown.output
    assert "mine: Sound: 2 records" in shown.output
    assert check() == (1, {"code": (2, 2), "code/index-code": (2, 0), "mine": (2, 0)})
    assert check("--repair")[0] == 0
    assert check() == (0, {"code": (2, 0), "code/index-code": (2, 0), "mine": (2, 0)})


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("check", "-m", "nowhere"), "there is no memory in 'nowhere'"),
        (("load", "-m", "new", "nothing.jsonl"), "cannot read 'nothing.jsonl'"),
        (
            ("load", "-m", "new", "bad.jsonl"),
            "bad.jsonl:2 must be an object with the texts 'key' and 'content', got 7",
        ),
    ],
)
def test_bad_input_is_told_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.jsonl").write_text('{"key": "a", "content": "b"}\n7\n')

    result = CliRunner().invoke(app, ["memory", *arguments])

    assert told in str(result.exception)
    assert not Path("new").exists()


async def test_a_repair_keeps_what_only_chroma_has(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_embedding("keys", KEYS, {})
    vector: Any = [float(number) for number in embedder_for("static").embed_query(QUEUE)]
    memory._chroma.of("memory").upsert(
        ids=["queue"], documents=[QUEUE], embeddings=[vector], metadatas=[{"data": "{}"}]
    )

    checked = await memory.check(repair=True)

    assert (checked.strangers, checked.repaired) == (("queue",), 2)
    assert {result.key for result in await memory.search_similar(QUEUE)} == {"keys", "queue"}


async def test_a_client_of_a_server_repairs_nothing_that_another_one_forgot() -> None:
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    one, other = (ChromaMemory(client=client, namespace="repaired") for _ in range(2))
    await one.store_many([("keys", KEYS, {}), ("queue", QUEUE, {})])
    await other.search_similar(QUEUE)
    await one.forget("queue")

    checked = await other.check(repair=True)

    assert checked.sound
    assert [result.key for result in await one.search_similar(QUEUE)] == ["keys"]


async def test_what_a_client_failed_to_write_is_not_what_it_reads() -> None:
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    one, other = (ChromaMemory(client=client, namespace="failed") for _ in range(2))
    await one.store_embedding("limit", "The limit is 100.", {})
    await other.search_similar("limit")
    collection: Any = other._chroma.of("memory")
    works, collection.upsert = collection.upsert, lambda **_: 1 / 0
    with pytest.raises(StoreError):
        await other.store_embedding("limit", "The limit is 7.", {})
    collection.upsert = works

    read = await other.search_similar("limit")
    await one.store_embedding("limit", "The limit is 900.", {})

    assert [result.content for result in read] == ["The limit is 100."]
    assert [result.content for result in await other.search_similar("limit")] == ["The limit is 900."]


async def test_what_another_client_of_a_server_writes_is_found() -> None:
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    one, other = (ChromaMemory(client=client, namespace="clients") for _ in range(2))
    await one.store_embedding("keys", KEYS, {})
    assert len(await other.search_similar(KEYS)) == 1

    await one.store_embedding("queue", QUEUE, {})

    assert (await other.search_similar(QUEUE))[0].key == "queue"


class Fixed:
    """An embedder that gives the same vector for every text."""

    def __init__(self, *vector: float) -> None:
        self.vector = list(vector)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.vector for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.vector


@pytest.mark.parametrize(
    ("embedder", "told"),
    [
        (Fixed(1.0, 0.0, 0.0), "has vectors of 2 numbers, the embedder gives 3"),
        (Fixed(float("nan"), 1.0), "one vector of finite numbers per text"),
    ],
)
async def test_vectors_that_do_not_fit_are_refused_and_what_is_there_stays(
    tmp_path: Path, embedder: Fixed, told: str
) -> None:
    await ChromaMemory(tmp_path, embedder=Fixed(1.0, 0.0)).store_embedding("keys", KEYS, {})

    with pytest.raises(StoreError, match=told):
        await ChromaMemory(tmp_path, embedder=embedder).store_embedding("queue", QUEUE, {})

    found = await ChromaMemory(tmp_path, embedder=Fixed(1.0, 0.0)).search_similar(KEYS)
    assert [result.key for result in found] == ["keys"]


async def test_how_long_an_embedders_vectors_are_does_not_matter() -> None:
    scores = []
    for length in (1.0, 100.0):
        memory = ChromaMemory(embedder=Fixed(length, 0.0))
        await memory.store_embedding("keys", KEYS, {})
        scores.append((await memory.search_similar("Who waters the plants?"))[0].score)

    assert scores[0] == scores[1]


async def test_relationships_change_no_score() -> None:
    memory = ChromaMemory()
    await memory.store_many([("keys", KEYS, {}), ("queue", QUEUE, {})])
    before = [result.score for result in await memory.search_similar("Which queue do refunds go to?")]

    for i in range(50):
        await memory.store_relationship(f"refund {i}", "the queue", "goes to")

    assert [result.score for result in await memory.search_similar("Which queue do refunds go to?")] == before


async def test_many_records_that_say_the_same_are_no_damage() -> None:
    memory = ChromaMemory()
    await memory.store_many([(f"m{i}", "ok thanks", {}) for i in range(60)])

    assert (await memory.check()).sound


async def test_storing_and_forgetting_at_the_same_time_leaves_both_in_step() -> None:
    memory = ChromaMemory()
    await memory.store_embedding("keys", KEYS, {})
    for i in range(10):
        await asyncio.gather(
            memory.store_embedding(f"k{i}", QUEUE, {}),
            memory.forget(f"k{i}"),
            memory.store_embedding(f"k{i}", KEYS, {}),
        )

    checked = await memory.check()

    assert (checked.missing, checked.strangers) == ((), ())


async def test_a_forgotten_turn_lends_its_meaning_no_more() -> None:
    memory, fresh = ChromaMemory(), ChromaMemory()
    await memory.store_many([("a", "The volcano erupted.", {"session": 0}), ("b", "Indeed.", {"session": 0})])
    await fresh.store_many([("b", "Indeed.", {"session": 0})])

    await memory.forget("a")

    (left,) = await memory.search_similar("volcano eruption")
    (never,) = await fresh.search_similar("volcano eruption")
    assert left.score == never.score


@pytest.mark.parametrize("odd", [("ID-" + "1" * 5000, {}), ("fine", {"session": "\ud800"}), ("[/k]", {"session": 0})])
async def test_odd_texts_and_sessions_cost_no_other_record(odd: tuple[str, dict[str, Any]]) -> None:
    memory = ChromaMemory()

    await memory.store_many([("keys", KEYS, {}), ("odd", *odd)])

    assert len(await memory.search_similar(f"{odd[0]} idempotency keys")) == 2


def test_the_shell_shows_whatever_was_kept(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"key": "[/k]", "content": "[/b] a\u2028b"}\n', encoding="utf-8")
    shell = CliRunner()

    loaded = shell.invoke(app, ["memory", "load", "-m", str(tmp_path / "m"), str(rows)])
    searched = shell.invoke(app, ["memory", "search", "-m", str(tmp_path / "m"), "a b"])

    assert (loaded.exit_code, searched.exit_code) == (0, 0)
    assert "[/k]" in searched.output


@pytest.mark.parametrize("kind", ["chroma", "store"])
async def test_what_a_relationship_links_with_a_serving_text_serves_too(kind: str) -> None:
    memory = ChromaMemory() if kind == "chroma" else StoreMemory(InMemoryStore())
    await memory.store_many(
        [
            ("outbox", "Events are written to a table and sent later.", {}),
            ("palette", "Buttons are navy.", {}),
            ("refunds", "Customers get a mail for each refund.", {}),
        ]
    )
    question = "How are customers told about a refund?"
    before = {result.key: result.score for result in await memory.search_similar(question)}

    await memory.store_relationship("refunds", "OUTBOX", "relies on")

    after = {result.key: result.score for result in await memory.search_similar(question)}
    assert after["outbox"] > before["outbox"]
    assert after["palette"] == before["palette"]
    assert after["refunds"] == before["refunds"]


async def test_a_record_that_is_linked_with_the_one_a_query_names_serves_more(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    texts = {"cache": "The cache is cleared at midnight.", "quota": "The quota is renewed at midnight."}
    await memory.store_relationship("quota", "STORY-12", "comes from")
    await memory.store_many([(key, text, {}) for key, text in texts.items()])

    async def best() -> str:
        return (await ChromaMemory(tmp_path).search_similar("What happens at midnight, for story 12?", k=1))[0].key

    linked = await best()
    await memory.store_relationship("cache", "STORY-12", "comes from")
    for record in await memory.list_all("relationship"):
        if record.data["source"] == "quota":
            await memory.drop("relationship", [record.key])

    assert (linked, await best()) == ("quota", "cache")


def make_older(folder: Path) -> None:
    (path,) = folder.glob("ledger-*.sqlite3")
    with closing(sqlite3.connect(path)) as database:
        database.executescript("DROP TABLE records; CREATE TABLE records(id INTEGER); PRAGMA user_version = 1")


async def test_a_ledger_of_another_version_is_made_anew(tmp_path: Path) -> None:
    await ChromaMemory(tmp_path).store_many([("keys", KEYS, {}), ("queue", QUEUE, {})])
    make_older(tmp_path)

    found = await ChromaMemory(tmp_path).search_similar("Where are idempotency keys kept?", k=1)

    assert [result.key for result in found] == ["keys"]


class OfTopics:
    """A model that knows of plants and of money, and counts how many texts it has read."""

    def __init__(self, length: int = 3) -> None:
        self.read = 0
        self._length = length

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.read += len(texts)
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._vector(text)

    def _vector(self, text: str) -> list[float]:
        topics = [any(word in text.lower() for word in words) for words in (("fern", "wilt"), ("budget", "refund"))]
        return [0.01, *map(float, topics), *[0.0] * (self._length - 3)]


LEAVES = "The fern in the hall has brown leaves."
ALIKE: list[tuple[str, str, dict[str, Any]]] = [
    ("fern", LEAVES, {}),
    ("budget", "The budget in the hall has brown covers.", {}),
]


async def test_a_model_of_the_users_takes_the_place_of_a_space(tmp_path: Path) -> None:
    model = OfTopics()
    memory = ChromaMemory(tmp_path, spaces={"E10": model, "E7": model})
    await memory.store_many(ALIKE)
    read = model.read

    found = await memory.search_similar("What wilts in the hall?")
    plain = await ChromaMemory(tmp_path).search_similar("What wilts in the hall?")

    assert (read, model.read) == (4, 4)
    assert found[0].key == "fern"
    margins = [results[0].score - results[1].score for results in (found, plain)]
    assert margins[0] > margins[1]


async def test_records_from_before_a_model_are_read_when_they_are_first_compared(tmp_path: Path) -> None:
    await ChromaMemory(tmp_path).store_many(ALIKE)
    model, longer = OfTopics(), OfTopics(length=4)

    memory = ChromaMemory(tmp_path, spaces={"E10": model})
    for _ in range(2):
        assert (await memory.search_similar("What wilts in the hall?"))[0].key == "fern"
    await memory.store_embedding("fern", f"{LEAVES} It is old.", {})
    await memory.search_similar("What wilts in the hall?")
    await ChromaMemory(tmp_path, spaces={"E10": longer}).search_similar("What wilts in the hall?")

    assert (model.read, longer.read) == (3, 2)


@pytest.mark.parametrize(
    ("spaces", "told"),
    [
        ({"E1": OfTopics()}, "give the model of E1 as `embedder`"),
        ({"E14": OfTopics()}, "spaces has a model for 'E14': it must be among"),
        ({"E10": "minilm"}, "the model for E10 must have embed_documents and embed_query, got str"),
    ],
)
def test_a_space_that_there_is_not_is_refused(spaces: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        ChromaMemory(spaces=spaces)


async def test_a_forgetting_that_a_crash_cut_in_two_is_finished_at_the_next_start(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_many([("keys", KEYS, {}), ("queue", QUEUE, {})])
    memory._book.mark("memory", ["keys"], LEAVING)
    memory._book.close()

    again = ChromaMemory(tmp_path)

    assert [result.key for result in await again.search_similar("Where are idempotency keys kept?")] == ["queue"]
    assert again._chroma.of("memory").get(include=[])["ids"] == ["queue"]
    assert (await again.check(repair=True)).records == 1


def leave_unfinished(folder: Path) -> None:
    (path,) = folder.glob("ledger-*.sqlite3")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE records SET state = ?, text = 'Keys are in Redis.' WHERE key = 'keys'", (PENDING,))
        database.execute("UPDATE records SET state = ? WHERE key = 'queue'", (LEAVING,))
        database.execute("PRAGMA user_version = 1")


async def test_what_an_older_ledger_had_not_settled_is_settled(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_many(
        [("keys", KEYS, {}), ("queue", QUEUE, {}), ("other", "The office is on the third floor.", {})]
    )
    memory._chroma.of("memory").delete(ids=["keys"])
    memory._book.close()
    leave_unfinished(tmp_path)

    found = {record.key: record.text for record in await ChromaMemory(tmp_path).list_all("memory")}

    assert found == {"keys": "Keys are in Redis.", "other": "The office is on the third floor."}


@pytest.mark.parametrize("kind", ["chroma", "store"])
@pytest.mark.parametrize(
    "text", ["Kafka consumers lag, see ADR-7", "UTF-8 Kafka consumers lag often", "STORY-7: Kafka lags"]
)
async def test_a_record_is_known_by_its_key_whatever_its_text_says(kind: str, text: str) -> None:
    memory = ChromaMemory() if kind == "chroma" else StoreMemory(InMemoryStore())
    await memory.store_many(
        [("n1", text, {}), ("docs/ADR-9.md", "The plants need water", {}), ("x", "Nothing here", {})]
    )
    before = {result.key: result.score for result in await memory.search_similar("Which Kafka consumers lag?")}

    await memory.store_relationship("n1", "docs/ADR-9.md", "concerns")
    await memory.store_relationship("n1", "n1", "is")
    await memory.store_many([("n2", "Kafka consumers lag a lot", {"references": ["docs/ADR-9.md"]})])

    after = {result.key: result.score for result in await memory.search_similar("Which Kafka consumers lag?")}
    assert after["docs/ADR-9.md"] > before["docs/ADR-9.md"]


async def test_two_models_of_one_class_are_told_apart(tmp_path: Path) -> None:
    await ChromaMemory(tmp_path, spaces={"E10": Fixed(1.0, 0.0)}).store_many(ALIKE)
    other = Fixed(0.0, 1.0)

    one = await ChromaMemory(tmp_path, spaces={"E10": other}).search_similar("What wilts in the hall?")
    fresh = ChromaMemory(spaces={"E10": other})
    await fresh.store_many(ALIKE)

    assert [r.score for r in one] == pytest.approx(
        [r.score for r in await fresh.search_similar("What wilts in the hall?")]
    )


@pytest.mark.parametrize("vector", [(float("nan"), 0.0), (float("inf"), 0.0)])
async def test_a_query_that_a_model_makes_nothing_of_is_told(vector: tuple[float, ...]) -> None:
    class Odd(Fixed):
        def embed_query(self, text: str) -> list[float]:
            return list(vector)

    memory = ChromaMemory(embedder=Odd(1.0, 0.0))
    await memory.store_many(ALIKE)

    with pytest.raises(StoreError, match="one vector of finite numbers"):
        await memory.search_similar("What wilts in the hall?")


async def test_what_other_clients_relate_is_found() -> None:
    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    one, other = (ChromaMemory(client=client, namespace="related") for _ in range(2))
    await one.store_many([("n1", "Kafka consumers lag often", {}), ("n2", "The plants need water", {})])
    before = {result.key: result.score for result in await other.search_similar("Which Kafka consumers lag?")}

    await one.store_relationship("n1", "n2", "concerns")

    after = {result.key: result.score for result in await other.search_similar("Which Kafka consumers lag?")}
    assert after["n2"] > before["n2"]


async def test_what_was_forgotten_leaves_nothing_of_itself_in_what_all_texts_say() -> None:
    pytest.importorskip("onnxruntime")
    rows: list[tuple[str, str, dict[str, Any]]] = [("keys", KEYS, {}), ("queue", QUEUE, {})]
    kept, lost = ChromaMemory(embedder="minilm"), ChromaMemory(embedder="minilm")
    await kept.store_many(rows)
    await lost.store_many([*rows, *((f"n{i}", f"The mascot of team {i} is a badger.", {}) for i in range(20))])

    await lost.forget(*(f"n{i}" for i in range(20)))

    asked = "How do we keep a customer from being charged twice?"
    (before, _), (after, _) = await kept.search_similar(asked), await lost.search_similar(asked)
    assert after.strengths["E1"] == pytest.approx(before.strengths["E1"], abs=0.002)


async def test_a_text_that_shares_no_word_is_found_among_those_that_do_by_chance() -> None:
    pytest.importorskip("onnxruntime")
    memory = ChromaMemory(embedder="minilm")
    by_chance = ["We keep the minutes of meetings away from the wiki.", "Keep lunch away from keyboards.", KEYS, QUEUE]
    await memory.store_many([(text[:12], text, {}) for text in by_chance])
    await memory.store_embedding("captcha", "Automated crawlers and spam are stopped with a captcha.", {})

    (best, *_) = await memory.search_similar("How do we keep bots away?")

    assert best.key == "captcha"


def as_of_another_version(folder: Path) -> None:
    (ledger,) = folder.glob("ledger-*.sqlite3")
    with closing(sqlite3.connect(ledger)) as book:
        book.execute("PRAGMA user_version = 1")


async def test_an_upgrade_that_fails_forgets_no_unfinished_write(tmp_path: Path) -> None:
    assert run(CRASHING, str(tmp_path)).returncode == 9
    as_of_another_version(tmp_path)

    with pytest.raises(StoreError):
        await ChromaMemory(tmp_path, embedder=Fixed(1.0, 0.0)).search_similar("anything")
    found = await ChromaMemory(tmp_path).search_similar("Where are the idempotency keys?")

    assert [result.key for result in found] == ["keys", "queue"]


async def test_what_another_writes_while_the_counts_are_read_is_counted_too(tmp_path: Path) -> None:
    memory, other = ChromaMemory(tmp_path), ChromaMemory(tmp_path)
    await memory.store_embedding("one", "The first text.", {})
    await other.store_embedding("two", "The second text.", {})
    book = memory._book
    execute, between = book._db.execute, ["three"]

    def interrupted(query: str, values: Sequence[Any] = ()) -> list[Any]:
        rows = execute(query, values)
        if query.startswith("SELECT name, value FROM tally") and between:
            asyncio.run(ChromaMemory(tmp_path).store_embedding(between.pop(), "The third text.", {}))
        return rows

    book._db.execute = interrupted  # type: ignore[method-assign]
    await asyncio.to_thread(book.refresh)
    book._db.execute = execute  # type: ignore[method-assign]
    await memory.store_embedding("four", "The fourth text.", {})

    assert book.count("memory") == ChromaMemory(tmp_path)._book.count("memory") == 4


async def test_a_key_that_is_forgotten_twice_at_once_is_forgotten() -> None:
    memory = ChromaMemory()
    await memory.store_embedding("keys", KEYS, {})
    await memory.store_embedding("queue", QUEUE, {})

    await memory.forget("keys", "queue", "keys")
    await memory.store_embedding("queue", QUEUE, {})

    assert [result.key for result in await memory.search_similar("Where do refunds go?")] == ["queue"]
    assert (await memory.check()).sound
