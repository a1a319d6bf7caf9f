from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from langgraph_scrum_master import ConfigError, InjectionConfig, ScrumMaster
from langgraph_scrum_master.config import DEFAULT_MAX_CONTEXT_ITEMS, DEFAULT_MIN_RELEVANCE_SCORE


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


def test_the_reference_lists_every_field_with_its_variable_and_default() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference.md").read_text(encoding="utf-8")

    for field in fields(InjectionConfig):
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{field.name}`")]
        assert f"`SCRUM_MASTER_{field.name.upper()}`" in row
        if isinstance(field.default, int | float) and not isinstance(field.default, bool):
            assert f"| {field.default} |" in row


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
