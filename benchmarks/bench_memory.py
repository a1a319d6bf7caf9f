"""What a search costs, as ratios in one run: CPU and wall time, interleaved, medians.

- `search_similar` at 10,000 records against a bare embedding of the query and a Chroma query of 100 with documents
- a whole injection for a prompt at 10,000 records against the same
- both from 1,000 to 100,000 records (with `--large`; filling that memory takes minutes)
- how many of the nearest 20 vectors are found among those 100,000, by sketches and by Chroma's index
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from statistics import mean, median
from time import perf_counter, process_time
from typing import Any

import numpy as np
import structlog

from langgraph_scrum_master import ChromaMemory, InjectionPipeline
from langgraph_scrum_master.rank.asked import Asked
from langgraph_scrum_master.rank.embedders import embedder_for

ROUNDS = 150
WARM_UP = 50
"""Searches before: the ledger keeps what it has read at hand, as in a memory that is in use."""
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


class Filled:
    """A memory of so many records, searched by the product and bare."""

    def __init__(self, count: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._memory = ChromaMemory()
        self._random = Random(count)
        self._texts = texts(count, self._random)
        rows = [
            (f"m{i}", text, {"session": f"s{i // 40}", "created_at": _created(count - i)})
            for i, text in enumerate(self._texts)
        ]
        self._pipeline = InjectionPipeline(self._memory, clock=lambda: NOW)
        started = perf_counter()
        self._loop.run_until_complete(self._memory.store_many(rows, progress=_told(count)))
        print(f"filled with {count:,} records in {perf_counter() - started:.0f} s", file=sys.stderr)

    def question(self) -> str:
        words = self._random.choice(self._texts).split()
        return f"Which service {' '.join(self._random.sample(words, 6))}?"

    def search(self, question: str) -> object:
        found = self._loop.run_until_complete(self._memory.search_similar(question, k=10))
        assert found
        return found

    def inject(self, question: str) -> object:
        result = self._loop.run_until_complete(self._pipeline.ainject_context(question, "s1"))
        assert result.text
        return result

    def bare(self, question: str) -> object:
        collection = self._memory._chroma.of("memory")
        vector: Any = [embedder_for("static").embed_query(question)]
        found = collection.query(query_embeddings=vector, n_results=100, include=["documents", "distances"])
        assert found["documents"]
        return found

    def found_of_nearest(self, k: int, rounds: int = 100) -> tuple[float, float]:
        """The share of the nearest `k` that sketches find among a hundred, and that Chroma's index does."""
        book = self._memory._book
        kept = book.every("memory")
        keys = np.array([record.key for record, _ in kept])
        numbers = dict(book.keyed("memory", keys.tolist()))
        units = np.stack([vector for _, vector in kept]).astype("float32")
        units /= np.linalg.norm(units, axis=1, keepdims=True)
        shares = []
        for _ in range(rounds):
            vector = np.array(Asked(self.question(), book, embedder_for("static")).vector)
            nearest = set(keys[np.argsort(-(units @ vector), kind="stable")[:k]].tolist())
            sketched = {numbers[number] for number, _ in book.nearest("memory", vector, 100)}
            indexed = {key for key, _ in self._memory._chroma.nearest("memory", vector, 100)}
            shares.append((len(nearest & sketched) / k, len(nearest & indexed) / k))
        by_sketch, by_index = (mean(column) for column in zip(*shares, strict=True))
        return by_sketch, by_index


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


def main() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    ten = Filled(10_000)
    print(
        "search_similar at 10,000 records against a bare query: "
        + compare(ten.search, ten.bare, ten.question)
        + " (bar: 2 x)"
    )
    print(
        "a whole injection at 10,000 records against a bare query: "
        + compare(ten.inject, ten.bare, ten.question)
        + " (bar: 2.5 x)"
    )
    if "--large" in sys.argv:
        few, many = Filled(1_000), Filled(100_000)
        print(
            "search_similar at 100,000 records against 1,000: "
            + compare(many.search, few.search, many.question)
            + " (bar: 2 x)"
        )
        print(
            "a whole injection at 100,000 records against 1,000: "
            + compare(many.inject, few.inject, many.question)
            + " (bar: 2 x)"
        )
        print(
            "of the nearest 20 among 100,000, found: by sketches {:.2f}, by Chroma's index {:.2f}".format(
                *many.found_of_nearest(20)
            )
        )


if __name__ == "__main__":
    main()
