"""`scrum-master replay`"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import structlog
import typer

from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.logs import visible_values
from langgraph_scrum_master.cli.memory import DEFAULT_MEMORY, Embedder, Namespace, progress_bar
from langgraph_scrum_master.cli.settings import OTHERS, Settings, toml
from langgraph_scrum_master.cli.source import Source, Subgraph, Thread, print_source
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.errors import ConfigError, DecodeError
from langgraph_scrum_master.memory.folder import is_memory
from langgraph_scrum_master.team.record.files import read_json

if TYPE_CHECKING:
    from langgraph_scrum_master.replay import Difference, Replay

Config = Annotated[Path | None, typer.Option(help="Settings to try, as TOML or JSON. Others stay as recorded.")]
Format = Literal["table", "json", "html"]

_SCHEMA = 1
"""The version of the output of `--format json`."""

RECORDED = "recorded"


def replay(
    context: typer.Context,
    source: Source,
    thread: Thread = None,
    subgraph: Subgraph = None,
    config: Config = None,
    against: Annotated[
        str | None,
        typer.Option(help="Compare with other settings (TOML or JSON), an earlier replay (JSON), or 'recorded'."),
    ] = None,
    memory: Annotated[
        Path | None, typer.Option(help="A memory folder to search. It is copied, not written to.")
    ] = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    form: Annotated[Format, typer.Option("--format", help="Output format.")] = "table",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit code 1 on differences, by default from the recording.")
    ] = False,
) -> None:
    """Show what was recorded of each saved step, and beside it, as hypothetical, what a replay of the step does.

    Databases and memories are only read, and the same source gives the same output every time. The project's settings
    apply only if --config names them, and its memory is searched only if --memory names it.
    """
    from langgraph_scrum_master.replay import memory_copy, replay as replayed

    form = "json" if as_json else form
    overrides = load_settings(config or config_option(context))
    source_memory = memory_copy(memory, namespace, embedder) if memory is not None else nullcontext()
    with logging_to_stderr(), source_memory as opened:

        def play(label: str, settings: Mapping[str, Any] | None) -> Replay:
            with progress_bar(label, quiet=form == "json") as progress:
                return replayed(
                    source, config=settings, memory=opened, thread=thread, subgraph=subgraph, progress=progress
                )

        shown, differences = _replay_and_compare(play, overrides, against or (RECORDED if check else None))
    if check and shown.steps and differences is not None and not differences.compared and not differences:
        print_problems(shown)
        raise DecodeError(
            f"{display_name(source)!r} has no recorded results for --check to compare with: pass --against"
        )
    # An empty table is useless.
    if shown.steps or form == "json":
        _show(shown, differences, form, display_name(source))
    print_problems(shown)
    if memory is None:
        warn_about_unread_memory(shown, context.obj)
    if not shown.steps:
        raise empty_source_error("replay", source, explained=bool(shown.problems))
    if check and (differences or shown.problems):
        raise typer.Exit(1)


def config_option(context: typer.Context) -> Path | None:
    """The file of `scrum-master --config FILE`. The project's own settings file does not count."""
    root = context.find_root()
    source = root.get_parameter_source("config")
    return root.params["config"] if source is not None and source.name == "COMMANDLINE" else None


def warn_about_unread_memory(shown: Replay, given: Settings) -> None:
    """Warn on standard error if gaps were evaluated without a memory although there is or was one."""
    location = Path(str(given["memory_path"].value)) if "memory_path" in given else DEFAULT_MEMORY
    exists, recorded = is_memory(location), any("memory" in step.unasked for step in shown.steps)
    if (exists or recorded) and any(step.result is not None for step in shown.steps):
        folder = str(location) if exists else "FOLDER"
        why = "the recorded run used one" if recorded else "there is one"
        echo(f"scrum-master: no memory was searched, although {why}: add --memory {folder}", err=True)


def load_settings(file: Path | None) -> Mapping[str, Any] | None:
    """The settings of a file, or None without a file."""
    return _settings(file) if file is not None else None


def print_problems(shown: Replay) -> None:
    """Print to standard error what could not be read, and what was skipped."""
    for text in (*(problem.error for problem in shown.problems), *shown.notes):
        echo(f"scrum-master: {text}", err=True)


@contextmanager
def logging_to_stderr() -> Iterator[None]:
    """Log to standard error, so that log lines do not mix with the output."""
    before = structlog.get_config()
    *processors, renderer = before["processors"]
    structlog.configure(
        processors=[*processors, visible_values, renderer], logger_factory=structlog.PrintLoggerFactory(sys.stderr)
    )
    try:
        yield
    finally:
        structlog.configure(**before)


def _replay_and_compare(
    play: Callable[[str, Mapping[str, Any] | None], Replay], config: Mapping[str, Any] | None, against: str | None
) -> tuple[Replay, Difference | None]:
    from langgraph_scrum_master.replay import against_recorded, difference

    first = play("Replaying", config)
    if against is None:
        return first, None
    if against == RECORDED:
        return first, against_recorded(first)
    other = _load_other(Path(against))
    if isinstance(other, Mapping):
        return first, difference(first, play(f"Replaying with {against}", other))
    return first, difference(other, first)


def _load_other(path: Path) -> Mapping[str, Any] | Replay:
    """The settings or the replay in a file."""
    from langgraph_scrum_master.replay import Replay

    data = read_json(path) if path.suffix != ".toml" else None
    if isinstance(data, dict) and "steps" in data:
        if data.get("schema") != _SCHEMA:
            raise DecodeError(f"{str(path)!r} has schema {data.get('schema')!r}, this version reads {_SCHEMA}")
        return Replay.from_dict(data)
    return _settings(path)


def _settings(path: Path) -> Mapping[str, Any]:
    data: object = toml(path) if path.suffix == ".toml" else read_json(path)
    if not isinstance(data, dict):
        raise ConfigError(f"{str(path)!r} must contain settings by name, such as min_relevance_score, got {data!r:.80}")
    # A settings file may have other settings too, such as the memory's folder. A replay ignores them.
    return checked_settings({name: value for name, value in data.items() if name not in OTHERS})


def checked_settings(chosen: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings, if they are valid. Others raise `ConfigError` before anything is read."""
    from langgraph_scrum_master.model import Snapshot
    from langgraph_scrum_master.replay.steps import settings

    settings(Snapshot(state={}), chosen)
    return chosen


def _show(shown: Replay, differences: Difference | None, form: Format, title: str) -> None:
    if form == "json":
        data = {"schema": _SCHEMA, **shown.to_dict()} | (
            {} if differences is None else {"difference": differences.to_dict()}
        )
        echo(json.dumps(data, indent=2))
    elif form == "html":
        from langgraph_scrum_master.cli.page import page, page_data

        echo(page(page_data(shown, title, differences)))
    else:
        from langgraph_scrum_master.cli.replay_output import print_replay

        print_source(shown.source)
        print_replay(Console(), shown, differences)


def empty_source_error(action: str, source: str, explained: bool) -> DecodeError:
    """The error for a source without steps. `explained` if the reason was already printed."""
    why = "" if explained else ": it has no snapshots, states or messages"
    return DecodeError(f"there is nothing to {action} in {display_name(source)!r}{why}")


def display_name(source: str) -> str:
    """The name of a source in output."""
    # A connection string may contain a password.
    return source.split("://", 1)[0] if "://" in source else source
