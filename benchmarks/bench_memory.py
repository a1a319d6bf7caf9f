"""The cost of a search, as ratios within one run: CPU and wall time, interleaved, medians.

- storing 10,000 records in a folder against a bare Chroma `add` of the same vectors and documents, also in a folder
- `search_similar` at 10,000 records against a bare embedding of the query and a Chroma query of 100 with documents
- a whole injection for a prompt at 10,000 records against the same
- both from 1,000 to 100,000 records (with `--large`; filling that memory takes minutes)
- how many of the nearest 20 vectors are found among those 100,000 by their sign bits
- bytes that are written for a decision, and the files and bytes of a small memory
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from statistics import mean, median
from time import perf_counter, process_time
from typing import Any

import chromadb
import numpy as np
import structlog
from chromadb.config import Settings

from langgraph_scrum_master import ChromaMemory, Decision, InjectionPipeline
from langgraph_scrum_master.memory.chroma_server import EF_SEARCH, LINKS
from langgraph_scrum_master.memory.store import StoreBackend
from langgraph_scrum_master.rank.embedders import embedder_for
from langgraph_scrum_master.rank.query import unit_rows

ROUNDS = 150
WARM_UP = 50
"""Searches before: the memory holds what it has read, as one that is in use."""
TOPICS = 400
NOW = 1_790_000_000.0

VERBS = [
    "stores",
    "retries",
    "logs",
    "encrypts",
    "renders",
    "caches",
    "validates",
    "imports",
    "exports",
    "schedules",
    "rejects",
    "archives",
]
NOUNS = [
    "order",
    "invoice",
    "session",
    "token",
    "payment",
    "refund",
    "report",
    "user",
    "customer",
    "cart",
    "ticket",
    "event",
    "message",
    "queue",
    "cache",
    "index",
    "schema",
    "table",
    "migration",
    "endpoint",
    "webhook",
    "gateway",
    "client",
    "server",
    "worker",
    "batch",
    "job",
    "pipeline",
    "dashboard",
    "alert",
    "metric",
    "budget",
    "policy",
    "contract",
    "release",
    "branch",
    "commit",
    "review",
    "test",
    "fixture",
    "build",
    "image",
    "cluster",
    "node",
    "volume",
    "secret",
    "key",
]
ADJECTIVES = [
    "daily",
    "weekly",
    "stale",
    "fresh",
    "nested",
    "partial",
    "signed",
    "public",
    "private",
    "legacy",
    "internal",
    "external",
    "async",
    "slow",
]


def texts(count: int, random: Random) -> list[str]:
    """Sentences about made-up services, a few dozen to each."""
    services = [f"{random.choice(ADJECTIVES)}-{random.choice(NOUNS)}-{i}" for i in range(TOPICS)]
    return [
        f"The service {random.choice(services)} {random.choice(VERBS)} every {random.choice(ADJECTIVES)} "
        f"{random.choice(NOUNS)} and {random.choice(VERBS)} the {random.choice(NOUNS)} of the "
        f"{random.choice(ADJECTIVES)} {random.choice(NOUNS)} within {random.randrange(1, 900)} seconds."
        for _ in range(count)
    ]


class Bare:
    """A Chroma collection with the static model's vectors and the texts alone, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._client = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
        # As in a Chroma server that we fill: with the default of 100 it looks at no more than it is asked for.
        hnsw: Any = {"space": "cosine", "max_neighbors": LINKS, "ef_search": EF_SEARCH}
        self._collection = self._client.create_collection("bare", configuration={"hnsw": hnsw})

    def add(self, kept: Sequence[str]) -> None:
        most = self._client.get_max_batch_size()
        for start in range(0, len(kept), most):
            some = list(kept[start : start + most])
            vectors: Any = embedder_for("static").embed_documents(some)
            self._collection.add(
                ids=[f"m{start + i}" for i in range(len(some))], documents=some, embeddings=np.array(vectors, "float32")
            )

    def query(self, question: str) -> object:
        vector: Any = [embedder_for("static").embed_query(question)]
        found = self._collection.query(query_embeddings=vector, n_results=100, include=["documents", "distances"])
        assert found["documents"]
        return found


