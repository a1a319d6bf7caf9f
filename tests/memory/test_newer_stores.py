"""Stores that a newer version of the package wrote: an older one refuses them, instead of rebuilding them."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from langgraph_scrum_master import ChromaMemory, PostgresMemory, StoreError
from langgraph_scrum_master.memory.postgres import POSTGRES_SCHEMA

TEXTS: list[tuple[str, str, dict[str, str]]] = [
    (f"k{number}", f"Record {number} of the team about queue {number}.", {}) for number in range(40)
]


async def test_statistics_of_a_newer_version_are_refused_and_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langgraph_scrum_master.memory.writer.SAVED_EVERY", 32)
    memory = ChromaMemory(tmp_path)
    await memory.store_many(TEXTS)
    await memory.search_similar("queue")
    memory.close()
    with closing(sqlite3.connect(tmp_path / "memory.sqlite3", isolation_level=None)) as database:
        ((shelf, packed),) = database.execute("SELECT shelf, content FROM statistics").fetchall()
        head, _, rest = zlib.decompress(packed).partition(b"\n")
        newer = zlib.compress(
            json.dumps({**json.loads(head), "version": 2, "parts": "of another form"}).encode() + b"\n" + rest
        )
        database.execute("UPDATE statistics SET content = ? WHERE shelf = ?", (newer, shelf))

    with pytest.raises(StoreError, match=r"newer version of this package \(format 2, this one knows 1\): upgrade"):
        await ChromaMemory(tmp_path).search_similar("queue")

    with closing(sqlite3.connect(tmp_path / "memory.sqlite3", isolation_level=None)) as database:
        assert database.execute("SELECT content FROM statistics").fetchall() == [(newer,)]


async def test_a_postgres_database_of_a_newer_version_is_refused_and_stays_unchanged(postgres_uri: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    memory = PostgresMemory(postgres_uri, namespace="newer")
    await memory.store_many(TEXTS[:2])
    memory.close()
    with psycopg.connect(postgres_uri, autocommit=True) as database:
        ((version,),) = database.execute(f"SELECT version FROM {POSTGRES_SCHEMA}.about").fetchall()
        database.execute(f"UPDATE {POSTGRES_SCHEMA}.about SET version = 99")
        try:
            other = PostgresMemory(postgres_uri, namespace="newer")
            for call in (other.search_similar("queue"), other.store_embedding("k", "x", {}), other.check(rebuild=True)):
                with pytest.raises(StoreError, match=r"written by a newer version .*tables 99.*upgrade"):
                    await call
        finally:
            database.execute(f"UPDATE {POSTGRES_SCHEMA}.about SET version = {version}")
    assert sorted((await memory.get_many(["k0", "k1"])).keys()) == ["k0", "k1"]
