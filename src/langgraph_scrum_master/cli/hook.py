"""`scrum-master hook`: the commands that a coding agent runs as hooks.

A hook reads the event as JSON from standard input and responds in the format of Claude Code's hooks. It never breaks
its host: on an error or a timeout it prints nothing, logs to standard error, and ends with exit code 0.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from langgraph_scrum_master._internal.shapes import text_of
from langgraph_scrum_master.cli.hook_install import install, uninstall
from langgraph_scrum_master.cli.logs import log_to_stderr
from langgraph_scrum_master.cli.memory import DEFAULT_MEMORY, Embedder, Namespace
from langgraph_scrum_master.cli.session_start import session_start
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.config import HookConfig
from langgraph_scrum_master.errors import DecodeError, NotFoundError
from langgraph_scrum_master.memory.folder import is_memory

if TYPE_CHECKING:
    from langgraph_scrum_master.cli.session_log import SessionLog
    from langgraph_scrum_master.memory.chroma import ChromaMemory
    from langgraph_scrum_master.text.domains import Domain

hook = typer.Typer(
    no_args_is_help=True,
    help="Connect a coding agent: install its hooks, and respond to them (event as JSON on stdin, context on stdout).",
)
hook.command()(session_start)
hook.command()(install)
hook.command()(uninstall)

DEFAULT_SESSIONS = HookConfig().hook_sessions

MemoryFolder = Annotated[
    Path | None,
    typer.Option(
        "--memory",
        "-m",
        metavar="FOLDER",
        help=f"The memory folder. Default: {DEFAULT_MEMORY} in the event's folder or the nearest one above.",
    ),
]
Seconds = Annotated[float, typer.Option("--deadline", help="Seconds until the hook gives up and prints nothing.")]
"""The parameter is not named `deadline`, because the setting of that name is for sources, not for a whole process."""
Alerts = Annotated[bool, typer.Option("--alerts/--no-alerts", help="Say that a prompt departs from its session.")]
Sessions = Annotated[int, typer.Option("--sessions", min=0, help="Sessions whose latest turns and summary are kept.")]
Redactions = Annotated[
    str, typer.Option(help="What else to redact before a turn is stored, besides secrets: emails, or all.")
]

MIN_ANSWER_SCORE = 0.8
"""The least score of a memory for a prompt. `benchmarks/bench_noise.py` shows what other values let through."""

KEEPING_DEADLINE = 10.0
"""Seconds for the hooks that keep a session: the coding agent does not wait for them."""


@dataclass(slots=True, kw_only=True)
class HookCall:
    """The host's event, the memory to search, and the answer."""

    event: Mapping[str, Any]
    folder: Path
    namespace: str
    embedder: str
    seconds: float
    """Time left."""
    alerts: bool = False
    sessions: int = 0
    redact: str = ""
    step: str = "start"
    """What the hook is doing, for the log."""
    answer: str = ""
    """The context for the event, or an empty text."""

    @property
    def session(self) -> str:
        """The id of the host's session."""
        return text_of(self.event.get("session_id"))

    def memory(self) -> ChromaMemory:
        """The project's memory. A missing memory is an error: hooks do not create one."""
        from langgraph_scrum_master.memory.chroma import ChromaMemory

        log_to_stderr()
        self.step = "open the memory"
        memory = ChromaMemory(self.folder, namespace=self.namespace, embedder=self.embedder)
        if not memory.begun_anywhere:
            raise NotFoundError(f"{memory!r} does not exist: fill it, or pass its folder with --memory")
        return memory

    def log(self, memory: ChromaMemory) -> SessionLog:
        """What is kept of the sessions."""
        from langgraph_scrum_master._internal.settings import names_in
        from langgraph_scrum_master.cli.session_log import SessionLog

        return SessionLog(memory, self.sessions, names_in(self.redact))


Responder: TypeAlias = Callable[[HookCall], Coroutine[Any, Any, None]]
"""Responds to an event: sets the answer as soon as it is known."""


