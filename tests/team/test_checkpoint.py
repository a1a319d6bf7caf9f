"""What went into a checkpoint comes out equal, in LangGraph's default and in its strict msgpack mode."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from builders import DECISION, QUESTION, Given, a_context, a_gap, a_result, says
from langgraph_scrum_master import MSGPACK_TYPES, ScrumMaster, ScrumMasterState, checkpoint_serde, context_for
from langgraph_scrum_master.model import Dropped, SourceFailure

pytestmark = pytest.mark.checkpoint

STRICT = os.environ.get("LANGGRAPH_STRICT_MSGPACK") == "true"
THREAD: Any = {"configurable": {"thread_id": "t"}}


@dataclass(frozen=True)
class HostType:
    name: str
    parts: tuple[str, ...]


class State(MessagesState, ScrumMasterState):
    host: HostType


class Untyped(MessagesState, ScrumMasterState):
    host: Any


def graph(checkpointer: Any, schema: type[Any] = State) -> Any:
    builder = StateGraph(schema)
    builder.add_node("dev", lambda state: {"messages": [says("dev", QUESTION, id="q")], "host": HostType("x", ("y",))})
    context = a_context(metadata={"nested": {"tuple": (1, 2)}, "big": 2**70})
    builder.add_node(ScrumMaster(sources=[Given(context, a_context("weak", 0.1))], clock=lambda: 0.0).node)
    builder.add_edge(START, "dev")
    builder.add_edge("dev", "scrum_master")
    return builder.compile(checkpointer=checkpointer)


Saver = Callable[[Any], AbstractContextManager[BaseCheckpointSaver[Any]]]


@pytest.fixture(params=["memory", "sqlite"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Saver:
    def sqlite(serde: Any) -> Iterator[BaseCheckpointSaver[Any]]:
        import sqlite3

        connection = sqlite3.connect(tmp_path / "checkpoints.db", check_same_thread=False)
        yield SqliteSaver(connection, serde=serde)
        connection.close()

    from contextlib import contextmanager

    if request.param == "memory":
        return lambda serde: nullcontext(InMemorySaver(serde=serde))
    return contextmanager(sqlite)


@pytest.mark.parametrize("with_ours", [True, False], ids=["our serde", "LangGraph's serde"])
def test_results_survive_a_checkpoint_unchanged(saver: Saver, with_ours: bool) -> None:
    with saver(checkpoint_serde(HostType) if with_ours else None) as checkpointer:
        compiled = graph(checkpointer)

        live = compiled.invoke({"messages": [HumanMessage("Build it.", id="h")]}, THREAD)
        kept = compiled.get_state(THREAD).values

        for key in ("injection_result", "injection_history", "sm_output", "injected_context"):
            assert kept[key] == live[key], key
        assert hash(kept["injection_result"]) == hash(live["injection_result"])
        assert isinstance(kept["injection_result"].contexts_retrieved, tuple)
        assert DECISION in context_for(kept, "dev")


def test_every_type_survives_with_all_its_fields_filled() -> None:
    serde = checkpoint_serde()
    full = a_result(
        dropped=(Dropped(key="k", source="s", title="t", relevance_score=0.1, why="duplicate"),),
        failures=(SourceFailure(source="memory", error="late"),),
        pending=(a_gap(missing=("schema",)),),
    )

    assert serde.loads_typed(serde.dumps_typed(full)) == full
    assert {type(full), type(full.gap), type(full.dropped[0]), type(full.failures[0])} <= set(MSGPACK_TYPES)


def test_a_hosts_own_types_come_back_as_they_were(saver: Saver) -> None:
    with saver(checkpoint_serde(HostType)) as checkpointer:
        compiled = graph(checkpointer, Untyped)
        compiled.invoke({"messages": []}, THREAD)

        host = compiled.get_state(THREAD).values["host"]

    assert isinstance(host, HostType)
    assert host.name == "x"


@pytest.mark.skipif(STRICT, reason="the strict mode keeps only what is named")
def test_the_default_mode_preserves_unregistered_host_types() -> None:
    serde = checkpoint_serde()

    assert isinstance(serde.loads_typed(serde.dumps_typed(HostType("x", ()))), HostType)


NOTICE = """
import logging, sys
logging.basicConfig(level=logging.WARNING, stream=sys.stdout)
sys.path[:0] = sys.argv[1:]
from builders import a_result
from langgraph_scrum_master import checkpoint_serde
serde = [checkpoint_serde() for _ in range(3)][0]
assert serde.loads_typed(serde.dumps_typed(a_result())) == a_result()
print(len(logging.getLogger("langgraph.checkpoint.serde.jsonplus").filters), "filter")
"""


def test_our_types_cause_no_notice_about_unregistered_types() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOTICE, str(Path(__file__).parents[1])], capture_output=True, text=True, check=True
    )

    assert done.stdout == "1 filter\n"


RESUME = """
import sqlite3, sys
sys.path[:0] = sys.argv[2:]
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph_scrum_master import checkpoint_serde, context_for
from resumed import build

with sqlite3.connect(sys.argv[1], check_same_thread=False) as connection:
    graph = build().compile(checkpointer=SqliteSaver(connection, serde=checkpoint_serde()))
    end = graph.invoke(None, {"configurable": {"thread_id": "t"}})
    print(end["messages"][-1].text)
"""


def test_a_new_process_resumes_and_the_agent_reads_the_context(tmp_path: Path) -> None:
    from resumed import build

    with SqliteSaver.from_conn_string(str(tmp_path / "c.db")) as checkpointer:
        compiled = build().compile(checkpointer=checkpointer, interrupt_after=["scrum_master"])
        compiled.invoke({"messages": [HumanMessage("Build it.")]}, THREAD)
        assert compiled.get_state(THREAD).next == ("dev",)

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RESUME, str(tmp_path / "c.db"), str(Path(__file__).parents[1])],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == "Done: the keys go into Redis."
