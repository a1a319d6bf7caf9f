"""The briefing of a session, as text or as a node of a graph."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from langgraph_scrum_master._internal.foreign import recordable
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
"""The knowledge bank of a project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing(Plain):
    """The text for a session, and how it was selected."""

    text: str = ""
    """Markdown; empty if there are no lessons."""
    entries: tuple[Lesson, ...] = ()
    """Best first."""
    context_query: str = ""
    """Words that describe the session."""
    relevance_active: bool = False
    """Whether relevance to the query was scored."""
    relevance_weight: float = RELEVANCE_WEIGHT
    warnings: tuple[str, ...] = ()
    """Files, settings and signals that could not be used."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", tuple(self.entries))
        object.__setattr__(self, "warnings", tuple(self.warnings))


class Node(Protocol):
    """A node for `add_node`."""

    def __call__(self, state: Any) -> dict[str, Any]: ...


class _AsyncNode(Protocol):
    """An asynchronous node for `add_node`."""

    def __call__(self, state: Any) -> Awaitable[dict[str, Any]]: ...


class SessionBriefing:
    """Selects lessons for a session from a project's `docs/knowledge-bank` and a global store.

    Signals from the project describe the session: the active feature, its phase, and recently changed files. Missing
    or broken signals are ignored and reported in `warnings`. The only file written is `.last-injection.json` in the
    global store.
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
        self._setting_warnings: tuple[str, ...] = ()

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
        """A briefing with settings from the arguments, then the environment, then the project's settings file.

        An invalid setting is reported in the briefing's `warnings`, and its default is used.
        """
        warnings: list[str] = []
        arguments = {"memory_injection_limit": limit, "memory_relevance_weight": relevance_weight}
        settings = lenient_settings(Path(project_root), arguments, environ, warnings.append)
        briefing = cls(project_root, global_store=store_folder(global_store, environ), clock=clock, **settings)
        briefing._setting_warnings = tuple(warnings)
        return briefing

    def brief(self, context_query: str | None = None) -> Briefing:
        """The briefing. A query replaces the signals from the project."""
        warnings = list(self._setting_warnings)
        entries = self._entries(warnings.append) if self._enabled else []
        if not entries or not self._limit:
            return Briefing(relevance_weight=self._weight, warnings=tuple(warnings))
        query = self._query(context_query, warnings.append)
        chosen, active = self._select(entries, query, warnings.append)
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
        """Like `brief`, without blocking the event loop."""
        from langgraph_scrum_master._internal.threads import off_loop

        return await off_loop(self.brief, context_query)

    @property
    def node(self) -> Node:
        """The node for the first step of a graph. Under `ainvoke`, LangGraph runs it in a worker thread.

        It adds the briefing to `messages` once per conversation thread, and never raises.
        """
        return self.session_briefing

    @property
    def async_node(self) -> _AsyncNode:
        """The node as a coroutine function, for `add_node(…, timeout=…)`."""
        return self.asession_briefing

    def session_briefing(self, state: Any) -> dict[str, Any]:
        """The node function: the update for a state."""
        try:
            return {} if _is_briefed(state) else _logged(self.brief())
        # A broken project must not fail the graph.
        except BaseException as error:
            return _failed(recordable(error))

    async def asession_briefing(self, state: Any) -> dict[str, Any]:
        """Like `session_briefing`, without blocking the event loop."""
        try:
            return {} if _is_briefed(state) else _logged(await self.abrief())
        except BaseException as error:
            return _failed(recordable(error))

    def check(self, builder: StateGraph[Any, Any, Any, Any]) -> None:
        """Raise `GraphError` if the graph would drop the briefing, or overwrite its messages with it."""
        channel = getattr(builder, "builder", builder).channels.get("messages")
        # Compared by name, so that LangGraph is not imported.
        if channel is None or type(channel).__name__ == "LastValue":
            what = "drop the briefing" if channel is None else "lose its messages to the briefing"
            raise GraphError(
                f"the graph would {what}: its state must have 'messages' with a reducer, as MessagesState has"
            )

    def _entries(self, warn: Warn) -> list[Lesson]:
        if not os.path.isdir(self._root):
            warn(f"there is no project in {str(self._root)!r}: pass its folder as the project root")
        entries = read_bank(self._root / BANK, "local", warn)
        if self._store is not None:
            entries += read_bank(self._store, "global", warn)
        return deduplicate(entries)

    def _query(self, query: str | None, warn: Warn) -> str:
        """The query on one line; empty if it has no words, or if the weight of relevance is 0."""
        if not self._weight:
            return ""
        if query is None:
            query = collect_context_signals(self._root, warn) if os.path.isdir(self._root) else ""
        return one_line(query) if match_query(query) else ""

    def _select(self, entries: Sequence[Lesson], query: str, warn: Warn) -> tuple[list[Lesson], bool]:
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
            warn(f"the injection could not be recorded in {str(self._store)!r}: {error}")


def _is_briefed(state: object) -> bool:
    return any(read(message, "id") == BRIEFING for message in items_of(unwrapped(state)[0].get("messages")))


def _logged(briefing: Briefing) -> dict[str, Any]:
    """The update that adds the briefing to the messages. Logs it and its warnings."""
    for warning in briefing.warnings:
        _logger().warning("briefing.impaired", problem=warning)
    if not briefing.text:
        return {}
    _logger().info(
        "briefing.given",
        entries=[entry.content_hash for entry in briefing.entries],
        relevance_active=briefing.relevance_active,
    )
    # A dict, which every message reducer accepts.
    tags = {"lc_source": BRIEFING}
    message = {"role": "user", "content": briefing.text, "name": BRIEFING, "id": BRIEFING, "additional_kwargs": tags}
    return {"messages": [message]}


def _failed(error: Exception) -> dict[str, Any]:
    _logger().error("briefing.failed", error=f"{type(error).__name__}: {error}")
    return {}


def _logger() -> Any:
    # Imported lazily: the command line does not need structlog.
    from langgraph_scrum_master._internal.logs import logger

    return logger
