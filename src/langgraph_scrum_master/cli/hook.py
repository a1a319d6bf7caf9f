"""`scrum-master hook`: what a coding agent runs at its hooks.

A hook reads the event as JSON on standard input and answers in the form of Claude Code's hooks. It never fails its
host: whatever goes wrong, or takes too long, it prints nothing, logs to standard error, and ends with exit code 0.
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
from langgraph_scrum_master.cli.memory import PLACE, Embedder, Namespace
from langgraph_scrum_master.cli.session_start import session_start
from langgraph_scrum_master.errors import DecodeError, NotFoundError

if TYPE_CHECKING:
    from langgraph_scrum_master.memory.chroma import ChromaMemory
    from langgraph_scrum_master.text.domains import Domain

hook = typer.Typer(no_args_is_help=True, help="Answer a coding agent's hook: its JSON on stdin, context on stdout.")
hook.command()(session_start)

MemoryFolder = Annotated[
    Path | None, typer.Option("--memory", "-m", metavar="FOLDER", help=f"The memory; else {PLACE} of the project.")
]
Seconds = Annotated[float, typer.Option("--deadline", help="Seconds from start to end; then it is silent.")]
"""A parameter of another name than its option: the setting `deadline` is about sources, not about a whole process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What the host told, and where to look."""

    event: Mapping[str, Any]
    folder: Path
    namespace: str
    embedder: str
    seconds: float
    """That are left."""

    @property
    def session(self) -> str:
        """The host's session."""
        return text_of(self.event.get("session_id"))

    def memory(self) -> ChromaMemory:
        """The project's memory. One that is not there is not made: a hook leaves nothing where nothing was."""
        from langgraph_scrum_master.memory.chroma import ChromaMemory

        log_to_stderr()
        memory = ChromaMemory(self.folder, namespace=self.namespace, embedder=self.embedder)
        if not memory.begun:
            raise NotFoundError(f"{memory!r} is not there: fill it, or give its folder with --memory")
        return memory


Answer: TypeAlias = Callable[[Called], Coroutine[Any, Any, str]]
"""What the agent is to be told at an event; empty if nothing."""


@hook.command()
def user_prompt_submit(
    memory: MemoryFolder = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    within: Seconds = 2.0,
) -> None:
    """Give a prompt the memories that serve it."""
    _answer("UserPromptSubmit", _for_prompt, memory, namespace, embedder, within)


@hook.command()
def post_tool_failure(
    memory: MemoryFolder = None,
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    within: Seconds = 2.0,
) -> None:
    """Tell at the first failure of a session what went wrong before in its domain."""
    _answer("PostToolUseFailure", _for_failure, memory, namespace, embedder, within)


async def _for_prompt(called: Called) -> str:
    from datetime import UTC, datetime

    from langgraph_scrum_master.config import PROMPT_BUDGET, TokenBudget
    from langgraph_scrum_master.prompts.pipeline import InjectionPipeline
    from langgraph_scrum_master.retrieval.frame import enclosed
    from langgraph_scrum_master.text.tokens import estimate_tokens

    prompt = text_of(called.event.get("prompt"))
    if not prompt.strip():
        raise DecodeError(f"the event must have a text 'prompt', got {called.event.get('prompt')!r:.80}")
    close = PROMPT_BUDGET["high_relevance"] - estimate_tokens(enclosed(""))
    pipeline = InjectionPipeline(
        called.memory(),
        budget=TokenBudget(**{**PROMPT_BUDGET, "high_relevance": close}),
        # So that there is time left to tell what was found if something is late.
        deadline=called.seconds / 2,
        zone=datetime.now().astimezone().tzinfo or UTC,
    )
    result = await pipeline.ainject_context(prompt, called.session)
    return enclosed(result.text) if result.injected else ""


async def _for_failure(called: Called) -> str:
    from langgraph_scrum_master.cli.failure import failed_in

    domain = failed_in(called.event)
    # As after most tool calls: nothing more is loaded.
    return await _warning(called, domain) if domain else ""


async def _warning(called: Called, domain: Domain) -> str:
    from langgraph_scrum_master.cli.warned_sessions import Told
    from langgraph_scrum_master.learning.records import experiences_on
    from langgraph_scrum_master.retrieval.frame import enclosed

    memory = called.memory()
    if not memory.beside(experiences_on("full")).begun:
        return ""
    told = Told(called.folder, called.namespace)
    if told.knows(called.session):
        return ""
    text = await _premortem(memory, domain, called.seconds)
    return enclosed(text) if text and told.first(called.session) else ""


async def _premortem(memory: ChromaMemory, domain: Domain, seconds: float) -> str:
    from langgraph_scrum_master.learning.assembler import ContextAssembler
    from langgraph_scrum_master.learning.records import experiences_on
    from langgraph_scrum_master.learning.searcher import Searcher
    from langgraph_scrum_master.retrieval.retrieve import open_memory

    # Asked all at once, each shelf would load the embedder.
    await open_memory(memory.beside(experiences_on("full")), seconds)
    found = await ContextAssembler(Searcher(memory), deadline=seconds / 2).get_premortem_context(domain)
    # Principles alone are no warning.
    return found.markdown if "experience" in found.sources_used else ""


def _answer(name: str, answer: Answer, memory: Path | None, namespace: str, embedder: str, deadline: float) -> None:
    """Print what there is to say at the event. Whatever goes wrong is logged, and the host goes on."""
    # What was computed so far is about what has passed since the process was started.
    seconds = max(0.1, deadline - time.process_time())
    said: list[str] = []

    def work() -> None:
        try:
            event = _event()
            folder = memory or Path(text_of(event.get("cwd"))) / PLACE
            called = Called(event=event, folder=folder, namespace=namespace, embedder=embedder, seconds=seconds)
            if text := asyncio.run(answer(called)):
                told = {"hookEventName": text_of(event.get("hook_event_name")) or name, "additionalContext": text}
                said.append(json.dumps({"hookSpecificOutput": told}))
        # Anything may be wrong with a memory, and nothing of that is the host's concern.
        except Exception as error:
            _log("hook.failed", hook=name, error=f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=work, name="scrum-master-hook", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        _log("hook.timed_out", hook=name, deadline=deadline)
        # The thread may hang where no interpreter can end in an orderly way.
        os._exit(0)
    for line in said:
        typer.echo(line)


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
