from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel

from builders import NOON, NOW, a_state, says
from langgraph_scrum_master import ContextGap, InjectionConfig, ScrumMaster
from langgraph_scrum_master.config import TEAM_REQUIREMENTS
from langgraph_scrum_master.model import Observation
from langgraph_scrum_master.team.detect import detect
from langgraph_scrum_master.team.detect.gap import gap
from langgraph_scrum_master.team.observe import health_status, observe


def gaps(state: dict[str, Any], **config: Any) -> tuple[ContextGap, ...]:
    return ScrumMaster(config=InjectionConfig(**config)).detect(state)


def reasons(state: dict[str, Any], **config: Any) -> list[str]:
    return [gap.reason for gap in gaps(state, **config)]


@pytest.mark.parametrize(
    "text",
    [
        "I cannot proceed without the schema.",
        "Blocked: the spec does not say which database to use.",
        "Please provide the API contract.",
        "Which database do we use?",
        "Could you clarify the retry policy?",
        "I need more context on the retry policy before I can implement this.",
        "What do you mean by idempotent?",
        "I am not sure which queue the events should go to.",
        "The requirement is unclear.",
    ],
)
def test_a_request_for_information_is_a_gap_in_any_wording(text: str) -> None:
    (found,) = gaps(a_state(("user", "Build it."), ("dev", text)))

    assert (found.agent, found.reason, found.confidence) == ("dev", "clarification_requested", 0.9)
    assert found.indicators[0].startswith("asks (model ")
    assert found.indicators[0].endswith("@m1")
    assert found.context_query in text
    (span,) = found.spans
    assert (span.message, text[span.start : span.end]) == ("m1", text)


@pytest.mark.parametrize(
    "text",
    [
        "No missing information remains.",
        "Nothing is unclear any more, I am no longer blocked.",
        "Done. Let me know if you need anything else.",
        "Shall we proceed? Do you agree?",
        "Why did it fail? Because the port was taken. I fixed it.",
        'The page says "Which country are you from?" and nothing more.',
        "```python\nx = a if b else c  # why? which? what?\n```",
        "See https://example.org/search?q=a&b=c?d for the results.",
        "All tests pass, the story is implemented.",
        "Would you like me to proceed with the deployment?",
    ],
)
def test_what_only_looks_like_a_question_is_none(text: str) -> None:
    assert gaps(a_state(("user", "Build it."), ("dev", text))) == ()


def test_a_persons_task_and_a_tools_output_are_no_gaps() -> None:
    assert gaps(a_state(("user", "Which database should we use? Please provide a comparison."))) == ()
    assert gaps({"messages": [{"role": "tool", "content": "Which file? Please provide a path.", "name": "bash"}]}) == ()


def test_the_gap_is_the_askers_whoever_is_at_turn() -> None:
    (found,) = gaps(a_state(("dev", "Which database do we use?"), current_agent="tester"))

    assert found.agent == "dev"


def test_a_message_marked_by_its_agent_is_a_gap() -> None:
    marked = says("dev", "Working on the orders table", additional_kwargs={"clarification_needed": True})

    assert reasons({"messages": [marked]}) == ["clarification_requested"]


def test_the_states_own_cycle_analysis_is_read() -> None:
    analysis = {
        "circular_detected": True,
        "patterns_found": [
            {"agents_involved": ["dev", "tester"], "topic": "login timeout", "exchange_count": 5, "severity": "medium"}
        ],
    }

    (found,) = gaps(a_state(current_agent="dev", cycle_analysis=analysis))

    assert (found.reason, found.confidence, found.context_query) == ("circular_logic", 0.8, "login timeout")
    assert gaps(a_state(cycle_analysis={"circular_detected": False})) == ()


def test_the_same_turn_again_and_again_is_a_cycle() -> None:
    again = [("dev", "I will rerun the migration."), ("tester", "The migration failed with the same lock.")] * 3

    (found,) = gaps(a_state(*again))

    assert (found.reason, found.confidence) == ("circular_logic", 0.95)


def test_the_same_call_with_the_same_arguments_is_a_cycle_and_with_new_ones_is_not() -> None:
    def call(**arguments: Any) -> AIMessage:
        return says("dev", "", tool_calls=[{"name": "read_file", "args": arguments, "id": "c"}])

    assert reasons({"messages": [call(path="a.py")] * 5}) == ["circular_logic"]
    assert reasons({"messages": [call(path=f"{i}.py") for i in range(6)]}) == []


