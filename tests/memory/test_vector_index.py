"""The vector index: recall, memory use, and consistency after writes."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from langgraph_scrum_master import ChromaMemory, ConfigError
from langgraph_scrum_master.memory import MemoryResult
from langgraph_scrum_master.memory.database_memory import DatabaseMemory
from langgraph_scrum_master.memory.sqlite import SqliteDatabase
from langgraph_scrum_master.memory.store import RecordStore, StoreBackend
from langgraph_scrum_master.memory.vectors import (
    BLOCK,
    COMPARED_EXACTLY,
    VectorBlock,
    VectorCache,
    VectorIndex,
    cache_bytes,
)
from langgraph_scrum_master.rank.features import Array

WORDS = ("cache", "order", "retry", "token", "queue", "price", "refund", "batch", "index", "alert", "shard", "lease")
QUERY = "Which batch has a lease?"


def some_vectors(count: int, dimensions: int = 256, seed: int = 1) -> Array:
    """Clustered vectors, like those of texts about a few topics."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(max(1, count // 100), dimensions))
    scattered = centres[random.integers(len(centres), size=count)] + random.normal(size=(count, dimensions))
    found: Array = scattered.astype("float32")
    return found


def a_block(vectors: Array, first: int = 1) -> VectorBlock:
    return VectorBlock.of(list(range(first, first + len(vectors))), vectors)


def an_index(vectors: Array) -> VectorIndex:
    index = VectorIndex(vectors.shape[1])
    index.append(a_block(vectors))
    return index


def cosines(vectors: Array, query: Array) -> Array:
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    found: Array = vectors @ query / np.maximum(lengths, 1e-12)
    return found


def nearest_ids(vectors: Array, query: Array, limit: int) -> list[int]:
    """The ids of the nearest by brute force; ids count from 1."""
    order: list[int] = (np.argsort(-cosines(vectors, query), kind="stable")[:limit] + 1).tolist()
    return order


# An index.


@pytest.mark.parametrize("dimensions", [3, 64, 100, 256])
def test_of_few_vectors_the_nearest_are_found_exactly(dimensions: int) -> None:
    vectors = some_vectors(500, dimensions)
    index = an_index(vectors)

    for query in some_vectors(10, dimensions, seed=2):
        found = index.nearest(query, 20)
        exact = cosines(vectors, query)
        assert found.cosines == pytest.approx(exact[found.ids - 1], abs=0.01)
        assert found.cosines.tolist() == sorted(found.cosines.tolist(), reverse=True)
        # What is quantised may change places with what is as near as it can tell.
        assert found.cosines == pytest.approx(np.sort(exact)[::-1][:20], abs=0.01)


def test_of_many_vectors_nearly_all_of_the_nearest_are_found() -> None:
    every = some_vectors(30_020)
    vectors, queries = every[:30_000], every[30_000:]
    index = an_index(vectors)

    found = [
        len(set(index.nearest(query, 20).ids.tolist()) & set(nearest_ids(vectors, query, 20))) for query in queries
    ]

    assert vectors.size > COMPARED_EXACTLY
    assert sum(found) >= 0.97 * 20 * len(queries)
    assert min(found) >= 17


def test_a_vector_is_nearest_to_itself_in_indexes_of_any_size() -> None:
    vectors = some_vectors(30_000)
    index = an_index(vectors)

    for place in range(0, 30_000, 1_499):
        found = index.nearest(vectors[place], 1)
        assert (found.ids.tolist(), found.cosines.tolist()) == ([place + 1], [pytest.approx(1, abs=0.01)])


@pytest.mark.parametrize("limit", [0, 1, 7, 8, 100])
def test_no_more_results_than_the_limit_or_the_index_size(limit: int) -> None:
    vectors = some_vectors(8)

    assert len(an_index(vectors).nearest(vectors[0], limit).ids) == min(limit, 8)
    assert VectorIndex(256).nearest(vectors[0], limit).ids.tolist() == []


