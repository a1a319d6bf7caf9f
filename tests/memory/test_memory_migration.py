"""Conversion of folders with the earlier layout: one SQLite ledger per namespace and shelf, next to Chroma's files."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

from langgraph_scrum_master import ChromaMemory, Decision, Memory, StoreError
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.memory import CodePattern
from langgraph_scrum_master.model import digest

KEYS = "We keep idempotency keys of payment requests in Redis, each for 24 hours."
QUEUE = "Refunds go to the queue billing-v2."
DECISION = Decision(id="D-1", agent_type="pm", context="We ship on Fridays.", timestamp="2026-03-01T10:00:00+00:00")
PATTERN = CodePattern(
    pattern_type="naming", name="snake", value="Functions are snake case.", created_at="2026-03-02T10:00:00+00:00"
)

LEDGER = """
CREATE TABLE unfinished(
    kind TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL, data TEXT NOT NULL, state INTEGER NOT NULL);
CREATE TABLE records(
    id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, key TEXT NOT NULL, session TEXT NOT NULL,
    position INTEGER NOT NULL, created REAL NOT NULL, own INTEGER NOT NULL, alias INTEGER NOT NULL,
    state INTEGER NOT NULL, features BLOB NOT NULL, vector BLOB NOT NULL, context BLOB NOT NULL, links BLOB NOT NULL,
    meaning BLOB NOT NULL, text TEXT NOT NULL, data TEXT NOT NULL, UNIQUE(kind, key));
CREATE TABLE tally(name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE terms(number INTEGER PRIMARY KEY, word TEXT NOT NULL, texts INTEGER NOT NULL);
CREATE VIRTUAL TABLE postings USING fts5(body, content='', detail=none);
CREATE TABLE edges(one INTEGER NOT NULL, other INTEGER NOT NULL, record INTEGER NOT NULL);
CREATE TABLE modelled(
    record INTEGER NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY(record, model)) WITHOUT ROWID;
PRAGMA user_version = 4;
"""
CHROMA = """
CREATE TABLE collections(id TEXT PRIMARY KEY, name TEXT NOT NULL, dimension INTEGER, database_id TEXT NOT NULL);
CREATE TABLE segments(id TEXT PRIMARY KEY, type TEXT NOT NULL, scope TEXT NOT NULL, collection TEXT NOT NULL);
CREATE TABLE collection_metadata(
    collection_id TEXT, key TEXT NOT NULL, str_value TEXT, int_value INTEGER, float_value REAL, bool_value INTEGER,
    PRIMARY KEY(collection_id, key));
"""
DONE, PENDING, LEAVING = 0, 1, 2


class Old(NamedTuple):
    """A record of the earlier layout."""

    kind: str
    key: str
    text: str
    data: dict[str, Any]
    position: int = 0
    state: int = DONE
    vector: bytes = b""


def of_memory(memory: Memory, position: int = 0) -> Old:
    return Old("memory", memory.key, memory.content, memory.fields(), position)


def ledger(
    folder: Path, name: str, records: Iterable[Old], *, embedder: str = "StaticEmbedder", complete: bool = True
) -> Path:
    """Write the ledger of a namespace, or of a shelf of it."""
    path = folder / f"ledger-{digest('shared', name)}.sqlite3"
    folder.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(LEDGER)
        database.executemany(
            "INSERT INTO records(kind, key, session, position, created, own, alias, state, features, vector, context, "
            "links, meaning, text, data) VALUES (?, ?, ?, ?, 0, 0, 0, ?, x'', ?, x'', x'', x'', ?, ?)",
            [
                (
                    each.kind,
                    each.key,
                    each.data.get("session", ""),
                    each.position,
                    each.state,
                    each.vector,
                    each.text,
                    json.dumps(each.data, sort_keys=True),
                )
                for each in records
            ],
        )
        database.execute("INSERT INTO tally VALUES ('embedder', ?)", (embedder,))
        if complete:
            database.execute("INSERT INTO tally VALUES ('complete', '1')")
    return path


def chroma(folder: Path, namespaces: Sequence[str], others: Sequence[str] = ()) -> None:
    """Write Chroma's files, which name the namespaces, next to the ledgers."""
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as database, database:
        database.executescript(CHROMA)
        named = [(f"scrum-master-{digest('shared', name)}-memory", name) for name in namespaces]
        for number, (collection, namespace) in enumerate([*named, *((other, "") for other in others)]):
            segment = f"{number:08}-ebe1-4b23-b5d5-17c28e6c9c8b"
            database.execute("INSERT INTO collections VALUES (?, ?, 256, 'db')", (str(number), collection))
            database.execute("INSERT INTO segments VALUES (?, 'hnsw', 'VECTOR', ?)", (segment, str(number)))
            if namespace:
                metadata = (str(number), "namespace", namespace)
                database.execute("INSERT INTO collection_metadata VALUES (?, ?, ?, NULL, NULL, NULL)", metadata)
            (folder / segment).mkdir()
            (folder / segment / "data_level0.bin").write_bytes(b"vectors")


TALK = [
    Memory(key="a0", content="Which store do we take for idempotency keys?", session="s", agent="dev"),
    Memory(key="a1", content="Redis, for a day.", session="s", created_at="2026-01-01T00:00:00+00:00"),
    Memory(key="a2", content="Fine, I will write it down.", session="s", importance=0.9, references=("ADR-7",)),
]
LINK = {"source": "queue", "target": "a0", "relation": "relies on"}


def old_folder(folder: Path) -> Path:
    """A folder of the earlier layout with records of all kinds, shelves, notes of indexers, and two tenants."""
    ledger(
        folder,
        "default",
        [
            *(of_memory(each, position) for position, each in enumerate(TALK)),
            Old("memory", "queue", QUEUE, {"team": "billing"}, state=PENDING),
            Old("memory", "leaving", "This was being forgotten.", {}, state=LEAVING),
            Old("decision", "D-1", DECISION.text, DECISION.to_dict()),
            Old("pattern", PATTERN.id, PATTERN.text, PATTERN.to_dict()),
            Old(
                "session",
                "session:s",
                "We agreed on Redis.",
                {"session": "s", "created_at": "2026-02-02T00:00:00+00:00"},
                3,
            ),
            Old("relationship", "relationship:1", "queue relies on a0", LINK),
        ],
    )
    ledger(folder, "default\x1fcode", [Old("memory", "f", "def refund(): ...", {"path": "a.py"})])
    indexed = {"digest": "x", "keys": ["f"], "kind": "memory"}
    files = [Old("memory", "a.py", "a.py", indexed), Old("memory", "all files", "all files", {})]
    ledger(folder, "default\x1fcode\x1findex-code", files)
    ledger(folder, "acme", [Old("memory", "z", "The zebra is striped.", {})])
    ledger(folder, "acme\x1fmine\x1fdeep", [Old("memory", "z", "The deep zebra.", {})])
    spaces = ["default", "default\x1fcode", "default\x1fcode\x1findex-code", "acme", "acme\x1fmine\x1fdeep"]
    chroma(folder, spaces)
    return folder


def names(folder: Path) -> list[str]:
    """The files of a folder, without those that SQLite creates while a file is open."""
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(("-wal", "-shm")))


