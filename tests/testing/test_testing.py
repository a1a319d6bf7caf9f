"""What users test their own agents with: states, clocks, assertions, the pytest plugin, and rules for plugs."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from builders import DECISION, QUESTION, Given, a_context
from langgraph_scrum_master import (
    ContextGap,
    Decision,
    Memory,
    RetrievedContext,
    ScrumMaster,
    ScrumMasterState,
    testing,
)
from langgraph_scrum_master.memory import CodePattern
from langgraph_scrum_master.model import Expectation, Observation, Query
from langgraph_scrum_master.protocols import Detector, Embedder, MemoryStore, Source, State
from langgraph_scrum_master.rank.embedders import embedder_for
from langgraph_scrum_master.retrieval.sources import ArchitectureSource, MemorySource, SprintSource, StateSource
from langgraph_scrum_master.team.detect import DETECTORS
from langgraph_scrum_master.team.record.files import write_snapshots
from langgraph_scrum_master.team.record.snapshots import taken
from langgraph_scrum_master.testing import (
    DetectorConformance,
    EmbedderConformance,
    FixedClock,
    MemoryConformance,
    SourceConformance,
    a_memory,
    a_state,
    assert_abstained,
    assert_gap,
    assert_injected,
    assert_no_gap,
)
from langgraph_scrum_master.testing.cases import SnapshotCase, cases
from langgraph_scrum_master.testing.conformance import QUEUE

pytest_plugins = ["pytester"]

ASKS = "To which queue do refunds go?"
STUCK = a_state(("user", "Build the refunds."), ("dev", ASKS))
PLUGIN = "langgraph_scrum_master.testing.plugin"


STATE = a_state(("dev", ASKS), decisions=[{"summary": "Refunds go to the queue refunds-v2."}])


@pytest.mark.parametrize(
    ("expected", "problem"),
    [
        (Expectation(outcome="injected"), ""),
        (Expectation(outcome="silent", note="a greeting"), "outcome: 'injected', expected 'silent' (a greeting)"),
        (Expectation(outcome="injected", keys=("ADR-9",)), "not injected: 'ADR-9'"),
    ],
)
def test_a_snapshot_that_says_what_should_happen_is_checked_for_that(
    tmp_path: Path, expected: Expectation, problem: str
) -> None:
    (case,) = _cases_of(tmp_path, expected)

    with pytest.raises(AssertionError, match=re.escape(problem)) if problem else nullcontext():
        assert case.check() is not None


def test_a_context_that_must_not_be_injected_is_named(tmp_path: Path) -> None:
    (case,) = _cases_of(tmp_path, Expectation(outcome="injected"))
    result = case.check()
    assert result is not None
    (key,) = [context.key for context in result.contexts_retrieved]

    (case,) = _cases_of(tmp_path, Expectation(outcome="injected", without=(key,)))

    with pytest.raises(AssertionError, match=re.escape(f"  injected: {key!r}")):
        case.check()


def test_recording_keeps_what_should_happen(tmp_path: Path) -> None:
    (case,) = _cases_of(tmp_path, Expectation(outcome="silent"), update=True)

    with pytest.raises(AssertionError, match="expected 'silent'"):
        case.check()


def _cases_of(folder: Path, expected: Expectation, update: bool = False) -> list[SnapshotCase]:
    write_snapshots(folder / "x.json", [replace(taken(STATE, at=""), expected=expected)])
    return list(cases(folder, update=update))


def test_every_name_is_there() -> None:
    assert all(getattr(testing, name) is not None for name in dir(testing))
    with pytest.raises(AttributeError, match="has no attribute 'a_scrum'"):
        testing.a_scrum  # type: ignore[attr-defined]  # noqa: B018


def test_the_rules_for_plugs_are_public_and_load_pytest_only_when_they_are_used() -> None:
    code = (
        "import sys; from langgraph_scrum_master.testing import a_state; print('pytest' in sys.modules);"
        "from langgraph_scrum_master.testing import MemoryConformance; print('pytest' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "True"]


def test_a_state_is_a_conversation_with_known_ids() -> None:
    own = AIMessage("Mine.", id="own")

    state = a_state(("user", "Build."), ("dev", ASKS), own, current_agent="dev")

    assert [(m.type, m.name, m.id) for m in state["messages"]] == [
        ("human", None, "m0"),
        ("ai", "dev", "m1"),
        ("ai", None, "own"),
    ]
    assert state["current_agent"] == "dev"


def test_a_fixed_clock_goes_on_when_it_is_told_to() -> None:
    clock = FixedClock("2026-03-02T12:00:00Z")
    master = ScrumMaster(clock=clock)

    first = assert_gap(STUCK, scrum_master=master).detected_at
    clock.advance(60)

    assert (first, assert_gap(STUCK, scrum_master=master).detected_at) == (
        "2026-03-02T12:00:00+00:00",
        "2026-03-02T12:01:00+00:00",
    )
    with pytest.raises(ValueError, match=r"at must be a time such as .*, got 'noon'"):
        FixedClock("noon")


def test_a_memory_holds_what_it_is_given_and_serves() -> None:
    memory = a_memory(
        QUEUE,
        Memory(content="The header is teal.", key="colour"),
        Decision(agent_type="pm", context="We charge in euros."),
        CodePattern(pattern_type="style", name="tabs", value="Tabs, never spaces."),
    )

    result = ScrumMaster(memory=memory).evaluate(STUCK)

    assert_injected(result, agent="dev", containing=QUEUE, source="memory")
    assert len(asyncio.run(memory.get_decisions_by_agent("pm"))) == 1
    assert len(asyncio.run(memory.search_patterns())) == 1


class TestAMemory(MemoryConformance):
    many = 1_000

    @pytest.fixture(autouse=True)
    def _kept(self) -> None:
        self.kept: dict[str, MemoryStore] = {}

    def open(self, namespace: str) -> MemoryStore:
        return self.kept.setdefault(namespace, a_memory(namespace=namespace))


def told(call: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as error:
        call(*args, **options)
    return str(error.value)


SERVED = ScrumMaster(sources=[Given(a_context(QUEUE), a_context("Weak.", 0.1, title="Note"))]).evaluate(STUCK)
STARVED = ScrumMaster(sources=[Given(a_context("Weak.", 0.1, title="Note"))]).evaluate(STUCK)


def test_gaps_are_found_in_a_state_a_result_or_gaps() -> None:
    for found in (STUCK, SERVED, ScrumMaster().detect(STUCK), ScrumMaster().detect(STUCK)[0]):
        gap = assert_gap(found, agent="dev", reason="clarification_requested", about="refunds")
        assert gap.context_query == ASKS
    assert_no_gap(a_state(("dev", "Done.")))
    assert_no_gap(None)
    assert_no_gap(STUCK, agent="tester")


def test_what_was_found_instead_is_told() -> None:
    instead = told(assert_gap, STUCK, agent="tester", about="schema")

    assert "no gap with agent 'tester', about 'schema'; found: dev (clarification_requested, 0.90, " in instead
    assert "asks (model 0." in instead
    assert "found: no gap at all" in told(assert_gap, a_state(("dev", "Done.")))
    assert "expected no gap; found: dev (" in told(assert_no_gap, STUCK)
    assert told(assert_injected, None) == "nothing was injected: there was no gap"
    assert "nothing was injected: abstained at dev" in told(assert_injected, STARVED)
    assert "dropped: memory 'Note' 0.10 below_bar" in told(assert_injected, STARVED)
    assert "nothing was from 'sprint'; found: memory" in told(assert_injected, SERVED, source="sprint")
    assert "'Redis' is not in the text: " in told(assert_injected, SERVED, containing="Redis")
    assert "context was given to 'dev', not to 'pm'" in told(assert_injected, SERVED, agent="pm")
    assert "context was injected: memory" in told(assert_abstained, SERVED)
    assert "nothing was dropped as 'duplicate'; dropped: memory 'Note'" in told(
        assert_abstained, STARVED, because="duplicate"
    )
    assert "there was no gap" in told(assert_abstained, None)


def test_results_are_read_from_the_state_that_a_graph_ends_with() -> None:
    class Team(MessagesState, ScrumMasterState):
        pass

    builder = StateGraph(Team)
    builder.add_node("dev", lambda state: {"messages": [AIMessage(QUESTION, name="dev")]})
    builder.add_node(ScrumMaster(sources=[Given(a_context())]).node)
    builder.add_edge(START, "dev")
    builder.add_edge("dev", "scrum_master")
    graph: Any = builder.compile()

    end = graph.invoke({"messages": []})

    assert_injected(end, agent="dev", containing=DECISION)
    assert "the state loses the text once the agent has read it" in told(
        assert_injected, {**end, "injected_context": None}, containing=DECISION
    )
    assert assert_abstained(STARVED, because="below_bar") is STARVED


def saved(folder: Path, **keys: Any) -> Path:
    state = {**STUCK, "decisions": [{"summary": QUEUE, "id": "D-1"}], **keys}
    write_snapshots(folder / "refunds.json", [taken(state, at="2026-03-02T12:00:00+00:00", ran=False)])
    return folder / "refunds.json"


USING = """
import pytest
from langgraph_scrum_master import ScrumMaster
from langgraph_scrum_master.testing import assert_injected

