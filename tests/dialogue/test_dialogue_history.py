"""A dialogue's history: rendered, read from messages, and summarised."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from dialogue_builders import a_dialogue, a_history, a_turn, by_extract
from langgraph_scrum_master import ConfigError
from langgraph_scrum_master.dialogue import DialogueSession, FormattedHistory, HistoryConfig
from langgraph_scrum_master.dialogue.history import shorten_history, transcript
from langgraph_scrum_master.dialogue.session import read_dialogue, read_session
from langgraph_scrum_master.dialogue.summarize import ExtractiveSummarizer, ModelSummarizer, summarize_or_extract
from langgraph_scrum_master.testing import ScriptedChatModel
from langgraph_scrum_master.text.extract import extract
from langgraph_scrum_master.text.tokens import estimate_tokens

LONG = "The mill by the river makes paper from old clothes, and the water drives its wheel all day long."


def test_no_turns_give_an_empty_history() -> None:
    assert a_history(()) == FormattedHistory()
    assert a_history(()).text == ""


def test_the_last_turns_are_verbatim_below_a_summary_of_the_older_ones() -> None:
    turns = (a_turn("We will meet Ada on May 7."), *a_dialogue(6))

    assert a_history(turns).text == (
        "[Conversation summary: User: We will meet Ada on May 7.]\n"
        "\n"
        "Recent conversation:\n"
        "User: We talk of rivers and gardens, part 1.\n"
        "Assistant: We talk of rivers and gardens, part 2.\n"
        "User: We talk of rivers and gardens, part 3.\n"
        "Assistant: We talk of rivers and gardens, part 4.\n"
        "User: We talk of rivers and gardens, part 5.\n"
        "Assistant: We talk of rivers and gardens, part 6."
    )


def test_without_older_turns_there_is_no_summary() -> None:
    history = a_history(a_dialogue(3), config=HistoryConfig(verbatim_turns=3))

    assert history.summary == ""
    assert history.text.startswith("Recent conversation:\nUser:")


@pytest.mark.parametrize(("spare", "has_summary"), [(100, False), (101, True)])
def test_a_summary_is_made_only_if_more_than_50_tokens_are_left_beside_the_turns_and_50_more(
    spare: int, has_summary: bool
) -> None:
    recent = estimate_tokens("User: We talk of rivers and gardens, part 3.")
    config = HistoryConfig(verbatim_turns=1)

    assert bool(a_history(a_dialogue(3), recent + spare, config).summary) is has_summary


@pytest.mark.parametrize(("max_tokens", "most"), [(400, 400), (10_000, 80)])
def test_a_summary_uses_the_tokens_that_the_turns_leave_up_to_its_limit(max_tokens: int, most: int) -> None:
    turns = a_dialogue(90, f"{LONG} Part {{}}.")

    history = a_history(
        turns, max_tokens, HistoryConfig(verbatim_turns=1, max_summary_tokens=80 if most == 80 else 500)
    )

    assert 0 < estimate_tokens(history.summary) <= most
    assert estimate_tokens(history.text) <= max_tokens


@pytest.mark.parametrize(
    ("speaker", "label"), [("user", "User"), ("assistant", "Assistant"), ("system", "System"), ("Maria", "Maria")]
)
def test_speakers_are_labelled_by_role_or_name(speaker: str, label: str) -> None:
    assert a_history([a_turn("Hello.", speaker)]).text == f"Recent conversation:\n{label}: Hello."


def test_speakers_can_be_omitted_and_times_included() -> None:
    turns = [a_turn("Hello.", timestamp="2026-03-02T14:05:09+00:00"), a_turn("Yes?", "assistant", timestamp="soon")]

    timed = a_history(turns, config=HistoryConfig(include_timestamps=True))
    bare = a_history(turns, config=HistoryConfig(include_speakers=False))

    assert timed.text == "Recent conversation:\n[14:05] User: Hello.\nAssistant: Yes?"
    assert bare.text == "Recent conversation:\nHello.\nYes?"


async def test_turns_are_rendered_by_a_template_and_shortened_within_it() -> None:
    turn = a_turn("Hello,   you { there }.", "Maria", timestamp="2026-03-02T14:05:09+00:00")

    history = a_history([turn], config=HistoryConfig(template="<{speaker}, {time}> {text}"))
    light = await shorten_history(history, "light", by_extract, estimate_tokens)

    assert history.text == "Recent conversation:\n<Maria, 14:05> Hello,   you { there }."
    assert light.text == "Recent conversation:\n<Maria, 14:05> Hello, you { there }."


def test_a_corrected_text_replaces_the_text() -> None:
    turn = a_turn("I scream please", corrected_text="Ice cream, please.")

    assert a_history([turn]).text.endswith("User: Ice cream, please.")
    assert transcript([turn]) == "User: Ice cream, please."


def test_the_summarizer_gets_the_speech_acts() -> None:
    turns = [a_turn("Could you help?", speech_act="asks for help"), a_turn("Sure.", "assistant")]

    assert transcript(turns) == "User: Could you help?\n  (asks for help)\nAssistant: Sure."


def test_messages_of_any_form_and_in_any_order_become_turns() -> None:
    call = {"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}
    turns = read_dialogue(
        [
            AIMessage("Welcome!", id="m1"),
            HumanMessage("Hi, I am Maria.", name="Maria"),
            ("user", "Is it raining?"),
            AIMessage("", tool_calls=[call]),
            ToolMessage("Rain.", tool_call_id="c1", name="weather"),
            {"role": "assistant", "content": [{"type": "text", "text": "It rains."}], "name": "helper"},
            SystemMessage("The shop closes."),
            HumanMessage("The rest, in short.", additional_kwargs={"lc_source": "summarization"}),
            HumanMessage("Found for you.", additional_kwargs={"lc_source": "scrum_master"}),
            {"role": "user", "content": "  "},
            7,
        ]
    )

    assert [(turn.label, turn.role, turn.effective_text) for turn in turns] == [
        ("Assistant", "assistant", "Welcome!"),
        ("Maria", "user", "Hi, I am Maria."),
        ("User", "user", "Is it raining?"),
        ("Assistant", "tool", '(calls weather({"city": "Oslo"}))'),
        ("weather", "tool", "Rain."),
        ("helper", "assistant", "It rains."),
        ("System", "system", "The shop closes."),
        ("System", "system", "The rest, in short."),
    ]
    assert turns[0].turn_id == "m1"


def test_a_message_may_carry_a_corrected_text_a_speech_act_and_a_time() -> None:
    marks = {"corrected_text": "Stop it at four.", "speech_act": "orders", "timestamp": "2026-03-02T14:05:00Z"}

    (turn,) = read_dialogue([HumanMessage("Stop it a tfour.", additional_kwargs=marks)])

    assert (turn.text, turn.effective_text, turn.speech_act) == ("Stop it a tfour.", "Stop it at four.", "orders")
    assert turn.hour == "14:05"


def test_system_messages_at_the_start_are_the_applications_instructions() -> None:
    session = read_session([SystemMessage("You sell boats."), SystemMessage("Be quick."), HumanMessage("Hi.")])

    assert session.instructions == "You sell boats.\n\nBe quick."
    assert [turn.effective_text for turn in session.turns] == ["Hi."]


def test_a_session_may_be_anything_with_an_id_and_turns() -> None:
    class Chat:
        id = "chat-7"
        turns = (("user", "Hi."), a_turn("Hello.", "assistant"))

    session = read_session(Chat())

    assert (session.id, [turn.effective_text for turn in session.turns]) == ("chat-7", ["Hi.", "Hello."])


@pytest.mark.parametrize("bad", [7, "Hello", {"messages": []}])
def test_other_objects_are_rejected_as_a_session(bad: object) -> None:
    with pytest.raises(ConfigError, match="session must have `id` and `turns`"):
        read_session(bad)


def test_a_session_needs_an_id() -> None:
    with pytest.raises(ConfigError, match="id of a session must be a non-empty string, got ''"):
        DialogueSession(id="")


TALK = """User: Hello there!
Assistant: Hello! How are you today?
User: Fine, thanks. Nice weather.
Assistant: Lovely, isn't it?
User: We decided to ship version 4.2 on May 7.
Assistant: Great. Anything else on your mind?
User: The contact at the harbour is Maria Lopez.
Assistant: Good to know. Have a nice day!"""


def test_a_summary_keeps_decisions_numbers_and_names_before_small_talk() -> None:
    summary = extract(TALK, 40, estimate_tokens)

    assert "We decided to ship version 4.2 on May 7." in summary
    assert "Maria Lopez" in summary
    assert "weather" not in summary
    assert estimate_tokens(summary) <= 40


def test_a_summary_names_speakers_in_order_and_keeps_the_later_of_duplicates() -> None:
    text = "Ann: The key is in box 12.\nBen: I will fetch it at 9.\nAnn: The key is in box 12."

    assert extract(text, 100, estimate_tokens) == "Ben: I will fetch it at 9. Ann: The key is in box 12."


def test_sentences_related_to_the_focus_come_first() -> None:
    text = "User: My cat likes warm milk.\n" + "\n".join(
        f"Assistant: We decided to meet Ada at {i} o'clock in Room {i}." for i in range(1, 30)
    )

    assert "My cat likes warm milk." in extract(text, 24, estimate_tokens, "What does my cat like?")
    assert "cat" not in extract(text, 24, estimate_tokens)


def test_an_answer_is_scored_together_with_its_question() -> None:
    text = "Assistant: What is the name of your boat?\nUser: Esmeralda.\n" + "\n".join(
        f"Assistant: Dock {i} opens at {i}." for i in range(1, 30)
    )

    assert "Esmeralda" in extract(text, 40, estimate_tokens, "How is my boat called, what name?")


def test_a_decisive_speech_act_raises_the_score_of_its_turn() -> None:
    plain = "User: Green paint for all doors.\nUser: Blue paint for all boats."
    settled = "User: Green paint for all doors.\n  (decision)\nUser: Blue paint for all boats."

    assert extract(plain, 12, estimate_tokens).startswith("User: Blue")
    assert extract(settled, 12, estimate_tokens).startswith("User: Green")


@given(st.text(), st.integers(0, 60), st.text(max_size=20))
def test_a_summary_never_exceeds_its_limit_and_is_deterministic(text: str, most: int, focus: str) -> None:
    summary = extract(text, most, estimate_tokens, focus)

    assert estimate_tokens(summary) <= most
    assert extract(text, most, estimate_tokens, focus) == summary


async def test_a_chat_model_can_summarise_and_reads_each_turn_once() -> None:
    prompts: list[str] = []

    def script(messages: list[Any]) -> str:
        prompts.append(messages[-1].text)
        return f"Summary {len(prompts)}."

    summarizer = ModelSummarizer(ScriptedChatModel(script=script))

    assert await summarizer.summarize("User: One.", 100) == "Summary 1."
    assert await summarizer.summarize("User: One.\nUser: Two.", 100) == "Summary 2."
    assert await summarizer.summarize("User: One.\nUser: Two.", 100) == "Summary 2."
    assert await summarizer.summarize("User: One. Or more.", 100) == "Summary 3."
    assert prompts == ["User: One.", "Summary so far: Summary 1.\n\nThen:\n\nUser: Two.", "User: One. Or more."]


class Failing:
    async def summarize(self, text: str, max_tokens: int, focus: str = "") -> str:
        raise ConnectionError("no route")


class Slow:
    async def summarize(self, text: str, max_tokens: int, focus: str = "") -> str:
        await asyncio.sleep(60)
        return "never"


class Silent:
    async def summarize(self, text: str, max_tokens: int, focus: str = "") -> str:
        return " "


@pytest.mark.parametrize("summarizer", [Failing(), Slow(), Silent()], ids=["failing", "slow", "silent"])
async def test_a_failing_summarizer_falls_back_to_extraction(
    summarizer: Failing, logged: list[dict[str, object]]
) -> None:
    summary = await summarize_or_extract(summarizer, TALK, 40, "", deadline=0.05, count=estimate_tokens)

    assert summary == await ExtractiveSummarizer().summarize(TALK, 40)
    assert [entry["event"] for entry in logged] == ["summary.failed"]


async def test_a_summary_that_is_too_long_is_cut() -> None:
    class Chatty:
        async def summarize(self, text: str, max_tokens: int, focus: str = "") -> str:
            return f"{LONG}\n\n{LONG}"

    summary = await summarize_or_extract(Chatty(), TALK, 30, "", deadline=5, count=estimate_tokens)

    assert "The mill by the river" in summary
    assert estimate_tokens(summary) <= 30


async def test_facts_that_a_summary_leaves_out_are_listed_before_it() -> None:
    class Vague:
        async def summarize(self, text: str, max_tokens: int, focus: str = "") -> str:
            return "They talked about version 4.2 and a harbour."

    summary = await summarize_or_extract(Vague(), TALK, 60, "", deadline=5, count=estimate_tokens)

    assert summary.startswith("Stated: ")
    assert "May 7" in summary
    assert "harbour is Maria Lopez" in summary
    assert summary.endswith("They talked about version 4.2 and a harbour.")
