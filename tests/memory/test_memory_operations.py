"""Maintenance of a memory: checks, statistics, backup, export, retention and notes, in Python and from the shell."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest
from typer.testing import CliRunner, Result

from langgraph_scrum_master import ChromaMemory, Decision, Memory, PostgresMemory, StoreError
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.memory import CodePattern
from langgraph_scrum_master.memory.database_memory import DatabaseMemory
from langgraph_scrum_master.memory.records import Record
from langgraph_scrum_master.model import instant
from openers import new_database

KEYS = "We keep idempotency keys of payment requests in Redis, each for 24 hours."
QUEUE = "Refunds go to the queue billing-v2."
COMMAND = str(Path(sys.executable).with_name("scrum-master"))

Kept = TypeVar("Kept", bound=DatabaseMemory)

DECISION = Decision(id="D-1", agent_type="pm", context="We ship on Fridays.", timestamp="2026-03-01T10:00:00+00:00")
PATTERN = CodePattern(
    pattern_type="naming", name="snake", value="Functions are snake case.", created_at="2026-03-02T10:00:00+00:00"
)
MEMORIES = [
    Memory(key="keys", content=KEYS, session="s1", created_at="2026-01-01T00:00:00+00:00", agent="architect"),
    Memory(key="queue", content=QUEUE, session="s1", created_at="2026-02-01T00:00:00+00:00", metadata={"n": [1, None]}),
    Memory(key="colour", content="The landing page has a teal header.", session="s2"),
]


async def fill(memory: Kept) -> Kept:
    """Records of all kinds, a shelf, and a shelf of the shelf."""
    await memory.store_many(MEMORIES)
    await memory.store_decision(DECISION)
    await memory.store_pattern(PATTERN)
    await memory.end_session("s1", "We agreed on Redis.", "2026-02-02T00:00:00+00:00")
    await memory.store_relationship("queue", "keys", "relies on")
    await memory.beside("code").store_embedding("f", "def refund(): ...", {"path": "a.py"})
    await memory.beside("code").beside("tests").store_embedding("f", "def test_refund(): ...", {})
    await memory.save_notes("book", {"a": {"seen": 1}})
    return memory


@pytest.fixture
async def memory(tmp_path: Path) -> ChromaMemory:
    return await fill(ChromaMemory(tmp_path / "memory"))


@pytest.fixture(params=["folder", pytest.param("postgres", marks=pytest.mark.slow)])
async def either(request: pytest.FixtureRequest, tmp_path: Path) -> DatabaseMemory:
    """A memory in a folder, or in a PostgreSQL database of its own."""
    if request.param == "folder":
        return await fill(ChromaMemory(tmp_path / "memory"))
    return await fill(PostgresMemory(new_database(request.getfixturevalue("postgres_uri"))))


def change(folder: Path, *statements: str) -> None:
    """Change the file directly."""
    with closing(sqlite3.connect(folder / "memory.sqlite3")) as database, database:
        for statement in statements:
            database.execute(statement)


LOSE_POSTINGS = "INSERT INTO postings(postings) VALUES ('delete-all')"
ASKED = ("Where are idempotency keys kept?", "To which queue do refunds go?", "When do we ship?", "snake case")


async def answers(memory: DatabaseMemory) -> list[object]:
    """The search results of a memory and its shelves."""
    shelves = [memory, *(memory.beside(name) for name in await memory.shelves())]
    return [
        *[await each.search_similar(query) for each in shelves for query in ASKED],
        await memory.get_decisions_by_agent("pm"),
        await memory.get_patterns_by_type("naming"),
        await memory.last_session(),
        await memory.list_all("relationship"),
        await memory.recent("queue", "s1", "2026-01-15T00:00:00Z"),
    ]


# Checking.


async def test_a_check_counts_the_records_of_each_shelf(either: DatabaseMemory) -> None:
    await either.for_namespace("other").store_embedding("x", "Not counted.", {})

    found = await either.check()

    assert {each.shelf: each.records for each in found.shelves} == {"": 7, "code": 1, "code/tests": 1}
    assert (found.sound, found.rebuilt, found.records, found.problems) == (True, False, 9, ())


async def test_a_memory_that_nothing_was_stored_in_is_sound(tmp_path: Path) -> None:
    found = await ChromaMemory(tmp_path / "new").check()

    assert (found.sound, found.shelves) == (True, ())


async def test_a_check_names_the_shelf_that_is_damaged_and_a_rebuild_cures_all_namespaces(memory: ChromaMemory) -> None:
    other = await fill(memory.for_namespace("other"))
    expected = [await answers(each) for each in (memory, other)]
    change(Path(memory._backend.place), "UPDATE shelves SET records = 5 WHERE name = 'code' AND tenant = 'default'")
    change(Path(memory._backend.place), "UPDATE shelves SET records = 6 WHERE name = 'code' AND tenant = 'other'")

    found = await memory.check()
    rebuilt = await memory.check(rebuild=True)

    assert [(each.shelf, each.problems) for each in found.shelves if each.problems] == [
        ("code", ("the shelf counts 5 records, but has 1",))
    ]
    assert (rebuilt.sound, rebuilt.rebuilt, rebuilt.records) == (True, True, 9)
    assert (await other.check()).sound
    assert [await answers(each) for each in (memory, other)] == expected


async def test_a_rebuild_of_a_sound_memory_changes_no_answer(memory: ChromaMemory) -> None:
    expected = await answers(memory)

    rebuilt = await memory.check(rebuild=True)

    assert (rebuilt.sound, rebuilt.rebuilt) == (True, True)
    assert await answers(memory) == await answers(ChromaMemory(memory._backend.place)) == expected


async def test_after_a_rebuild_records_are_forgotten_and_stored_as_before(either: DatabaseMemory) -> None:
    await either.check(rebuild=True)

    await either.forget("colour", "D-1")
    await either.drop(("relationship",), [each.key for each in await either.list_all("relationship")])
    without, forgotten = await keys(either), await either.check()
    await fill(either)

    assert (without, forgotten.sound, forgotten.records) == (EVERY - {"colour", "D-1"}, True, 6)
    assert (await keys(either), (await either.check()).sound) == (EVERY, True)


@pytest.mark.parametrize("text", [" ", "…?!"])
async def test_a_text_that_has_no_words_to_find_it_by_is_no_damage(tmp_path: Path, text: str) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_many([("keys", KEYS, {}), ("odd", text, {})])

    assert (await memory.check()).sound


async def test_a_server_managed_memory_cannot_be_checked() -> None:
    import chromadb
    from chromadb.config import Settings

    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))

    with pytest.raises(StoreError, match="is managed by its server"):
        await ChromaMemory(client=client).check()


# Statistics.


async def test_statistics_show_the_size_of_each_shelf(either: DatabaseMemory) -> None:
    await either.for_namespace("acme").store_embedding("x", "Theirs.", {})

    own, code, tests = await either.statistics()
    everybody = await either.statistics(every_tenant=True)

    assert (own.namespace, own.shelf, own.records) == ("default", "", 7)
    assert own.by_kind == {"decision": 1, "memory": 3, "pattern": 1, "relationship": 1, "session": 1}
    assert (own.embedder, own.dimensions) == ("StaticEmbedder", 256)
    assert (code.shelf, code.by_kind, tests.shelf) == ("code", {"memory": 1}, "code/tests")
    assert [(each.namespace, each.shelf, each.records) for each in everybody] == [
        ("acme", "", 1),
        ("default", "", 7),
        ("default", "code", 1),
        ("default", "code/tests", 1),
    ]


async def test_statistics_follow_updates_and_forgetting(either: DatabaseMemory) -> None:
    await either.store_embedding("keys", "Changed.", {})
    await either.forget("queue", "D-1", "never there")

    own = (await either.statistics())[0]

    assert (own.records, own.by_kind) == (5, {"memory": 2, "pattern": 1, "relationship": 1, "session": 1})


# Backup.


def restored(backup: Path, folder: Path) -> ChromaMemory:
    folder.mkdir()
    shutil.copy(backup, folder / "memory.sqlite3")
    return ChromaMemory(folder)


async def test_a_backup_that_is_restored_in_a_new_folder_gives_the_same_answers(
    memory: ChromaMemory, tmp_path: Path
) -> None:
    other = memory.for_namespace("other")
    await other.store_embedding("x", "Theirs.", {})
    expected = await answers(memory)

    await memory.backup(tmp_path / "backup.sqlite3")
    await memory.forget("keys", "queue")
    again = restored(tmp_path / "backup.sqlite3", tmp_path / "again")

    assert await answers(again) == expected
    assert await again.notes("book") == {"a": {"seen": 1}}
    assert [each.content for each in await again.for_namespace("other").every()] == ["Theirs."]
    assert (await again.check()).sound
    await again.store_embedding("new", "Something new about badgers.", {})
    assert (await again.search_similar("badgers"))[0].key == "new"


async def test_a_backup_during_writes_holds_committed_records(memory: ChromaMemory, tmp_path: Path) -> None:
    file = tmp_path / "memory" / "memory.sqlite3"
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE records SET text = 'half a write'")

        await memory.backup(tmp_path / "backup.sqlite3")

    again = restored(tmp_path / "backup.sqlite3", tmp_path / "again")
    assert {each.key: each.content for each in await again.every()} == {each.key: each.content for each in MEMORIES}


async def test_a_memory_in_the_process_can_be_backed_up_too(tmp_path: Path) -> None:
    await (await fill(ChromaMemory())).backup(tmp_path / "backup.sqlite3")

    assert len(await restored(tmp_path / "backup.sqlite3", tmp_path / "again").every()) == 3


async def test_a_backup_overwrites_nothing(memory: ChromaMemory, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("precious")

    with pytest.raises(StoreError, match="kept' already exists: choose a new file"):
        await memory.backup(kept)
    with pytest.raises(StoreError, match="cannot be used: OperationalError: unable to open database"):
        await memory.backup(tmp_path / "no" / "folder")

    assert kept.read_text() == "precious"


# Export and import.


def as_rows(exported: Sequence[dict[str, Any]]) -> list[tuple[str, Record]]:
    """The export after a round trip through JSON."""
    read = [json.loads(json.dumps(row)) for row in exported]
    return [
        (row["shelf"], Record(kind=row["kind"], key=row["key"], text=row["content"], data=row["metadata"]))
        for row in read
    ]


def ignore(_done: int) -> None:
    """Ignores progress."""


async def test_an_export_can_be_imported_with_all_kinds_and_shelves(either: DatabaseMemory, tmp_path: Path) -> None:
    exported = list(either.export())
    copy = ChromaMemory(tmp_path / "copy", namespace="renamed")

    stored = await copy.import_records(as_rows(exported), ignore)

    assert stored == len(exported) == 9
    assert list(copy.export()) == exported
    assert {(row["shelf"], row["kind"]) for row in exported} == {
        *(("", kind) for kind in ("memory", "decision", "pattern", "session", "relationship")),
        ("code", "memory"),
        ("code/tests", "memory"),
    }
    assert await copy.get_decisions_by_agent("pm") == [DECISION]
    assert await copy.get_patterns_by_type("naming") == [PATTERN]
    assert (await copy.get_many(["queue"]))["queue"].memory == MEMORIES[1]
    assert (await copy.search_similar("To which queue do refunds go?"))[0].key == "queue"
    assert (await copy.beside("code").search_similar("refund"))[0].metadata["path"] == "a.py"
    assert [each.key for each in await copy.recent("queue", "s1", "2026-09-09")] == ["session:s1", "queue", "keys"]
    assert (await copy.check()).sound


async def test_only_the_own_namespace_is_exported(either: DatabaseMemory) -> None:
    await either.for_namespace("other").store_embedding("x", "Theirs.", {})

    assert [row["key"] for row in either.for_namespace("other").export()] == ["x"]
    assert "x" not in [row["key"] for row in either.export()]
    assert list(either.for_namespace("nobody").export()) == []


async def test_importing_again_changes_nothing(either: DatabaseMemory) -> None:
    exported = list(either.export())
    before = await answers(either)

    await either.import_records(as_rows(exported), ignore)

    assert list(either.export()) == exported
    assert await answers(either) == before


async def test_an_import_reports_its_progress(tmp_path: Path) -> None:
    reported: list[int] = []
    rows = [
        ("code" if i % 5 == 4 else "", Record(kind="memory", key=f"k{i}", text=f"Fact {i}.", data={}))
        for i in range(1500)
    ]

    stored = await ChromaMemory(tmp_path).import_records(rows, reported.append)

    assert (stored, reported) == (1500, [1000, 1200, 1500])


async def test_of_two_imported_rows_with_one_key_the_last_is_kept(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    rows = [("", Record(kind="memory", key="k", text=text, data={})) for text in ("The first.", "The second.")]

    await memory.import_records(rows, ignore)

    assert [each.content for each in await memory.every()] == ["The second."]


async def test_lone_surrogates_can_be_imported_as_they_can_be_stored(tmp_path: Path) -> None:
    memory, stored = ChromaMemory(tmp_path / "memory"), ChromaMemory(tmp_path / "stored")
    await stored.store_embedding("\ud800", "A \ud800 text.", {})

    await memory.import_records([("", Record(kind="memory", key="\ud800", text="A \ud800 text.", data={}))], ignore)

    assert list(memory.export()) == list(stored.export())


async def test_a_key_with_a_lone_surrogate_can_be_forgotten(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_embedding("stored \ud800", "A text.", {})

    assert await memory.forget_where(["stored \ud800"]) == 1


async def test_the_order_of_a_session_survives_an_update_and_an_export(tmp_path: Path) -> None:
    memory, copy = ChromaMemory(tmp_path / "memory"), ChromaMemory(tmp_path / "copy")
    await memory.store_many([(f"k{i}", f"Turn {i} of the talk.", {"session": "s"}) for i in range(3)])
    await memory.store_embedding("k0", "Turn 0 of the talk, corrected.", {"session": "s"})

    await copy.import_records(as_rows(list(memory.export())), ignore)

    def in_order(folder: Path) -> list[Any]:
        with closing(sqlite3.connect(folder / "memory.sqlite3")) as database:
            return database.execute("SELECT key FROM records ORDER BY position").fetchall()

    assert in_order(tmp_path / "copy") == in_order(tmp_path / "memory") == [("k0",), ("k1",), ("k2",)]


# Retention.


async def keys(memory: DatabaseMemory) -> set[str]:
    """The keys of all searchable records."""
    return {each.key for each in await memory.search_similar("anything at all", k=100)}


EVERY = {"keys", "queue", "colour", "D-1", PATTERN.id, "session:s1"}


@pytest.mark.parametrize(
    ("wanted", "gone"),
    [
        ({"keys": ["keys", "D-1", "keys", "never there"]}, {"keys", "D-1"}),
        ({"before": "2026-02-01"}, {"keys"}),
        ({"before": "2026-02-01T00:00:01"}, {"keys", "queue"}),
        ({"before": "2030-01-01"}, EVERY - {"colour"}),
        ({"before": "1990-01-01"}, set()),
        ({"session": "s1"}, {"keys", "queue", "session:s1"}),
        ({"session": "s2"}, {"colour"}),
        ({"session": "s3"}, set()),
        ({"session": ""}, set()),
        ({"keys": ["colour"], "before": "2026-02-01", "session": "s1"}, {"colour", "keys", "queue", "session:s1"}),
    ],
)
async def test_records_are_forgotten_by_key_age_and_session(
    either: DatabaseMemory, wanted: dict[str, Any], gone: set[str]
) -> None:
    options = {**wanted, "before": instant(wanted["before"])} if "before" in wanted else wanted
    other = await fill(either.for_namespace("other"))

    count = await either.forget_where(**options)

    assert (count, await keys(either)) == (len(gone), EVERY - gone)
    assert await keys(other) == EVERY
    assert len(await either.list_all("relationship")) == 1
    assert (await either.check()).sound


async def test_forgetting_in_a_missing_memory_removes_nothing(tmp_path: Path) -> None:
    assert await ChromaMemory(tmp_path).forget_where(["k"], before=1e12, session="s") == 0


async def test_thousands_of_old_records_are_forgotten_at_once(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    made = [f"{2020 + i % 2}-05-05" for i in range(2600)]
    await memory.store_many([(f"k{i}", f"Fact {i}.", {"created_at": at}) for i, at in enumerate(made)])

    gone = await memory.forget_where(before=instant("2021-01-01"))

    assert gone == 1300
    assert {each.key for each in await memory.every()} == {f"k{i}" for i in range(1, 2600, 2)}
    assert (await memory.check()).sound


# Notes.


async def test_notes_are_separate_by_book_shelf_and_namespace(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.save_notes("book", {"a": 1, "b": {"deep": [None, "ü"]}})
    await memory.save_notes("other book", {"a": 2})
    await memory.beside("code").save_notes("book", {"a": 3})
    await memory.for_namespace("other").save_notes("book", {"a": 4})

    again = ChromaMemory(tmp_path)

    assert await again.notes("book") == {"a": 1, "b": {"deep": [None, "ü"]}}
    assert await again.notes("book", ["b", "c"]) == {"b": {"deep": [None, "ü"]}}
    assert await again.notes("book", []) == {}
    assert await again.notes("other book") == {"a": 2}
    assert await again.beside("code").notes("book") == {"a": 3}
    assert await again.for_namespace("other").notes("book") == {"a": 4}
    assert await again.for_namespace("nobody").notes("book") == {}


async def test_notes_are_replaced_removed_and_found_by_no_search(tmp_path: Path) -> None:
    memory = ChromaMemory(tmp_path)
    await memory.store_embedding("queue", QUEUE, {})
    await memory.save_notes("book", {"a": 1, "b": 2, "c": 3})

    await memory.save_notes("book", {"a": "badger", "b": None, "d": 4, "e": None})

    assert await memory.notes("book") == {"a": "badger", "c": 3, "d": 4}
    assert [each.key for each in await memory.search_similar("badger", k=100)] == ["queue"]
    assert ((await memory.check()).records, len(list(memory.export()))) == (1, 1)


# From the shell.


def shell(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["memory", *map(str, arguments)], env={"COLUMNS": "200"})


def json_of(*arguments: object) -> Any:
    """The JSON output of a command."""
    done = shell(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory that was filled from the shell."""
    rows = tmp_path / "rows.jsonl"
    lines = (
        json.dumps({"key": "keys", "content": KEYS, "metadata": {"created_at": "2026-01-01", "session": "s1"}}),
        "",
        json.dumps({"key": "queue", "content": QUEUE}),
    )
    rows.write_text("\n".join(lines))
    loaded = shell("load", "-m", tmp_path / "memory", rows)
    assert (loaded.exit_code, loaded.stdout.split()[:3]) == (0, ["Stored", "2", "texts"])
    return tmp_path / "memory"