def test_a_cycle_that_an_agent_has_left_is_none() -> None:
    again = [("dev", "I will rerun the migration.")] * 4

    assert reasons(a_state(*again)) == ["circular_logic"]
    done = [("dev", "It went through, on to the next story."), ("dev", "The cart page has its form now.")]
    assert reasons(a_state(*again, *done)) == []


def timed(*seconds: float) -> dict[str, Any]:
    at = datetime(2026, 3, 2, 12, tzinfo=UTC)
    messages = [says("user_proxy", "go", additional_kwargs={"timestamp": at.isoformat()})]
    for i, taken in enumerate(seconds):
        at += timedelta(seconds=taken)
        messages.append(says("dev", f"step {i} is done", additional_kwargs={"timestamp": at.isoformat()}))
    return {"messages": messages}


def test_a_slow_turn_alone_is_a_matter_of_health() -> None:
    slow = timed(10, 12, 9, 11, 10, 10, 60)

    assert gaps(slow) == ()
    (alert,) = health_status(ScrumMaster(clock=lambda: NOON).observe(slow)).alerts
    assert (alert.alert_type, alert.affected_agent, alert.metric_value) == ("slow_turn", "dev", 60)


def test_a_slow_turn_of_an_agent_that_also_asks_is_a_gap() -> None:
    slow = timed(10, 12, 9, 11, 10, 10, 60)
    last = slow["messages"][-1]
    last.content = "I cannot proceed without the schema."

    asked, found = gaps(slow)

    assert asked.reason == "clarification_requested"
    assert (found.agent, found.reason, found.confidence) == ("dev", "long_cycle_time", 0.6)
    assert found.indicators[0].startswith("took 60 s, usually 10 s@")


def test_an_ordinary_turn_and_too_few_samples_are_no_gap() -> None:
    assert gaps(timed(10, 12, 9, 11, 10, 10, 21)) == ()
    assert gaps(timed(10, 2, 90, 40, 1, 10, 120)) == ()
    assert gaps(timed(10, 60)) == ()


def test_health_figures_in_the_state_fire_with_two_agents_because_the_sample_is_left_out() -> None:
    health = {"metrics": {"agent_cycle_times": {"dev": 100.0, "tester": 20.0}, "overall_cycle_time": 0.0}}

    assert reasons(a_state(current_agent="dev", health_status=health)) == ["long_cycle_time"]
    assert reasons(a_state(current_agent="tester", health_status=health)) == []


@pytest.mark.parametrize("times", [{"dev": 100.0}, {"dev": 100.0, "pm": 90.0}])
def test_an_agent_is_slow_if_the_state_reports_a_shorter_time_for_the_team(times: dict[str, float]) -> None:
    def health(overall: float) -> dict[str, Any]:
        return {"status": "warning", "metrics": {"agent_cycle_times": times, "overall_cycle_time": overall}}

    (found,) = gaps(a_state(current_agent="dev", health_status=health(30.0)))

    assert (found.reason, found.indicators) == ("long_cycle_time", ("took 100 s, usually 30 s@health_status",))
    assert reasons(a_state(current_agent="dev", health_status=health(80.0))) == []


def test_reported_times_serve_until_enough_turns_were_measured() -> None:
    health = {"status": "warning", "metrics": {"agent_cycle_times": {"dev": 100.0}, "overall_cycle_time": 30.0}}

    assert reasons({**timed(10, 10), "current_agent": "dev", "health_status": health}) == ["long_cycle_time"]
    assert reasons({**timed(*[10] * 20), "current_agent": "dev", "health_status": health}) == []


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"gate_blocked": True, "gate_failure": "missing_context: the retention period is not specified"}, 1),
        ({"gate_blocked": True, "gate_failure": "Test coverage 61 % is below the threshold of 80 %"}, 0),
        ({"gate_blocked": False, "gate_failure": "the retention period is not specified"}, 0),
        ({"gate_results": [{"gate_name": "arch", "passed": False, "reason": "No ADR covers the store"}]}, 1),
        (
            {
                "gate_results": [
                    {"gate_name": "arch", "passed": False, "reason": "No ADR covers the store"},
                    {"gate_name": "arch", "passed": True, "reason": "ok"},
                ]
            },
            0,
        ),
    ],
)
def test_a_gate_is_a_gap_only_if_it_wants_information(keys: dict[str, Any], expected: int) -> None:
    found = gaps(a_state(current_agent="dev", **keys))

    assert [(g.reason, g.confidence, g.agent) for g in found] == [("gate_failure", 0.85, "dev")] * expected