@pytest.mark.scrum_master_snapshots("kept")
def test_it_comes_out_again(scrum_master_snapshot):
    scrum_master_snapshot.check()

def test_fixtures(scrum_master_clock, scrum_master_memory):
    assert scrum_master_clock() == 1772452800.0
    assert ScrumMaster(memory=scrum_master_memory).memory is scrum_master_memory
"""


def installed() -> bool:
    return any(point.name == "scrum_master" for point in entry_points(group="pytest11"))


def pytested(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Pytest in this process, with our plugin as an installation would load it."""
    plugin = () if installed() else ("-p", PLUGIN)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:asyncio", *plugin, *arguments)


def test_snapshots_are_tests_whose_results_are_stored_on_demand(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(USING)
    path = saved(pytester.path / "kept")

    before = pytested(pytester)
    update = pytested(pytester, "--scrum-master-update")
    stored = path.read_bytes()
    after = pytested(pytester)
    again = pytested(pytester, "--scrum-master-update")

    before.assert_outcomes(passed=1, failed=1)
    before.stdout.fnmatch_lines(["*refunds.json has no recorded result: run pytest with --scrum-master-update*"])
    update.assert_outcomes(passed=2)
    after.assert_outcomes(passed=2)
    again.assert_outcomes(passed=2)
    assert path.read_bytes() == stored
    assert QUEUE in json.loads(stored)["result"]["text"]


def test_a_result_that_changed_is_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(USING)
    path = saved(pytester.path / "kept")
    pytested(pytester, "--scrum-master-update")
    path.write_text(path.read_text().replace("billing-v2", "billing-v3"))
    data = json.loads(path.read_text())
    data["state"]["decisions"][0]["summary"] = QUEUE
    path.write_text(json.dumps(data))

    changed = pytested(pytester)

    changed.assert_outcomes(passed=1, failed=1)
    changed.stdout.fnmatch_lines(
        ["*refunds.json differs from the recorded result*", "*text: *billing-v3*→*billing-v2*", "*scrum-master-update*"]
    )


def test_a_folder_without_snapshots_is_skipped_and_one_that_is_not_there_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_empty=USING, test_lost=USING.replace('"kept"', '"kpet"'))
    (pytester.path / "kept").mkdir()

    done = pytested(pytester, "-rs")

    done.assert_outcomes(passed=2, skipped=1, failed=1)
    done.stdout.fnmatch_lines_random(
        ["SKIPPED * there are no snapshots in *kept*", "*snapshot file or folder *kpet* does not exist*"]
    )


