"""What a session should know when it starts: the lessons that serve what it is about."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master._internal.shapes import items_of, read, unwrapped
from langgraph_scrum_master.briefing.bank import Lesson, Warn, deduplicate, read_bank
from langgraph_scrum_master.briefing.matching import build_fts_index, match_query
from langgraph_scrum_master.briefing.render import format_output
from langgraph_scrum_master.briefing.selection import RELEVANCE_WEIGHT, select_entries
from langgraph_scrum_master.briefing.settings import (
    LIMIT,
    checked_limit,
    checked_switch,
    checked_weight,
    global_store as store_folder,
    lenient_settings,
)
from langgraph_scrum_master.briefing.tracking import write_tracking
from langgraph_scrum_master.briefing.workspace import collect_context_signals
from langgraph_scrum_master.errors import GraphError
from langgraph_scrum_master.messages import BRIEFING
from langgraph_scrum_master.text.sanitize import one_line

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

    from langgraph_scrum_master.protocols import Clock

BANK = Path("docs", "knowledge-bank")
"""Where a project keeps its lessons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing(Plain):
    """What a session gets, and why."""

    text: str = ""
    """Markdown; empty if there is nothing to say."""
    entries: tuple[Lesson, ...] = ()
    """The best first."""
    context_query: str = ""
    """What the session is about."""
    relevance_active: bool = False
    """Whether that counted."""
    relevance_weight: float = RELEVANCE_WEIGHT
    warnings: tuple[str, ...] = ()
    """What could not be read or asked, and what was left out."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", tuple(self.entries))
        object.__setattr__(self, "warnings", tuple(self.warnings))


class Node(Protocol):
    """What `add_node` takes."""

    def __call__(self, state: Any) -> dict[str, Any]: ...


class _AsyncNode(Protocol):
    """The same to be awaited."""

    def __call__(self, state: Any) -> Awaitable[dict[str, Any]]: ...


class SessionBriefing:
    """Chooses the lessons for a session, of those in a project's `docs/knowledge-bank` and in a store for all projects.

    What the session is about is read from the project: its active feature, that one's phase, the files that changed
    lately. Whatever of this is missing or broken does not count, and is told in `warnings`. Nothing is written but
    `.last-injection.json` in the global store.
    """

    def __init__(
        self,
        project_root: str | Path = ".",
        *,
        global_store: str | Path | None = None,
        memory_injection_enabled: bool = True,
        memory_injection_limit: int = LIMIT,
        memory_relevance_weight: float = RELEVANCE_WEIGHT,
        clock: Clock = time.time,
    ) -> None:
        self._root = Path(project_root)
        self._store = Path(global_store) if global_store is not None else None
        self._enabled = checked_switch(memory_injection_enabled)
        self._limit = checked_limit(memory_injection_limit)
        self._weight = checked_weight(memory_relevance_weight)
        self._clock = clock
        self._known: tuple[str, ...] = ()

    @classmethod
    def from_env(
        cls,
        project_root: str | Path = ".",
        *,
        global_store: str | None = None,
        limit: str | None = None,
        relevance_weight: str | None = None,
        environ: Mapping[str, str] = os.environ,
        clock: Clock = time.time,
    ) -> Self:
        """The briefing with what is given, then the environment's settings, then the project's own.

        A setting that cannot work is told in the briefing's `warnings`, and its default holds.
        """
        warnings: list[str] = []
        given = {"memory_injection_limit": limit, "memory_relevance_weight": relevance_weight}
        settings = lenient_settings(Path(project_root), given, environ, warnings.append)
        made = cls(project_root, global_store=store_folder(global_store, environ), clock=clock, **settings)
        made._known = tuple(warnings)
        return made

    def brief(self, context_query: str | None = None) -> Briefing:
        """The briefing. A query takes the place of what the project tells of the session."""
        warnings = list(self._known)
        entries = self._entries(warnings.append) if self._enabled else []
        if not entries or not self._limit:
            return Briefing(relevance_weight=self._weight, warnings=tuple(warnings))
        query = self._query(context_query, warnings.append)
        chosen, active = self._chosen(entries, query, warnings.append)
        self._track(chosen, active, query, warnings.append)
        text = format_output(chosen, relevance_weight=self._weight, context_query=query, relevance_active=active)
        return Briefing(
            text=text,
            entries=tuple(chosen),
            context_query=query,
            relevance_active=active,
            relevance_weight=self._weight,
            warnings=tuple(warnings),
        )

    async def abrief(self, context_query: str | None = None) -> Briefing:
        """The same without blocking the event loop."""
        from langgraph_scrum_master._internal.threads import off_loop

        return await off_loop(self.brief, context_query)

    @property
    def node(self) -> Node:
        """The node for the first step of a graph; where that is awaited, LangGraph calls it in a thread.

        It adds the briefing to `messages`, once a thread, tagged as ours, and never fails the graph.
        """
        return self.session_briefing

    @property
    def async_node(self) -> _AsyncNode:
        """The node as a coroutine function, for `add_node(…, timeout=…)`."""
        return self.asession_briefing

    def session_briefing(self, state: Any) -> dict[str, Any]:
        """The update for a state."""
        try:
            return {} if _is_briefed(state) else _logged(self.brief())
        # Whatever is wrong with a project must not cost its graph the run.
        except Exception as error:
            return _failed(error)

    async def asession_briefing(self, state: Any) -> dict[str, Any]:
        """The same without blocking the event loop."""
        try:
            return {} if _is_briefed(state) else _logged(await self.abrief())
        except Exception as error:
            return _failed(error)

    def check(self, builder: StateGraph[Any, Any, Any, Any]) -> None:
        """Raise `GraphError` if the graph would lose the briefing, or with it what else is in `messages`."""
        channel = getattr(builder, "builder", builder).channels.get("messages")
        # By its name: a check is no reason to load LangGraph where it is not.
        if channel is None or type(channel).__name__ == "LastValue":
            what = "drop the briefing" if channel is None else "lose its messages to the briefing"
            raise GraphError(
                f"the graph would {what}: its state must have 'messages' with a reducer, as MessagesState has"
            )

    def _entries(self, warn: Warn) -> list[Lesson]:
        if not os.path.isdir(self._root):
            warn(f"there is no project in {str(self._root)!r}: give its folder as the project root")
        entries = read_bank(self._root / BANK, "local", warn)
        if self._store is not None:
            entries += read_bank(self._store, "global", warn)
        return deduplicate(entries)

    def _query(self, given: str | None, warn: Warn) -> str:
        """What the session is about; empty if nothing in it can be looked for, or if it does not count."""
        if not self._weight:
            return ""
        if given is None:
            given = collect_context_signals(self._root, warn) if os.path.isdir(self._root) else ""
        return one_line(given) if match_query(given) else ""

    def _chosen(self, entries: Sequence[Lesson], query: str, warn: Warn) -> tuple[list[Lesson], bool]:
        index = build_fts_index(entries, warn) if query else None
        try:
            return select_entries(entries, self._limit, query, index, self._weight), index is not None
        finally:
            if index is not None:
                index.close()

    def _track(self, chosen: Sequence[Lesson], active: bool, query: str, warn: Warn) -> None:
        if self._store is None:
            return
        try:
            write_tracking(
                chosen,
                self._root.resolve(),
                self._store,
                relevance_active=active,
                relevance_weight=self._weight,
                context_query=query,
                now=self._clock(),
            )
        except (OSError, RuntimeError, ValueError) as error:
            warn(f"what was given is not noted in {str(self._store)!r}: {error}")


def _is_briefed(state: object) -> bool:
    return any(read(message, "id") == BRIEFING for message in items_of(unwrapped(state)[0].get("messages")))


def _logged(briefing: Briefing) -> dict[str, Any]:
    """The update that gives the briefing to whoever reads the messages, told in the log."""
    for warning in briefing.warnings:
        _logger().warning("briefing.impaired", problem=warning)
    if not briefing.text:
        return {}
    _logger().info(
        "briefing.given",
        entries=[entry.content_hash for entry in briefing.entries],
        relevance_active=briefing.relevance_active,
    )
    # As plain data, which any framework's reducer takes.
    marks = {"lc_source": BRIEFING}
    message = {"role": "user", "content": briefing.text, "name": BRIEFING, "id": BRIEFING, "additional_kwargs": marks}
    return {"messages": [message]}


def _failed(error: Exception) -> dict[str, Any]:
    _logger().error("briefing.failed", error=f"{type(error).__name__}: {error}")
    return {}


def _logger() -> Any:
    # Late: the command line does without it.
    from langgraph_scrum_master._internal.logs import logger

    return logger
