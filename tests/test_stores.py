"""All kinds of store, against the rules that every store must keep."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import chromadb
import pytest
from chromadb.config import Settings
from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore

from langgraph_scrum_master import ChromaMemory, MemoryStore, StoreMemory
from langgraph_scrum_master.rank.embedders import embedder_for
from langgraph_scrum_master.testing.conformance import QUEUE, MemoryConformance

_numbers = count()


@contextmanager
def failing_chroma(memory: MemoryStore) -> Iterator[None]:
    """The ledger takes what is written, and Chroma does not."""
    assert isinstance(memory, ChromaMemory)
    collection: Any = memory._chroma.of("memory")
    works = collection.upsert

    def fails(**_: Any) -> None:
        raise ConnectionError("gone away")

    collection.upsert = fails
    yield
    collection.upsert = works


@contextmanager
def failing_store(memory: MemoryStore) -> Iterator[None]:
    """The store takes half of what is written."""
    kept: Any = memory
    works = kept._store
    kept._store = HalfStore(works)
    yield
    kept._store = works


class HalfStore(BaseStore):
    """Takes half of a batch, and fails."""

    def __init__(self, store: BaseStore) -> None:
        self._whole = store

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        some = list(ops)
        self._whole.batch(some[: len(some) // 2])
        raise ConnectionError("gone away")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return self.batch(ops)


class TestFolder(MemoryConformance):
    def open(self, namespace: str) -> MemoryStore:
        return ChromaMemory(self.folder / "memory", namespace=namespace)

    def broken(self, memory: MemoryStore) -> AbstractContextManager[None]:
        return failing_chroma(memory)


class TestInProcess(MemoryConformance):
    @pytest.fixture(autouse=True)
    def _kept(self) -> None:
        self.kept: dict[str, ChromaMemory] = {}

    def open(self, namespace: str) -> MemoryStore:
        return self.kept.setdefault(namespace, ChromaMemory(namespace=namespace))

    def broken(self, memory: MemoryStore) -> AbstractContextManager[None]:
        return failing_chroma(memory)


@pytest.fixture(scope="module")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a `chroma run` of our own."""
    folder = tmp_path_factory.mktemp("chroma")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(folder), "--host", "127.0.0.1"]
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--port", str(port)], stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, (folder / "server.log").read_text()
                time.sleep(0.1)
        yield port
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


@pytest.mark.slow
@pytest.mark.allow_hosts(["127.0.0.1"])
class TestServer(MemoryConformance):
    @pytest.fixture(autouse=True)
    def _connected(self, chroma_server: int) -> None:
        self.client = chromadb.HttpClient("127.0.0.1", chroma_server, settings=Settings(anonymized_telemetry=False))
        self.own = next(_numbers)

    def open(self, namespace: str) -> MemoryStore:
        return ChromaMemory(client=self.client, namespace=f"{self.own} {namespace}")

    def broken(self, memory: MemoryStore) -> AbstractContextManager[None]:
        return failing_chroma(memory)

    def test_what_another_client_writes_changes_and_forgets_is_followed(self) -> None:
        one, other = self._filled("a"), self.open("a")
        assert isinstance(one, ChromaMemory)
        asked = "To which queue do refunds go?"
        assert self.run(other.search_similar(asked))[0].key == "queue"

        self.run(one.store_embedding("queue", "Refunds go to the queue billing-v3 now.", {}))
        changed = self.run(other.search_similar(asked))[0].content
        self.run(one.store_embedding("mascot", "The mascot of the team is a badger.", {}))
        new = self.run(other.search_similar("What is the mascot of the team?"))[0].key
        self.run(one.forget("queue"))
        left = {result.key for result in self.run(other.search_similar(asked, k=9))}
        self.run(other.store_embedding("queue", QUEUE, {}))
        self.run(one.end_session("s1", "We agreed on a badger."))
        summary = self.run(other.last_session())  # type: ignore[attr-defined]

        assert changed == "Refunds go to the queue billing-v3 now."
        assert new == "mascot"
        assert left == {"limit", "colour", "mascot"}
        assert self.run(one.search_similar(asked))[0].content == QUEUE
        assert summary.content == "We agreed on a badger."


class OfStore(MemoryConformance):
    """A LangGraph store, which is shared by the tests."""

    store: BaseStore

    @pytest.fixture(autouse=True)
    def _numbered(self) -> None:
        self.own = next(_numbers)

    def open(self, namespace: str) -> MemoryStore:
        return StoreMemory(self.store, namespace=f"{self.own} {namespace}")

    def broken(self, memory: MemoryStore) -> AbstractContextManager[None]:
        return failing_store(memory)


def embedded(texts: list[str]) -> list[list[float]]:
    return [[float(number) for number in vector] for vector in embedder_for("static").embed_documents(texts)]


INDEX: Any = {"dims": len(embedded(["x"])[0]), "embed": embedded, "fields": ["content"]}


class TestInMemoryStore(OfStore):
    store = InMemoryStore()


class TestInMemoryStoreWithVectors(OfStore):
    store = InMemoryStore(index=INDEX)


@pytest.fixture(scope="module")
def postgres(postgres_uri: str) -> Iterator[BaseStore]:
    """A store in a PostgreSQL of our own, with pgvector."""
    from langgraph.store.postgres import PostgresStore

    # So that the index looks on until it has found enough of the namespace that is asked for, and widely enough.
    scan = "&options=-c%20hnsw.iterative_scan%3Drelaxed_order%20-c%20hnsw.ef_search%3D400"
    with PostgresStore.from_conn_string(postgres_uri + scan, index=INDEX) as store:
        store.setup()
        yield store


@pytest.mark.slow
class TestPostgres(OfStore):
    @pytest.fixture(autouse=True)
    def _connected(self, postgres: BaseStore) -> None:
        self.store = postgres