@pytest.mark.parametrize("few", [COMPARED_EXACTLY, 0], ids=["each compared", "by sign bits"])
def test_searches_follow_append_truncate_and_replace(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr("langgraph_scrum_master.memory.vectors.COMPARED_EXACTLY", few)
    vectors, query = some_vectors(400), some_vectors(1, seed=2)[0]
    index = VectorIndex(256)

    def agrees(expected: Array) -> bool:
        found = index.nearest(query, 1_000)
        return len(index) == len(found.ids) == len(expected) and found.cosines == pytest.approx(
            np.sort(cosines(expected, query))[::-1], abs=0.01
        )

    for start, end in pairwise((0, 1, 100, 101, 300)):
        index.append(a_block(vectors[start:end], start + 1))
        assert agrees(vectors[:end])
    index.truncate(200)
    assert agrees(vectors[:200])
    index.append(a_block(vectors[300:400], 301))
    assert agrees(np.concatenate([vectors[:200], vectors[300:400]]))
    index.replace(50, a_block(vectors[200:300], 1_001))
    assert agrees(np.concatenate([vectors[:50], vectors[200:300], vectors[150:200], vectors[300:400]]))
    assert {*range(1_001, 1_101)} <= set(index.nearest(query, 1_000).ids.tolist())
    index.truncate(0)
    assert agrees(vectors[:0])
    index.append(a_block(vectors))
    assert agrees(vectors)


@pytest.mark.parametrize("few", [COMPARED_EXACTLY, 0], ids=["each compared", "by sign bits"])
def test_a_vector_removed_from_a_block_is_never_found(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr("langgraph_scrum_master.memory.vectors.COMPARED_EXACTLY", few)
    vectors = some_vectors(100)
    block = a_block(vectors)
    gone = [1, 50, 51, 100]

    index = VectorIndex(256)
    index.append(block)
    index.replace(0, VectorBlock.unpack(*block.without(gone).pack()))

    for number in gone:
        assert index.nearest(vectors[number - 1], 1_000).ids.tolist().count(number) == 0
    assert len(index.nearest(vectors[0], 1_000).ids) == 96
    assert not block.without(gone).rows[[0, 49, 50, 99]].any()


def test_a_block_is_packed_and_unpacked_without_loss() -> None:
    block = a_block(some_vectors(50, 100))

    again = VectorBlock.unpack(*block.pack())

    for name in ("ids", "rows", "scales"):
        assert np.array_equal(getattr(again, name), getattr(block, name))


# What a process holds.


def test_the_indexes_that_were_used_last_are_held_as_long_as_they_fit() -> None:
    index = an_index(some_vectors(10))
    cache = VectorCache(3 * index.nbytes)
    for name in ("a", "b", "c"):
        cache.put((name, 0), an_index(some_vectors(10)))
    cache.get(("a", 0))

    cache.put(("d", 0), index)

    assert [cache.get((name, 0)) is not None for name in ("a", "b", "c", "d")] == [True, False, True, True]
    assert cache.nbytes <= cache.most_bytes
    cache.drop("a")
    assert cache.get(("a", 0)) is None


def test_an_index_that_is_too_large_by_itself_is_held_alone() -> None:
    small, large = an_index(some_vectors(10)), an_index(some_vectors(100))
    cache = VectorCache(2 * small.nbytes)
    cache.put(("a", 0), small)

    cache.put(("b", 0), large)

    assert (cache.get(("a", 0)), cache.get(("b", 0))) == (None, large)


def texts(count: int, seed: int = 1) -> list[tuple[str, str, dict[str, Any]]]:
    random = np.random.default_rng(seed)
    return [(f"k{i}", f"Number {i}: {' '.join(random.choice(WORDS, 9))}.", {}) for i in range(count)]


def opened(folder: Path, most_bytes: int) -> DatabaseMemory:
    """The memory in a folder, with a vector cache of this size."""
    file = folder / "memory.sqlite3"
    database = SqliteDatabase(file, "normal", cache=VectorCache(most_bytes))
    return DatabaseMemory(StoreBackend(RecordStore(str(folder), lambda: database, file=file), "default"))


def cache_of(memory: DatabaseMemory) -> VectorCache:
    kept: Any = memory
    cache: VectorCache = kept._backend.store.database._cache
    return cache


def by_key(results: Sequence[MemoryResult]) -> dict[str, tuple[str, float]]:
    return {each.key: (each.content, round(each.score, 6)) for each in results}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks and frequent snapshots: 16 records instead of 4,096 and 2,048."""
    monkeypatch.setattr("langgraph_scrum_master.memory.blocks.BLOCK", 16)
    monkeypatch.setattr("langgraph_scrum_master.memory.writer.SAVED_EVERY", 16)


def live_bytes(dimensions: int) -> int:
    """Size of all live indexes with this number of dimensions."""
    gc.collect()
    every = [each for each in gc.get_objects() if isinstance(each, VectorIndex) and each.dimensions == dimensions]
    return sum(each.nbytes for each in every)


class Scattered:
    """An embedder with a vector length that no other test uses."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        found: list[float] = np.random.default_rng(sum(text.encode())).normal(size=72).tolist()
        return found


async def test_however_many_shelves_are_searched_no_more_is_held_than_may_be(tmp_path: Path) -> None:
    file = tmp_path / "memory.sqlite3"
    database = SqliteDatabase(file, "normal", cache=VectorCache(60_000))
    memory = DatabaseMemory(StoreBackend(RecordStore("here", lambda: database, file=file), "a", embedder=Scattered()))

    for number in range(6):
        await memory.beside(str(number)).store_many(texts(50, seed=number))
        await memory.beside(str(number)).search_similar(QUERY)

    assert 0 < cache_of(memory).nbytes <= 60_000
    assert live_bytes(72) <= 60_000


SEARCHING = """
import asyncio, sys
from langgraph_scrum_master import ChromaMemory, ConfigError
async def search():
    for number in range(8):
        memory = ChromaMemory(sys.argv[1], namespace=f"tenant {number}", durability="normal")
        await memory.store_many([(f"k{i}", f"Number {i} of tenant {number}.", {}) for i in range(250)])
        await memory.search_similar("Which number?")
asyncio.run(search())
from langgraph_scrum_master.memory.vectors import VECTORS
print(VECTORS.most_bytes, 0 < VECTORS.nbytes <= VECTORS.most_bytes)
"""


def searched(folder: Path, megabytes: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "SCRUM_MASTER_VECTOR_CACHE_MB": megabytes}
    command = [sys.executable, "-c", SEARCHING, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, env=environ, check=False)


@pytest.mark.slow
def test_the_environment_limits_what_a_process_holds_for_all_its_tenants(tmp_path: Path) -> None:
    done = searched(tmp_path, "1")

    assert done.stdout == f"{1024 * 1024} True\n", done.stderr


@pytest.mark.parametrize("megabytes", ["0", "-1", "much", "1.5"])
def test_a_limit_that_is_no_number_of_megabytes_is_rejected(megabytes: str) -> None:
    message = f"SCRUM_MASTER_VECTOR_CACHE_MB must be a whole number of megabytes, 1 or more, got '{megabytes}'"

    with pytest.raises(ConfigError, match=re.escape(message)):
        cache_bytes({"SCRUM_MASTER_VECTOR_CACHE_MB": megabytes})


async def test_a_shelf_whose_index_was_dropped_answers_as_before(tmp_path: Path) -> None:
    memory, roomy = opened(tmp_path, 400_000), ChromaMemory(tmp_path)
    shelves = [str(number) for number in range(6)]
    for number, shelf in enumerate(shelves):
        await memory.beside(shelf).store_many(texts(50, seed=number))

    for shelf in shelves * 2:
        small, large = memory.beside(shelf), roomy.beside(shelf)
        assert by_key(await small.search_similar(QUERY, k=50)) == by_key(await large.search_similar(QUERY, k=50))
        assert cache_of(memory).nbytes <= 400_000
    await memory.beside("0").forget("k0")
    assert "k0" not in by_key(await memory.beside("0").search_similar(QUERY, k=50))


# Rows that stay on the disk.

RARE = "Physicians examine patients."
PARAPHRASE = "doctors look at sick people"
"""Shares no word with any text, so only vectors find it."""


async def fill(memory: DatabaseMemory) -> None:
    """131 records, 128 of which are in blocks."""
    alike = texts(130)
    stored = [*alike[:60], ("right", RARE, {}), *alike[60:]]
    for start in range(0, len(stored), 16):
        await memory.store_many(stored[start : start + 16])


async def same_answers(*memories: DatabaseMemory) -> bool:
    """Whether the memories return the same results, including for a query that only vectors match."""
    for query in (PARAPHRASE, QUERY, "Number 77"):
        every = [by_key(await memory.search_similar(query, k=150)) for memory in memories]
        if any(each != every[0] for each in every):
            return False
    return True


@pytest.mark.usefixtures("small_blocks")
async def test_rows_on_the_disk_give_the_same_answers_as_held_ones(tmp_path: Path) -> None:
    held, on_disk = ChromaMemory(tmp_path), opened(tmp_path, 10_000)
    await fill(held)
    (best, *_) = await on_disk.search_similar(PARAPHRASE)

    assert best.key == "right"
    assert cache_of(on_disk).nbytes < 131 * 256
    assert await same_answers(held, on_disk)
    await held.forget("k3", "k20", "k129", "right")
    assert "right" not in by_key(await on_disk.search_similar(PARAPHRASE, k=150))
    assert await same_answers(held, on_disk)
    await on_disk.store_many([("k7", RARE, {}), ("new", "Something new.", {})])
    assert (await held.search_similar(PARAPHRASE, k=1))[0].key == "k7"
    assert await same_answers(held, on_disk)
    await held.store_many([(f"n{i}", text, {}) for i, (_, text, _) in enumerate(texts(40, seed=2))])
    assert await same_answers(held, on_disk)
    assert await same_answers(held, on_disk, ChromaMemory(tmp_path), opened(tmp_path, 10_000))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("most_bytes", [10_000, 10_000_000], ids=["rows on the disk", "rows in memory"])
async def test_rebuilt_blocks_are_read_again(tmp_path: Path, most_bytes: int) -> None:
    memory, other = ChromaMemory(tmp_path), opened(tmp_path, most_bytes)
    await fill(memory)
    await other.search_similar(PARAPHRASE)
    await memory.forget("k3", "k20")
    await memory.check(rebuild=True)

    fresh = ChromaMemory(tmp_path)

    assert len(await fresh.search_similar(QUERY, k=150)) >= 100
    for query in (PARAPHRASE, QUERY):
        vector = np.array((await fresh.embedded([query]))[0])
        answers = [dict(nearest_in(each, vector, 20)) for each in (fresh, other, memory)]
        assert answers[0] == pytest.approx(answers[1], abs=1e-3)
        assert answers[0] == pytest.approx(answers[2], abs=1e-3)


def nearest_in(memory: DatabaseMemory, vector: Array, limit: int) -> list[tuple[int, float]]:
    kept: Any = memory
    return [(number, round(cosine, 4)) for number, cosine in kept._backend.current().nearest("memory", vector, limit)]


async def test_a_real_block_is_packed_and_found_in(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path, durability="normal")
    stored: list[tuple[str, str, dict[str, Any]]] = [
        (f"k{i}", f"Number {i} of {WORDS[i % 12]}s.", {}) for i in range(BLOCK + 4)
    ]
    await memory.store_many([*stored, ("right", RARE, {})])

    assert (await memory.check()).sound
    for each in (memory, ChromaMemory(tmp_path), opened(tmp_path, 10_000)):
        assert (await each.search_similar(PARAPHRASE, k=1))[0].key == "right"
        assert (await each.search_similar("Number 4000", k=1))[0].key == "k4000"
    await memory.forget("k4000", "k7")
    assert "k4000" not in by_key(await memory.search_similar("Number 4000", k=100))
    assert (await memory.check()).sound


# Every sequence of writes.

ANY_KEY = st.sampled_from([f"k{i}" for i in range(12)])
ANY_TEXT = st.lists(st.sampled_from(WORDS), min_size=2, max_size=6).map(" ".join)
ANY_HANDLE = st.integers(0, 1)


class TwoHandles(RuleBasedStateMachine):
    """A folder with two handles, one without rows in memory, compared with a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.patched = pytest.MonkeyPatch()
        self.patched.setattr("langgraph_scrum_master.memory.blocks.BLOCK", 4)
        self.patched.setattr("langgraph_scrum_master.memory.writer.SAVED_EVERY", 4)
        self.folder = TemporaryDirectory()
        self.runner = asyncio.Runner()
        path = Path(self.folder.name)
        self.handles = (ChromaMemory(path, durability="normal"), opened(path, 2_000))
        self.expected: dict[str, str] = {}

    def teardown(self) -> None:
        for handle in self.handles:
            assert self.runner.run(handle.check()).sound
            handle.close()
        self.runner.close()
        self.folder.cleanup()
        self.patched.undo()

    @rule(stored=st.dictionaries(ANY_KEY, ANY_TEXT), by=ANY_HANDLE, data=st.sampled_from([{}, {"session": "s"}]))
    def store(self, stored: dict[str, str], by: int, data: dict[str, Any]) -> None:
        self.runner.run(self.handles[by].store_many((key, text, data) for key, text in stored.items()))
        self.expected |= stored

    @rule(keys=st.lists(ANY_KEY, min_size=1, max_size=8), by=ANY_HANDLE)
    def forget(self, keys: list[str], by: int) -> None:
        self.runner.run(self.handles[by].forget(*keys))
        for key in keys:
            self.expected.pop(key, None)

    @rule(by=ANY_HANDLE)
    def close(self, by: int) -> None:
        self.handles[by].close()

    @rule(text=ANY_TEXT)
    def search(self, text: str) -> None:
        one, other = [by_key(self.runner.run(handle.search_similar(text, k=50))) for handle in self.handles]
        assert one == other
        assert {key: content for key, (content, _) in one.items()} == self.expected

    @rule(text=ANY_TEXT)
    def look_for_the_nearest(self, text: str) -> None:
        vector = np.array(self.runner.run(self.handles[0].embedded([text]))[0])
        one, other = (dict(nearest_in(handle, vector, 50)) for handle in self.handles)
        # The same numbers, added up in another order.
        assert one == pytest.approx(other, abs=1e-3)
        assert len(one) == len(self.expected)

    @invariant()
    def both_list_the_same(self) -> None:
        for handle in self.handles:
            assert {each.key: each.content for each in self.runner.run(handle.every())} == self.expected


TwoHandles.TestCase.settings = settings(max_examples=60, stateful_step_count=20)
TestTwoHandles = TwoHandles.TestCase
