"""Records of dialogue turns: storing, reading and the command line."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from typer.testing import CliRunner

from dialogue_builders import Books, People, a_chunk, a_dialogue, an_entity
from langgraph_scrum_master import PromptAssembler, StoreError
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.dialogue import AssembledPrompt, DialogueSession, TurnRecords
from langgraph_scrum_master.errors import ScrumMasterError

SESSION = DialogueSession(id="s1", turns=a_dialogue(20))
NOON = 1772452800.0

PATHS = {
    "budget": {"total", "system", "history", "entities", "rag", "query", "strategy"},
    "history": {
        *("summary", "summary_tokens", "verbatim_count", "total_tokens", "compressed", "compression_level"),
        *(f"turns/{i}/{name}" for i in range(6) for name in ("turn_id", "speaker", "content", "tokens")),
    },
    "entities": {
        *("count", "total_tokens"),
        *(f"0/{name}" for name in ("entity_id", "name", "type", "relevance", "tokens")),
        *("0/attributes/email", "0/attributes/department"),
    },
    "rag": {
        *("query_used", "chunks_retrieved", "chunks_selected", "reranking_used", "total_tokens"),
        *(f"chunks/0/{name}" for name in ("chunk_id", "doc_title", "relevance", "tokens")),
    },
    "system": {"base_instructions", "personality", "user_preferences", "total_tokens"},
    "assembled": {"full_prompt", "total_tokens", "under_budget"},
    "turn": {"at"},
}


@contextmanager
def in_memory(path: Path) -> Iterator[BaseStore]:
    yield InMemoryStore()


@contextmanager
def in_a_file(path: Path) -> Iterator[BaseStore]:
    with SqliteStore.from_conn_string(str(path / "records.sqlite")) as store:
        store.setup()
        yield store


@pytest.fixture(params=[in_memory, in_a_file])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    with request.param(tmp_path) as opened:
        yield opened


def assembled(records: TurnRecords, session: object = SESSION, at: float = NOON, **options: Any) -> AssembledPrompt:
    assembler = PromptAssembler(
        instructions="You answer for the mill.",
        entities=People(an_entity()),
        knowledge=Books(a_chunk("Paper is wood.")),
        records=records,
        clock=lambda: at,
    )
    return assembler.assemble("What is paper?", session, **options)


def test_a_turn_is_stored_by_paths(store: BaseStore) -> None:
    prompt = assembled(TurnRecords(store))

    stored = TurnRecords(store).paths("s1", "turn-21")

    assert set(stored) == {f"/context/s1/turn-21/{name}/{path}" for name, paths in PATHS.items() for path in paths}
    values = {path.removeprefix("/context/s1/turn-21/"): value for path, value in stored.items()}
    assert (values["budget/total"], values["budget/strategy"]) == (4096, "dynamic")
    assert values["budget/history"] == prompt.budget["history"]
    assert values["history/summary"] == prompt.content.history.summary != ""
    assert values["history/verbatim_count"] == 6
    assert (values["history/compressed"], values["history/compression_level"]) == (False, "")
    assert values["history/turns/5/turn_id"] == "t20"
    assert (values["entities/count"], values["entities/0/name"], values["entities/0/type"]) == (
        1,
        "John Smith",
        "person",
    )
    assert (values["rag/query_used"], values["rag/chunks_retrieved"], values["rag/chunks_selected"]) == (
        "What is paper?",
        1,
        1,
    )
    assert (values["system/base_instructions"], values["system/personality"]) == ("You answer for the mill.", "helpful")
    assert values["assembled/full_prompt"] == prompt.text
    assert (values["assembled/total_tokens"], values["assembled/under_budget"]) == (prompt.token_count, True)
    assert values["turn/at"] == "2026-03-02T12:00:00+00:00"


def test_the_compression_of_the_history_is_stored(store: BaseStore) -> None:
    assembled(TurnRecords(store), max_tokens=220)

    history = TurnRecords(store).read("s1", "turn-21")["history"]

    assert history["compressed"] is True
    assert history["compression_level"] in ("light", "medium", "heavy", "extreme")


def test_sessions_and_their_turns_are_listed_the_oldest_turn_first(store: BaseStore) -> None:
    records = TurnRecords(store)
    for at, turn in enumerate(["z", "b", "a"]):
        assembled(records, at=NOON + at, turn_id=turn)
    assembled(records, DialogueSession(id="s10"))

    assert records.sessions() == ["s1", "s10"]
    assert records.turns("s1") == ["z", "b", "a"]
    assert records.turns("s10") == ["turn-1"]
    assert (records.turns("s"), records.read("s", "z")) == ([], {})


@pytest.mark.parametrize("odd", ["a.b", "*", "a/b%2E", "\0é\ud800", "%", "  "])
def test_any_text_is_a_distinct_id_of_a_session_or_turn(store: BaseStore, odd: str) -> None:
    records = TurnRecords(store)
    assembled(records, DialogueSession(id=odd), turn_id=odd)
    assembled(records, DialogueSession(id="other"))

    assert set(records.sessions()) == {odd, "other"}
    assert records.turns(odd) == [odd]
    assert records.read(odd, odd)["budget"]["total"] == 4096


def test_one_namespace_does_not_see_another(store: BaseStore) -> None:
    for namespace in ("", "acme", "acme2"):
        assembled(TurnRecords(store, namespace=namespace), DialogueSession(id=f"of {namespace}"))

    assert TurnRecords(store).sessions() == ["of "]
    assert TurnRecords(store, namespace="acme").sessions() == ["of acme"]


def test_assembling_a_turn_again_replaces_its_record(store: BaseStore) -> None:
    records = TurnRecords(store)
    assembled(records)
    assembled(records, max_tokens=2000)

    assert records.turns("s1") == ["turn-21"]
    assert records.read("s1", "turn-21")["budget"]["total"] == 2000


def test_records_are_not_embedded() -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        raise AssertionError(texts)

    index: Any = {"dims": 2, "embed": embed}
    records = TurnRecords(InMemoryStore(index=index))
    assembled(records)

    assert records.sessions() == ["s1"]


def test_a_store_that_fails_costs_no_prompt_and_is_told(tmp_path: Path, logged: list[dict[str, object]]) -> None:
    with in_a_file(tmp_path) as store:
        pass

    prompt = assembled(TurnRecords(store))

    assert prompt.messages
    assert [entry["event"] for entry in logged] == ["prompt.assembled", "recorder.failed"]
    with pytest.raises(StoreError, match="cannot be used"):
        TurnRecords(store).sessions()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with in_a_file(tmp_path) as store:
        assembled(TurnRecords(store), turn_id="first")
        assembled(TurnRecords(store), at=NOON + 60, turn_id="second", max_tokens=2000)
    return tmp_path / "records.sqlite"


def records_command(*arguments: object) -> str:
    wide = {"COLUMNS": "160"}
    done = CliRunner().invoke(app, ["records", *map(str, arguments)], env=wide, catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_the_command_lists_sessions_and_turns(file: Path) -> None:
    output = records_command("list", file)

    assert [line.split()[:2] for line in output.splitlines()[1:]] == [["s1", "first"], ["s1", "second"]]
    assert "dynamic" in output
    assert json.loads(records_command("list", file, "--json")) == {"s1": ["first", "second"]}
    assert records_command("list", file, "nobody") == "No records.\n"


def test_the_command_shows_a_turn_by_path_and_the_newest_if_none_is_named(file: Path) -> None:
    assert "/context/s1/first/budget/total  4096\n" in records_command("show", file, "s1", "first")
    assert "/context/s1/second/budget/total  2000\n" in records_command("show", file, "s1")
    assert json.loads(records_command("show", file, "s1", "first", "--json"))["rag"]["chunks_selected"] == 1


def test_the_command_does_not_change_the_file(file: Path) -> None:
    before = file.read_bytes()

    records_command("show", file, "s1")

    assert file.read_bytes() == before


def another_database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE others (name TEXT)")
    return path


def a_text_file(path: Path) -> Path:
    path.write_text("no database")
    return path


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (lambda file: ["show", str(file), "s1", "third"], "there is no record of turn 'third' of session 's1'"),
        (lambda file: ["show", str(file), "nobody"], "there is no record of session 'nobody'"),
        (lambda file: ["list", str(file.with_name("none.sqlite"))], "there is no store in"),
        (
            lambda file: ["list", str(a_text_file(file.with_name("text")))],
            "text' is not a LangGraph store: pass the file",
        ),
        (
            lambda file: ["list", str(another_database(file.with_name("other")))],
            "other' is not a LangGraph store: pass the file",
        ),
    ],
)
def test_records_that_cannot_be_shown_are_errors(file: Path, arguments: Any, expected: str) -> None:
    with pytest.raises(ScrumMasterError, match=expected):
        CliRunner().invoke(app, ["records", *arguments(file)], catch_exceptions=False)