class Filled:
    """A memory of so many records in a folder."""

    def __init__(self, count: int, folder: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._memory = ChromaMemory(folder)
        self._random = Random(count)
        self.texts = texts(count, self._random)
        rows = [
            (f"m{i}", text, {"session": f"s{i // 40}", "created_at": _created(count - i)})
            for i, text in enumerate(self.texts)
        ]
        self._pipeline = InjectionPipeline(self._memory, clock=lambda: NOW)
        started = perf_counter()
        self._loop.run_until_complete(self._memory.store_many(rows, progress=_told(count)))
        self.seconds = perf_counter() - started
        print(f"filled with {count:,} records in {self.seconds:.1f} s", file=sys.stderr)

    def question(self) -> str:
        words = self._random.choice(self.texts).split()
        return f"Which service {' '.join(self._random.sample(words, 6))}?"

    def search(self, question: str) -> object:
        found = self._loop.run_until_complete(self._memory.search_similar(question, k=10))
        assert found
        return found

    def inject(self, question: str) -> object:
        result = self._loop.run_until_complete(self._pipeline.ainject_context(question, "s1"))
        assert result.text
        return result

    def decide(self, text: str) -> None:
        self._loop.run_until_complete(self._memory.store_decision(Decision(agent_type="dev", context=text)))

    def found_of_nearest(self, k: int, rounds: int = 100) -> float:
        """The share of the nearest `k` vectors that are among the hundred that a search begins with."""
        backend = self._memory._backend
        assert isinstance(backend, StoreBackend)
        shelf = backend.current()
        assert shelf.row is not None
        with backend.store.database.reading() as statements:
            rows = statements.vectors(shelf.row, "memory", 0)
        ids = np.array([number for number, _ in rows])
        vectors = unit_rows(np.stack([np.frombuffer(packed, "<f2") for _, packed in rows]).astype("float32"))
        shares = []
        for _ in range(rounds):
            vector = np.array(embedder_for("static").embed_query(self.question()))
            nearest = set(ids[np.argsort(-(vectors @ vector), kind="stable")[:k]].tolist())
            shares.append(len(nearest & {number for number, _ in shelf.nearest("memory", vector, 100)}) / k)
        return mean(shares)


def _created(minutes_ago: int) -> str:
    return datetime.fromtimestamp(NOW - 60 * minutes_ago, UTC).isoformat()


def _told(count: int) -> Callable[[int], None]:
    def tell(done: int) -> None:
        print(f"\r{done:,} of {count:,}", end="\n" if done == count else "", file=sys.stderr)

    return tell


def compare(one: Callable[[str], object], other: Callable[[str], object], question: Callable[[], str]) -> str:
    times: dict[Callable[[str], object], list[tuple[float, float]]] = {one: [], other: []}
    for i in range(WARM_UP + ROUNDS):
        asked = question()
        # By turns: who asks second finds what the first has touched in the processor's cache.
        for call in (one, other) if i % 2 else (other, one):
            wall, cpu = perf_counter(), process_time()
            call(asked)
            if i >= WARM_UP:
                times[call].append((perf_counter() - wall, process_time() - cpu))
    (wall, cpu), (wall_other, cpu_other) = (
        [median(column) * 1e3 for column in zip(*times[call], strict=True)] for call in (one, other)
    )
    return (
        f"{wall:.1f} ms against {wall_other:.1f} ms: {wall / wall_other:.2f} x"
        f" (CPU {cpu:.1f} against {cpu_other:.1f} ms: {cpu / cpu_other:.2f} x)"
    )


def written() -> int:
    """Bytes that this process has handed to the system to write."""
    return int(re.findall(r"wchar: (\d+)", Path("/proc/self/io").read_text())[0])


def bytes_per_decision(filled: Filled) -> str:
    costs = []
    for text in texts(200, Random(7)):
        before = written()
        filled.decide(text)
        costs.append(written() - before)
    return f"{mean(costs) / 1000:.0f} KB on average, median {median(costs) / 1000:.0f} KB"


def small(folder: Path) -> str:
    Filled(24, folder)
    files = [file for file in folder.rglob("*") if file.is_file()]
    return f"{len(files)} files, {sum(file.stat().st_size for file in files) / 1e6:.2f} MB"


def storing(folder: Path) -> tuple[Filled, Bare]:
    """Fill a memory and a bare Chroma by turns, each three times in a new folder."""
    # Both load the static model, and Chroma itself, before.
    Filled(10, folder / "warm")
    Bare(folder / "warm bare").add(texts(10, Random(1)))
    ours, theirs = [], []
    for i in range(3):
        filled, bare = Filled(10_000, folder / f"ours {i}"), Bare(folder / f"bare {i}")
        started = perf_counter()
        bare.add(filled.texts)
        ours.append(filled.seconds)
        theirs.append(perf_counter() - started)
    ratio = median(ours) / median(theirs)
    print(f"storing 10,000 records: {median(ours):.1f} s against {median(theirs):.1f} s: {ratio:.2f} x (bar: 0.6 x)")
    return filled, bare


def measure(folder: Path) -> None:
    print(f"a memory of 24 records: {small(folder / 'small')} (bar: 1 MB)")
    ten, bare = storing(folder)
    print(f"bytes written for a decision at 10,000 records: {bytes_per_decision(ten)} (bar: 40 KB)")
    against = (
        (ten.search, bare.query, "search_similar at 10,000 records against a bare query", 1.2),
        (ten.inject, bare.query, "a whole injection at 10,000 records against a bare query", 2.5),
    )
    for one, other, what, bar in against:
        print(f"{what}: {compare(one, other, ten.question)} (bar: {bar} x)")
    if "--large" in sys.argv:
        few, many = Filled(1_000, folder / "few"), Filled(100_000, folder / "many")
        growing = (
            (many.search, few.search, "search_similar at 100,000 records against 1,000", 1.8),
            (many.inject, few.inject, "a whole injection at 100,000 records against 1,000", 2),
        )
        for one, other, what, bar in growing:
            print(f"{what}: {compare(one, other, many.question)} (bar: {bar} x)")
        print(f"share of the nearest 20 among 100,000 that sign bits find: {many.found_of_nearest(20):.2f}")


def main() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder))


if __name__ == "__main__":
    main()
