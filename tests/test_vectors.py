"""Small memories are searched in the ledger itself: exactly, and without Chroma."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random

import numpy as np
import pytest

from langgraph_scrum_master import ChromaMemory, Memory, StoreError

WORDS = ("cache", "order", "retry", "token", "queue", "price", "refund", "batch", "index", "alert", "shard", "lease")


VECTORS = "langgraph_scrum_master.memory.vectors"


def some(count: int, seed: int = 1) -> list[Memory]:
    random = Random(seed)
    return [Memory(key=f"k{i}", content=f"Number {i}: {' '.join(random.choices(WORDS, k=9))}.") for i in range(count)]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory's folder with 300 records."""
    folder = tmp_path_factory.mktemp("vectors") / "memory"
    asyncio.run(ChromaMemory(folder).store_many(some(300)))
    return folder


def ledger_of(folder: Path) -> Path:
    (ledger,) = folder.glob("ledger-*.sqlite3")
    return ledger


@pytest.mark.parametrize("query", ["Which batch has a lease?", "refund of a token in a region", "Number 77", "ledger"])
async def test_what_is_found_is_what_chroma_finds(filled: Path, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_ledger = await ChromaMemory(filled).search_similar(query, k=20)
    monkeypatch.setattr(f"{VECTORS}.MOST_NUMBERS", 0)
    by_chroma = await ChromaMemory(filled).search_similar(query, k=20)

    assert by_ledger == by_chroma
    assert len(by_ledger) == 20


@pytest.mark.parametrize(("likely", "found"), [(16, 5), (150, 9)])
async def test_of_many_those_that_a_sketch_finds_likely_are_compared(
    filled: Path, likely: int, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "Which batch has a lease?"
    memory = ChromaMemory(filled)
    exact = await memory.search_similar(query, k=5)
    vector = np.array((await memory.embedded([query]))[0])
    nearest = dict(memory._book.nearest("memory", vector, 10))
    monkeypatch.setattr(f"{VECTORS}.FEW_NUMBERS", 0)
    monkeypatch.setattr(f"{VECTORS}.LIKELY", likely)

    sketched = ChromaMemory(filled)
    assert (await sketched.search_similar(query, k=5))[0] == exact[0]
    near = dict(sketched._book.nearest("memory", vector, 10))

    both = near.keys() & nearest.keys()
    assert len(both) >= found
    assert all(abs(near[number] - nearest[number]) < 0.01 for number in both)


async def test_a_kind_that_grows_from_few_to_many_and_back_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{VECTORS}.FEW_NUMBERS", 8 * 256)
    monkeypatch.setattr(f"{VECTORS}.PAGE", 5)
    memory = ChromaMemory(tmp_path)

    for count in (6, 12, 17):
        await memory.store_many(some(count))
        assert (await memory.search_similar(some(count)[-1].content, k=1))[0].key == f"k{count - 1}"
    await memory.forget(*(f"k{i}" for i in range(3, 17)))

    assert await _keys(memory) == {"k0", "k1", "k2"}


async def test_what_was_written_replaced_and_forgotten_is_followed_also_by_another_instance(tmp_path: Path) -> None:
    memory, other = ChromaMemory(tmp_path), ChromaMemory(tmp_path)
    await memory.store_many(some(5))
    assert await _keys(memory) == await _keys(other) == {"k0", "k1", "k2", "k3", "k4"}

    await memory.forget("k1", "k3")
    await memory.store_many([Memory(key="k2", content="Something else"), Memory(key="k9", content="Something new")])

    assert await _keys(memory) == await _keys(other) == {"k0", "k2", "k4", "k9"}
    assert (await other.search_similar("Something else", k=1))[0].key == "k2"


async def _keys(memory: ChromaMemory) -> set[str]:
    await memory.search_similar("anything", k=1)
    found = memory._book.nearest("memory", np.ones(256), 100)
    return {record.key for record in memory._book.records([number for number, _ in found]).values()}


def test_a_search_of_a_folder_does_not_load_chroma(filled: Path) -> None:
    code = (
        "import asyncio, sys\nfrom langgraph_scrum_master import ChromaMemory\n"
        f"found = asyncio.run(ChromaMemory({str(filled)!r}).search_similar('a lease for a shard'))\n"
        "print(len(found), 'chromadb' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout == "5 False\n", done.stderr


async def test_who_only_reads_waits_for_no_writer(filled: Path) -> None:
    with closing(sqlite3.connect(ledger_of(filled), isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")

        assert await ChromaMemory(filled).search_similar("a lease for a shard")


async def test_another_embedder_is_refused_also_by_a_ledger_from_before_that_was_noted(tmp_path: Path) -> None:
    await ChromaMemory(tmp_path, embedder="hash").store_many(some(3))

    with pytest.raises(StoreError, match="was filled with 'HashEmbedder': open it with that embedder"):
        await ChromaMemory(tmp_path).search_similar("a lease")
    with closing(sqlite3.connect(ledger_of(tmp_path))) as opened, opened:
        opened.execute("DELETE FROM tally WHERE name = 'embedder'")
    with pytest.raises(StoreError, match="was filled with 'HashEmbedder': open it with that embedder"):
        await ChromaMemory(tmp_path).search_similar("a lease")

    assert await ChromaMemory(tmp_path, embedder="hash").search_similar("a lease")


def test_whether_a_memory_was_begun_is_told_without_beginning_it(filled: Path, tmp_path: Path) -> None:
    assert not ChromaMemory(tmp_path / "none").begun
    assert not ChromaMemory(filled, namespace="nobody").begun
    assert ChromaMemory(filled).begun
    assert ChromaMemory().begun

    assert list(tmp_path.iterdir()) == []


async def test_a_memory_whose_ledger_was_lost_is_begun_and_found_again(tmp_path: Path) -> None:
    await ChromaMemory(tmp_path).store_many(some(3))
    ledger_of(tmp_path).unlink()

    assert ChromaMemory(tmp_path).begun
    assert {found.key for found in await ChromaMemory(tmp_path).search_similar("Number")} == {"k0", "k1", "k2"}


def test_shelves_that_are_opened_at_once_do_not_disturb_each_other() -> None:
    code = """
import asyncio
from langgraph_scrum_master import ChromaMemory
memory = ChromaMemory()
async def main():
    shelves = [memory.beside(str(i)) for i in range(8)]
    await asyncio.gather(*(shelf.store_embedding("k", "a lease", {}) for shelf in shelves))
    print([len(await shelf.search_similar("a lease")) for shelf in shelves])
asyncio.run(main())
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout == f"{[1] * 8}\n", done.stderr