def test_a_memory_is_loaded_searched_and_checked_from_the_shell(folder: Path) -> None:
    searched = shell("search", "-m", folder, "Where are idempotency keys kept?", "-k", "1")
    checked = shell("check", "-m", folder)

    assert KEYS[:40] in searched.stdout
    assert "queue" not in searched.stdout
    assert (checked.exit_code, checked.stdout) == (0, "No problems: 2 records in 1 shelves.\n")


def test_loading_and_searching_can_print_json(folder: Path, tmp_path: Path) -> None:
    loaded = json_of("load", "-m", folder, tmp_path / "rows.jsonl", "--namespace", "shop")
    found = json_of("search", "-m", folder, "To which queue do refunds go?", "--namespace", "shop")

    assert loaded == {"kept": 2, "memory": str(folder)}
    assert [each["key"] for each in found] == ["queue", "keys"]
    assert (found[0]["content"], found[0]["metadata"]["kind"]) == (QUEUE, "memory")
    assert 1 >= found[0]["score"] >= 0.7 > found[1]["score"] >= 0


def test_the_shell_shows_whatever_was_stored(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"key": "[/k]", "content": "[/b] a\u2028b"}\n', encoding="utf-8")

    loaded = shell("load", "-m", tmp_path / "m", rows)
    searched = shell("search", "-m", tmp_path / "m", "a b")

    assert (loaded.exit_code, searched.exit_code) == (0, 0)
    assert "[/k]" in searched.stdout