@pytest.mark.parametrize("flag", ["the API contract", ["the API contract"], {"the API contract": True}])
def test_a_missing_context_flag_in_the_state_is_a_gap(flag: object) -> None:
    (found,) = gaps(a_state(current_agent="dev", missing_context=flag))

    assert (found.reason, found.confidence, found.context_query) == ("explicit_flag", 0.95, "the API contract")


@pytest.mark.parametrize("flag", [None, False, "", [], {}])
def test_an_empty_flag_is_no_gap(flag: object) -> None:
    assert gaps(a_state(current_agent="dev", missing_context=flag)) == ()


def test_calling_request_context_is_a_gap() -> None:
    call = {"name": "request_context", "args": {"need": "the retention period of keys"}, "id": "c"}

    (found,) = gaps({"messages": [says("dev", "", tool_calls=[call])]})

    assert (found.reason, found.context_query) == ("explicit_flag", "the retention period of keys")


def test_what_a_handoff_requires_and_the_state_lacks_is_a_gap_of_its_target_before_it_speaks() -> None:
    handoff = {"source_agent": "pm", "target_agent": "dev", "required_context": ["current_story", "code_patterns"]}

    (found,) = gaps(a_state(("pm", "Over to dev."), handoff_context=handoff, current_story="PAY-42"))

    assert (found.agent, found.reason, found.missing) == ("dev", "explicit_flag", ("code_patterns",))
    assert found.context_query == "code patterns"
    assert gaps(a_state(("dev", "I have started."), handoff_context=handoff)) == ()


def test_requirements_can_be_configured_per_agent() -> None:
    state = a_state(("pm", "Over to dev."), handoff_context={"target_agent": "dev"})

    assert gaps(state) == ()
    assert reasons(state, requirements={"dev": ["architecture_decisions"]}) == ["explicit_flag"]
    assert gaps(state, requirements=TEAM_REQUIREMENTS)[0].missing == TEAM_REQUIREMENTS["dev"]


def test_all_gaps_are_found_the_most_confident_first() -> None:
    state = a_state(
        ("dev", "Which database do we use?"),
        current_agent="tester",
        missing_context="the test data",
        gate_blocked=True,
        gate_failure="the retention period is not specified",
        cycle_analysis={"circular_detected": True, "patterns_found": [{"topic": "login"}]},
    )

    assert [(g.agent, g.reason) for g in gaps(state)] == [
        ("tester", "explicit_flag"),
        ("dev", "clarification_requested"),
        ("tester", "gate_failure"),
        ("tester", "circular_logic"),
    ]


def test_the_same_evidence_gives_the_same_id_and_other_evidence_another() -> None:
    first, again = (gaps(a_state(("dev", "Which database do we use?")))[0] for _ in range(2))
    other = gaps(a_state(("user", "x"), ("dev", "Which database do we use?")))[0]

    assert first.gap_id == again.gap_id != other.gap_id


def test_users_add_detectors_of_their_own() -> None:
    def silence(observation: Observation) -> Iterator[ContextGap]:
        if not observation.turns:
            yield gap(
                observation, agent="dev", reason="explicit_flag", query="?", confidence=1, indicators=("silence",)
            )

    assert [g.indicators for g in ScrumMaster(detectors=[silence]).detect({"messages": []})] == [("silence",)]


@pytest.mark.parametrize("messages", [None, "text", 7, {"a": 1}, [None, 3, {}], [[]]])
def test_malformed_messages_are_no_gap(messages: object) -> None:
    assert gaps({"messages": messages}) == ()


def test_observing_changes_nothing_in_the_state() -> None:
    state = a_state(("dev", "Which database do we use?"), current_agent="dev")
    before = repr(state)

    observe(state, now=NOW)

    assert repr(state) == before


