"""What counts as a failure of a coding agent's tool call, and in which domain."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph_scrum_master.cli.failure import failure_domain


def bash(command: str, **event: Any) -> dict[str, Any]:
    defaults = {"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "error": "Exit code 1"}
    return {**defaults, "tool_input": {"command": command, "description": "Run it"}, **event}


def after(command: str, response: Any) -> dict[str, Any]:
    return bash(command, hook_event_name="PostToolUse", tool_response=response)


@pytest.mark.parametrize(
    ("command", "domain"),
    [
        ("npm test", "testing"),
        ("cd api && uv run pytest -q tests/test_x.py 2>&1 | tail -20", "testing"),
        (".venv/bin/python -m pytest", "testing"),
        ("CI=1 timeout 60 go test ./...", "testing"),
        ("docker compose run --rm api pytest", "testing"),
        ("make test", "testing"),
        ("./gradlew clean test", "testing"),
        ("pip install -e . && pytest", "testing"),
        ("pip install pytest", "configuration"),
        ("python -m pip install --upgrade pip", "configuration"),
        ("npm ci", "configuration"),
        ("uv sync", "configuration"),
        ("python check.py settings.toml", "configuration"),
        ("mypy src", "debugging"),
        ("npx tsc --noEmit", "debugging"),
        ("cargo build --release", "debugging"),
        ("npm run lint", "debugging"),
        ("make", "debugging"),
        ("python app.py", "debugging"),
        ("docker build .", "integration"),
        ("kubectl apply -f deploy.yaml", "integration"),
        ("curl -fsS http://127.0.0.1:8000/health", "integration"),
        ("pip-audit", "security"),
        ("mkdocs build --strict", "documentation"),
        ("hyperfine ./run", "performance"),
        ("git commit -m 'make pytest && docker faster'", "debugging"),
        ("python - <<'EOF'\nimport pytest\npytest.main()\nEOF", "debugging"),
    ],
)
def test_the_domain_is_that_of_the_last_known_part_of_the_command(command: str, domain: str) -> None:
    assert failure_domain(bash(command)) == domain


@pytest.mark.parametrize(
    "command",
    [
        "grep -r TODO src",
        "ls missing",
        "cd src && rg pattern | head",
        "test -f x || echo no",
        "git diff --exit-code",
        "",
    ],
)
def test_looking_something_up_is_no_failure(command: str) -> None:
    assert failure_domain(bash(command)) is None


@pytest.mark.parametrize(
    "event",
    [
        bash("pytest", is_interrupt=True),
        bash("pytest", error="[Request interrupted by user for tool use]"),
        {
            "hook_event_name": "PostToolUseFailure",
            "tool_name": "Edit",
            "tool_input": {"file_path": "a.py"},
            "error": "x",
        },
        {"hook_event_name": "PostToolUseFailure", "tool_name": "Read", "tool_input": {"file_path": "a"}, "error": "no"},
        {"tool_name": "mcp__scrum-master__search", "tool_input": {"query": ""}, "error": "query must be a text"},
        {},
        {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "pytest"}},
        {"tool_input": None, "tool_response": 7},
    ],
)
def test_interruptions_and_failed_file_edits_are_no_failures(event: dict[str, Any]) -> None:
    assert failure_domain(event) is None


@pytest.mark.parametrize(
    "event",
    [
        {"tool_name": "WebFetch", "tool_input": {"url": "http://127.0.0.1"}, "error": "refused"},
        {"tool_name": "mcp__db__query", "tool_input": {"sql": "x"}, "tool_response": {"isError": True, "content": []}},
    ],
)
def test_requests_and_foreign_tools_fail_in_integration(event: dict[str, Any]) -> None:
    assert failure_domain(event) == "integration"


@pytest.mark.parametrize(
    ("command", "response"),
    [
        ("python app.py", {"stdout": "", "stderr": "", "exit_code": 3}),
        ("python app.py", {"stdout": "", "stderr": "Traceback (most recent call last):\n  boom", "interrupted": False}),
        ("deploy-it", {"stdout": "", "stderr": "bash: line 1: deploy-it: command not found"}),
        ("python app.py", {"is_error": True, "content": "boom"}),
        ("pytest -q | tail -5", {"stdout": "2 failed, 13 passed in 1.10s", "stderr": "", "interrupted": False}),
        ("pytest || true", [{"type": "text", "text": "FAILED tests/test_a.py::test_b - assert 1 == 2"}]),
        ("cargo build | cat", {"stdout": "error[E0425]: cannot find value `x`", "stderr": ""}),
        ("npx tsc; true", "src/a.ts(1,2): error TS2304: Cannot find name 'x'."),
        ("mypy src | tail -1", {"stdout": "Found 3 errors in 2 files (checked 9 source files)"}),
    ],
)
def test_a_response_may_report_a_failure(command: str, response: Any) -> None:
    assert failure_domain(after(command, response)) is not None


@pytest.mark.parametrize(
    ("command", "response"),
    [
        ("pytest -q", {"stdout": "15 passed, 0 failed in 1.04s", "stderr": "", "interrupted": False}),
        ("pytest -q", {"stdout": "15 passed", "stderr": "DeprecationWarning: old", "exit_code": 0}),
        ("ruff check --fix", {"stdout": "Found 3 errors (3 fixed, 0 remaining)."}),
        ("cat log.txt", {"stdout": "2 failed, 13 passed", "stderr": ""}),
        ("python report.py", {"stdout": "2 failed logins", "stderr": ""}),
        ("pytest", {"stdout": "1 failed", "interrupted": True}),
        ("pytest", None),
    ],
)
def test_a_response_without_a_failure_is_none(command: str, response: Any) -> None:
    assert failure_domain(after(command, response)) is None