def contents(folder: Path) -> dict[str, bytes]:
    """The contents of the old files."""
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.suffix in (".sqlite3", ".bin")}


def many(count: int) -> list[Old]:
    said = [Memory(key=f"k{i}", content=f"Turn {i}: the zebra{i} is striped.", session="s") for i in range(count)]
    return [of_memory(each, position) for position, each in enumerate(said)]


async def test_everything_arrives(tmp_path: Path) -> None:
    memory = ChromaMemory(old_folder(tmp_path))

    stored = {each.key: each.memory for each in await memory.every()}

    assert stored == {
        **{each.key: each for each in TALK},
        "queue": Memory(key="queue", content=QUEUE, metadata={"team": "billing"}),
    }
    assert await memory.get_decisions_by_agent("pm") == [DECISION]
    assert await memory.get_patterns_by_type("naming") == [PATTERN]
    summary = await memory.last_session()
    assert summary is not None
    assert (summary.key, summary.content) == ("session:s", "We agreed on Redis.")
    assert [each.data for each in await memory.list_all("relationship")] == [LINK]
    assert await memory.shelves() == ["code"]
    assert [(each.key, each.metadata["path"]) for each in await memory.beside("code").every()] == [("f", "a.py")]
    assert await memory.beside("code").notes("index code") == {"a.py": {"digest": "x", "keys": ["f"]}}
    acme = memory.for_namespace("acme")
    assert [each.content for each in await acme.every()] == ["The zebra is striped."]
    assert await acme.shelves() == ["mine/deep"]
    assert [each.content for each in await acme.beside("mine").beside("deep").every()] == ["The deep zebra."]
    assert [(await each.check()).sound for each in (memory, acme)] == [True, True]