@pytest.mark.parametrize(
    "text",
    [
        "The endpoint returns 400 when required details are missing.",
        "Users are blocked by the rate limiter after 100 requests.",
        "Users cannot check out without a payment method now, and a test covers it.",
        "The spec does not specify a date format, so I used ISO 8601. Done.",
        "Why did the test fail? A migration was missing. I added it and all is green.",
        "What changed? Added retries to the client.",
        "I fixed the missing information in the README.",
        "The customer is waiting for the refund, which goes out tonight.",
        "Sprint status: 3 done, 2 in progress. Blocked: none.",
        "I wrote a test named 'cannot continue without a token' and it passes.",
    ],
)
def test_a_report_of_finished_work_is_no_request(text: str) -> None:
    assert gaps(a_state(("user", "Build it."), ("dev", text))) == ()


@pytest.mark.parametrize(
    "text",
    [
        "I'm stuck: nobody told me the retention period.",
        "No schema was provided, so I stopped.",
        "I have no information about the retention period.",
        "I can't find the spec for this.",
        "我们用哪个数据库？",
        "¿Qué base de datos usamos?",
        "Welche Datenbank nutzen wir?",
        "I don't have the API key format, so I can't write the validator.",
        "Need the schema for orders before I can go on.",
        "The retention period for logs was not given. I have stopped here.",
    ],
)
def test_further_ways_to_say_that_something_is_missing(text: str) -> None:
    assert reasons(a_state(("user", "Build it."), ("dev", text))) == ["clarification_requested"]


def test_repetition_with_news_in_between_is_work() -> None:
    stories = [
        turn
        for page in ("login", "billing", "search")
        for turn in (
            ("dev", f"The {page} page is implemented with its own form and validation."),
            ("tea", "All tests pass, the gate is open."),
        )
    ]
    reruns = [
        turn
        for why in ("a timeout in checkout", "a typo in the invoice", "an expired certificate")
        for turn in (
            ("tester", "Please rerun the pipeline now."),
            ("ci", f"The pipeline failed because of {why}."),
        )
    ]

    assert gaps(a_state(*stories)) == ()
    assert gaps(a_state(*reruns)) == ()


def test_polling_with_moving_results_is_work_and_without_is_a_cycle() -> None:
    def poll(*results: str) -> dict[str, Any]:
        messages: list[Any] = []
        for i, result in enumerate(results):
            call = {"name": "get_job_status", "args": {"id": 7}, "id": f"c{i}"}
            messages += [
                says("dev", "", tool_calls=[call]),
                ToolMessage(result, tool_call_id=f"c{i}", name="get_job_status"),
            ]
        return {"messages": messages}

    assert reasons(poll("10 percent", "50 percent", "90 percent")) == []
    assert reasons(poll("pending", "pending", "running", "succeeded")) == []
    assert reasons(poll("pending", "pending", "pending", "pending", "pending")) == ["circular_logic"]


def test_an_analysis_of_long_ago_is_no_cycle_now() -> None:
    pattern = {"agents_involved": ["dev", "tester"], "topic": "login", "last_exchange_at": "2020-01-01T00:00:00+00:00"}

    assert (
        gaps(a_state(current_agent="dev", cycle_analysis={"circular_detected": True, "patterns_found": [pattern]}))
        == ()
    )


def test_a_cycle_and_a_gate_are_the_stuck_agents_and_not_the_scrum_masters() -> None:
    analysis = {"circular_detected": True, "patterns_found": [{"agents_involved": ["dev", "tester"], "topic": "login"}]}
    state = a_state(("tester", "It fails."), ("dev", "On it."), current_agent="sm", cycle_analysis=analysis)
    gate = a_state(("dev", "On it."), current_agent="sm", gate_blocked=True, gate_failure="The period is not specified")

    assert [g.agent for g in gaps(state)] == ["dev"]
    assert [g.agent for g in gaps(gate)] == ["dev"]


def test_time_that_a_person_took_is_not_charged_to_the_agent() -> None:
    state = timed(10, 12, 9, 11, 10, 12)
    late = says("dev", "Back at work.", additional_kwargs={"timestamp": "2026-03-03T12:00:00+00:00"})

    assert gaps({"messages": [*state["messages"], HumanMessage("Good morning."), late]}) == ()


