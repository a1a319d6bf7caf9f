from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import langgraph_scrum_master
from langgraph_scrum_master import ConfigError

AT_FIRST_USE = tuple(
    f"langgraph_scrum_master.{name}"
    for name in ("memory.records", "team.observe.gates", "team.observe.asking.model", "text.redact")
)
"""What takes long to load and not everybody uses."""


def in_a_fresh_process(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


ROOT_NAMES = [
    "ChromaMemory",
    "ConfigError",
    "ContextAssembler",
    "ContextGap",
    "Decision",
    "InjectionConfig",
    "InjectionPipeline",
    "InjectionResult",
    "MSGPACK_TYPES",
    "Memory",
    "PostgresMemory",
    "PromptAssembler",
    "PromptMiddleware",
    "RetrievedContext",
    "ScrumMaster",
    "ScrumMasterError",
    "ScrumMasterMiddleware",
    "ScrumMasterState",
    "SessionBriefing",
    "StoreError",
    "StoreMemory",
    "checkpoint_serde",
    "context_for",
    "detect_context_gap",
    "inject_context",
    "injection_update",
    "manage_context_injection",
    "request_context",
    "retrieve_relevant_context",
    "sm_node",
]
PACKAGES = ("briefing", "dialogue", "learning", "memory", "prompts", "team", "testing")


def test_the_root_has_these_names_and_no_other() -> None:
    assert dir(langgraph_scrum_master) == sorted(ROOT_NAMES)
    for name in ROOT_NAMES:
        assert getattr(langgraph_scrum_master, name) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_package_is_there(package: str) -> None:
    module = import_module(f"langgraph_scrum_master.{package}")

    assert dir(module)
    for name in dir(module):
        assert getattr(module, name) is not None, name


def test_all_names_can_be_imported_with_a_star() -> None:
    done = in_a_fresh_process("from langgraph_scrum_master.prompts import *; print(PromptResult.__name__)")

    assert done.stdout == "PromptResult\n", done.stderr


def test_a_name_that_is_not_there_is_told() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'ScrumLord'"):
        langgraph_scrum_master.ScrumLord  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("code", "not_loaded"),
    [
        (
            "import langgraph_scrum_master",
            ("langgraph", "langchain_core", "chromadb", "numpy", "pydantic", "structlog"),
        ),
        (
            "from langgraph_scrum_master import ScrumMaster; ScrumMaster().detect({})",
            ("langgraph", "chromadb", "numpy"),
        ),
        (
            "from langgraph_scrum_master import ScrumMaster; ScrumMaster().node",
            ("chromadb", "tokenizers", *AT_FIRST_USE),
        ),
        ("from langgraph_scrum_master import sm_node", ("chromadb", "tokenizers")),
        (
            "from langgraph_scrum_master import PromptAssembler; PromptAssembler()",
            ("langgraph", "numpy"),
        ),
    ],
)
def test_heavy_packages_are_loaded_only_when_needed(code: str, not_loaded: tuple[str, ...]) -> None:
    done = in_a_fresh_process(f"{code}\nimport sys\nprint([m for m in {not_loaded!r} if m in sys.modules])")

    assert done.stdout == "[]\n", done.stderr


def test_a_name_that_needs_an_extra_says_which() -> None:
    done = in_a_fresh_process(
        "import sys; sys.modules['langchain'] = None\nfrom langgraph_scrum_master import ScrumMasterMiddleware"
    )

    assert "needs 'langchain': pip install '.[agents]' in a clone of langgraph-scrum-master" in done.stderr


def test_processes_that_tests_start_have_no_network() -> None:
    done = in_a_fresh_process("import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)")

    assert "a test tried to reach 192.0.2.1" in done.stderr


def test_the_default_node_is_configured_from_the_environment_and_opens_nothing(tmp_path: Path) -> None:
    code = "from langgraph_scrum_master import sm_node; print(type(sm_node).__name__)"

    done = in_a_fresh_process(
        code, SCRUM_MASTER_MEMORY_PATH=str(tmp_path / "m"), SCRUM_MASTER_AUDIT_LOG=str(tmp_path / "a")
    )

    assert done.stdout == "ScrumMasterNode\n", done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_bad_environment_is_refused_when_the_graph_is_built() -> None:
    done = in_a_fresh_process("from langgraph_scrum_master import sm_node", SCRUM_MASTER_DEADLINE="soon")

    assert done.returncode == 1
    assert f"{ConfigError.__name__}: SCRUM_MASTER_DEADLINE must be a number, got 'soon'" in done.stderr


def test_the_default_node_uses_the_environments_memory_and_audit_log(tmp_path: Path) -> None:
    code = """
import asyncio, os, json
from langgraph_scrum_master import ChromaMemory, Decision, sm_node
memory = ChromaMemory(os.environ["SCRUM_MASTER_MEMORY_PATH"])
asyncio.run(memory.store_decision(Decision(agent_type="architect", context="We keep idempotency keys in Redis.")))
asks = {"role": "assistant", "name": "dev", "content": "Where do we keep idempotency keys?"}
update = sm_node.invoke({"messages": [asks]})
print("idempotency keys in Redis" in update["injected_context"]["text"])
print(json.loads(open(os.environ["SCRUM_MASTER_AUDIT_LOG"]).read())["gap"]["agent"])
"""

    done = in_a_fresh_process(
        code,
        SCRUM_MASTER_MEMORY_PATH=str(tmp_path / "memory"),
        SCRUM_MASTER_AUDIT_LOG=str(tmp_path / "logs" / "audit.jsonl"),
    )

    assert done.stdout.splitlines()[-2:] == ["True", "dev"], done.stderr