async def test_a_converted_memory_answers_like_one_that_was_filled_now(tmp_path: Path) -> None:
    converted, filled = ChromaMemory(old_folder(tmp_path / "old")), ChromaMemory(tmp_path / "new")
    await filled.store_many([*TALK, ("queue", QUEUE, {"team": "billing"})])
    await filled.store_decision(DECISION)
    await filled.store_pattern(PATTERN)
    await filled.end_session("s", "We agreed on Redis.", "2026-02-02T00:00:00+00:00")
    await filled.store_relationship("queue", "a0", "relies on")

    for query in ("Where are idempotency keys stored?", "To which queue do refunds go?", "When do we ship?"):
        one, other = [await memory.search_similar(query, k=10) for memory in (converted, filled)]
        assert one[0].key == other[0].key
        assert {each.key: each.score for each in one} == pytest.approx(
            {each.key: each.score for each in other}, abs=0.03
        )


@pytest.mark.parametrize(
    ("old", "shelf", "book"),
    [
        ("knowledge-documents", "knowledge", "documents"),
        ("index-documents", "", "index documents"),
        ("code\x1findex-code", "code", "index code"),
        ("commits\x1findex-commits", "commits", "index"),
        ("values\x1findex-values", "values", "index"),
    ],
)
async def test_ledgers_of_indexers_become_notes(tmp_path: Path, old: str, shelf: str, book: str) -> None:
    noted = [Old("memory", "a.md", "a.md", {"digest": "x", "kind": "memory"})]
    ledger(tmp_path, f"default\x1f{old}", noted)
    memory = ChromaMemory(tmp_path)

    place = memory.beside(shelf) if shelf else memory

    assert await place.notes(book) == {"a.md": {"digest": "x"}}
    assert await place.every() == []


async def test_without_chromas_file_the_names_that_this_package_gives_are_known(tmp_path: Path) -> None:
    ledger(tmp_path, "default", [Old("memory", "k", KEYS, {})])
    ledger(tmp_path, "default\x1fexperiences-full", [Old("memory", "e", "A cache was stale.", {})])

    memory = ChromaMemory(tmp_path)

    assert [each.content for each in await memory.every()] == [KEYS]
    assert [each.key for each in await memory.beside("experiences-full").every()] == ["e"]


async def test_a_folder_is_converted_once_and_says_how_far_it_is(tmp_path: Path, logged: list[dict[str, Any]]) -> None:
    folder = old_folder(tmp_path)
    memory = ChromaMemory(folder)

    await memory.search_similar("keys")
    events = [event for event in logged if event["event"].startswith("memory.")]
    memory.close()
    before = (folder / "memory.sqlite3").read_bytes()
    await ChromaMemory(folder, namespace="acme").search_similar("zebra")

    assert [event["event"] for event in events] == ["memory.converting"] * 5 + ["memory.converted"]
    assert {event["shelf"] for event in events[:-1]} == {"", "code", "code/index-code", "mine/deep"}
    assert [event["records"] for event in events] == sorted(event["records"] for event in events)
    assert (events[-1]["records"], events[-1]["shelves"], events[-1]["memory"]) == (11, 5, str(folder))
    assert [event for event in logged if event["event"].startswith("memory.")] == events
    assert (folder / "memory.sqlite3").read_bytes() == before