def test_a_handoff_is_not_pending_once_its_target_has_spoken() -> None:
    handoff = {"source_agent": "pm", "target_agent": "dev", "required_context": ["code_patterns"]}

    assert gaps(a_state(("pm", "Over."), ("dev", "Started."), ("tester", "Ready."), handoff_context=handoff)) == ()


def test_a_required_key_that_holds_zero_is_there() -> None:
    handoff = {"target_agent": "dev", "required_context": ["open_bugs"]}

    assert gaps(a_state(("pm", "Over."), handoff_context=handoff, open_bugs=0)) == ()


def test_a_query_is_no_document() -> None:
    (found,) = gaps(a_state(current_agent="dev", missing_context="the schema " * 50_000))

    assert len(found.context_query) <= 1000


def rounds(*exchanges: tuple[str, str], plan_before: int | None = None) -> dict[str, Any]:
    """A hub that asks a worker, and the worker's replies; before one of the rounds there may be a new plan."""
    messages: list[Any] = []
    for i, (ask, reply) in enumerate(exchanges):
        if i == plan_before:
            messages.append(SystemMessage("New plan: try something else."))
        call = {"name": "transfer_to_surfer", "args": {}, "id": f"c{i}"}
        messages.append(says("hub", ask, tool_calls=[call], id=f"a{i}"))
        messages.append(
            ToolMessage("Successfully transferred to surfer", tool_call_id=f"c{i}", name="transfer_to_surfer")
        )
        messages.append(says("surfer", reply, id=f"r{i}"))
    return {"messages": messages}


SEARCH = ("Search the archive for the price list of 2023.", "I searched the archive for the price list.")
STALLED = [
    SEARCH,
    ("Open the first result of the archive search.", "I opened the first result. It is a login page."),
    ("Search the archive for the price list of 2023 again.", "I searched the archive for the price list!"),
]


def test_a_worker_that_does_the_same_again_when_asked_the_same_again_is_a_cycle() -> None:
    (found,) = gaps(rounds(("Open the archive.", "The archive is open at its start page."), *STALLED))

    assert (found.reason, found.agent, found.indicators) == ("circular_logic", "surfer", ("repeated@r1", "repeated@r3"))
    assert found.context_query == STALLED[-1][0]
    assert found.confidence == 0.6


def test_a_new_plan_starts_afresh() -> None:
    assert gaps(rounds(("Open the archive.", "The archive is open."), *STALLED, plan_before=3)) == ()


def test_the_same_opening_to_another_ask_is_no_cycle() -> None:
    reply = "Here are the results of my search, sorted by date:"

    assert (
        gaps(
            rounds(*((ask, f"{reply} {i}") for i, ask in enumerate(("find flights", "book hotel rooms", "rent cars"))))
        )
        == ()
    )


def test_a_hub_that_hands_out_one_chapter_after_the_other_is_no_cycle() -> None:
    parts = ("one", "two", "three", "four")
    exchanges = [
        (
            f"Translate the chapter {part} of the book into German.",
            f"The chapter has been translated and saved as {part}.md.",
        )
        for part in parts
    ]

    assert gaps(rounds(*exchanges)) == ()


def test_the_same_need_seen_for_two_reasons_is_one_gap_and_a_surer_one() -> None:
    question = "Which database do we use for the orders?"

    (found,) = gaps(a_state(*[("dev", question)] * 4))

    assert found.reason == "clarification_requested"
    assert found.confidence == pytest.approx(1 - 0.1 * 0.2)
    assert found.indicators[1:] == ("repeated@m0", "repeated@m1", "repeated@m2", "repeated@m3")


def test_the_same_in_other_words_and_with_a_counter_is_a_cycle() -> None:
    said = (
        "I will now rerun the migration of the orders table.",
        "So I will rerun the orders table migration now.",
        "Now I rerun the migration of the orders table, then.",
        "Right, the orders table: I rerun its migration.",
    )
    tried = [("dev", f"Attempt {i}: rerun the migration of the orders table.") for i in range(1, 5)]

    assert reasons(a_state(*(("dev", text) for text in said))) == ["circular_logic"]
    assert reasons(a_state(*tried)) == ["circular_logic"]


