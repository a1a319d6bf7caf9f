"""The domain in which a coding agent's tool call failed. Only failed commands, requests and MCP tools count."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from langgraph_scrum_master._internal.shapes import dict_of, items_of
from langgraph_scrum_master.text.domains import Domain, domain_of_command

_MAX_CHARACTERS = 10_000
"""Only the first characters of a command and the last characters of its output are examined."""

_LOOKUP = re.compile(
    r"(?:cd|pushd|popd|ls|cat|head|tail|less|grep|egrep|rg|ag|find|fd|diff|cmp|test|\[|\[\[|which|type|command|whereis"
    r"|wc|sort|uniq|cut|tr|sed|awk|jq|stat|file|tree|pgrep|ps|lsof|echo|printf|pwd|export|true|sleep|kill|tee|xargs|mkdir|rm|cp|mv"
    r"|touch|set|git (?:status|log|diff|show|grep|branch|rev-parse|ls-files|blame|add|stash|checkout))(?:\s|$)"
)
_WRAPPER = re.compile(
    r"^(?:(?:[A-Za-z_]\w*=\S*|sudo|env|time|nohup|exec|npx|bunx|pnpx|uvx|timeout (?:-\S+ )*\S+|nice(?: -n \S+)?"
    r"|(?:uv|poetry|pdm|hatch|pipenv|rye) run(?: --?\S+)*|(?:bundle|pnpm|yarn) exec|python[\d.]* (?:-[IuX]\S* )*-m"
    r"|docker compose (?:run|exec)(?: -\S+)* \S+|docker (?:run|exec)(?: -\S+)* \S+)\s+)+"
)
_FOREIGN_MCP_TOOL = re.compile(r"mcp__(?!scrum-master__)")
_FOLDER = re.compile(r"^[^\s=]*/")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w++)['\"]?.*?^[ \t]*\1\b", re.S | re.M)
_SEPARATOR = re.compile(r"(?<!\s)\s*(?:&&|\|\||[;\n|&(){}])\s*")

_SELF_REPORTING: tuple[Domain, ...] = ("security", "performance", "documentation", "testing", "debugging")
"""Domains whose tools print that they failed, so that a pipe which loses the exit code does not matter."""

_REPORTED_FAILURE = re.compile(
    r"\b[1-9]\d* (?:tests? )?(?:failed|failing|failures?|errors?)\b(?!.{0,400}\bfixed\b)|^FAILED\b|\bFAILED \("
    r"|^--- FAIL|^FAIL\b|test result: FAILED|BUILD FAIL(?:ED|URE)|\berror(?:\[E\d+\]| TS\d+)?:"
    r"|\*\*\* \[[^\[\n]*\] Error \d",
    re.M,
)
_CRASHED = re.compile(r"^Traceback \(most recent call last\)|: command not found$|^(?:fatal|error): |^npm ERR!", re.M)
_STOPPED_BY_USER = re.compile(
    r"interrupted by (?:the )?user|user doesn't want|user rejected|permission (?:to use|was denied)", re.I
)


def failure_domain(event: Mapping[str, Any]) -> Domain | None:
    """The domain of a failed tool call. None if it did not fail, was stopped by a person, or was only a lookup.

    Takes Claude Code's event `PostToolUseFailure` or `PostToolUse`.
    """
    tool_input = dict_of(event.get("tool_input"))
    command = tool_input.get("command")
    if not isinstance(command, str):
        # Failed file edits, and failures of our own tools, do not count.
        external = _FOREIGN_MCP_TOOL.match(str(event.get("tool_name"))) or isinstance(tool_input.get("url"), str)
        return "integration" if external and _failed(event, None) else None
    parts = [part for part in _parts(command) if not _LOOKUP.match(part)]
    known = next((domain for part in reversed(parts) if (domain := domain_of_command(part))), None)
    return (known or "debugging") if parts and _failed(event, known) else None


def _parts(command: str) -> Iterator[str]:
    """The simple commands of a command line, without wrappers such as `sudo` or `uv run`."""
    bare = _QUOTED.sub("''", _HEREDOC.sub("", command[:_MAX_CHARACTERS].replace("\\\n", " ")))
    for part in _SEPARATOR.split(bare):
        if part.strip("'\" \t<>0123456789"):
            yield _FOLDER.sub("", _WRAPPER.sub("", _FOLDER.sub("", part.strip()), count=1))


def _failed(event: Mapping[str, Any], known: Domain | None) -> bool:
    if _is_failure(event):
        return not event.get("is_interrupt") and not _STOPPED_BY_USER.search(_text(event.get("error"))[:1000])
    response = event.get("tool_response")
    fields = dict_of(response)
    if fields.get("interrupted"):
        return False
    output = _text(response)[-_MAX_CHARACTERS:]
    return _flagged(fields) or bool(
        _CRASHED.search(output) or (known in _SELF_REPORTING and _REPORTED_FAILURE.search(output))
    )


def _is_failure(event: Mapping[str, Any]) -> bool:
    name = event.get("hook_event_name")
    return name == "PostToolUseFailure" or (not name and "error" in event)


def _flagged(fields: Mapping[str, Any]) -> bool:
    codes = [fields.get(name) for name in ("exit_code", "exitCode", "returncode", "return_code")]
    wrong = fields.get("is_error") is True or fields.get("isError") is True or fields.get("success") is False
    return wrong or any(isinstance(code, int) and code != 0 for code in codes)


def _text(response: Any) -> str:
    """The text of a tool's response, in any of its shapes."""
    if isinstance(response, str):
        return response
    fields = dict_of(response)
    texts = [fields.get(name) for name in ("stdout", "stderr", "output", "error", "text")]
    parts = [_text(item) for item in items_of(response if isinstance(response, list) else fields.get("content"))]
    return "\n".join([*(text for text in texts if isinstance(text, str)), *parts])
