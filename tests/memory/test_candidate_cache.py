"""The records in memory: what searches find through them, and how much they hold."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from langgraph_scrum_master import ChromaMemory, Decision
from langgraph_scrum_master.memory import candidates
from langgraph_scrum_master.memory.candidates import CandidateLimit
from langgraph_scrum_master.rank.features import features_of
from langgraph_scrum_master.rank.table import Candidate, CandidateTable

QUESTIONS = (
    "Which service retries orders?",
    "Why does the cache of invoices expire?",
    "queue 7",
    "ADR-3 decides what?",
)


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> CandidateLimit:
    """The limit of the process, for this test alone."""
    limit = CandidateLimit()
    monkeypatch.setattr(candidates, "CANDIDATE_LIMIT", limit)
    return limit


async def a_memory(folder: Path) -> ChromaMemory:
    memory = ChromaMemory(folder)
    await memory.store_many(
        (
            f"m{i}",
            f"ADR-{i}: the service {('orders', 'invoices', 'queue')[i % 3]}-{i} retries what {i % 7} caches expire, "
            f"because of ADR-{i // 2}.",
            {"session": f"s{i // 9}", "created_at": f"2026-01-{1 + i % 28:02}T00:00:00+00:00"},
        )
        for i in range(300)
    )
    await memory.store_decision(Decision(id="d1", agent_type="dev", context="Orders are retried by the queue."))
    await memory.store_relationship("m7", "m200", "supersedes")
    return memory


async def everything_found(memory: ChromaMemory) -> list[Any]:
    found: list[Any] = []
    for question in QUESTIONS:
        found += await memory.search_similar(question, k=20)
        found += await memory.search_answers(question, [("The queue expires.", 0.5)], k=20)
        found += await memory.search_decisions(question)
        found += await memory.recent(question, "s3", "2026-01-20T00:00:00+00:00")
    return found


async def test_searches_find_the_same_with_and_without_records_in_memory(tmp_path: Path, limit: CandidateLimit) -> None:
    memory = await a_memory(tmp_path)
    first = await everything_found(memory)

    assert limit.nbytes > 0
    assert await everything_found(memory) == first
    memory.close()
    limit.most_bytes = 0
    assert await everything_found(memory) == first
    assert limit.nbytes == 0


async def test_the_records_in_memory_of_all_shelves_and_memories_are_limited(
    tmp_path: Path, limit: CandidateLimit
) -> None:
    one, other = await a_memory(tmp_path / "one"), await a_memory(tmp_path / "other")
    await everything_found(one)
    limit.most_bytes = limit.nbytes * 3 // 2
    for memory in (other, one, other.for_namespace("tenant"), one.beside("code"), other):
        await memory.store_embedding("k", "The queue retries orders.", {})
        await everything_found(memory)
        assert 0 < limit.nbytes <= limit.most_bytes


async def test_a_closed_memory_holds_no_records_in_memory(tmp_path: Path, limit: CandidateLimit) -> None:
    memory = await a_memory(tmp_path)
    await everything_found(memory)

    memory.close()

    assert limit.nbytes == 0


async def test_what_another_process_replaces_is_ranked_by_its_new_text_at_once(tmp_path: Path) -> None:
    memory = await a_memory(tmp_path)
    await everything_found(memory)
    script = (
        "import asyncio, sys; from langgraph_scrum_master import ChromaMemory\n"
        "asyncio.run(ChromaMemory(sys.argv[1]).store_embedding('m8', 'Zebras graze at noon.', {'session': 's0'}))"
    )
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script, str(tmp_path)], check=True, timeout=60)

    found = await memory.search_similar("Where do zebras graze?", k=5)

    assert found[0].key == "m8"
    assert found == await ChromaMemory(tmp_path).search_similar("Where do zebras graze?", k=5)


async def test_a_forgotten_record_is_neither_found_nor_kept_in_memory(tmp_path: Path, limit: CandidateLimit) -> None:
    memory = await a_memory(tmp_path)
    await memory.store_embedding("secret", "Zebras graze at noon.", {})
    assert (await memory.search_similar("Where do zebras graze?", k=1))[0].key == "secret"
    (secret,) = (each for each in features_of(["Zebras graze at noon."]))

    await ChromaMemory(tmp_path).forget("secret")
    found = await memory.search_similar("Where do zebras graze?", k=300)

    assert "secret" not in {result.key for result in found}
    shelf = memory._backend.current()  # type: ignore[attr-defined]
    rows = shelf.rows(list(range(1, 400)), ("memory",))
    # The table was built anew, and the words of the secret are in none of its rows.
    terms, _ = rows.table.gather_ragged("terms", np.arange(rows.table.size))
    assert not set(secret.terms.tolist()) & set(terms.tolist())


async def test_searches_in_several_threads_do_not_disturb_each_other(tmp_path: Path, limit: CandidateLimit) -> None:
    memory = await a_memory(tmp_path)
    expected = {question: await memory.search_similar(question, k=20) for question in QUESTIONS}
    # Every search clears what the others have just read.
    limit.most_bytes = 1

    found = await asyncio.gather(*(memory.search_similar(question, k=20) for question in QUESTIONS * 10))

    assert found == [expected[question] for question in QUESTIONS * 10]


def test_rows_appended_one_by_one_are_gathered_like_rows_appended_together() -> None:
    texts = [f"ADR-{i}: the queue {'of orders ' * (i % 4)}retries `order_{i}`, see ADR-{i // 2}." for i in range(40)]
    rows = [
        Candidate(each.pack(), bytes([i] * 8), bytes([i + 1] * 4), f"s{i % 5}", i, float(i), bytes([i] * 4 * (i % 3)))
        for i, each in enumerate(features_of(texts))
    ]
    together, single = CandidateTable(), CandidateTable()
    together.append([*zip(*rows, strict=True)])
    for row in rows:
        single.append([[each] for each in row])
    chosen = np.array([39, 3, 3, 17, 0])

    for name in ("heads", "vectors", "contexts", "grams", "sessions", "positions", "created"):
        assert np.array_equal(together.gather(name, chosen), single.gather(name, chosen))
    for name in ("terms", "counts", "tokens", "identifiers", "references", "entities", "links"):
        for one, other in zip(together.gather_ragged(name, chosen), single.gather_ragged(name, chosen), strict=True):
            assert np.array_equal(one, other)


def test_rows_of_another_length_are_rejected_and_leave_the_table_as_it_was() -> None:
    table, (features,) = CandidateTable(), features_of(["The queue retries orders."])
    table.append([[each] for each in Candidate(features.pack(), b"abcd", b"abcd")])

    with pytest.raises(ValueError, match="differ in length"):
        table.append([[each] for each in Candidate(features.pack(), b"abcd", b"abcdef")])

    table.append([[each] for each in Candidate(features.pack(), b"efgh", b"abcd")])
    assert table.gather("vectors", np.arange(2)).tobytes() == b"abcdefgh"