def test_reports_that_differ_in_a_name_or_a_number_are_progress() -> None:
    numbered = [("dev", f"Module {i} of the orders service is done and tested.") for i in range(8)]
    named = [
        ("dev", f"The {name} module is done and all its tests pass.") for name in ("login", "cart", "search", "pay")
    ]

    assert gaps(a_state(*numbered)) == ()
    assert gaps(a_state(*named)) == ()


OPINIONS = {
    "dev": (
        "We should store the sessions in Redis because it is fast, and Postgres is slow.",
        "Postgres is slow, so store them in Redis.",
        "Because Redis is fast we should store sessions there.",
    ),
    "architect": (
        "No, the sessions should stay in Postgres because it is safe, Redis loses them.",
        "Redis loses sessions, so stay in Postgres.",
        "Postgres is safe, the sessions should stay in it.",
    ),
    "pm": (
        "Both are fine for me, but please agree on one store of the sessions today.",
        "Please agree today on one store, both Redis and Postgres are fine.",
        "Both are fine, agree on one store of sessions today.",
    ),
}


@pytest.mark.parametrize("team", [("dev", "architect"), ("dev", "architect", "pm")])
def test_agents_that_tell_each_other_nothing_new_talk_in_circles(team: tuple[str, ...]) -> None:
    talk = [(agent, OPINIONS[agent][i]) for i in range(3) for agent in team]

    observation = observe(a_state(*talk), now=NOW)

    assert [set(cycle.agents) for cycle in observation.cycles] == [set(team)]
    assert "circular_logic" in reasons(a_state(*talk))
    news = [
        says("pm", "The security review demands encrypted sessions at rest.", id="news"),
        says("dev", "Then it is decided by compliance-4, I encrypt with AES-256.", id="more"),
    ]
    assert observe({"messages": [*a_state(*talk)["messages"], *news]}, now=NOW).cycles == ()


def test_the_topic_that_messages_name_is_what_the_cycle_turns_about() -> None:
    messages = [
        says(agent, OPINIONS[agent][i], additional_kwargs={"topic": "session store"}, id=f"{agent}{i}")
        for i in range(3)
        for agent in ("dev", "architect")
    ]

    (found,) = gaps({"messages": messages})

    assert found.context_query == "session store"


def test_two_agents_that_repeat_themselves_are_a_pair() -> None:
    again = [("dev", "I will rerun the migration."), ("tester", "The migration failed with the same lock.")] * 3

    (cycle,) = observe(a_state(*again), now=NOW).cycles

    assert cycle.agents == ("dev", "tester")
    assert (cycle.count, cycle.evidence) == (5, ("m1", "m2", "m3", "m4", "m5"))


class Report(BaseModel):
    status: str
    missing_context: list[str]


@pytest.mark.parametrize(
    "state",
    [
        {"structured_response": Report(status="blocked", missing_context=["order schema", "API contract"])},
        {"structured_response": {"open_questions": ["order schema", "API contract"]}},
        {"messages": [says("dev", '{"status": "blocked", "missing_information": ["order schema", "API contract"]}')]},
        {
            "messages": [
                says(
                    "dev",
                    "",
                    tool_calls=[
                        {"name": "Report", "args": {"missing_context": ["order schema", "API contract"]}, "id": "c"}
                    ],
                )
            ]
        },
    ],
)
def test_what_structured_output_names_as_missing_is_a_gap_with_one_need_each(state: dict[str, Any]) -> None:
    (found,) = gaps({"current_agent": "dev", **state})

    assert (found.reason, found.agent, found.parts) == ("explicit_flag", "dev", ("order schema", "API contract"))


@pytest.mark.parametrize(
    ("output", "need"),
    [
        ({"missing_context": "order schema"}, "order schema"),
        (Report(status="blocked", missing_context=["order schema"]), "order schema"),
        ('{"status": "blocked", "missing_context": ["order schema"]}', "order schema"),
        ('```json\n{"missing_context": "order schema"}\n```', "order schema"),
        ([{"missing_context": "API contract"}, {"missing_context": "order schema"}], "order schema"),
        ({"result": {"missing_context": "order schema"}}, "order schema"),
        ({"missing_context": True, "reason": "The order schema is unknown."}, "The order schema is unknown."),
        ({"missing_context": True}, "Build it. I stopped."),
        ({"missing_context": "true"}, "Build it. I stopped."),
    ],
)
def test_missing_context_in_an_agents_output_is_a_gap_of_that_agent(output: object, need: str) -> None:
    state = {"messages": [HumanMessage("Build it.", id="h"), says("dev", "I stopped.")], "dev_output": output}

    (found,) = gaps(state)

    assert (found.reason, found.agent, found.context_query) == ("explicit_flag", "dev", need)


