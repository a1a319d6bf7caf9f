"""The conformance suite for every kind of store."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore

from langgraph_scrum_master import ChromaMemory, PostgresMemory, StoreMemory
from langgraph_scrum_master.memory.database import Database
from langgraph_scrum_master.protocols import CAPABILITIES, MemoryStore
from langgraph_scrum_master.testing import MemoryConformance
from langgraph_scrum_master.testing.conformance import QUEUE, Opener
from openers import INDEX, SCAN, in_folder, in_postgres, in_postgres_store, in_server

_numbers = count()


@contextmanager
def full_database(memory: MemoryStore) -> Iterator[None]:
    """The database fails at the sixteenth of thirty records."""
    kept: Any = memory
    database: Database = kept._backend.store.database
    fails, works = FAULTS[type(database).__name__]
    with database.transaction() as statements:
        statements.execute(fails)
    yield
    with database.transaction() as statements:
        statements.execute(works)


FAULTS = {
    "SqliteDatabase": (
        "CREATE TRIGGER fault BEFORE INSERT ON records WHEN NEW.key = 'w15' "
        "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
        "DROP TRIGGER fault",
    ),
    "PostgresDatabase": (
        "ALTER TABLE records ADD CONSTRAINT fault CHECK (key <> 'w15')",
        "ALTER TABLE records DROP CONSTRAINT fault",
    ),
}


@contextmanager
def failing_server(memory: MemoryStore) -> Iterator[None]:
    """The server rejects all writes."""
    kept: Any = memory
    collection = kept._backend._collection("memory")
    works = collection.upsert

    def fails(**_: Any) -> None:
        raise ConnectionError("gone away")

    collection.upsert = fails
    yield
    collection.upsert = works


@contextmanager
def failing_store(memory: MemoryStore) -> Iterator[None]:
    """The store writes half of a batch and fails."""
    kept: Any = memory
    works = kept._backend.store
    kept._backend.store = HalfStore(works)
    yield
    kept._backend.store = works


class HalfStore(BaseStore):
    """Writes half of a batch and fails."""

    def __init__(self, store: BaseStore) -> None:
        self._whole = store

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        some = list(ops)
        self._whole.batch(some[: len(some) // 2])
        raise ConnectionError("gone away")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return self.batch(ops)


def test_stores_over_a_database_of_ours_declare_everything_and_others_all_but_words() -> None:
    assert ChromaMemory().capabilities == CAPABILITIES
    assert PostgresMemory("postgresql://nowhere").capabilities == CAPABILITIES
    assert StoreMemory(InMemoryStore()).capabilities == CAPABILITIES - {"words"}


class TestFolder(MemoryConformance):
    def open(self, namespace: str) -> MemoryStore:
        return in_folder(self.folder / "memory", namespace)

    def elsewhere(self) -> Opener:
        return partial(in_folder, self.folder / "memory")

    def broken(self, memory: MemoryStore) -> AbstractContextManager[None]:
        return full_database(memory)


class TestInProcess(MemoryConformance):
    @pytest.fixture(autouse=True)
    def _kept(self) -> None:
        self.kept: dict[str, ChromaMemory] = {}

    def open(self, namespace: str) -> MemoryStore:
        return self.kept.setdefault(namespace, ChromaMemory(namespace=namespace))

    def broken(self, memory: MemoryStore) -> AbstractContextManager[None]:
        return full_database(memory)


@pytest.fixture(scope="module")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Chroma server started for the tests."""
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
        self.port, self.own = chroma_server, next(_numbers)

    def open(self, namespace: str) -> MemoryStore:
        return in_server(self.port, self.own, namespace)

    def elsewhere(self) -> Opener:
        return partial(in_server, self.port, self.own)

    def broken(self, memory: MemoryStore) -> AbstractContextManager[None]:
        return failing_server(memory)

    def test_writes_of_another_client_are_visible(self) -> None:
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
    """A LangGraph store shared by the tests."""

    store: BaseStore

    @pytest.fixture(autouse=True)
    def _numbered(self) -> None:
        self.own = next(_numbers)

    def open(self, namespace: str) -> MemoryStore:
        return StoreMemory(self.store, namespace=f"{self.own} {namespace}")

    def broken(self, memory: MemoryStore) -> AbstractContextManager[None]:
        return failing_store(memory)


class TestInMemoryStore(OfStore):
    store = InMemoryStore()


class TestInMemoryStoreWithVectors(OfStore):
    store = InMemoryStore(index=INDEX)


@pytest.mark.slow
class TestPostgres(MemoryConformance):
    @pytest.fixture(autouse=True)
    def _connected(self, postgres_uri: str) -> None:
        self.uri, self.own = postgres_uri, next(_numbers)

    def open(self, namespace: str) -> MemoryStore:
        return in_postgres(self.uri, self.own, namespace)

    def elsewhere(self) -> Opener:
        return partial(in_postgres, self.uri, self.own)

    def broken(self, memory: MemoryStore) -> AbstractContextManager[None]:
        return full_database(memory)


@pytest.fixture(scope="module")
def postgres(postgres_uri: str) -> Iterator[BaseStore]:
    """A store in a PostgreSQL with pgvector, started for the tests."""
    from langgraph.store.postgres import PostgresStore

    with PostgresStore.from_conn_string(postgres_uri + SCAN, index=INDEX) as store:
        store.setup()
        yield store


@pytest.mark.slow
class TestPostgresStore(OfStore):
    @pytest.fixture(autouse=True)
    def _connected(self, postgres: BaseStore, postgres_uri: str) -> None:
        self.store, self.uri = postgres, postgres_uri

    def elsewhere(self) -> Opener:
        return partial(in_postgres_store, self.uri, self.own)
