"""`scrum-master replay`"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import structlog
import typer
from rich.console import Console

from langgraph_scrum_master.cli.memory import PLACE, Embedder, Namespace, counting
from langgraph_scrum_master.cli.settings import OTHERS, Settings, toml
from langgraph_scrum_master.cli.tables import folding
from langgraph_scrum_master.errors import ConfigError, DecodeError
from langgraph_scrum_master.memory.folder import is_memory
from langgraph_scrum_master.team.record.files import read_json

if TYPE_CHECKING:
    from langgraph_scrum_master.replay import Difference, Replay

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A file of snapshots or messages, a folder of them, or a database of checkpoints (SQLite, PostgreSQL).",
    ),
]
Thread = Annotated[
    str | None, typer.Option(help="Only this thread; one must be named for a database, or all are listed.")
]
Subgraph = Annotated[
    str | None, typer.Option(metavar="NODE", help="In a database, the steps of the subgraph in this node of the graph.")
]
Config = Annotated[Path | None, typer.Option(help="Settings to try, as TOML or JSON; the others stay as recorded.")]
Format = Literal["table", "json", "html"]

_SCHEMA = 1
"""The version of what `--format json` prints."""

RECORDED = "recorded"


def replay(
    context: typer.Context,
    source: Source,
    thread: Thread = None,
    subgraph: Subgraph = None,
    config: Config = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Compare with other settings (TOML or JSON), an earlier replay (JSON), or what was 'recorded'."
        ),
    ] = None,
    memory: Annotated[Path | None, typer.Option(help="The folder of a memory, which is read in a copy.")] = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    form: Annotated[Format, typer.Option("--format", help="How to show it.")] = "table",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit code 1 if it differs, by default from what was recorded.")
    ] = False,
) -> None:
    """Look at saved states again: who lacked what, what shows it, and what would be given.

    Nothing is written, neither to a database nor to a memory, and the same source gives the same output every time:
    settings of the project stay out of it unless --config names them, and its memory unless --memory does.
    """
    from langgraph_scrum_master.replay import borrowed, replay as replayed
    from langgraph_scrum_master.replay.databases import is_database

    form = "json" if as_json else form
    if thread is None and is_database(source):
        list_threads(source, form == "json")
    chosen = settings_to_try(config or named_before(context))
    read_in = borrowed(memory, namespace, embedder) if memory is not None else nullcontext()
    with logs_aside(), read_in as opened:

        def play(what: str, tried: Mapping[str, Any] | None) -> Replay:
            with counting(what, quiet=form == "json") as progress:
                return replayed(
                    source, config=tried, memory=opened, thread=thread, subgraph=subgraph, progress=progress
                )

        shown, found = _compared(play, chosen, against or (RECORDED if check else None))
    if check and shown.steps and found is not None and not found.compared and not found:
        tell_what_is_missing(shown)
        raise DecodeError(
            f"nothing was recorded in {shown_name(source)!r} that --check could compare with: give --against"
        )
    # An empty table tells nothing.
    if shown.steps or form == "json":
        _show(shown, found, form, shown_name(source))
    tell_what_is_missing(shown)
    if memory is None:
        tell_of_memory(shown, context.obj)
    if not shown.steps:
        raise nothing_to("replay", source, told=bool(shown.problems))
    if check and (found or shown.problems):
        raise typer.Exit(1)


def list_threads(source: str, as_json: bool) -> NoReturn:
    """Show the threads of a database where none was named, on standard error unless as JSON, with exit code 2."""
    from langgraph_scrum_master.replay.threads import threads

    found = threads(source)
    if as_json:
        typer.echo(json.dumps([thread._asdict() for thread in found], indent=2))
        raise typer.Exit(2)
    table = folding("thread", "checkpoints", "newest", "subgraphs")
    for thread in found:
        table.add_row(thread.thread, str(thread.steps), thread.newest, ", ".join(thread.subgraphs))
    console = Console(markup=False, highlight=False, stderr=True)
    console.print(table if found else "There are no threads.")
    if found:
        console.print("Say which with --thread.")
    raise typer.Exit(2)


def named_before(context: typer.Context) -> Path | None:
    """The settings that were named before the command; those of the project do not count."""
    root = context.find_root()
    source = root.get_parameter_source("config")
    return root.params["config"] if source is not None and source.name == "COMMANDLINE" else None


def tell_of_memory(shown: Replay, given: Settings) -> None:
    """Say on standard error that gaps were looked at without a memory, where there is or was one."""
    place = Path(str(given["memory_path"].value)) if "memory_path" in given else PLACE
    there, then = is_memory(place), any("memory" in step.unasked for step in shown.steps)
    if (there or then) and any(step.result is not None for step in shown.steps):
        folder = str(place) if there else "FOLDER"
        why = "the recorded run had one" if then else "there is one"
        typer.echo(f"scrum-master: no memory was asked, though {why}: --memory {folder} reads it", err=True)


def settings_to_try(file: Path | None) -> Mapping[str, Any] | None:
    """The settings of a file, if one is named."""
    return _settings(file) if file is not None else None


def tell_what_is_missing(shown: Replay) -> None:
    """Say on standard error what could not be read, and what was not."""
    for told in (*(problem.error for problem in shown.problems), *shown.notes):
        typer.echo(f"scrum-master: {told}", err=True)


@contextmanager
def logs_aside() -> Iterator[None]:
    """Let the log go where it does not mix with the output."""
    before = structlog.get_config()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    try:
        yield
    finally:
        structlog.configure(**before)


def _compared(
    play: Callable[[str, Mapping[str, Any] | None], Replay], config: Mapping[str, Any] | None, against: str | None
) -> tuple[Replay, Difference | None]:
    from langgraph_scrum_master.replay import against_recorded, difference

    first = play("Replaying", config)
    if against is None:
        return first, None
    if against == RECORDED:
        return first, against_recorded(first)
    other = _other(Path(against))
    if isinstance(other, Mapping):
        return first, difference(first, play(f"Replaying with {against}", other))
    return first, difference(other, first)


def _other(path: Path) -> Mapping[str, Any] | Replay:
    """The settings or the replay that a file holds."""
    from langgraph_scrum_master.replay import Replay

    data = read_json(path) if path.suffix != ".toml" else None
    if isinstance(data, dict) and "steps" in data:
        if data.get("schema") != _SCHEMA:
            raise DecodeError(f"{str(path)!r} has schema {data.get('schema')!r}, this version reads {_SCHEMA}")
        return Replay.from_dict(data)
    return _settings(path)


def _settings(path: Path) -> Mapping[str, Any]:
    from langgraph_scrum_master.model import Snapshot
    from langgraph_scrum_master.replay.steps import settings

    data: object = toml(path) if path.suffix == ".toml" else read_json(path)
    if not isinstance(data, dict):
        raise ConfigError(f"{str(path)!r} must hold settings by name, such as min_relevance_score, got {data!r:.80}")
    # What else a file of settings has, such as the memory's folder, is not for a replay to try.
    chosen = {name: value for name, value in data.items() if name not in OTHERS}
    # What cannot work is told before anything is read.
    settings(Snapshot(state={}), chosen)
    return chosen


def _show(shown: Replay, found: Difference | None, form: Format, title: str) -> None:
    if form == "json":
        data = {"schema": _SCHEMA, **shown.to_dict()} | ({} if found is None else {"difference": found.to_dict()})
        typer.echo(json.dumps(data, indent=2))
    elif form == "html":
        from langgraph_scrum_master.cli.page import page, page_data

        typer.echo(page(page_data(shown, title, found)))
    else:
        from langgraph_scrum_master.cli.replay_output import print_replay

        print_replay(Console(), shown, found)


def nothing_to(do: str, source: str, told: bool) -> DecodeError:
    """What to raise where a source has no steps, if it was not told why already."""
    why = "" if told else ": it holds no snapshots, states or messages"
    return DecodeError(f"there is nothing to {do} in {shown_name(source)!r}{why}")


def shown_name(source: str) -> str:
    """What a source is called in output."""
    # A connection string may hold a password.
    return source.split("://", 1)[0] if "://" in source else source