def test_what_pytest_is_told_of_empty_parameters_holds_for_snapshots(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(USING)
    (pytester.path / "kept").mkdir()

    pytested(pytester, "-o", "empty_parameter_set_mark=xfail").assert_outcomes(passed=1, xfailed=1)


def test_a_marked_test_that_takes_no_snapshot_is_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(USING.replace("(scrum_master_snapshot)", "()"))

    done = pytested(pytester)

    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*marked scrum_master_snapshots and must take 'scrum_master_snapshot'*"])


def test_what_cannot_be_a_case_fails_by_itself(tmp_path: Path) -> None:
    saved(tmp_path)
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "odd.json").write_text(json.dumps({"schema": 2, "state": {}, "config": {"deadline": -1}}))
    (tmp_path / "chat.json").write_text(json.dumps([{"role": "user", "content": "Build."}] * 3))

    by_name = {case.name: case for case in cases(tmp_path)}

    assert list(by_name) == ["broken.json", "chat.json", "odd.json", "refunds.json"]
    assert "odd.json: not an InjectionConfig" in told(by_name["odd.json"].check)
    assert "is not JSON" in told(by_name["broken.json"].check)
    assert "convert it with `scrum-master snapshot`" in told(by_name["chat.json"].check)


def test_the_cases_of_one_file_are_stored_each_for_itself(tmp_path: Path) -> None:
    quiet = a_state(("dev", "Done."))
    write_snapshots(tmp_path / "x.jsonl", [taken(state, at="", ran=False) for state in (quiet, STUCK, quiet)])

    results = [case.check() for case in cases(tmp_path / "x.jsonl", update=True)]

    assert [result is not None for result in results] == [False, True, False]
    assert [case.check() for case in cases(tmp_path / "x.jsonl")] == results


