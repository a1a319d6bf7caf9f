"""`scrum-master memory list`, `show`, `edit`, `forget`, `export` and `import`, as processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import Answer, run


def memory(project: Path, *arguments: str) -> Answer:
    return run("memory", *arguments, cwd=project)


def found(project: Path, *arguments: str) -> Any:
    done = memory(project, *arguments, "--json")
    assert done.code == 0, done
    return json.loads(done.out)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    rows = [{"key": f"n{i}", "content": f"Note {i} on refunds.\x1b[31m"} for i in range(5)]
    rows.append({"key": "abc", "content": "Fix refunds", "shelf": "commits"})
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert memory(tmp_path, "import", "rows.jsonl").code == 0
    return tmp_path


def test_records_are_listed_page_by_page_the_last_first(project: Path) -> None:
    first, second = found(project, "list", "--limit", "3"), found(project, "list", "--limit", "3", "--offset", "3")

    assert [row["key"] for row in first["records"]] == ["n4", "n3", "n2"]
    assert [row["key"] for row in second["records"]] == ["n1", "n0"]
    assert first["total"] == second["total"] == 5
    shown = memory(project, "list", "--limit", "3").out
    assert "3 of 5 records: --offset 3 shows the next ones." in shown
    assert "\x1b" not in shown
    assert [row["key"] for row in found(project, "list", "--shelf", "commits")["records"]] == ["abc"]


def test_a_record_is_shown_changed_and_keeps_its_key(project: Path) -> None:
    changed = found(project, "edit", "n1", "--text", "Refunds go to v2.", "--tag", "money", "--verified")
    shown = found(project, "show", "n1")

    assert changed["content"] == shown["content"] == "Refunds go to v2."
    assert (shown["key"], shown["metadata"]["tags"]) == ("n1", ["money"])
    assert shown["metadata"]["verification_status"] == "verified"
    assert found(project, "edit", "n1", "--importance", "0.9")["metadata"]["tags"] == ["money"]
    assert "Refunds go to v2." in memory(project, "search", "where do refunds go?").out


def test_what_is_exported_forgotten_and_imported_is_as_it_was(project: Path) -> None:
    memory(project, "export", "all.jsonl")
    forgotten = found(project, "forget", "n0", "n1")
    of_commits = found(project, "forget", "abc", "--shelf", "commits")
    memory(project, "import", "all.jsonl")

    assert (forgotten["forgotten"], of_commits["forgotten"]) == (2, 1)
    memory(project, "export", "again.jsonl")
    assert sorted((project / "again.jsonl").read_text().splitlines()) == sorted(
        (project / "all.jsonl").read_text().splitlines()
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["show", "nothing"], "there is no record 'nothing'"),
        (["edit", "nothing", "--text", "x"], "there is no memory 'nothing'"),
        (["edit", "n1"], "nothing to change: give text, category"),
        (["edit", "n1", "--category", "gossip"], "category must be one of preference, fact"),
        (["list", "--kind", "gossip"], "kind must be one of memory, decision"),
        (["list", "--shelf", "gossip"], "there is no shelf 'gossip': the shelves are ['commits']"),
        (["list", "--pages"], "No such option"),
    ],
)
def test_bad_input_is_an_error_that_names_what_would_do(project: Path, arguments: list[str], told: str) -> None:
    done = memory(project, *arguments)

    assert (done.code, done.out) == (2, "")
    assert told in " ".join(done.log.split())
