"""Plugs that raise what no `except Exception` catches: it is recorded, and the graph goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langgraph.errors import GraphBubbleUp
from langgraph.graph import START, MessagesState, StateGraph

from langgraph_scrum_master import ChromaMemory, ScrumMaster, ScrumMasterState
from langgraph_scrum_master.errors import EmbeddingError, StoreError
from langgraph_scrum_master.model import ContextGap, Observation, Turn
from langgraph_scrum_master.testing import a_state


class PanicException(BaseException):
    """What native code raises, as PyO3's exception of that name does."""


class TeamState(MessagesState, ScrumMasterState):
    """A team's state."""

    decisions: list[Any]
    current_story: Any
    health_status: Any
    handoff_context: Any


STUCK: Any = a_state(
    ("user", "Build the refunds."),
    ("dev", "To which queue do refunds go?"),
    decisions=["Refunds go to the queue refunds-eu, with three retries."],
)


def panic(*_arguments: Any, **_options: Any) -> Any:
    raise PanicException("index out of bounds")


class PanickingAssistant:
    async def confirm(self, gap: ContextGap, turns: Sequence[Turn]) -> bool | None:
        return bool(panic())

    async def query(self, gap: ContextGap, turns: Sequence[Turn]) -> str | None:
        return str(panic())

    async def pick(self, query: str, candidates: Sequence[str]) -> Sequence[int] | None:
        return [int(panic())]


class PanickingModel:
    async def ainvoke(self, input: Any) -> Any:
        return panic()


class PanickingEmbedder:
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return list(panic())

    def embed_query(self, text: str) -> list[float]:
        return list(panic())


class Odd:
    """A host's own object: every attribute panics."""

    def __getattr__(self, name: str) -> Any:
        panic()

    def __bool__(self) -> bool:
        return bool(panic())

    def __eq__(self, other: object) -> bool:
        return bool(panic())

    __hash__ = None  # type: ignore[assignment]


def panicking_memory() -> Any:
    memory = ChromaMemory()
    for name in ("search_answers", "search_similar", "open", "store_embedding"):
        setattr(memory, name, panic)
    return memory


PLUGS: dict[str, Callable[[], dict[str, Any]]] = {
    "assistant": lambda: {"assistant": PanickingAssistant()},
    "clock": lambda: {"clock": panic},
    "detector": lambda: {"detectors": [panic]},
    "embedder": lambda: {"memory": ChromaMemory(embedder=PanickingEmbedder())},
    "memory": lambda: {"memory": panicking_memory()},
    "model": lambda: {"model": PanickingModel()},
    "recorder": lambda: {"recorder": panic},
    "redactor": lambda: {"redact": panic},
    "tokenizer": lambda: {"count_tokens": panic},
}


def graph_with(**plugs: Any) -> Any:
    builder = StateGraph(TeamState)
    builder.add_node("scrum_master", ScrumMaster(**plugs).node)
    builder.add_edge(START, "scrum_master")
    return builder.compile()


@pytest.mark.parametrize("plug", PLUGS)
async def test_a_panic_in_a_plug_does_not_fail_the_graph(plug: str) -> None:
    graph = graph_with(**PLUGS[plug]())

    for values in (graph.invoke(STUCK), await graph.ainvoke(STUCK)):
        if plug == "clock":
            assert "PanicException" in values["sm_output"].processing_notes
        else:
            assert values["injection_result"].injected or values["injection_result"].failures


async def test_a_panic_of_a_type_of_the_host_does_not_fail_the_graph() -> None:
    graph = graph_with()
    state = {**STUCK, "current_story": Odd(), "health_status": Odd(), "handoff_context": Odd(), "decisions": [Odd()]}

    for values in (graph.invoke(state), await graph.ainvoke(state)):
        assert values["injection_result"] is not None


async def test_a_panicking_embedder_raises_what_callers_of_a_memory_expect() -> None:
    memory = ChromaMemory(embedder=PanickingEmbedder())

    with pytest.raises(EmbeddingError, match="PanicException: index out of bounds"):
        await memory.store_embedding("a", "A text.", {})


async def test_a_panicking_database_raises_what_callers_of_a_memory_expect(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = ChromaMemory()
    monkeypatch.setattr(memory._backend, "put", panic)

    with pytest.raises(StoreError, match="PanicException: index out of bounds"):
        await memory.store_embedding("a", "A text.", {})


class Interruption(GraphBubbleUp):
    """What LangGraph raises to interrupt a run."""


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, Interruption])
def test_what_interrupts_ends_or_routes_a_run_passes(error: type[BaseException]) -> None:
    def detector(observation: Observation) -> Sequence[ContextGap]:
        raise error

    with pytest.raises(error):
        ScrumMaster(detectors=[detector]).detect(STUCK)