@pytest.mark.parametrize(
    "output", [{"missing_context": False}, "{no json", '{"missing_context": null}', [{"missing_context": "x"}, {}], []]
)
def test_an_agents_output_that_misses_nothing_is_no_gap(output: object) -> None:
    assert gaps({"current_agent": "dev", "dev_output": output}) == ()


@pytest.mark.parametrize(
    "answer", [{"missing_context": []}, {"clarification_needed": True}, {"status": "done"}, "done", 3, None, ["x"]]
)
def test_structured_output_that_names_nothing_missing_is_no_gap(answer: object) -> None:
    assert gaps({"current_agent": "dev", "structured_response": answer}) == ()


@pytest.mark.parametrize(
    "answer", ["None", "n/a", "No", ["None"], ["", None], "No missing information.", "no open questions"]
)
def test_a_field_that_says_nothing_is_missing_is_no_gap(answer: object) -> None:
    assert gaps({"current_agent": "dev", "structured_response": {"missing_information": answer}}) == ()


def test_questions_given_as_objects_and_in_a_fence_are_read() -> None:
    text = '```json\n{"open_questions": [{"question": "Which database?", "priority": 1}]}\n```'

    (found,) = gaps({"messages": [says("dev", text)]})

    assert found.context_query == "Which database?"


def test_however_much_is_missing_a_gap_stays_small() -> None:
    (found,) = gaps({"current_agent": "dev", "missing_context": [f"field {i} {'x' * 5000}" for i in range(2000)]})

    assert len(found.parts) == 8
    assert len(str(found.to_dict())) < 12_000


@pytest.mark.parametrize(
    "reason",
    [
        "Lint failed: undefined name 'foo' in app.py line 3",
        "Type check failed: missing return statement",
        "Coverage 62% is below 80%: missing tests for utils.py",
        "Test test_login failed: element not found",
        "3 public functions lack docstrings",
        "Build failed: module 'requests' not found",
        "SyntaxError: missing ')'",
        "AssertionError: user is not defined",
    ],
)
def test_a_gate_that_fails_on_the_code_is_no_gap(reason: str) -> None:
    assert gaps({"gate_blocked": True, "gate_failure": reason, "current_agent": "dev"}) == ()


def test_a_gate_that_does_not_block_is_no_gap() -> None:
    failed = {"passed": False, "gate_name": "dod", "reason": "The retention policy is not specified."}

    assert gaps({"gate_blocked": False, "gate_results": [failed], "current_agent": "dev"}) == ()
    assert reasons({"gate_results": [failed], "current_agent": "dev"}) == ["gate_failure"]


@pytest.mark.parametrize(
    "parts", [range(1, 10), ("users", "orders", "carts", "payments", "refunds", "audits", "stock")]
)
def test_reports_made_from_a_template_are_progress(parts: Any) -> None:
    turns = [
        turn
        for part in parts
        for turn in (
            ("dev", f"Implemented endpoint {part} of 9, unit tests pass, coverage stays above the bar, docs updated."),
            ("reviewer", f"Reviewed endpoint {part} of 9, code follows the guidelines, approved and merged at once."),
        )
    ]

    assert gaps(a_state(*turns)) == ()


def test_a_long_text_that_grows_at_its_end_is_progress() -> None:
    opening = "The report of the quarter, with all that was said before. " * 50

    assert gaps(a_state(*(("writer", f"{opening} Section {i} is new.") for i in range(5)))) == ()


@pytest.mark.parametrize(
    ("ask", "slots"),
    [
        ("Please process invoice {} and post it to the ledger.", ("1041", "1042", "1043", "1044")),
        ("Research the market for electric bikes in {} please.", ("France", "Japan", "Brazil", "Kenya")),
    ],
)
def test_a_hub_that_hands_out_like_tasks_is_no_cycle(ask: str, slots: tuple[str, ...]) -> None:
    assert gaps(rounds(*((ask.format(slot), "It was done as you asked and posted.") for slot in slots))) == ()