@hook.command()
def user_prompt_submit(
    memory: MemoryFolder = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    within: Seconds = 2.0,
    hook_alerts: Alerts = False,
    hook_sessions: Sessions = DEFAULT_SESSIONS,
    redact: Redactions = "",
) -> None:
    """Add what the memory knows about a prompt, and note the prompt in its session."""
    options = {"alerts": hook_alerts, "sessions": hook_sessions, "redact": redact}
    _respond("UserPromptSubmit", _for_prompt, memory, namespace, embedder, within, **options)


@hook.command()
def post_tool_failure(
    memory: MemoryFolder = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    within: Seconds = 2.0,
) -> None:
    """After the first failure of a session, show past failures in the same domain."""
    _respond("PostToolUseFailure", _for_failure, memory, namespace, embedder, within)


def _session_hook(event: str, when: str) -> Callable[..., None]:
    """A hook that keeps the session."""

    def respond(
        memory: MemoryFolder = None,
        namespace: Namespace = "default",
        embedder: Embedder = "static",
        within: Seconds = KEEPING_DEADLINE,
        hook_sessions: Sessions = DEFAULT_SESSIONS,
        redact: Redactions = "",
    ) -> None:
        _respond(event, _keep_session, memory, namespace, embedder, within, sessions=hook_sessions, redact=redact)

    respond.__doc__ = f"Keep the turns and a summary of the session {when}."
    return respond


stop = _session_hook("Stop", "whenever the agent has answered")
pre_compact = _session_hook("PreCompact", "before the agent compacts it")
session_end = _session_hook("SessionEnd", "when it ends")
for _name, _command in (("stop", stop), ("pre-compact", pre_compact), ("session-end", session_end)):
    hook.command(_name)(_command)


async def _for_prompt(call: HookCall) -> None:
    from datetime import UTC, datetime

    from langgraph_scrum_master.cli.transcript import is_said
    from langgraph_scrum_master.config import PROMPT_BUDGET, TokenBudget
    from langgraph_scrum_master.prompts.pipeline import InjectionPipeline
    from langgraph_scrum_master.retrieval.frame import enclosed
    from langgraph_scrum_master.text.tokens import estimate_tokens

    prompt = text_of(call.event.get("prompt"))
    if not prompt.strip():
        raise DecodeError(f"the event must have a non-empty string 'prompt', got {call.event.get('prompt')!r:.80}")
    if not is_said(prompt):
        return
    memory = call.memory()
    log = call.log(memory)
    high_relevance = PROMPT_BUDGET["high_relevance"] - estimate_tokens(enclosed(""))
    pipeline = InjectionPipeline(
        memory,
        budget=TokenBudget(**{**PROMPT_BUDGET, "high_relevance": high_relevance}),
        min_relevance_score=MIN_ANSWER_SCORE,
        precise=True,
        sessions=log.shelf,
        alerts=call.alerts,
        # Leaves time to return the results when a source is late.
        deadline=call.seconds / 2,
        zone=datetime.now().astimezone().tzinfo or UTC,
    )
    call.step = "search the memory"
    result = await pipeline.ainject_context(prompt, call.session)
    call.answer = enclosed(result.text) if result.injected else ""
    call.step = "note the prompt"
    await log.note(call.session, prompt)


async def _keep_session(call: HookCall) -> None:
    from langgraph_scrum_master.cli.transcript import SessionTurn, read_turns

    if not call.sessions or not call.session:
        return
    log = call.log(call.memory())
    call.step = "read the transcript"
    turns: list[SessionTurn] = []
    if path := text_of(call.event.get("transcript_path")):
        try:
            turns = read_turns(path)
        except OSError as error:
            _log("hook.impaired", step=call.step, error=f"cannot read {path!r}: {error.strerror}")
    if not turns and (said := text_of(call.event.get("last_assistant_message"))):
        turns = [SessionTurn(role="assistant", text=said, at="")]
    call.step = "keep the session"
    await log.end(call.session, turns)


