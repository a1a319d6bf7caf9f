"""Who asks, for what, and of whom: the learned model, the exact forms, and what settles a question."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from typer.testing import CliRunner

from builders import a_state, says
from langgraph_scrum_master import ConfigError, InjectionConfig, ScrumMaster
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.team.observe.asking.dataset import read_labelled_turns
from langgraph_scrum_master.team.observe.asking.model import AskingModel, shipped
from langgraph_scrum_master.team.observe.asking.units import split_units

ROOT = Path(__file__).parents[2]


def gaps(*turns: tuple[str, str]) -> list[tuple[str, str]]:
    return [(gap.agent, gap.context_query) for gap in ScrumMaster().detect(a_state(*turns))]


@pytest.mark.parametrize(
    "text",
    [
        "I need guidance on how to store monetary amounts.",
        "One open question remains: what's the sampling rate for traces in production?",
        "The requirements don't specify the rate limit for API keys.",
        "Ich weiß nicht, welche Datenbank wir nutzen.",
        "¿Cuál es el número de su pedido?",
        "请提供您的订单号，以便我查询。",
        "ご予約番号を教えてください。",
        "Не указано, в какой валюте считать итог.",
        "whats the retension period fo logs",
    ],
)
def test_asking_is_noticed_in_many_wordings_and_languages(text: str) -> None:
    assert [agent for agent, _ in gaps(("dev", text))] == ["dev"]


@pytest.mark.parametrize(
    "text",
    [
        "Could you please review it, reviewer?",
        "¿En qué más puedo ayudarle?",
        "N'hésitez pas à me contacter si vous avez des questions.",
        "请问您还有什么需要帮助的吗？",
        "Shall I go ahead and merge it?",
        "Thought: I need to find out who directed it.\nAction: Search[director of the film]",
        "Users asked how to reset their password; the answer is in the FAQ now.",
        "Would you like me to transfer you to a colleague?",
    ],
)
def test_offers_delegation_approval_and_thoughts_are_left_alone(text: str) -> None:
    assert gaps(("dev", text)) == []


EXACT: list[tuple[AIMessage, str, str]] = [
    (says("dev", '{"status": "needs_clarification", "question": "Which region?"}'), "Which region?", "team"),
    (says("dev", '{"result": null, "blocked_on": "name of the backup bucket"}'), "backup bucket", "nobody"),
    (
        says("dev", 'Two colours.\nAction: ask_team("colour of the warning banner")'),
        "warning banner",
        "nobody",
    ),
    (says("dev", 'ask_human(question="Ship by sea or by air?", options=["sea", "air"])'), "Ship by sea", "user"),
    (
        says("dev", "", tool_calls=[{"name": "ask_user", "args": {"question": "Which seat?"}, "id": "c"}]),
        "Which seat?",
        "user",
    ),
    (says("dev", "The queue has no name.", additional_kwargs={"clarification_needed": True}), "queue", "nobody"),
    (says("dev", "[tool AskUserQuestion]\n**Which emoji?**\n\nOptions:\n- a fish\n- a bird"), "Which emoji?", "user"),
    (says("dev", '[call request_clarification] {"question": "Which region?"}'), "Which region?", "team"),
]


@pytest.mark.parametrize(("message", "need", "whom"), EXACT)
def test_exact_forms_need_no_model(message: AIMessage, need: str, whom: str) -> None:
    (gap,) = ScrumMaster().detect({"messages": [HumanMessage("go"), message]})

    assert (gap.reason, gap.confidence, gap.whom) == ("clarification_requested", 0.9, whom)
    assert need in gap.context_query


@pytest.mark.parametrize("tool", ["get_user_details", "query_customer_table", "request_team_report", "ask_price"])
def test_a_tool_that_looks_somebody_up_asks_nobody(tool: str) -> None:
    call = says("dev", "", tool_calls=[{"name": tool, "args": {"user_id": "sofia"}, "id": "c"}])

    assert ScrumMaster().detect({"messages": [HumanMessage("go"), call]}) == ()
    assert gaps(("dev", f'[call {tool}] {{"user_id": "sofia"}}')) == []


def test_fields_that_say_nothing_ask_for_nothing() -> None:
    assert gaps(("dev", '{"status": "done", "question": null, "blocked_on": "none", "questions": []}')) == []


def test_the_need_is_a_span_of_the_message() -> None:
    text = "Parser and tests are done.\n\n- 12 tests pass\n\nWhich rounding rule applies to the totals? I wait."

    (gap,) = ScrumMaster().detect({"messages": [says("dev", text, id="m1")]})

    assert text[gap.spans[0].start : gap.spans[0].end].startswith("Which rounding rule applies")
    assert gap.spans[0].message == "m1"


def test_units_keep_their_place_and_leave_code_and_quotations_out() -> None:
    text = 'See `why?` here. He asked "which one?" twice.\n```\nwhat?\n```\n{"a": 1}'

    found = split_units(text).items

    assert all(text[unit.start : unit.end].split()[0] for unit in found)
    assert not any("?" in unit.text for unit in found)


@pytest.mark.parametrize(
    ("reply", "stays_open"),
    [
        ("No idea, before my time.", True),
        ("Ask Tomas.", True),
        ("Good question.", True),
        ("I joined later.", True),
        ("PostgreSQL.", False),
        ("Our database is PostgreSQL.", False),
        ("PostgreSQL, siehe ADR-7.", False),
    ],
)
def test_an_answer_that_says_nothing_leaves_the_question_open(reply: str, stays_open: bool) -> None:
    found = gaps(("dev", "Which database do we use for orders?"), ("pm", reply))

    assert bool(found) == stays_open


def test_going_on_with_other_work_leaves_the_question_open_and_finding_the_answer_closes_it() -> None:
    asked = ("dev", "Which database do we use for orders?")

    assert gaps(asked, ("dev", "I do the CSV export meanwhile."))
    assert not gaps(asked, ("dev", "Found it: PostgreSQL, see the wiki."))


def test_a_likely_question_is_a_gap_once_somebody_says_that_they_do_not_know_either() -> None:
    likely = ("dev", "The spec is rather vague on the retention period.")
    model = shipped()
    assert model.lower <= model.read(likely[1]).probability < model.upper

    assert gaps(likely) == []
    (gap,) = ScrumMaster().detect(a_state(likely, ("pm", "No idea how long that is, I don't know either.")))
    assert gap.confidence == 0.7
    assert "does not know" in gap.indicators[0]


@pytest.mark.parametrize(
    ("turns", "whom"),
    [
        ((("user", "Cancel my order."), ("dev", "What is your order number?")), "user"),
        ((("pm", "Build the export."), ("dev", "Which column holds the tenant?")), "team"),
        ((("pm", "Build the export."), ("dev", "I am blocked, the tenant column is not documented.")), "nobody"),
    ],
)
def test_whom_a_question_is_put_to(turns: tuple[tuple[str, str], ...], whom: str) -> None:
    (gap,) = ScrumMaster().detect(a_state(*turns))

    assert gap.whom == whom


def test_what_only_the_user_can_answer_can_be_left_to_the_user() -> None:
    state = a_state(("user", "Cancel my order."), ("dev", "What is your order number?"))

    assert ScrumMaster(config=InjectionConfig(user_questions="serve")).detect(state)
    assert ScrumMaster(config=InjectionConfig(user_questions="leave")).detect(state) == ()
    with pytest.raises(ConfigError, match="user_questions must be one of"):
        InjectionConfig(user_questions="never")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "keys",
    [
        {"gate_failure": "The retention period is not documented."},
        {"gate_failure": {"gate": "docs", "message": "The retention period is not documented."}},
        {"gate_failure": [{"name": "docs", "details": ["The retention period is not documented."]}]},
        {"gate_results": {"docs": {"ok": False, "reason": "The retention period is not documented."}}},
        {"gate_results": {"docs": {"status": "failed", "feedback": "The retention period is not documented."}}},
        {"gate_results": {"gate_name": "docs", "passed": False, "why": "The retention period is not documented."}},
        {"gate_results": [{"check": "docs", "verdict": "rejected", "missing": ["retention period"]}]},
        {"gate_results": {"docs": "failed: the retention period is not documented", "lint": True}},
    ],
)
def test_gates_are_read_in_every_natural_shape(keys: dict[str, Any]) -> None:
    (gap,) = ScrumMaster().detect({"messages": [], "current_agent": "dev", **keys})

    assert (gap.agent, gap.reason) == ("dev", "gate_failure")
    assert "retention period" in gap.context_query


def test_gates_that_passed_in_those_shapes_are_no_gap() -> None:
    passed = {"gate_results": {"docs": {"status": "passed", "reason": "nothing missing"}, "lint": True}}

    assert ScrumMaster().detect({"messages": [], "current_agent": "dev", **passed}) == ()


def test_a_gate_that_speaks_turns_back_the_work_of_whoever_spoke_before() -> None:
    state = {
        "messages": [
            says("dev", "The export is ready for the gate.", id="m0"),
            ToolMessage("Gate FAILED: the retention period is not documented", name="gate", tool_call_id="c", id="m1"),
        ]
    }

    (gap,) = ScrumMaster().detect(state)

    assert (gap.agent, gap.reason, gap.indicators) == ("dev", "gate_failure", ("gate gate@m1",))
    state["messages"].append(ToolMessage("Gate passed.", name="gate", tool_call_id="d", id="m2"))
    assert ScrumMaster().detect(state) == ()


def test_an_unnamed_flag_or_gate_looks_for_what_the_agent_works_on() -> None:
    messages = [says("dev", "I build the refunds of story 7 against the ledger.")]
    story = {"current_story": "STORY-7 Refunds", "current_agent": "dev", "messages": messages}

    for keys in ({"missing_context": True}, {"gate_blocked": True, "gate_failure": "Missing context information"}):
        (gap,) = ScrumMaster().detect({**story, **keys})
        assert "STORY-7" in gap.context_query
        assert "ledger" in gap.context_query


def test_flags_inside_an_agents_output_are_read() -> None:
    (gap,) = ScrumMaster().detect({"messages": [], "analyst_output": {"missing_information": ["target market"]}})

    assert (gap.agent, gap.reason, gap.context_query) == ("analyst", "explicit_flag", "target market")


def test_a_shape_that_is_not_understood_is_logged_once_per_process(logged: list[dict[str, Any]]) -> None:
    class Verdict:
        """A shape that no other test of this process gives."""

    for _ in range(3):
        ScrumMaster().detect({"messages": [], "gate_results": Verdict()})

    assert [entry["key"] for entry in logged if entry["event"] == "state.not_understood"] == ["gate_results"]


def test_the_node_measures_turns_whose_messages_carry_no_times() -> None:
    now = [0.0]
    master = ScrumMaster(clock=lambda: 1_772_452_800 + now[0])
    state: dict[str, Any] = {"messages": [HumanMessage("go", id="h")]}
    for i, seconds in enumerate([10.0] * 24 + [200.0]):
        now[0] += seconds
        state["messages"] = [*state["messages"], says("dev", f"Part {i} of the import is ready.", id=f"m{i}")]
        state |= master.node.invoke(state)

    assert "dev" in state["team_figures"]["cycle_times"]
    assert set(state["team_figures"]["cycle_times"]["dev"]) == {10.0}


def labelled(folder: Path) -> Path:
    path = folder / "labelled.jsonl"
    asks = [f"glorp {i} frobnicate, over to whoever knows" for i in range(30)]
    others = [f"blip {i} done and dusted, shelf is full" for i in range(30)]
    rows = [
        {"content": text, "label": label}
        for pair in zip(asks, others, strict=True)
        for text, label in zip(pair, (1, 0), strict=True)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_the_model_can_be_adapted_to_turns_of_ones_own(tmp_path: Path) -> None:
    written = tmp_path / "own.weights"

    done = CliRunner().invoke(app, ["train", str(labelled(tmp_path)), "-o", str(written)])

    assert done.exit_code == 0, done.output
    assert "60 turns, 30 of them asking" in done.output
    text = "glorp 99 frobnicate, over to whoever knows"
    assert AskingModel.load(written).read(text).probability > shipped().read(text).probability
    assert ScrumMaster(asking=written).detect(a_state(("dev", text)))
    assert AskingModel.load(written).read("Which database do we use?").probability > 0.5


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"content": "a"}', "must be an object with `content`, a text, and `label`"),
        ("no json", "is not JSON"),
        ('{"content": "a", "label": 1}', "at least 20 labelled turns"),
    ],
)
def test_training_on_bad_data_says_what_is_wrong(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "bad.jsonl").write_text(content)
    command = [str(Path(sys.executable).parent / "scrum-master"), "train", str(tmp_path / "bad.jsonl")]

    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode != 0
    assert told in " ".join(done.stderr.split())
    assert not (tmp_path / "asking.weights").exists()


def test_a_file_that_holds_no_weights_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.weights").write_text("nothing")

    with pytest.raises(ConfigError, match="is not a weights file"):
        ScrumMaster(asking=tmp_path / "x.weights")
    with pytest.raises(ConfigError, match="cannot be read"):
        ScrumMaster(asking=tmp_path / "y.weights")


def test_the_data_is_labelled_in_eleven_languages() -> None:
    turns = [turn for path in (ROOT / "benchmarks/data/asking").glob("*.txt") for turn in read_labelled_turns(path)]

    assert len(turns) > 10_000
    assert len({turn.language for turn in turns}) == 11
    assert 0.35 < sum(turn.asks for turn in turns) / len(turns) < 0.5