def test_tests_rerun_after_other_edits_are_no_cycle() -> None:
    messages: list[Any] = []
    for i in range(6):
        for name, arguments in (("edit", {"patch": f"replace part{i} by other{i}"}), ("run_tests", {})):
            call = {"name": name, "args": arguments, "id": f"{name}{i}"}
            messages.append(says("dev", "", tool_calls=[call]))
            messages.append(ToolMessage("1 failed", tool_call_id=f"{name}{i}", name=name))

    assert gaps({"messages": messages}) == ()


def test_a_talk_in_circles_is_one_need_however_it_is_worded() -> None:
    talk = [(agent, OPINIONS[agent][i % 3]) for i in range(6) for agent in ("dev", "architect")]

    first, later = (observe(a_state(*talk[:end]), now=NOW) for end in (8, 12))
    needs = {
        found.need for observation in (first, later) for found in detect(observation) if found.agent == "architect"
    }

    assert len(needs) == 1
    assert first.cycles[0].count < later.cycles[0].count


def test_an_analysis_that_was_kept_in_the_state_expires() -> None:
    analysis = {"circular_detected": True, "patterns_found": [{"agents_involved": ["dev"]}], "analyzed_at": NOW}
    later = {"messages": [says("dev", "The build is repaired.", additional_kwargs={"timestamp": NOON + 601})]}

    assert reasons({**later, "cycle_analysis": analysis}) == []


def test_a_team_that_is_reported_healthy_has_no_slow_agent() -> None:
    health = {"status": "healthy", "metrics": {"agent_cycle_times": {"pm": 20, "dev": 45}}}

    assert gaps({"current_agent": "dev", "health_status": health}) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Waiting for the API contract.",
        "Need the API contract.",
        "I have no clue how the retry policy is defined.",
        "I can't implement the endpoint: there is no contract for it anywhere.",
        "The contract of the payment API isn't documented, so I stopped.",
    ],
)
def test_terse_ways_to_say_that_something_is_missing(text: str) -> None:
    assert reasons(a_state(("dev", text))) == ["clarification_requested"]


def test_a_task_for_a_colleague_is_no_request() -> None:
    text = "Dev, could you please implement the login form and let me know when it is ready?"

    assert gaps(a_state(("lead", text))) == ()


UNDONE = (
    ("writer", "Headings of the guide set in capitals."),
    ("editor", "Back to small letters in the headings."),
    ("writer", "Capitals again, the guide is older than your rule."),
    ("editor", "Small letters again."),
    ("writer", "Back to capitals in the headings."),
    ("editor", "And back to small letters."),
)
RESTATED = (
    ("lead", "The plan: first the parser, then the export."),
    ("dev", "So first the parser, then the export."),
    ("lead", "Right, the parser first, the export then."),
    ("dev", "The plan is the parser, and then the export."),
    ("lead", "Exactly: parser, then export."),
    ("dev", "Parser first, export then, that is the plan."),
)


@pytest.mark.parametrize("talk", [UNDONE, RESTATED])
def test_undoing_each_others_work_and_restating_a_plan_is_a_circle(talk: tuple[tuple[str, str], ...]) -> None:
    assert "circular_logic" in reasons(a_state(*talk))


def test_the_same_error_again_and_again_is_a_circle_whatever_is_said_in_between() -> None:
    excuses = (
        "Starting the import.",
        "A glitch, once more.",
        "Maybe the cache.",
        "It worked last week.",
        "One more try.",
    )
    messages: list[Any] = []
    for i, excuse in enumerate(excuses):
        messages += [
            says("dev", excuse),
            ToolMessage("Permission denied (publickey).", tool_call_id=f"c{i}", name="ssh"),
        ]

    assert reasons({"messages": messages}) == ["circular_logic"]


def test_paging_is_work() -> None:
    messages: list[Any] = []
    for page in range(6):
        call = {"name": "scroll_down", "args": {"amount": 1000}, "id": f"c{page}"}
        seen = ", ".join(f"item{page}{i} by author{page}{i}" for i in range(8))
        messages += [says("dev", "", tool_calls=[call]), ToolMessage(seen, tool_call_id=f"c{page}", name="scroll_down")]

    assert gaps({"messages": messages}) == ()