async def _for_failure(call: HookCall) -> None:
    from langgraph_scrum_master.cli.failure import failure_domain

    # Most tool calls end here, before anything else is imported.
    if domain := failure_domain(call.event):
        call.answer = await _warning(call, domain)


async def _warning(call: HookCall, domain: Domain) -> str:
    from langgraph_scrum_master.cli.warned_sessions import WarnedSessions
    from langgraph_scrum_master.learning.records import experiences_on
    from langgraph_scrum_master.retrieval.frame import enclosed

    memory = call.memory()
    if not memory.beside(experiences_on("full")).begun:
        return ""
    warned = WarnedSessions(call.folder, call.namespace)
    if call.session in warned:
        return ""
    call.step = "search the experiences"
    text = await _premortem(memory, domain, call.seconds)
    return enclosed(text) if text and warned.add(call.session) else ""


async def _premortem(memory: ChromaMemory, domain: Domain, seconds: float) -> str:
    from langgraph_scrum_master.learning.assembler import ContextAssembler
    from langgraph_scrum_master.learning.records import experiences_on
    from langgraph_scrum_master.learning.searcher import Searcher
    from langgraph_scrum_master.retrieval.retrieve import open_memory

    # Searched concurrently, each shelf would load the embedder.
    await open_memory(memory.beside(experiences_on("full")), seconds)
    premortem = await ContextAssembler(Searcher(memory), deadline=seconds / 2).get_premortem_context(domain)
    # Principles alone are not a warning.
    return premortem.markdown if "experience" in premortem.sources_used else ""


def _respond(
    name: str,
    responder: Responder,
    memory: Path | None,
    namespace: str,
    embedder: str,
    deadline: float,
    **options: Any,
) -> None:
    """Print the response to the event. Errors are logged and never reach the host."""
    # CPU time so far approximates the time since the process started.
    seconds = max(0.1, deadline - time.process_time())
    call = HookCall(event={}, folder=Path(), namespace=namespace, embedder=embedder, seconds=seconds, **options)

    def work() -> None:
        try:
            call.event = _event()
            call.folder = memory or _nearest_memory(Path(text_of(call.event.get("cwd"))))
            asyncio.run(responder(call))
        # No failure of the memory may reach the host.
        except Exception as error:
            _log("hook.failed", hook=name, step=call.step, error=f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=work, name="scrum-master-hook", daemon=True)
    thread.start()
    thread.join(seconds)
    late = thread.is_alive()
    if answer := call.answer:
        output = {"hookEventName": text_of(call.event.get("hook_event_name")) or name, "additionalContext": answer}
        echo(json.dumps({"hookSpecificOutput": output}))
    if late:
        computing = round(time.process_time(), 2)
        _log("hook.timed_out", hook=name, deadline=deadline, step=call.step, computing=computing, answered=bool(answer))
        sys.stdout.flush()
        # The thread may hang where the interpreter cannot shut down normally.
        os._exit(0)


def _nearest_memory(folder: Path) -> Path:
    """The default memory of the folder, or of the nearest folder above that has one."""
    own = folder.resolve()
    candidates = [each / DEFAULT_MEMORY for each in (own, *own.parents)]
    return next((each for each in candidates if is_memory(each)), folder / DEFAULT_MEMORY)


def _log(event: str, **facts: Any) -> None:
    import structlog

    log_to_stderr()
    structlog.get_logger("langgraph_scrum_master").warning(event, **facts)
    sys.stderr.flush()


def _event() -> Mapping[str, Any]:
    try:
        event = json.loads(sys.stdin.buffer.read())
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"the event on standard input is not JSON: {error}") from error
    if not isinstance(event, dict):
        raise DecodeError(f"the event on standard input must be a JSON object, got {event!r:.80}")
    return event
