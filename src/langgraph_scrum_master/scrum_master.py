"""The scrum master: detects gaps and serves them, with or without a graph."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from langgraph_scrum_master._internal.logs import Redact
from langgraph_scrum_master._internal.settings import names_in, settings_of
from langgraph_scrum_master._internal.shapes import read
from langgraph_scrum_master._internal.threads import wait_for
from langgraph_scrum_master.config import InjectionConfig, PartsConfig
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.model import ContextGap, InjectionResult, Observation
from langgraph_scrum_master.protocols import (
    Assistant,
    ChatModel,
    Clock,
    Detector,
    MemoryStore,
    Recorder,
    Source,
    TokenCounter,
    checked_memory,
)
from langgraph_scrum_master.retrieval.counting import reliable
from langgraph_scrum_master.team.observe import Watcher
from langgraph_scrum_master.team.pipeline import Pipeline, Sighting
from langgraph_scrum_master.team.record.snapshots import SnapshotRecorder
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning
from langgraph_scrum_master.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

    from langgraph_scrum_master.team.consult import AssistantCaller
    from langgraph_scrum_master.team.node import PreModelHook, ScrumMasterNode
    from langgraph_scrum_master.team.observe.asking.model import AskingModel
    from langgraph_scrum_master.team.runtime import Step
    from langgraph_scrum_master.text.redact import Redaction


def shelf_sources(memory: MemoryStore) -> Mapping[str, Source]:
    """The sources over the shelves of a memory: code, commits, experiences and values."""
    # Imported lazily, when the first gap is served.
    from langgraph_scrum_master.learning.sources import learned_sources

    return learned_sources(memory)


class _AsyncNode(Protocol):
    """A node that can only be awaited."""

    def __call__(self, state: Any) -> Awaitable[dict[str, Any]]: ...


class ScrumMaster:
    """Detects that an agent lacks context, retrieves it, and delivers it to the agent.

    - `memory`: without one, the node uses the store that its graph was compiled with.
    - `detectors` and `sources` are used in addition to the built-in detectors and the enabled sources.
    - `model`, a chat model, or `assistant`, your own, confirms doubtful gaps, writes the query and picks the answers.
      Without one, or if it fails, rules decide.
    - `snapshots`: a folder or a recorder for a snapshot of every step with a gap, for later replay.
    - `redact`: what to remove from logs, recorder, snapshots and streams: "all", "secrets", "emails", a function, or
      several of these. The agent and the state are not redacted.
    - `asking`: a weights file written by `scrum-master train`, instead of the bundled one.
    - `tuning`: the thresholds of detection.
    """

    def __init__(
        self,
        *,
        memory: MemoryStore | None = None,
        config: InjectionConfig | None = None,
        sources: Iterable[Source] = (),
        detectors: Iterable[Detector] = (),
        clock: Clock = time.time,
        recorder: Recorder | None = None,
        count_tokens: TokenCounter = estimate_tokens,
        assistant: Assistant | None = None,
        model: ChatModel | None = None,
        snapshots: str | Path | SnapshotRecorder | None = None,
        redact: Redaction | Redact | Iterable[Redaction | Redact] | None = None,
        asking: str | Path | AskingModel | None = None,
        tuning: DetectionTuning = DEFAULT_DETECTION,
    ) -> None:
        if config is not None and not isinstance(config, InjectionConfig):
            raise ConfigError(f"config must be an InjectionConfig, got {config!r}")
        if memory is not None:
            checked_memory(memory)
        if not isinstance(tuning, DetectionTuning):
            raise ConfigError(f"tuning must be a DetectionTuning, got {tuning!r}")
        sources = tuple(sources)
        for source in sources:
            _check_source(source)
        self._memory = memory
        self._pipeline = Pipeline(
            config=config or InjectionConfig(),
            detectors=tuple(detectors),
            sources=sources,
            shelf_sources=shelf_sources,
            clock=clock,
            recorder=recorder,
            count_tokens=reliable(count_tokens),
            assistant=_assistant_caller(assistant, model, tuning),
            snapshots=SnapshotRecorder(snapshots) if isinstance(snapshots, str | Path) else snapshots,
            redact=_redactor(redact) if redact is not None else None,
            watcher=Watcher(_asking_model(asking), doubtful=assistant is not None or model is not None, tuning=tuning),
        )

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ, **otherwise: Any) -> ScrumMaster:
        """A scrum master configured from environment variables; nothing is opened yet.

        Each setting of `InjectionConfig` and `PartsConfig` has a variable `SCRUM_MASTER_*`. `otherwise` has the values
        of settings whose variable is not set.
        """
        defaults = {each.name: otherwise.pop(each.name, None) for each in settings_of(PartsConfig)}
        parts = PartsConfig.from_env(environ, **defaults)
        config = InjectionConfig.from_env(environ, **otherwise)
        memory: MemoryStore | None = None
        recorder: Recorder | None = None
        if parts.memory_path:
            from langgraph_scrum_master.memory.chroma import ChromaMemory

            memory = ChromaMemory(parts.memory_path, namespace=config.namespace, embedder=parts.embedder)
        if parts.audit_log:
            from langgraph_scrum_master.team.record.audit import JsonlRecorder

            recorder = JsonlRecorder(parts.audit_log)
        redact: Any = names_in(parts.redact) if isinstance(parts.redact, str) else parts.redact
        return cls(
            memory=memory,
            config=config,
            recorder=recorder,
            snapshots=parts.snapshots,
            redact=redact,
            asking=parts.asking,
        )

    @property
    def pipeline(self) -> Pipeline:
        """The stages with their settings."""
        return self._pipeline

    @property
    def memory(self) -> MemoryStore | None:
        """The memory that was passed in."""
        return self._memory

    @property
    def config(self) -> InjectionConfig:
        """The settings."""
        return self._pipeline.config

    def observe(self, state: object) -> Observation:
        """What the state says about the team; see also `health_status` and `cycle_analysis`."""
        return self._pipeline.sight(state).observation

    def detect(self, state: object) -> tuple[ContextGap, ...]:
        """The unsettled gaps, most confident first; empty for a healthy team."""
        seen = self._pipeline.look(state)
        return self._pipeline.without_doubtful(seen).gaps if isinstance(seen, Sighting) else ()

    def evaluate(self, state: object) -> InjectionResult | None:
        """The result for the first gap, or None. Works inside a running event loop, but blocks it."""
        sighting = self._pipeline.sight(state)
        return wait_for(self._confirm_and_serve(sighting)) if sighting.gaps or sighting.given_up else None

    async def aevaluate(self, state: object) -> InjectionResult | None:
        """The result for the first gap, or None, without blocking the event loop."""
        return await self._confirm_and_serve(self._pipeline.sight(state))

    async def _confirm_and_serve(self, sighting: Sighting) -> InjectionResult | None:
        return await self._pipeline.serve(await self._pipeline.confirm(sighting), self._memory, _ignore_event)

    @cached_property
    def step(self) -> Step:
        """The step that the node, the hook and the middleware share."""
        from langgraph_scrum_master.team.runtime import Step

        return Step(self._pipeline, self._memory)

    @cached_property
    def node(self) -> ScrumMasterNode:
        """The node for `add_node`; works in sync, async and streamed graphs."""
        from langgraph_scrum_master.team.node import ScrumMasterNode

        return ScrumMasterNode(self.step)

    @property
    def async_node(self) -> _AsyncNode:
        """The node as a coroutine function, for `add_node(…, timeout=…)`."""
        return self.node.scrum_master

    @property
    def pre_model_hook(self) -> PreModelHook:
        """The hook for `create_supervisor` and `create_react_agent`; it serves the gaps of all agents."""
        return self.hook_for("")

    def hook_for(self, agent: str) -> PreModelHook:
        """The hook for one of several agents; it serves the gaps of this agent and of those that report to it."""
        from langgraph_scrum_master.team.node import PreModelHook

        return PreModelHook(self.step, agent)

    def check(self, builder: StateGraph[Any, Any, Any, Any]) -> None:
        """Raise `GraphError` if the graph would drop what the node writes; warn if no node can read it."""
        from langgraph_scrum_master.team.node import check_graph

        check_graph(builder, deliver_message=self._pipeline.config.deliver == "message")


def _asking_model(asking: str | Path | AskingModel | None) -> AskingModel | None:
    if asking is None:
        return None
    from langgraph_scrum_master.team.observe.asking.model import AskingModel

    if isinstance(asking, AskingModel):
        return asking
    if isinstance(asking, str | Path):
        return AskingModel.load(asking)
    raise ConfigError(f"asking must be a weights file of `scrum-master train`, or an AskingModel, got {asking!r}")


def _assistant_caller(
    assistant: Assistant | None, model: ChatModel | None, tuning: DetectionTuning
) -> AssistantCaller | None:
    if assistant is None and model is None:
        return None
    from langgraph_scrum_master.team.assistant import ChatAssistant
    from langgraph_scrum_master.team.consult import AssistantCaller

    if assistant is not None and model is not None:
        raise ConfigError("pass either assistant or model, not both")
    if assistant is not None and not isinstance(assistant, Assistant):
        raise ConfigError(
            f"assistant must have the coroutine methods confirm, query and pick, got {assistant!r}; pass a chat model "
            "as model="
        )
    if model is not None and not callable(getattr(model, "ainvoke", None)):
        raise ConfigError(f"model must be a chat model with ainvoke, got {model!r}")
    return AssistantCaller(assistant if assistant is not None else ChatAssistant(model), tuning)  # type: ignore[arg-type]


def _redactor(wanted: Redaction | Redact | Iterable[Redaction | Redact]) -> Redact | None:
    from langgraph_scrum_master.text.redact import redactor

    return redactor(wanted)


def _check_source(source: object) -> None:
    if not isinstance(source, Source) or not isinstance(read(source, "name"), str):
        raise ConfigError(f"a source must have a name and a coroutine method find, got {source!r}")


def _ignore_event(_event: str, _facts: dict[str, Any]) -> None:
    """Outside a graph there is no stream."""
