"""What a coding agent's tool call failed at: only a command, a request or a server's tool that really failed counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from langgraph_scrum_master._internal.shapes import dict_of, items_of
from langgraph_scrum_master.text.domains import Domain, domain_of_command

_LOOKED_AT = 10_000
"""Characters of a command, the first, and of an answer, the last, that are looked at."""

_LOOKING = re.compile(
    r"(?:cd|pushd|popd|ls|cat|head|tail|less|grep|egrep|rg|ag|find|fd|diff|cmp|test|\[|\[\[|which|type|command|whereis"
    r"|wc|sort|uniq|cut|tr|sed|awk|jq|stat|file|tree|pgrep|ps|lsof|echo|printf|pwd|export|true|sleep|kill|tee|xargs|mkdir|rm|cp|mv"
    r"|touch|set|git (?:status|log|diff|show|grep|branch|rev-parse|ls-files|blame|add|stash|checkout))(?:\s|$)"
)
_WRAPPER = re.compile(
    r"^(?:(?:[A-Za-z_]\w*=\S*|sudo|env|time|nohup|exec|npx|bunx|pnpx|uvx|timeout (?:-\S+ )*\S+|nice(?: -n \S+)?"
    r"|(?:uv|poetry|pdm|hatch|pipenv|rye) run(?: --?\S+)*|(?:bundle|pnpm|yarn) exec|python[\d.]* (?:-[IuX]\S* )*-m"
    r"|docker compose (?:run|exec)(?: -\S+)* \S+|docker (?:run|exec)(?: -\S+)* \S+)\s+)+"
)
_OTHERS = re.compile(r"mcp__(?!scrum-master__)")
_FOLDER = re.compile(r"^[^\s=]*/")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_HERE = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?.*?^\s*\1\b", re.S | re.M)
_BETWEEN = re.compile(r"\s*(?:&&|\|\||[;\n|&(){}])\s*")

_RUNS: tuple[Domain, ...] = ("security", "performance", "documentation", "testing", "debugging")
"""Of what tells by its words that it failed, also where the exit code is lost in a pipe."""

_SAID = re.compile(
    r"\b[1-9]\d* (?:tests? )?(?:failed|failing|failures?|errors?)\b(?!.*\bfixed\b)|^FAILED\b|\bFAILED \("
    r"|^--- FAIL|^FAIL\b|test result: FAILED|BUILD FAIL(?:ED|URE)|\berror(?:\[E\d+\]| TS\d+)?:"
    r"|\*\*\* \[.*\] Error \d",
    re.M,
)
_BROKEN = re.compile(r"^Traceback \(most recent call last\)|: command not found$|^(?:fatal|error): |^npm ERR!", re.M)
_STOPPED = re.compile(
    r"interrupted by (?:the )?user|user doesn't want|user rejected|permission (?:to use|was denied)", re.I
)


def failed_in(event: Mapping[str, Any]) -> Domain | None:
    """The domain of what failed; None if nothing did, if a person stopped it, or if it only looked something up.

    Takes what Claude Code tells a hook of `PostToolUseFailure` or `PostToolUse`.
    """
    given = dict_of(event.get("tool_input"))
    command = given.get("command")
    if not isinstance(command, str):
        # An agent's slips with files, or with our own tools, count for nothing.
        reaches_out = _OTHERS.match(str(event.get("tool_name"))) or isinstance(given.get("url"), str)
        return "integration" if reaches_out and _failed(event, None) else None
    parts = [part for part in _parts(command) if not _LOOKING.match(part)]
    known = next((domain for part in reversed(parts) if (domain := domain_of_command(part))), None)
    return (known or "debugging") if parts and _failed(event, known) else None


def _parts(command: str) -> Iterator[str]:
    """The simple commands of a command, without what is put before them."""
    bare = _QUOTED.sub("''", _HERE.sub("", command[:_LOOKED_AT].replace("\\\n", " ")))
    for part in _BETWEEN.split(bare):
        if part.strip("'\" \t<>0123456789"):
            yield _FOLDER.sub("", _WRAPPER.sub("", _FOLDER.sub("", part.strip()), count=1))


def _failed(event: Mapping[str, Any], known: Domain | None) -> bool:
    if _is_failure(event):
        return not event.get("is_interrupt") and not _STOPPED.search(_text(event.get("error"))[:1000])
    response = event.get("tool_response")
    fields = dict_of(response)
    if fields.get("interrupted"):
        return False
    said = _text(response)[-_LOOKED_AT:]
    return _flagged(fields) or bool(_BROKEN.search(said) or (known in _RUNS and _SAID.search(said)))


def _is_failure(event: Mapping[str, Any]) -> bool:
    name = event.get("hook_event_name")
    return name == "PostToolUseFailure" or (not name and "error" in event)


def _flagged(fields: Mapping[str, Any]) -> bool:
    codes = [fields.get(name) for name in ("exit_code", "exitCode", "returncode", "return_code")]
    wrong = fields.get("is_error") is True or fields.get("isError") is True or fields.get("success") is False
    return wrong or any(isinstance(code, int) and code != 0 for code in codes)


def _text(response: Any) -> str:
    """All that a tool answered, in whatever shape."""
    if isinstance(response, str):
        return response
    fields = dict_of(response)
    texts = [fields.get(name) for name in ("stdout", "stderr", "output", "error", "text")]
    parts = [_text(item) for item in items_of(response if isinstance(response, list) else fields.get("content"))]
    return "\n".join([*(text for text in texts if isinstance(text, str)), *parts])