def test_a_damaged_memory_exits_with_1_and_is_rebuilt_on_demand(folder: Path) -> None:
    asyncio.run(ChromaMemory(folder).beside("code").store_embedding("f", "def refund(): ...", {}))
    change(folder, LOSE_POSTINGS)

    checked = shell("check", "-m", folder)
    as_json = shell("check", "-m", folder, "--json")
    rebuilt = shell("check", "-m", folder, "--rebuild")

    assert checked.exit_code == as_json.exit_code == 1
    assert checked.stdout == (
        "2 records have no postings\ncode: 1 records have no postings\n"
        "Run again with --rebuild to rebuild everything that is derived from the records.\n"
    )
    assert json.loads(as_json.stdout) == {
        "shelves": [
            {"shelf": "", "records": 2, "problems": ["2 records have no postings"]},
            {"shelf": "code", "records": 1, "problems": ["1 records have no postings"]},
        ],
        "problems": [],
        "rebuilt": False,
        "records": 3,
        "sound": False,
    }
    assert (rebuilt.exit_code, rebuilt.stdout) == (
        0,
        "Rebuilt everything that is derived from the records.\nNo problems: 3 records in 2 shelves.\n",
    )
    assert json_of("check", "-m", folder)["sound"]


def test_statistics_are_shown_of_one_namespace_or_of_all(folder: Path, tmp_path: Path) -> None:
    shell("load", "-m", folder, tmp_path / "rows.jsonl", "--namespace", "shop")

    own, everybody = shell("stats", "-m", folder), shell("stats", "-m", folder, "--all")
    nobody = shell("stats", "-m", folder, "--namespace", "nobody")

    assert "2 memory" in own.stdout
    assert "StaticEmbedder" in own.stdout
    assert "shop" not in own.stdout
    assert "shop" in everybody.stdout
    assert nobody.stdout == "The memory is empty.\n"
    shop = {"shelf": "", "records": 2, "by_kind": {"memory": 2}, "embedder": "StaticEmbedder", "dimensions": 256}
    assert json_of("stats", "-m", folder, "--all") == [{"namespace": "default", **shop}, {"namespace": "shop", **shop}]