async def test_the_conversion_of_a_large_ledger_says_how_far_it_is(
    tmp_path: Path, logged: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langgraph_scrum_master.memory.migrate.BATCH", 10)
    ledger(tmp_path, "default", many(25))

    await ChromaMemory(tmp_path).every()

    assert [event["records"] for event in logged if event["event"] == "memory.converting"] == [10, 20, 25]


async def test_the_old_files_are_removed_when_all_has_arrived(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    (folder / "mine.txt").write_text("not ours")

    await ChromaMemory(folder).every()

    assert names(folder) == ["memory.sqlite3", "mine.txt"]


async def test_chromas_files_stay_if_they_hold_other_collections(tmp_path: Path, logged: list[dict[str, Any]]) -> None:
    ledger(tmp_path, "default", [Old("memory", "k", KEYS, {})])
    chroma(tmp_path, ["default"], others=["theirs"])
    before = contents(tmp_path)

    found = await ChromaMemory(tmp_path).every()

    left = contents(tmp_path)
    assert [each.key for each in found] == ["k"]
    assert {name: left[name] for name in ("chroma.sqlite3", "data_level0.bin")} == {
        name: before[name] for name in ("chroma.sqlite3", "data_level0.bin")
    }
    assert not [name for name in left if name.startswith("ledger-")]
    assert [event["reason"] for event in logged if event["event"] == "memory.chroma_kept"] == [
        "it holds other collections"
    ]


def unreadable_data(folder: Path) -> None:
    (path,) = folder.glob(f"ledger-{digest('shared', 'acme')}*.sqlite3")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE records SET data = '{broken'")


def readable_data(folder: Path) -> None:
    (path,) = folder.glob(f"ledger-{digest('shared', 'acme')}*.sqlite3")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE records SET data = '{}'")


def add_strangers_ledger(folder: Path) -> None:
    ledger(folder, "stranger", [Old("memory", "k", KEYS, {})])


def remove_strangers_ledger(folder: Path) -> None:
    (folder / f"ledger-{digest('shared', 'stranger')}.sqlite3").unlink()


def add_other_embedder(folder: Path) -> None:
    (folder / f"ledger-{digest('shared', 'acme')}.sqlite3").unlink()
    ledger(folder, "acme", [Old("memory", "z", "The zebra is striped.", {})], embedder="HashEmbedder")


def remove_other_embedder(folder: Path) -> None:
    (path,) = folder.glob(f"ledger-{digest('shared', 'acme')}*.sqlite3")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE tally SET value = 'StaticEmbedder' WHERE name = 'embedder'")


@pytest.mark.parametrize(
    ("harm", "undo", "message"),
    [
        (unreadable_data, readable_data, "cannot be used: JSONDecodeError"),
        (add_strangers_ledger, remove_strangers_ledger, "its namespace is not named anywhere in the folder"),
        (add_other_embedder, remove_other_embedder, "was filled with 'HashEmbedder': open it with that embedder"),
    ],
    ids=["unreadable", "unknown namespace", "other embedder"],
)
async def test_a_folder_that_cannot_be_converted_is_reported_and_stays_unchanged(
    tmp_path: Path, harm: Any, undo: Any, message: str
) -> None:
    folder = old_folder(tmp_path)
    harm(folder)
    before = contents(folder)

    for call in ("search_similar", "get_decisions_by_agent"):
        with pytest.raises(StoreError, match=message):
            await getattr(ChromaMemory(folder), call)("keys")
    after = contents(folder)
    undo(folder)

    assert {name: after.get(name) for name in before} == before
    assert "memory.sqlite3" not in after
    assert len(await ChromaMemory(folder).every()) == 4
    assert names(folder) == ["memory.sqlite3"]


class Topics:
    """A model that counts the texts it embeds."""

    def __init__(self) -> None:
        self.texts = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += len(texts)
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [0.6, 0.8, 0.0] if "physician" in text.lower() else [0.0, 0.0, 1.0]


async def test_the_vectors_of_an_embedder_are_taken_over(tmp_path: Path) -> None:
    model = Topics()
    texts = {"plants": "Plants are watered.", "cover": "Someone is off sick."}
    vectors = {"plants": [0.0, 0.0, 1.0], "cover": [0.6, 0.8, 0.0]}
    packed = {key: np.array(vector, dtype="<f2").tobytes() for key, vector in vectors.items()}
    olds = [Old("memory", key, text, {}, vector=packed[key]) for key, text in texts.items()]
    ledger(tmp_path, "default", olds, embedder="Topics")

    found = await ChromaMemory(tmp_path, embedder=model).search_similar("Which physician?")

    assert [each.key for each in found] == ["cover", "plants"]
    assert found[0].strengths["E1"] > found[1].strengths["E1"]
    assert model.texts == 0


def run(script: str, folder: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


KILLED_HALF_WAY = """
import asyncio, os, signal, sys
from langgraph_scrum_master import ChromaMemory
from langgraph_scrum_master.memory import migrate
from langgraph_scrum_master.memory.writer import Writer
migrate.BATCH, put, calls = 10, Writer.put, []
def put_or_die(*args, **options):
    calls.append(1)
    if len(calls) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return put(*args, **options)
Writer.put = put_or_die
asyncio.run(ChromaMemory(sys.argv[1]).every())
"""


def test_a_conversion_that_is_killed_half_way_leaves_the_old_files_and_is_done_at_the_next_opening(
    tmp_path: Path,
) -> None:
    ledger(tmp_path, "default", many(60))
    ledger(tmp_path, "acme", many(30))
    chroma(tmp_path, ["default", "acme"])
    before = contents(tmp_path)

    killed = run(KILLED_HALF_WAY, tmp_path)
    killed.communicate(timeout=60)
    after = contents(tmp_path)
    memory = ChromaMemory(tmp_path)
    converted = [asyncio.run(each.every()) for each in (memory, memory.for_namespace("acme"))]

    assert killed.returncode == -signal.SIGKILL
    assert {name: after.get(name) for name in before} == before
    assert "memory.sqlite3" not in after
    assert [[each.key for each in every] for every in converted] == [
        [f"k{i}" for i in range(60)],
        [f"k{i}" for i in range(30)],
    ]
    assert names(tmp_path) == ["memory.sqlite3"]
    assert asyncio.run(memory.check()).sound


KILLED_AT_THE_END = """
import asyncio, os, signal, sys
from langgraph_scrum_master import ChromaMemory
from langgraph_scrum_master.memory import migrate
migrate._remove_old = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(ChromaMemory(sys.argv[1]).every())
"""


def test_old_files_that_a_kill_has_left_are_removed_at_the_next_opening(tmp_path: Path) -> None:
    ledger(tmp_path, "default", many(5))
    chroma(tmp_path, ["default"])
    run(KILLED_AT_THE_END, tmp_path).communicate(timeout=60)
    assert (tmp_path / "memory.sqlite3").exists()

    memory = ChromaMemory(tmp_path)
    found = asyncio.run(memory.every())
    asyncio.run(memory.forget("k1"))
    memory.close()

    assert len(found) == 5
    assert names(tmp_path) == ["memory.sqlite3"]


CONVERTING = """
import asyncio, sys, structlog
from langgraph_scrum_master import ChromaMemory
structlog.configure()
asyncio.run(ChromaMemory().store_embedding("warm", "up", {}))
print("ready", flush=True)
sys.stdin.readline()
print(len(asyncio.run(ChromaMemory(sys.argv[1]).every())))
"""


def test_two_processes_may_convert_a_folder_at_once(tmp_path: Path) -> None:
    ledger(tmp_path, "default", many(800))
    chroma(tmp_path, ["default"])
    processes = [run(CONVERTING, tmp_path) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    printed = [process.communicate(timeout=60) for process in processes]

    assert [process.returncode for process in processes] == [0, 0], printed
    assert [out.splitlines()[-1] for out, _ in printed] == ["800", "800"]
    assert sum("memory.converted" in f"{out}{errors}" for out, errors in printed) == 1
    assert names(tmp_path) == ["memory.sqlite3"]
    assert asyncio.run(ChromaMemory(tmp_path).check()).sound


async def test_two_instances_may_convert_a_folder_at_once(tmp_path: Path) -> None:
    folder = old_folder(tmp_path)
    one, other = ChromaMemory(folder), ChromaMemory(folder, namespace="acme")

    found = await asyncio.gather(one.every(), other.every(), one.beside("code").every())

    assert [len(every) for every in found] == [4, 1, 1]
    assert names(folder) == ["memory.sqlite3"]


def test_a_folder_is_converted_from_the_shell_too(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["memory", "check", "-m", str(old_folder(tmp_path / "old")), "--json"])

    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout[done.stdout.index("{") :])["records"] == 9
    assert names(tmp_path / "old") == ["memory.sqlite3"]


def test_an_unconverted_memory_has_begun(tmp_path: Path) -> None:
    assert ChromaMemory(old_folder(tmp_path)).begun


async def test_an_updated_turn_keeps_its_place_in_its_session(tmp_path: Path) -> None:
    turns = many(3)
    ledger(tmp_path, "default", [turns[1], turns[2], turns[0]])

    await ChromaMemory(tmp_path).every()

    with closing(sqlite3.connect(tmp_path / "memory.sqlite3")) as database:
        in_order = database.execute("SELECT key FROM records ORDER BY position").fetchall()
    assert in_order == [("k0",), ("k1",), ("k2",)]


async def test_a_ledger_that_was_never_completed_costs_no_record(tmp_path: Path) -> None:
    ledger(tmp_path, "default", [], complete=False)
    chroma(tmp_path, ["default"])

    with pytest.raises(StoreError):
        await ChromaMemory(tmp_path).every()

    assert "chroma.sqlite3" in names(tmp_path)
