"""Names of namespaces: one rule for all memories, settings, runs and commands, and no name that stands for another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from typer.testing import CliRunner

from langgraph_scrum_master import ChromaMemory, ConfigError, InjectionConfig, Memory, PostgresMemory, StoreMemory
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.cli.memory import DEFAULT_MEMORY
from langgraph_scrum_master.dialogue.turn_store import TurnRecords

FORGED = ["acme\x1fcode", "acme\x1f", "\x00", "a\nb", "acme\x7f", "acme\x9b", "acme\u200b", "acme\u202e", " ", "\ud800"]
OPENERS: dict[str, Callable[[str, Path], Any]] = {
    "folder": lambda name, folder: ChromaMemory(folder, namespace=name),
    "process": lambda name, _: ChromaMemory(namespace=name),
    "client": lambda name, _: ChromaMemory(client=object(), namespace=name),  # type: ignore[arg-type]
    "postgres": lambda name, _: PostgresMemory("postgresql://127.0.0.1:1/none", namespace=name),
    "store": lambda name, _: StoreMemory(InMemoryStore(), namespace=name),
    "beside": lambda name, folder: ChromaMemory(folder).for_namespace(name),
    "settings": lambda name, _: InjectionConfig(namespace=name),
    "environment": lambda name, _: InjectionConfig.from_env({"SCRUM_MASTER_NAMESPACE": name}),
    "run": lambda name, _: InjectionConfig().for_run({"namespace": name}),
    "turn records": lambda name, _: TurnRecords(InMemoryStore(), namespace=name),
}


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("name", FORGED, ids=ascii)
def test_a_name_with_characters_that_are_not_seen_is_rejected(opener: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"namespace must be .*without control characters"):
        OPENERS[opener](name, tmp_path)


@pytest.mark.parametrize("command", ["memory search x", "memory stats", "memory export", "assemble x", "remember x"])
async def test_a_command_rejects_it_and_shows_nothing_of_the_shelf(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await ChromaMemory(DEFAULT_MEMORY, namespace="acme").beside("code").store_many([Memory(content="zebra", key="k")])

    done = CliRunner().invoke(app, [*command.split(), "--namespace", "acme\x1fcode"])

    assert isinstance(done.exception, ConfigError)
    assert "namespace must be" in str(done.exception)
    assert "zebra" not in done.output


@pytest.mark.parametrize("place", ["folder", "server", "store"])
async def test_a_name_that_looks_like_a_shelf_of_another_has_records_of_its_own(place: str, tmp_path: Path) -> None:
    store = InMemoryStore()

    def opened(name: str) -> Any:
        if place == "store":
            return StoreMemory(store, namespace=name)
        if place == "folder":
            return ChromaMemory(tmp_path, namespace=name)
        import chromadb
        from chromadb.config import Settings

        client = chromadb.PersistentClient(str(tmp_path), Settings(anonymized_telemetry=False))
        return ChromaMemory(client=client, namespace=name)

    await opened("acme").beside("code").store_embedding("k", "The zebra of acme.", {})

    for name in ("acme/code", "acme code", "acme.code", "acme%2Fcode", "ACME", "acme "):
        assert list(await opened(name).search_similar("zebra")) == []
        assert await opened(name).every() == []
