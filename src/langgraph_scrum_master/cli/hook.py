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
from langgraph_scrum_master.cli.logs import log_to_stderr
from langgraph_scrum_master.cli.memory import DEFAULT_MEMORY, Embedder, Namespace
from langgraph_scrum_master.cli.session_start import session_start
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.errors import DecodeError, NotFoundError

if TYPE_CHECKING:
    from langgraph_scrum_master.memory.chroma import ChromaMemory
    from langgraph_scrum_master.text.domains import Domain

hook = typer.Typer(
    no_args_is_help=True, help="Respond to a coding agent's hook: event as JSON on stdin, context on stdout."
)
hook.command()(session_start)

MemoryFolder = Annotated[
    Path | None,
    typer.Option(
        "--memory", "-m", metavar="FOLDER", help=f"The memory folder. Default: {DEFAULT_MEMORY} in the project."
    ),
]
Seconds = Annotated[float, typer.Option("--deadline", help="Seconds until the hook gives up and prints nothing.")]
"""The parameter is not named `deadline`, because the setting of that name is for sources, not for a whole process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """The host's event, and the memory to search."""

    event: Mapping[str, Any]
    folder: Path
    namespace: str
    embedder: str
    seconds: float
    """Time left."""

    @property
    def session(self) -> str:
        """The id of the host's session."""
        return text_of(self.event.get("session_id"))

    def memory(self) -> ChromaMemory:
        """The project's memory. A missing memory is an error: hooks do not create one."""
        from langgraph_scrum_master.memory.chroma import ChromaMemory

        log_to_stderr()
        memory = ChromaMemory(self.folder, namespace=self.namespace, embedder=self.embedder)
        if not memory.begun:
            raise NotFoundError(f"{memory!r} does not exist: fill it, or pass its folder with --memory")
        return memory


Responder: TypeAlias = Callable[[HookCall], Coroutine[Any, Any, str]]
"""Gives the context for an event, or an empty text."""


@hook.command()
def user_prompt_submit(
    memory: MemoryFolder = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    within: Seconds = 2.0,
) -> None:
    """Add relevant memories to a prompt."""
    _respond("UserPromptSubmit", _for_prompt, memory, namespace, embedder, within)


@hook.command()
def post_tool_failure(
    memory: MemoryFolder = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    within: Seconds = 2.0,
) -> None:
    """After the first failure of a session, show past failures in the same domain."""
    _respond("PostToolUseFailure", _for_failure, memory, namespace, embedder, within)


async def _for_prompt(call: HookCall) -> str:
    from datetime import UTC, datetime

    from langgraph_scrum_master.config import PROMPT_BUDGET, TokenBudget
    from langgraph_scrum_master.prompts.pipeline import InjectionPipeline
    from langgraph_scrum_master.retrieval.frame import enclosed
    from langgraph_scrum_master.text.tokens import estimate_tokens

    prompt = text_of(call.event.get("prompt"))
    if not prompt.strip():
        raise DecodeError(f"the event must have a non-empty string 'prompt', got {call.event.get('prompt')!r:.80}")
    high_relevance = PROMPT_BUDGET["high_relevance"] - estimate_tokens(enclosed(""))
    pipeline = InjectionPipeline(
        call.memory(),
        budget=TokenBudget(**{**PROMPT_BUDGET, "high_relevance": high_relevance}),
        # Leaves time to return the results when a source is late.
        deadline=call.seconds / 2,
        zone=datetime.now().astimezone().tzinfo or UTC,
    )
    result = await pipeline.ainject_context(prompt, call.session)
    return enclosed(result.text) if result.injected else ""


async def _for_failure(call: HookCall) -> str:
    from langgraph_scrum_master.cli.failure import failure_domain

    domain = failure_domain(call.event)
    # Most tool calls end here, before anything else is imported.
    return await _warning(call, domain) if domain else ""


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
    name: str, responder: Responder, memory: Path | None, namespace: str, embedder: str, deadline: float
) -> None:
    """Print the response to the event. Errors are logged and never reach the host."""
    # CPU time so far approximates the time since the process started.
    seconds = max(0.1, deadline - time.process_time())
    responses: list[str] = []

    def work() -> None:
        try:
            event = _event()
            folder = memory or Path(text_of(event.get("cwd"))) / DEFAULT_MEMORY
            call = HookCall(event=event, folder=folder, namespace=namespace, embedder=embedder, seconds=seconds)
            if text := asyncio.run(responder(call)):
                output = {"hookEventName": text_of(event.get("hook_event_name")) or name, "additionalContext": text}
                responses.append(json.dumps({"hookSpecificOutput": output}))
        # No failure of the memory may reach the host.
        except Exception as error:
            _log("hook.failed", hook=name, error=f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=work, name="scrum-master-hook", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        _log("hook.timed_out", hook=name, deadline=deadline)
        # The thread may hang where the interpreter cannot shut down normally.
        os._exit(0)
    for line in responses:
        echo(line)


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