def test_the_plugin_is_declared_and_loads_nothing_heavy() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    heavy = ("langgraph", "langchain_core", "chromadb", "numpy", "pydantic", "structlog")

    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {PLUGIN}; print([m for m in {heavy} if m in sys.modules])"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert project["project"]["entry-points"]["pytest11"] == {"scrum_master": PLUGIN}
    assert done.stdout == "[]\n"


class TestStateSource(SourceConformance):
    def source(self) -> Source:
        return StateSource(view_window=50)

    def state(self) -> dict[str, Any]:
        return super().state() | {"decisions": [QUEUE, "The header is teal.", "Backups run at night.", "We use Redis."]}


class TestSprintSource(SourceConformance):
    def source(self) -> Source:
        return SprintSource()

    def state(self) -> dict[str, Any]:
        return super().state() | {"sprint_plan": {"stories": [{"story_id": "S1", "title": QUEUE}]}}


class TestArchitectureSource(SourceConformance):
    def source(self) -> Source:
        return ArchitectureSource(None)

    def state(self) -> dict[str, Any]:
        return super().state() | {"adrs": [QUEUE]}


class TestMemorySource(SourceConformance):
    memory = a_memory(QUEUE)

    def source(self) -> Source:
        return MemorySource(self.memory)


class OfDetector(DetectorConformance):
    number: int
    states: Sequence[dict[str, Any]]

    def detector(self) -> Detector:
        return DETECTORS[self.number]

    def stuck(self) -> Sequence[dict[str, Any]]:
        return self.states


class TestClarification(OfDetector):
    number = 0
    states = (STUCK, a_state(("dev", "Blocked: the spec does not say which database.")))

    def healthy(self) -> Sequence[dict[str, Any]]:
        return (a_state(("dev", ASKS), ("architect", QUEUE)),)


class TestCircular(OfDetector):
    number = 1
    states = (a_state(*[("dev", "I will rerun the migration of the orders table.")] * 5),)


class TestGate(OfDetector):
    number = 3
    states = (a_state(("dev", "Done."), gate_blocked=True, gate_failure="Missing context: which queue is used?"),)


class TestFlag(OfDetector):
    number = 4
    states = (a_state(("dev", "On it."), missing_context=["the API contract"]),)


@pytest.mark.parametrize("name", ["static", "hash"])
class TestEmbedders(EmbedderConformance):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name

    def embedder(self) -> Embedder:
        return embedder_for(self.name)


class Blocks:
    """A source that breaks what it can."""

    name = "blocks"
    asked = 0

    async def find(self, query: Query, state: State) -> Iterable[RetrievedContext]:
        import time

        time.sleep(0.02)  # noqa: ASYNC251 - that is what is to be caught
        self.asked += 1
        state["messages"].append("changed")
        return [RetrievedContext(source="memory", content=str(self.asked), relevance_score=1) for _ in range(9)]


def peeking(observation: Observation) -> Iterator[ContextGap]:
    """A detector that breaks what it can."""
    Path(__file__).read_text()
    yield from ()


@pytest.mark.parametrize(
    "rule",
    [
        "test_it_offers_about_as_many_as_it_is_asked_for",
        "test_it_changes_nothing_in_the_state",
        "test_the_same_question_gets_the_same_answer",
        "test_it_does_not_hold_up_the_event_loop",
    ],
)
def test_a_source_that_breaks_a_rule_is_caught(rule: str) -> None:
    class Broken(SourceConformance):
        def source(self) -> Source:
            return Blocks()

    with pytest.raises(AssertionError):
        getattr(Broken(), rule)()


@pytest.mark.parametrize(
    "rule", ["test_it_does_no_input_or_output", "test_it_finds_gaps_with_evidence_and_a_confidence_from_0_to_1"]
)
def test_a_detector_that_breaks_a_rule_is_caught(rule: str) -> None:
    class Broken(DetectorConformance):
        def detector(self) -> Detector:
            return peeking

        def stuck(self) -> Sequence[dict[str, Any]]:
            return [STUCK]

    with pytest.raises(AssertionError):
        getattr(Broken(), rule)()
