from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from langgraph_scrum_master import ChromaMemory, ConfigError, InjectionConfig, ScrumMaster
from langgraph_scrum_master._internal.settings import number_between, setting
from langgraph_scrum_master.config import DEFAULT_MAX_CONTEXT_ITEMS, DEFAULT_MIN_RELEVANCE_SCORE
from settings_table import PAGE, settings_table, with_table


def test_the_defaults_are_the_documented_ones() -> None:
    config = InjectionConfig()

    assert (config.max_context_items, config.min_relevance_score) == (5, 0.7)
    assert (config.max_context_items, config.min_relevance_score) == (
        DEFAULT_MAX_CONTEXT_ITEMS,
        DEFAULT_MIN_RELEVANCE_SCORE,
    )
    assert config.max_context_size_bytes == 100_000
    assert config.enabled_sources == ("memory", "state")
    assert config.log_injections is True


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_context_items", 0),
        ("max_context_items", 2.5),
        ("max_context_items", True),
        ("min_relevance_score", 1.2),
        ("min_relevance_score", "high"),
        ("max_context_size_bytes", -1),
        ("max_context_tokens", 0),
        ("deadline", 0),
        ("deadline", float("nan")),
        ("view_window", -1),
        ("max_attempts", 0),
        ("deliver", "carrier pigeon"),
        ("escalate", "panic"),
        ("enabled_sources", ("memroy",)),
        ("enabled_sources", "memory"),
        ("namespace", ""),
        ("requirements", {"dev": "architecture_decisions"}),
        ("requirements", ["dev"]),
        ("requirements", {"dev": [1]}),
        ("enabled_sources", (["memory"],)),
        ("log_injections", "no"),
        ("architecture_path", 7),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_itself(field: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"{field} must be .*, got ") as refused:
        InjectionConfig(**{field: value})

    shown = value["dev"] if isinstance(value, dict) else value
    assert str(refused.value).endswith(repr(shown))


def test_an_architecture_folder_that_nobody_would_read_is_refused() -> None:
    with pytest.raises(ConfigError, match="'architecture' is not in enabled_sources"):
        InjectionConfig(architecture_path="docs/adr")


def test_a_scrum_master_refuses_a_config_of_another_type() -> None:
    with pytest.raises(ConfigError, match=r"config must be an InjectionConfig, got \{'max_context_items': 3\}"):
        ScrumMaster(config={"max_context_items": 3})  # type: ignore[arg-type]


FROM_ENVIRONMENT = {
    "max_context_items": ("2", 2),
    "min_relevance_score": ("0.5", 0.5),
    "max_context_size_bytes": ("900", 900),
    "enabled_sources": ("memory, architecture", ("memory", "architecture")),
    "log_injections": ("no", False),
    "max_context_tokens": ("300", 300),
    "deadline": ("0.5", 0.5),
    "assistant_deadline": ("4.5", 4.5),
    "max_concurrent": ("3", 3),
    "assumptions": ("true", True),
    "view_window": ("7", 7),
    "max_attempts": ("1", 1),
    "deliver": ("message", "message"),
    "escalate": ("interrupt", "interrupt"),
    "user_questions": ("leave", "leave"),
    "architecture_path": ("docs/adr", "docs/adr"),
    "namespace": ("acme", "acme"),
    "requirements": ('{"dev": ["story"]}', {"dev": ("story",)}),
}


def test_the_environment_configures_every_field() -> None:
    environment = {f"SCRUM_MASTER_{name.upper()}": text for name, (text, _) in FROM_ENVIRONMENT.items()}

    config = InjectionConfig.from_env({**environment, "UNRELATED": "x"})

    assert {name: getattr(config, name) for name in FROM_ENVIRONMENT} == {
        n: v for n, (_, v) in FROM_ENVIRONMENT.items()
    }
    assert {field.name for field in fields(InjectionConfig)} == set(FROM_ENVIRONMENT)


def test_an_empty_variable_counts_for_nothing() -> None:
    assert InjectionConfig.from_env({"SCRUM_MASTER_ARCHITECTURE_PATH": ""}) == InjectionConfig()


def test_the_reference_has_the_table_of_the_declared_settings() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == with_table(page, settings_table()), "run python tests/settings_table.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class CooldownConfig(InjectionConfig):
    """One more setting: all of it is this declaration."""

    cooldown: float = setting(1.5, number_between(0, 60))
    """Seconds between two injections | for one agent."""


def test_a_new_setting_is_read_from_its_variable() -> None:
    environ = {"SCRUM_MASTER_COOLDOWN": "4", "SCRUM_MASTER_MAX_ATTEMPTS": "1"}

    config = CooldownConfig.from_env(environ)

    assert (config.cooldown, config.max_attempts, CooldownConfig().cooldown) == (4.0, 1, 1.5)
    with pytest.raises(ConfigError, match="SCRUM_MASTER_COOLDOWN must be a number, got 'long'"):
        CooldownConfig.from_env({"SCRUM_MASTER_COOLDOWN": "long"})


def test_a_new_setting_is_checked() -> None:
    with pytest.raises(ConfigError, match="cooldown must be a number from 0 to 60, got 61"):
        CooldownConfig(cooldown=61)


def test_a_new_setting_is_plain_data_like_the_others() -> None:
    config = CooldownConfig(cooldown=2)

    assert CooldownConfig.from_dict(config.to_dict()) == config
    assert config.to_dict()["cooldown"] == 2


def test_a_new_setting_has_a_row_in_the_documentation() -> None:
    row = "| `cooldown` | 1.5 | `SCRUM_MASTER_COOLDOWN` | Seconds between two injections \\| for one agent. |\n"

    assert settings_table([CooldownConfig]) == settings_table([InjectionConfig]) + row


def test_a_dict_as_default_is_not_shared() -> None:
    assert InjectionConfig().requirements is not InjectionConfig().requirements


def test_the_scrum_master_reads_its_parts_from_the_environment(tmp_path: Path) -> None:
    environ = {"SCRUM_MASTER_MEMORY_PATH": str(tmp_path / "memory"), "SCRUM_MASTER_MAX_CONTEXT_ITEMS": "2"}

    made = ScrumMaster.from_env(environ, memory_path="elsewhere", max_attempts=1)

    assert isinstance(made.memory, ChromaMemory)
    assert (made.config.max_context_items, made.config.max_attempts) == (2, 1)
    assert ScrumMaster.from_env({}, memory_path=None).memory is None


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("SCRUM_MASTER_MAX_CONTEXT_ITEMS", "many", "a whole number"),
        ("SCRUM_MASTER_MIN_RELEVANCE_SCORE", "high", "a number"),
        ("SCRUM_MASTER_LOG_INJECTIONS", "perhaps", "true or false"),
        ("SCRUM_MASTER_REQUIREMENTS", "dev: story", "a JSON object"),
    ],
)
def test_a_bad_variable_is_refused_by_its_name(variable: str, value: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"{variable} must be {expected}, got '{value}'"):
        InjectionConfig.from_env({variable: value})
