from __future__ import annotations

from typing import Any

import pytest

from langgraph_scrum_master import (
    DEFAULT_MAX_CONTEXT_ITEMS,
    DEFAULT_MIN_RELEVANCE_SCORE,
    ConfigError,
    InjectionConfig,
    ScrumMaster,
)


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
        ("enabled_sources", ("memroy",)),
        ("enabled_sources", "memory"),
        ("namespace", ""),
        ("requirements", {"dev": "architecture_decisions"}),
        ("requirements", ["dev"]),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_itself(field: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"{field} must be .*, got ") as refused:
        InjectionConfig(**{field: value})

    assert repr(value) in str(refused.value) or repr(value).strip("{}") in str(refused.value) or "dev" in repr(value)


def test_an_architecture_folder_that_nobody_would_read_is_refused() -> None:
    with pytest.raises(ConfigError, match="'architecture' is not in enabled_sources"):
        InjectionConfig(architecture_path="docs/adr")


def test_a_scrum_master_refuses_a_config_of_another_type() -> None:
    with pytest.raises(ConfigError, match=r"config must be an InjectionConfig, got \{'max_context_items': 3\}"):
        ScrumMaster(config={"max_context_items": 3})  # type: ignore[arg-type]


def test_the_environment_configures_every_simple_field() -> None:
    config = InjectionConfig.from_env(
        {
            "SCRUM_MASTER_MAX_CONTEXT_ITEMS": "2",
            "SCRUM_MASTER_MIN_RELEVANCE_SCORE": "0.5",
            "SCRUM_MASTER_ENABLED_SOURCES": "memory, architecture",
            "SCRUM_MASTER_ARCHITECTURE_PATH": "docs/adr",
            "SCRUM_MASTER_LOG_INJECTIONS": "no",
            "SCRUM_MASTER_NAMESPACE": "acme",
            "UNRELATED": "x",
        }
    )

    assert config == InjectionConfig(
        max_context_items=2,
        min_relevance_score=0.5,
        enabled_sources=("memory", "architecture"),
        architecture_path="docs/adr",
        log_injections=False,
        namespace="acme",
    )


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("SCRUM_MASTER_MAX_CONTEXT_ITEMS", "many", "a whole number"),
        ("SCRUM_MASTER_MIN_RELEVANCE_SCORE", "high", "a number"),
        ("SCRUM_MASTER_LOG_INJECTIONS", "perhaps", "true or false"),
    ],
)
def test_a_bad_variable_is_refused_by_its_name(variable: str, value: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"{variable} must be {expected}, got '{value}'"):
        InjectionConfig.from_env({variable: value})