def test_a_backup_is_written_once_and_can_be_restored(folder: Path, tmp_path: Path) -> None:
    written = shell("backup", "-m", folder, tmp_path / "backup")
    as_json = json_of("backup", "-m", folder, tmp_path / "second")
    again = shell("backup", "-m", folder, tmp_path / "backup")
    restored(tmp_path / "backup", tmp_path / "again")

    assert written.stdout.replace("\n", "") == f"Wrote {tmp_path / 'backup'}."
    size = (tmp_path / "second").stat().st_size
    assert as_json == {"memory": str(folder), "backup": str(tmp_path / "second"), "bytes": size}
    assert "already exists: choose a new file" in str(again.exception)
    query = "Where are idempotency keys kept?"
    assert json_of("search", "-m", tmp_path / "again", query) == json_of("search", "-m", folder, query)


def test_an_export_can_be_imported_into_another_memory(folder: Path, tmp_path: Path) -> None:
    asyncio.run(fill(ChromaMemory(folder)))
    file = tmp_path / "out.jsonl"

    written, printed = shell("export", "-m", folder, file), shell("export", "-m", folder)
    imported = shell("import", "-m", tmp_path / "copy", file)
    again = json_of("import", "-m", tmp_path / "copy", file, "--namespace", "shop")

    assert written.stdout.replace("\n", "") == f"Wrote 9 records to {file}."
    assert printed.stdout == file.read_text(encoding="utf-8")
    assert imported.stdout.replace("\n", "") == f"Stored 9 records in {tmp_path / 'copy'}."
    assert again == {"stored": 9, "memory": str(tmp_path / "copy")}
    assert shell("export", "-m", tmp_path / "copy").stdout == printed.stdout
    assert shell("export", "-m", tmp_path / "copy", "--namespace", "shop").stdout == printed.stdout
    assert json_of("search", "-m", tmp_path / "copy", "When do we ship?", "-k", "1")[0]["key"] == "D-1"


