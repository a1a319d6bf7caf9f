"""`scrum-master hook install` and `uninstall`: the hooks in the settings of Claude Code."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from langgraph_scrum_master._internal.files import LARGEST_DOCUMENT, load_text, write_atomically
from langgraph_scrum_master.cli.memory import DEFAULT_MEMORY, AsJson, Embedder, Namespace
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.cli.writing import writing
from langgraph_scrum_master.errors import ConfigError, DecodeError
from langgraph_scrum_master.memory.folder import is_memory

_COMMAND = "scrum-master"


class _Hook(NamedTuple):
    """A hook: the event, the tools or sources that it is for, our command, and how Claude Code runs it."""

    event: str
    matcher: str
    name: str
    timeout: int
    in_background: bool = False


_HOOKS = (
    _Hook("SessionStart", "startup|resume|clear", "session-start", 10),
    _Hook("UserPromptSubmit", "", "user-prompt-submit", 10),
    _Hook("PostToolUse", "Bash", "post-tool-failure", 10),
    _Hook("PostToolUseFailure", "Bash|WebFetch|mcp__.*", "post-tool-failure", 10),
    _Hook("Stop", "", "stop", 30, in_background=True),
    _Hook("PreCompact", "", "pre-compact", 30),
    _Hook("SessionEnd", "", "session-end", 30),
)

User = Annotated[bool, typer.Option("--user", help="In your own settings, for all projects.")]
Local = Annotated[bool, typer.Option("--local", help="In .claude/settings.local.json, which git should ignore.")]
Project = Annotated[bool, typer.Option("--project", help="In .claude/settings.json of this folder. The default.")]


def install(
    context: typer.Context,
    project: Project = False,
    local: Local = False,
    user: User = False,
    only_print: Annotated[bool, typer.Option("--print", help="Print the settings as JSON; write nothing.")] = False,
    memory: Annotated[
        Path | None,
        typer.Option(
            "--memory",
            "-m",
            metavar="FOLDER",
            help=f"The memory folder. Default: {DEFAULT_MEMORY} of this folder; with --user, of each project.",
        ),
    ] = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Add the hooks to the settings of Claude Code, and show the change. Hooks and settings of others stay as they are.

    Installing again changes nothing, or updates the paths.
    """
    file = _settings_file(project, local, user)
    # With --user, a setting of the current project does not count.
    chosen = getattr(context.get_parameter_source("memory"), "name", "") == "COMMANDLINE"
    folder = memory if memory and (chosen or not user) else None if user else DEFAULT_MEMORY
    options = [] if folder is None else ["--memory", str(folder.absolute())]
    options += [] if namespace == "default" else ["--namespace", namespace]
    options += [] if embedder == "static" else ["--embedder", embedder]
    own = _own_hooks(_executable(), options)
    if only_print:
        echo(json.dumps({"hooks": own}, indent=2))
        return
    before = _read(file)
    _change(file, before, _with(_without_own(before, file), own), as_json)
    if folder is not None and not is_memory(folder):
        echo(f"There is no memory in {folder} yet: hooks stay silent until `scrum-master remember` or", err=True)
        echo("`scrum-master index` has filled one.", err=True)


def uninstall(project: Project = False, local: Local = False, user: User = False, as_json: AsJson = False) -> None:
    """Remove the hooks from the settings of Claude Code, and show the change. Everything else stays as it is."""
    file = _settings_file(project, local, user)
    before = _read(file)
    _change(file, before, _without_own(before, file), as_json)


def _settings_file(project: bool, local: bool, user: bool) -> Path:
    if project + local + user > 1:
        raise ConfigError("pass only one of --project, --local and --user")
    if user:
        return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude", "settings.json")
    return Path.cwd() / ".claude" / ("settings.local.json" if local else "settings.json")


def _executable() -> str:
    """The absolute path of this command, which does not depend on PATH."""
    candidates = [Path(sys.argv[0]), Path(sys.executable).with_name(_COMMAND)]
    found = next((each.absolute() for each in candidates if each.stem == _COMMAND and each.is_file()), None)
    if found is None:
        raise ConfigError(f"cannot find the command {_COMMAND!r} beside {sys.executable!r}: install the package")
    return str(found)


