from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from langgraph_scrum_master import ConfigError, InjectionConfig
from langgraph_scrum_master._internal.settings import anything, setting, settings_of
from langgraph_scrum_master.briefing.settings import global_store, lenient_settings
from langgraph_scrum_master.cli.app import Commands, app
from langgraph_scrum_master.cli.settings import DECLARED, SettingValue, defaults, settings, warn_about_unknown_variables

COMMAND = str(Path(sys.executable).with_name("scrum-master"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in a project with settings."""
    settings = 'max_context_items = 3\nnamespace = "shop"\nmemory_path = "memory"\n[requirements]\ndev = ["story"]\n'
    (tmp_path / "scrum-master.toml").write_text(settings, encoding="utf-8")
    folder = tmp_path / "src" / "deep"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return tmp_path


def scrum_master(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def shown(*arguments: str) -> dict[str, dict[str, object]]:
    done = scrum_master(*arguments, "config", "show", "--json")
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.stdout))


def test_every_field_of_the_configuration_can_be_set() -> None:
    assert {field.name for field in fields(InjectionConfig)} < DECLARED.keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptConfig:
    """One more setting: all of it is this declaration."""

    transcripts: str | None = setting(None, anything(), path=True)
    """Folder of transcripts."""


def test_a_new_setting_is_a_key_of_the_file_and_a_known_variable(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (declared,) = settings_of(TranscriptConfig)
    monkeypatch.setitem(DECLARED, declared.name, declared)
    file = project / "scrum-master.toml"
    file.write_text('transcripts = "talks"', encoding="utf-8")
    variables = {"SCRUM_MASTER_TRANSCRIPTS": "elsewhere"}

    warn_about_unknown_variables(variables)

    assert capsys.readouterr().err == ""
    assert settings(file, {}) == {"transcripts": SettingValue(str(project / "talks"), str(file))}
    assert settings(file, variables) == {"transcripts": SettingValue("elsewhere", "SCRUM_MASTER_TRANSCRIPTS")}


def test_the_nearest_file_is_read_and_paths_are_relative_to_it(project: Path) -> None:
    found = shown()

    file = str(project / "scrum-master.toml")
    assert found["max_context_items"] == {"value": 3, "from": file}
    assert found["memory_path"] == {"value": str(project / "memory"), "from": file}
    assert found["requirements"] == {"value": {"dev": ["story"]}, "from": file}
    assert found["deadline"] == {"value": 2.0, "from": "default"}


def test_the_environment_wins_over_the_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRUM_MASTER_MAX_CONTEXT_ITEMS", "7")
    monkeypatch.setenv("SCRUM_MASTER_REQUIREMENTS", '{"tea": ["coverage"]}')

    found = shown()

    assert found["max_context_items"] == {"value": 7, "from": "SCRUM_MASTER_MAX_CONTEXT_ITEMS"}
    assert found["requirements"]["value"] == {"tea": ["coverage"]}


def test_another_file_can_be_named(project: Path) -> None:
    other = project / "other.toml"
    other.write_text("max_attempts = 1", encoding="utf-8")

    found = shown("--config", str(other))

    assert found["max_attempts"]["value"] == 1
    assert found["max_context_items"]["from"] == "default"


def test_settings_are_the_defaults_of_options_and_flags_win(project: Path) -> None:
    assert scrum_master("remember", "The shop closes at six.").exit_code == 0

    found = scrum_master("memory", "search", "When does the shop close?", "--json")
    elsewhere = scrum_master("memory", "search", "When does the shop close?", "--namespace", "default", "--json")

    assert [each["content"] for each in json.loads(found.stdout)] == ["The shop closes at six."]
    assert json.loads(elsewhere.stdout) == []


def test_the_deadline_of_sources_is_not_that_of_a_whole_hook() -> None:
    given = {
        "deadline": SettingValue("0.1", "SCRUM_MASTER_DEADLINE"),
        "namespace": SettingValue("shop", "SCRUM_MASTER_NAMESPACE"),
    }

    assert defaults(Commands()["hook"], given)["user-prompt-submit"] == {"namespace": "shop"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("budgets = 1", "has unknown settings ['budgets']: settings are"),
        ("memroy_path = 'x'", "has unknown settings ['memroy_path']: did you mean memory_path? Settings are"),
        ("max_context_items = 'many'", "max_context_items must be a whole number, 1 or more, got 'many'"),
        ("max_context_items = ", "is not TOML"),
    ],
)
def test_an_invalid_setting_is_reported(project: Path, written: str, expected: str) -> None:
    (project / "scrum-master.toml").write_text(written, encoding="utf-8")

    failed = scrum_master("config", "show")

    assert isinstance(failed.exception, ConfigError)
    assert expected in str(failed.exception)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("MEMORY_INJECTION_LIMIT", "abc", "a whole number, 0 or more, got 'abc'"),
        ("MEMORY_INJECTION_LIMIT", "-1", "a whole number, 0 or more, got '-1'"),
        ("MEMORY_RELEVANCE_WEIGHT", "7", "a number from 0 to 1, got '7'"),
        ("MEMORY_INJECTION_ENABLED", "perhaps", "true or false, got 'perhaps'"),
    ],
)
def test_an_invalid_briefing_setting_is_reported(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, expected: str
) -> None:
    monkeypatch.setenv(f"SCRUM_MASTER_{name}", text)

    failed = scrum_master("config", "show")

    assert str(failed.exception) == f"SCRUM_MASTER_{name} must be {expected}"


def test_settings_of_briefings_are_shown_as_they_are_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRUM_MASTER_MEMORY_INJECTION_LIMIT", "3")
    monkeypatch.setenv("SCRUM_MASTER_MEMORY_INJECTION_ENABLED", "no")

    found = {name: each["value"] for name, each in shown().items()}

    assert (found["memory_injection_limit"], found["memory_injection_enabled"]) == (3, False)
    assert Path(str(found["global_store"])).expanduser() == global_store(None, {})


def test_a_briefing_takes_its_settings_from_the_file_and_only_warns_of_a_broken_one(project: Path) -> None:
    bank = project / "docs" / "knowledge-bank"
    bank.mkdir(parents=True)
    lessons = "".join(f"### Pattern: Lesson {i}\nDo it in way {i}.\n- Observation count: 1\n\n" for i in range(5))
    (bank / "patterns.md").write_text(lessons, encoding="utf-8")
    file, root = project / "scrum-master.toml", str(project)
    file.write_text('memory_injection_limit = 2\nglobal_store = "elsewhere"', encoding="utf-8")
    limited = scrum_master("brief", "--project-root", root)
    file.write_text("memory_injection_limit = ", encoding="utf-8")
    done = subprocess.run([COMMAND, "brief", "--project-root", root], capture_output=True, text=True, check=False)

    assert "2 entries (2 local, 0 global)" in limited.stdout
    assert (done.returncode, "is not TOML" in done.stderr) == (0, True)
    assert "5 entries" in done.stdout


def test_a_missing_file_is_reported(project: Path) -> None:
    failed = scrum_master("--config", "nowhere.toml", "version")

    assert "cannot read 'nowhere.toml'" in str(failed.exception)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SCRUM_MASTER_MEMROY_PATH", "did you mean SCRUM_MASTER_MEMORY_PATH?"),
        ("SCRUM_MASTER_BUDGETS_OF_ALL", "`scrum-master config show` lists all settings"),
    ],
)
def test_an_unknown_variable_is_reported_and_ignored(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: str
) -> None:
    monkeypatch.setenv(name, "x")
    monkeypatch.setenv("SCRUM_MASTER_CONFIG", str(project / "scrum-master.toml"))
    monkeypatch.setenv("SCRUM_MASTER_EMPTY", "")

    done = scrum_master("config", "show", "--json")

    assert done.stderr == f"scrum-master: {name} is not a setting and is ignored: {expected}\n"
    assert json.loads(done.stdout)["memory_path"]["value"] == str(project / "memory")


def test_a_fast_command_reports_unknown_variables_too(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRUM_MASTER_GLOBAL_STOER", "x")

    done = subprocess.run([COMMAND, "brief"], capture_output=True, text=True, check=False)

    assert done.returncode == 0
    assert done.stderr.count("did you mean SCRUM_MASTER_GLOBAL_STORE?") == 1


def test_a_settings_file_to_start_from_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = shown()

    assert scrum_master("config", "write").output == "Wrote scrum-master.toml.\n"

    assert shown() == before
    assert settings(tmp_path / "scrum-master.toml", {}) == {}


def test_every_setting_of_the_file_has_its_default_when_its_comment_is_removed(tmp_path: Path) -> None:
    text = scrum_master("config", "write", "--print").output
    assigned = [line[2:] for line in text.splitlines() if line.startswith("# ") and line[2:].split(" ")[0] in DECLARED]
    file = tmp_path / "scrum-master.toml"
    file.write_text("\n".join(line for line in assigned if not line.endswith('""')), encoding="utf-8")

    assert [line.split(" ")[0] for line in assigned] == list(DECLARED)
    given = {name: each.value for name, each in settings(file, {}).items() if not DECLARED[name].path}
    known = {name: each.default for name, each in DECLARED.items() if name in given}
    assert given == {name: list(each) if isinstance(each, tuple) else each for name, each in known.items()}


@pytest.mark.parametrize("options", [(), ("--briefing",)])
def test_an_existing_settings_file_is_not_overwritten_unless_asked_for(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    call = ("config", "write", *options, "--folder", str(tmp_path))
    assert scrum_master(*call).exit_code == 0
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    file.write_text("mine", encoding="utf-8")

    refused = scrum_master(*call)

    assert file.read_text(encoding="utf-8") == "mine"
    assert "pass --force to overwrite it" in str(refused.exception)
    assert scrum_master(*call, "--force").exit_code == 0
    assert "memory_relevance_weight" in file.read_text(encoding="utf-8")


def test_the_settings_of_briefings_are_read_from_the_file_to_start_from(tmp_path: Path) -> None:
    scrum_master("config", "write", "--briefing", "--folder", str(tmp_path))
    file = tmp_path / ".claude" / "scrum-master.local.md"
    warnings: list[str] = []

    defaults = lenient_settings(tmp_path, {}, {}, warnings.append)
    file.write_text(
        file.read_text(encoding="utf-8").replace("# memory_relevance_weight: 0.6", "memory_relevance_weight: 0")
    )

    assert defaults["memory_relevance_weight"] == 0.6
    assert lenient_settings(tmp_path, {}, {}, warnings.append) == {**defaults, "memory_relevance_weight": 0.0}
    assert warnings == []
