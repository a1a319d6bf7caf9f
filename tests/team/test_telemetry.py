"""Spans and metrics with the real OpenTelemetry SDK, and what traces of LangChain show."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langgraph.graph import START, MessagesState, StateGraph
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from builders import DECISION, QUESTION, Given, a_context, a_state, says
from langgraph_scrum_master import ScrumMaster, ScrumMasterState

STUCK = a_state(("dev", QUESTION))
ERROR = "the password is hunter2"


class Broken:
    """A source that fails."""

    name = "wiki"

    async def find(self, query: Any, state: Any) -> list[Any]:
        raise OSError(ERROR)


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture(scope="module")
def reader() -> InMemoryMetricReader:
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    return reader


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> InMemorySpanExporter:
    exporter.clear()
    return exporter


def named(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans() if span.name.startswith("scrum_master.")}


async def test_an_evaluation_is_a_span_with_a_child_per_stage_and_source(spans: InMemorySpanExporter) -> None:
    with trace.get_tracer("host").start_as_current_span("host") as host:
        await ScrumMaster(sources=[Given(a_context())]).aevaluate(STUCK)

    found = named(spans)
    assert set(found) == {
        "scrum_master.evaluate",
        "scrum_master.detect",
        "scrum_master.retrieve.state",
        "scrum_master.retrieve.given",
        "scrum_master.fit",
    }
    whole = found.pop("scrum_master.evaluate")
    assert whole.parent is not None
    assert whole.parent.span_id == host.get_span_context().span_id
    assert {span.parent.span_id for span in found.values() if span.parent} == {whole.context.span_id}
    assert (whole.start_time or 0) <= (found["scrum_master.detect"].start_time or 0)


async def test_the_span_tells_names_and_figures_and_no_text(spans: InMemorySpanExporter) -> None:
    await ScrumMaster(sources=[Given(a_context(), a_context("Too weak.", 0.1)), Broken()]).aevaluate(STUCK)

    told = dict(named(spans)["scrum_master.evaluate"].attributes or {})
    assert told["scrum_master.agent"] == "dev"
    assert told["scrum_master.reason"] == "clarification_requested"
    assert told["scrum_master.outcome"] == "injected"
    assert (told["scrum_master.kept"], told["scrum_master.dropped"]) == (1, 1)
    assert told["scrum_master.failures"] == ("wiki",)
    assert int(str(told["scrum_master.tokens"])) > 0
    everything = "".join(span.to_json() for span in spans.get_finished_spans())
    assert not [text for text in (QUESTION, DECISION, ERROR) if text in everything]


async def test_a_source_that_fails_has_a_failed_span_that_names_the_kind_of_error(spans: InMemorySpanExporter) -> None:
    await ScrumMaster(sources=[Broken()]).aevaluate(STUCK)

    span = named(spans)["scrum_master.retrieve.wiki"]
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "OSError")
    assert span.events == ()


def test_inside_a_sync_graph_the_spans_hang_together_too(spans: InMemorySpanExporter) -> None:
    with trace.get_tracer("host").start_as_current_span("host") as host:
        ScrumMaster(sources=[Given(a_context())]).node.invoke(STUCK)

    assert {span.context.trace_id for span in named(spans).values()} == {host.get_span_context().trace_id}
    assert len(named(spans)) == 5


def test_a_healthy_step_leaves_no_span(spans: InMemorySpanExporter) -> None:
    ScrumMaster().node.invoke(a_state(("dev", "The form is written, and its 14 tests pass.")))

    assert named(spans) == {}


def figures(reader: InMemoryMetricReader) -> dict[tuple[str, str], float]:
    data = reader.get_metrics_data()
    return {
        (metric.name.removeprefix("scrum_master."), str(next(iter((point.attributes or {}).values()), ""))): getattr(
            point, "value", getattr(point, "sum", 0.0)
        )
        for resource in (data.resource_metrics if data else [])
        for scope in resource.scope_metrics
        if scope.scope.name == "langgraph_scrum_master"
        for metric in scope.metrics
        for point in metric.data.data_points
    }


async def test_gaps_injections_abstentions_tokens_times_and_failures_are_counted(reader: InMemoryMetricReader) -> None:
    before = figures(reader)

    result = await ScrumMaster(sources=[Given(a_context())]).aevaluate(STUCK)
    await ScrumMaster(sources=[Broken()]).aevaluate(STUCK)

    after = figures(reader)
    added = {key: value - before.get(key, 0) for key, value in after.items()}
    assert result is not None
    assert added["gaps", "clarification_requested"] == 2
    assert added["injections", "clarification_requested"] == 1
    assert added["abstentions", "clarification_requested"] == 1
    assert added["tokens", "clarification_requested"] == result.total_tokens
    assert added["source_failures", "wiki"] == 1
    assert added["duration", "injected"] > 0


def test_where_nobody_has_loaded_opentelemetry_it_is_not_loaded() -> None:
    code = """
import sys
from langgraph_scrum_master import RetrievedContext, ScrumMaster
state = {"messages": [{"role": "assistant", "name": "dev", "content": "Which queue do refunds go to?"}],
         "decisions": [{"agent": "architect", "summary": "Refunds go to the queue refunds-v2."}]}
assert ScrumMaster().evaluate(state).injected
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr


class Traced(AsyncCallbackHandler):
    """What a tracer of LangChain, such as LangSmith's, is told of our runs."""

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []
        self.outputs: list[Any] = []

    async def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        if "scrum_master" in (kwargs.get("tags") or []):
            self.runs.append({"name": kwargs.get("name"), "inputs": inputs, "metadata": kwargs.get("metadata")})

    async def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        if "scrum_master" in (kwargs.get("tags") or []):
            self.outputs.append(outputs)


class State(MessagesState, ScrumMasterState):
    """A team's."""


async def test_in_langchains_traces_an_evaluation_is_a_run_of_its_own_without_the_state() -> None:
    builder = StateGraph(State)
    builder.add_node("watch", ScrumMaster(sources=[Given(a_context())]).node)
    builder.add_edge(START, "watch")
    traced = Traced()
    start: Any = {"messages": [says("dev", QUESTION)]}

    await builder.compile().ainvoke(start, {"callbacks": [traced]})

    (run,) = traced.runs
    assert run["name"] == "scrum_master"
    assert run["inputs"]["query"] == QUESTION
    assert run["metadata"]["scrum_master_reason"] == "clarification_requested"
    assert [output["agent"] for output in traced.outputs] == ["dev"]
    assert DECISION not in str(traced.outputs)