def test_records_are_forgotten_from_the_shell(folder: Path) -> None:
    asyncio.run(ChromaMemory(folder).store_many(MEMORIES))

    by_age = shell("forget", "-m", folder, "--before", "2026-01-31")
    by_session = json_of("forget", "-m", folder, "--session", "s2")
    nobody = json_of("forget", "-m", folder, "queue", "--namespace", "nobody")
    left = [each["key"] for each in json_of("search", "-m", folder, "anything")]
    by_key = json_of("forget", "-m", folder, "queue", "never there")

    assert by_age.stdout == "Deleted 1 records.\n"
    assert by_session == {"forgotten": 1, "memory": str(folder)}
    assert (nobody["forgotten"], left, by_key["forgotten"]) == (0, ["queue"], 1)
    assert json_of("search", "-m", folder, "anything") == []


ROWS = {
    "good.jsonl": '{"key": "a", "content": "b"}\n',
    "number.jsonl": '{"key": "a", "content": "b"}\n7\n',
    "broken.jsonl": '{"key": "a", "content": "b"}\n\n{broken\n',
    "keyless.jsonl": '{"content": "b"}\n',
    "metadata.jsonl": '{"key": "a", "content": "b", "metadata": [1]}\n',
    "kind.jsonl": '{"key": "a", "content": "b", "kind": "poem"}\n',
    "shelf.jsonl": '{"key": "a", "content": "b", "shelf": 7}\n',
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("check -m nowhere", "there is no memory in 'nowhere': fill one, or pass its folder with --memory"),
        ("stats -m nowhere", "there is no memory in 'nowhere'"),
        ("backup -m nowhere out", "there is no memory in 'nowhere'"),
        ("export -m nowhere out", "there is no memory in 'nowhere'"),
        ("forget -m nowhere k", "there is no memory in 'nowhere'"),
        ("search -m nowhere k", "there is no memory in 'nowhere'"),
        ("check -m number.jsonl", "there is no memory in 'number.jsonl'"),
        ("load -m number.jsonl good.jsonl", "'number.jsonl' is not a folder: pass one with --memory"),
        ("load -m new nothing.jsonl", "cannot read 'nothing.jsonl'"),
        ("load -m new number.jsonl", "number.jsonl:2 must be an object with the strings 'key' and 'content', got 7"),
        ("load -m new broken.jsonl", "broken.jsonl:3 is not JSON: "),
        ("load -m new keyless.jsonl", "keyless.jsonl:1 must be an object with the strings 'key' and 'content'"),
        ("load -m new metadata.jsonl", "metadata.jsonl:1: 'metadata' must be an object, got [1]"),
        ("import -m new nothing.jsonl", "cannot read 'nothing.jsonl'"),
        ("import -m new number.jsonl", "number.jsonl:2 must be an object with the strings 'key' and 'content', got 7"),
        ("import -m new kind.jsonl", "kind.jsonl:1: 'kind' must be one of ('memory', "),
        ("import -m new shelf.jsonl", "shelf.jsonl:1: 'shelf' must be a string, got 7"),
        ("forget -m memory", "nothing to forget: pass keys, --before or --session"),
        ("forget -m memory --before yesterday", "--before must be a date such as 2026-01-31, got 'yesterday'"),
        ("search -m memory  --embedder hash k", "was filled with 'StaticEmbedder': open it with that embedder"),
        ("search -m memory --embedder magic k", "embedder must be among ('static', 'minilm', 'hash')"),
        ("search -m memory --namespace \x1f k", "namespace must be a non-empty text without control characters"),
    ],
)
def test_bad_input_is_rejected_and_nothing_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    monkeypatch.chdir(folder.parent)
    for name, content in ROWS.items():
        Path(name).write_text(content)
    before = sorted(path.name for path in folder.parent.iterdir())

    done = shell(*(each for each in arguments.split(" ") if each))

    assert message in str(done.exception)
    assert sorted(path.name for path in folder.parent.iterdir()) == before
    assert json_of("check", "-m", folder)["records"] == 2


def test_an_empty_query_is_rejected(folder: Path) -> None:
    assert "the query must not be empty" in str(shell("search", "-m", folder, " ").exception)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"this is no database" * 100, "file is not a database"), (b"SQLite format 3\x00" + bytes(4096), "database")],
)
def test_a_file_that_is_not_a_memory_exits_with_2_and_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "memory.sqlite3").write_bytes(content)

    done = subprocess.run(
        [COMMAND, "memory", "check", "-m", str(tmp_path), "--rebuild"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("scrum-master: ")
    assert message in done.stderr
    assert (tmp_path / "memory.sqlite3").read_bytes() == content