def _own_hooks(executable: str, options: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    hooks: dict[str, list[dict[str, Any]]] = {}
    for each in _HOOKS:
        words = [executable, "hook", each.name, *([] if each.name == "session-start" else options)]
        handler: dict[str, Any] = {"type": "command", "command": shlex.join(words), "timeout": each.timeout}
        if each.in_background:
            handler["async"] = True
        group = {"matcher": each.matcher} if each.matcher else {}
        hooks.setdefault(each.event, []).append({**group, "hooks": [handler]})
    return hooks


def _read(file: Path) -> dict[str, Any]:
    """The settings in a file; none if there is no file. Raises DecodeError if they cannot be kept as they are."""
    if not file.exists():
        return {}
    try:
        settings = json.loads(load_text(file, LARGEST_DOCUMENT) or "{}", object_pairs_hook=_distinct)
    except ValueError as error:
        raise DecodeError(f"{str(file)!r} is not valid JSON, correct it first; nothing was changed: {error}") from error
    if not isinstance(settings, dict):
        raise DecodeError(f"{str(file)!r} must be a JSON object, nothing was changed")
    return settings


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{twice} occur more than once in an object")
    return dict(pairs)


def _without_own(settings: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """The settings without our hooks, and without what is empty for that reason."""
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise DecodeError(f"{str(file)!r}: 'hooks' must be an object of lists, nothing was changed")
    rest = {event: [kept for group in groups if (kept := _foreign(group))] for event, groups in hooks.items()}
    left = {event: groups for event, groups in rest.items() if groups or groups == hooks[event]}
    emptied = bool(hooks) and not left
    return {
        name: left if name == "hooks" else value for name, value in settings.items() if name != "hooks" or not emptied
    }


def _foreign(group: Any) -> Any:
    """The group without our handlers; None if it has no others."""
    handlers = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(handlers, list):
        return group
    others = [each for each in handlers if not _is_own(each)]
    return group if len(others) == len(handlers) else {**group, "hooks": others} if others else None


def _is_own(handler: Any) -> bool:
    command = handler.get("command") if isinstance(handler, dict) else None
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    return len(words) > 2 and Path(words[0]).stem == _COMMAND and words[1] == "hook"


def _with(settings: Mapping[str, Any], own: Mapping[str, list[Any]]) -> dict[str, Any]:
    hooks = settings.get("hooks", {})
    events = dict.fromkeys((*hooks, *own))
    return {**settings, "hooks": {event: [*hooks.get(event, ()), *own.get(event, ())] for event in events}}


def _change(file: Path, before: Mapping[str, Any], after: Mapping[str, Any], as_json: bool) -> None:
    """Write the settings, and show the difference."""
    text, new = _write(file, after) if before != after else ("", "")
    if as_json:
        echo(json.dumps({"file": str(file), "changed": before != after, "settings": after}, indent=2))
        return
    if before == after:
        echo(f"{file} is up to date: nothing was changed.")
        return
    for line in unified_diff(text.splitlines(), new.splitlines(), str(file), str(file), lineterm=""):
        echo(line)
    echo(f"Wrote {file}." if new else f"Removed {file}, which has no other settings.")


def _write(file: Path, after: Mapping[str, Any]) -> tuple[str, str]:
    """Write the settings, or remove the file if there are none. Returns the former text and the new one."""
    # A link to a file elsewhere, such as in a repository of settings, stays a link.
    target = file.resolve()
    text = load_text(file, LARGEST_DOCUMENT) if file.exists() else ""
    new = f"{json.dumps(after, indent=_indent(text), ensure_ascii=False)}\n" if after else ""
    with writing(file):
        if new:
            mode = target.stat().st_mode if target.exists() else None
            write_atomically(target, new)
            if mode is not None:
                target.chmod(mode)
        else:
            target.unlink()
    return text, new


def _indent(text: str) -> str:
    """The indentation of a JSON text, by default two blanks."""
    second = next((line for line in text.split("\n")[1:] if line.strip()), "")
    return second[: len(second) - len(second.lstrip())] or "  "
