"""`scrum-master hook install` and `uninstall`, with the settings of Claude Code."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_hooks import COMMAND, Answer, run

FOREIGN = {
    "permissions": {"allow": ["Bash(npm test:*)"]},
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "notify-send 'Fertig: Größe'"}]}],
        "PreToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "scrum-master-lint hook \"it's"}]}],
    },
    "model": "opus",
}


def install(project: Path, *options: str, name: str = "install", **environment: Any) -> Answer:
    return run("hook", name, *options, cwd=project, **environment)


def settings(project: Path, name: str = "settings.json") -> Path:
    return project / ".claude" / name


def commands(loaded: dict[str, Any]) -> dict[str, list[str]]:
    return {
        event: [handler["command"] for group in groups for handler in group["hooks"]]
        for event, groups in loaded["hooks"].items()
    }


def test_without_settings_the_hooks_are_written_shown_and_removed_again(tmp_path: Path) -> None:
    done = install(tmp_path)
    written = json.loads(settings(tmp_path).read_text())
    again = install(tmp_path)
    removed = install(tmp_path, name="uninstall")

    memory = tmp_path / ".scrum-master" / "memory"
    assert json.loads(install(tmp_path, "--json").out)["changed"] is True
    assert json.loads(install(tmp_path, "--json", name="uninstall").out)["settings"] == {}
    assert set(written) == {"hooks"}
    assert commands(written)["UserPromptSubmit"] == [f"{COMMAND} hook user-prompt-submit --memory {memory}"]
    assert commands(written)["SessionStart"] == [f"{COMMAND} hook session-start"]
    assert set(written["hooks"]) == {
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
        "PreCompact",
        "SessionEnd",
    }
    assert '+    "UserPromptSubmit": [' in done.out
    assert "There is no memory in" in done.log
    assert "nothing was changed" in again.out
    assert "Removed" in removed.out
    assert not settings(tmp_path).exists()


def test_hooks_and_settings_of_others_stay_as_they_are(tmp_path: Path) -> None:
    file = settings(tmp_path)
    file.parent.mkdir()
    before = json.dumps(FOREIGN, indent=4, ensure_ascii=False) + "\n"
    file.write_text(before)
    file.chmod(0o600)

    install(tmp_path)
    with_ours = json.loads(file.read_text())
    install(tmp_path, "--memory", "elsewhere")
    moved = json.loads(file.read_text())
    install(tmp_path, name="uninstall")

    assert {name: with_ours[name] for name in ("permissions", "model")} == {
        "permissions": FOREIGN["permissions"],
        "model": "opus",
    }
    assert with_ours["hooks"]["PreToolUse"] == FOREIGN["hooks"]["PreToolUse"]  # type: ignore[index]
    assert commands(with_ours)["Stop"][0] == "notify-send 'Fertig: Größe'"
    assert len(commands(with_ours)["Stop"]) == len(commands(moved)["Stop"]) == 2
    assert commands(moved)["Stop"][1].endswith(str(tmp_path / "elsewhere"))
    assert file.read_text() == before
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{broken", "is not valid JSON"),
        ('{"model": "a", "model": "b"}', "occur more than once"),
        ("[]", "must be a JSON object"),
        ('{"hooks": {"Stop": "echo"}}', "'hooks' must be an object of lists"),
    ],
)
def test_settings_that_cannot_be_kept_are_an_error_and_stay(tmp_path: Path, content: str, why: str) -> None:
    settings(tmp_path).parent.mkdir()
    settings(tmp_path).write_text(content)

    for name in ("install", "uninstall"):
        done = install(tmp_path, name=name)
        assert (done.code, done.out) == (2, "")
        assert why in done.log
    assert settings(tmp_path).read_text() == content
    assert [each.name for each in settings(tmp_path).parent.iterdir()] == ["settings.json"]


def test_the_user_s_settings_are_for_all_projects_and_a_link_stays_a_link(tmp_path: Path) -> None:
    home, repository = tmp_path / "home", tmp_path / "dotfiles.json"
    (home / ".claude").mkdir(parents=True)
    repository.write_text("{}")
    (home / ".claude" / "settings.json").symlink_to(repository)

    done = install(tmp_path, "--user", HOME=str(home), CLAUDE_CONFIG_DIR="")

    assert done.code == 0, done
    assert commands(json.loads(repository.read_text()))["Stop"] == [f"{COMMAND} hook stop"]
    assert (home / ".claude" / "settings.json").is_symlink()


def test_printing_writes_nothing_and_gives_pure_json(tmp_path: Path) -> None:
    done = install(tmp_path, "--print", "--namespace", "shop")

    assert commands(json.loads(done.out))["Stop"][0].endswith("--namespace shop")
    assert list(tmp_path.iterdir()) == []


def test_only_one_place_can_be_chosen(tmp_path: Path) -> None:
    done = install(tmp_path, "--user", "--local")

    assert (done.code, done.out) == (2, "")
    assert "only one of --project, --local and --user" in done.log


def test_installed_hooks_work_from_any_folder_and_with_any_path(tmp_path: Path) -> None:
    project, away = tmp_path / "a shop", tmp_path / "away"
    project.mkdir()
    away.mkdir()
    run("remember", "Idempotency keys are kept in Redis for 24 hours.", cwd=project)
    install(project, "--local")
    (command,) = commands(json.loads(settings(project, "settings.local.json").read_text()))["UserPromptSubmit"]
    event = {"session_id": "s", "cwd": str(away), "prompt": "Where are the idempotency keys kept?"}

    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": os.environ["PYTHONPATH"]}
    done = subprocess.run(
        f"{command} --deadline 60", shell=True, cwd=away, input=json.dumps(event), text=True, capture_output=True,
        check=True, env=environment,
    )  # fmt: skip

    assert "in Redis for 24 hours" in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
