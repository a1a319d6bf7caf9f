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
    """The sources over what a project has learned, which is stored beside its memory."""
    # Loaded when the first gap is served.
    from langgraph_scrum_master.learning.sources import learned_sources

    return learned_sources(memory)


class _AsyncNode(Protocol):
    """A node that can only be awaited."""

    def __call__(self, state: Any) -> Awaitable[dict[str, Any]]: ...


class ScrumMaster:
    """Notices when an agent lacks context, finds it, and gives it to the agent.

    Without a memory, the node uses the store that its graph was compiled with; state, sprint and architecture serve
    in any case. `detectors` are asked beside the built-in ones, `sources` beside the enabled ones. With a
    chat model as `model`, or an `assistant` of your own, doubtful gaps are confirmed or turned down by it, it writes
    what to look for, and picks what answers; without, or where it fails, rules do. `snapshots` is
    the folder, or the recorder, for a snapshot of every step with a gap, to replay it later. `redact` takes words out
    of what leaves to logs, recorder, snapshots and streams ("all", "secrets", "emails", a function, or several of
    these); the agent and the state get everything. `asking` is a weights file that `scrum-master train` wrote, instead
    of the one that comes with the package. `tuning` has the numbers that decide what detection reports.
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
        for given in sources:
            _refuse_unless_source(given)
        self._memory = memory
        self._pipeline = Pipeline(
            config=config or InjectionConfig(),
            detectors=tuple(detectors),
            sources=sources,
            shelf_sources=shelf_sources,
            clock=clock,
            recorder=recorder,
            count_tokens=count_tokens,
            assistant=_assistant_caller(assistant, model, tuning),
            snapshots=SnapshotRecorder(snapshots) if isinstance(snapshots, str | Path) else snapshots,
            redact=_redactor(redact) if redact is not None else None,
            watcher=Watcher(_asking_model(asking), doubtful=assistant is not None or model is not None, tuning=tuning),
        )

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ, **otherwise: Any) -> ScrumMaster:
        """The scrum master that the environment describes; nothing is opened yet.

        Each setting of `InjectionConfig` and `PartsConfig` is read from its variable `SCRUM_MASTER_*`. `otherwise` has
        values for those whose variable is not set, by name.
        """
        named = {each.name: otherwise.pop(each.name, None) for each in settings_of(PartsConfig)}
        parts = PartsConfig.from_env(environ, **named)
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
        """The memory that it was given."""
        return self._memory

    @property
    def config(self) -> InjectionConfig:
        """All its knobs."""
        return self._pipeline.config

    def observe(self, state: object) -> Observation:
        """What the state says about the team; `health_status` and `cycle_analysis` tell more of it."""
        return self._pipeline.sight(state).observation

    def detect(self, state: object) -> tuple[ContextGap, ...]:
        """The gaps that are not settled yet, the most confident first; empty on a healthy team."""
        seen = self._pipeline.look(state)
        return self._pipeline.sure(seen).gaps if isinstance(seen, Sighting) else ()

    def evaluate(self, state: object) -> InjectionResult | None:
        """The result for the first gap, or None; also inside a running event loop, which it then holds up."""
        sighting = self._pipeline.sight(state)
        return wait_for(self._confirmed_and_served(sighting)) if sighting.gaps or sighting.given_up else None

    async def aevaluate(self, state: object) -> InjectionResult | None:
        """The result for the first gap, or None, without blocking the event loop."""
        return await self._confirmed_and_served(self._pipeline.sight(state))

    async def _confirmed_and_served(self, sighting: Sighting) -> InjectionResult | None:
        return await self._pipeline.serve(await self._pipeline.confirmed(sighting), self._memory, _unseen)

    @cached_property
    def step(self) -> Step:
        """A step in a running graph: what the node, the hook and the middleware do."""
        from langgraph_scrum_master.team.runtime import Step

        return Step(self._pipeline, self._memory)

    @cached_property
    def node(self) -> ScrumMasterNode:
        """The node for `add_node`, for graphs that are invoked, awaited or streamed."""
        from langgraph_scrum_master.team.node import ScrumMasterNode

        return ScrumMasterNode(self.step)

    @property
    def async_node(self) -> _AsyncNode:
        """The node as a coroutine function, for `add_node(…, timeout=…)`."""
        return self.node.scrum_master

    @property
    def pre_model_hook(self) -> PreModelHook:
        """For `create_supervisor` and `create_react_agent`: the model gets at once what anybody lacks."""
        return self.hook_for("")

    def hook_for(self, agent: str) -> PreModelHook:
        """The hook for one agent of several: it gets what it lacks itself, and what those lack that report to it."""
        from langgraph_scrum_master.team.node import PreModelHook

        return PreModelHook(self.step, agent)

    def check(self, builder: StateGraph[Any, Any, Any, Any]) -> None:
        """Raise `GraphError` if the graph would drop what we write; warn if none of its nodes can read it."""
        from langgraph_scrum_master.team.node import check_graph

        check_graph(builder, deliver_message=self._pipeline.config.deliver == "message")


def _asking_model(given: str | Path | AskingModel | None) -> AskingModel | None:
    if given is None:
        return None
    from langgraph_scrum_master.team.observe.asking.model import AskingModel

    if isinstance(given, AskingModel):
        return given
    if isinstance(given, str | Path):
        return AskingModel.load(given)
    raise ConfigError(f"asking must be a weights file of `scrum-master train`, or an AskingModel, got {given!r}")


def _assistant_caller(
    assistant: Assistant | None, model: ChatModel | None, tuning: DetectionTuning
) -> AssistantCaller | None:
    if assistant is None and model is None:
        return None
    from langgraph_scrum_master.team.assistant import ChatAssistant
    from langgraph_scrum_master.team.consult import AssistantCaller

    if assistant is not None and model is not None:
        raise ConfigError("give an assistant, or a model for the ready-made one, not both")
    if assistant is not None and not isinstance(assistant, Assistant):
        raise ConfigError(
            f"assistant must have the coroutine methods confirm, query and pick, got {assistant!r}; a chat model is "
            "given as model="
        )
    if model is not None and not callable(getattr(model, "ainvoke", None)):
        raise ConfigError(f"model must be a chat model with ainvoke, got {model!r}")
    return AssistantCaller(assistant if assistant is not None else ChatAssistant(model), tuning)  # type: ignore[arg-type]


def _redactor(wanted: Redaction | Redact | Iterable[Redaction | Redact]) -> Redact | None:
    from langgraph_scrum_master.text.redact import redactor

    return redactor(wanted)


def _refuse_unless_source(given: object) -> None:
    if not isinstance(given, Source) or not isinstance(read(given, "name"), str):
        raise ConfigError(f"a source must have a name and a coroutine method find, got {given!r}")


def _unseen(_event: str, _facts: dict[str, Any]) -> None:
    """Nobody watches outside a graph."""
