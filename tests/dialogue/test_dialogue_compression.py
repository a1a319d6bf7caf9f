"""The system prompt, and the compression of content."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from dialogue_builders import a_chunk, a_content, a_dialogue, a_history, a_turn, an_entity, by_extract
from langgraph_scrum_master import ConfigError
from langgraph_scrum_master.dialogue import (
    AgentPersonality,
    ContextContent,
    EntityContextConfig,
    FormattingPreferences,
    HistoryConfig,
    UserPreferences,
)
from langgraph_scrum_master.dialogue.compress import (
    compress,
    compress_at_level,
    compression_level,
    handle_overflow,
    prioritize_entities,
    select_chunks,
    truncate_system,
)
from langgraph_scrum_master.dialogue.history import LEVELS, compress_history, keep_last_turns, shorten_history
from langgraph_scrum_master.dialogue.model import CompressionLevel, DialogueTurn, FormattedHistory, SystemPrompt
from langgraph_scrum_master.dialogue.system import system_prompt
from langgraph_scrum_master.errors import CannotCompressError
from langgraph_scrum_master.text.tokens import estimate_tokens

LONG = "The mill by the river makes paper from old clothes, and the water drives its wheel all day long."


@pytest.mark.parametrize(
    ("personality", "expected"),
    [
        (AgentPersonality(), "an assistant who helps"),
        (AgentPersonality(kind="expert", domain="boats"), "a specialist in boats"),
        (AgentPersonality(kind="conversational"), "good company"),
        (AgentPersonality(kind="custom", description="You are {a} pirate."), "You are {a} pirate."),
    ],
)
def test_a_personality_is_described_in_the_system_prompt(personality: AgentPersonality, expected: str) -> None:
    assert expected in system_prompt("", personality).text


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"style": "formal"}, "formally"),
        ({"style": "professional"}, "businesslike"),
        ({"style": "casual"}, "casually"),
        ({"style": "friendly"}, "warmly"),
        ({"verbosity": "concise"}, "few words"),
        ({"verbosity": "moderate"}, "medium length"),
        ({"verbosity": "detailed"}, "at length"),
        ({"technical_level": "beginner"}, "no jargon"),
        ({"technical_level": "intermediate"}, "short explanation"),
        ({"technical_level": "expert"}, "without explaining"),
        ({"formatting": FormattingPreferences(use_bullets=True)}, "bullet points"),
        ({"formatting": FormattingPreferences(use_numbered_lists=True)}, "Number steps"),
        ({"formatting": FormattingPreferences(include_code_blocks=True)}, "code blocks"),
        ({"formatting": FormattingPreferences(include_links=True)}, "links"),
        ({"custom_instructions": ("Never say sorry.",)}, "Never say sorry."),
    ],
)
def test_each_preference_is_rendered(fields: dict[str, Any], expected: str) -> None:
    text = system_prompt("", None, UserPreferences(**fields)).text

    assert text.startswith("User preferences:\n")
    assert expected in text
    if "formatting" in fields:
        assert expected not in system_prompt("", None, UserPreferences()).text


def test_a_system_prompt_has_instructions_personality_and_preferences_in_this_order() -> None:
    prompt = system_prompt("You sell boats.", AgentPersonality(), UserPreferences())

    parts = prompt.text.split("\n\n")
    assert [part.split()[0] for part in parts] == ["You", "You", "User"]
    assert parts[0] == "You sell boats."


def test_a_system_prompt_that_is_too_long_loses_preferences_then_personality_then_its_end() -> None:
    prompt = SystemPrompt(instructions=f"{LONG} {LONG}", personality="Be kind.", preferences=("Be brief.", "Be warm."))
    whole, without_last, base = (
        estimate_tokens(each.text)
        for each in (
            prompt,
            replace(prompt, preferences=("Be brief.",)),
            replace(prompt, personality="", preferences=()),
        )
    )

    assert truncate_system(prompt, whole, estimate_tokens) == prompt
    assert truncate_system(prompt, whole - 1, estimate_tokens).preferences == ("Be brief.",)
    assert truncate_system(prompt, without_last - 1, estimate_tokens) == replace(prompt, preferences=())
    assert truncate_system(prompt, base, estimate_tokens).text == prompt.instructions
    assert truncate_system(prompt, base // 2 + 4, estimate_tokens).text == f"{LONG} …"


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (lambda: AgentPersonality(kind="expert"), "'expert' needs a domain"),
        (lambda: AgentPersonality(kind="custom"), "'custom' needs a description"),
        (lambda: AgentPersonality(kind="grumpy"), "personality must be one of helpful, expert"),
        (lambda: UserPreferences(style="rude"), "style must be one of formal"),
        (lambda: UserPreferences(custom_instructions="Be kind."), "strings, got 'Be kind.'"),  # type: ignore[arg-type]
        (lambda: HistoryConfig(verbatim_turns=0), "verbatim_turns must be a whole number, 1 or more, got 0"),
        (lambda: HistoryConfig(template="{speaker}:"), r"template must be a text with \{text\}, and no other fields"),
        (lambda: HistoryConfig(template="{x} {text}"), r"no other fields than \{speaker}, \{time}, got '\{x} \{text}'"),
        (lambda: HistoryConfig(template="{text!r}"), "template must be a text with"),
        (lambda: HistoryConfig(template="{text"), "template must be a text with"),
        (lambda: HistoryConfig(template="{text} ({speaker})"), r"template must be a text that ends in \{text}"),
        (lambda: EntityContextConfig(template="{type}"), r"template must be a text with \{name\}"),
        (lambda: EntityContextConfig(template=3), r"template must be a text with .*, got 3"),  # type: ignore[arg-type]
        (lambda: a_turn("Hi.", role="boss"), "role must be one of user, assistant, system, tool, got 'boss'"),
    ],
)
def test_invalid_settings_are_rejected(bad: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        bad()


@pytest.mark.parametrize(
    ("reduction", "level"),
    [
        (0.01, "light"),
        (0.199, "light"),
        (0.2, "medium"),
        (0.399, "medium"),
        (0.4, "heavy"),
        (0.599, "heavy"),
        (0.6, "extreme"),
        (1, "extreme"),
    ],
)
def test_the_level_depends_on_the_reduction(reduction: float, level: str) -> None:
    assert compression_level(reduction) == level


async def test_light_removes_whitespace_and_duplicates() -> None:
    content = ContextContent(
        history=a_history([a_turn("One   two\n\n\n  three")]),
        entities=(an_entity(),),
        rag_chunks=(a_chunk("Paper is made of wood."), a_chunk("Paper is made of wood!", 0.5, chunk_id="other")),
    )

    light = await compress_at_level(content, "light", by_extract, estimate_tokens)

    assert light.history.recent_turns[0].formatted == "User: One two three"
    assert [chunk.content for chunk in light.rag_chunks] == ["Paper is made of wood."]
    assert light.entities == content.entities


async def test_medium_summarises_older_turns_compresses_entities_and_keeps_three_chunks() -> None:
    content = a_content(history=a_history(a_dialogue(6, f"{LONG} {LONG} Part {{}}.")))

    medium = await compress_at_level(content, "medium", by_extract, estimate_tokens)

    assert [turn.turn_id for turn in medium.history.recent_turns] == ["t4", "t5", "t6"]
    assert "Part 1." in medium.history.summary
    assert [entity.formatted for entity in medium.entities] == [f"• Person {i} (person)" for i in range(5)]
    assert len(medium.rag_chunks) == 3


async def test_heavy_keeps_the_last_turn_and_a_summary_of_100_tokens_three_entities_and_two_chunks() -> None:
    heavy = await compress_at_level(
        a_content(history=a_history(a_dialogue(40, f"{LONG} Part {{}}."), 10_000)), "heavy", by_extract, estimate_tokens
    )

    assert heavy.history.text == f"[Summary: {heavy.history.summary}]\n\nAssistant: {LONG} Part 40."
    assert 60 <= estimate_tokens(heavy.history.summary) <= 100
    assert [entity.name for entity in heavy.entities] == ["Person 0", "Person 1", "Person 2"]
    assert [chunk.content for chunk in heavy.rag_chunks] == ["Fact 0 of paper is 0.", "Fact 1 of paper is 1."]


async def test_extreme_keeps_only_the_essential() -> None:
    extreme = await compress_at_level(a_content(), "extreme", by_extract, estimate_tokens)

    assert [turn.turn_id for turn in extreme.history.recent_turns] == ["t12"]
    assert estimate_tokens(extreme.history.summary) <= 40
    assert (len(extreme.entities), len(extreme.rag_chunks)) == (1, 1)


async def test_content_that_fits_is_not_changed() -> None:
    content = a_content()

    assert await compress(content, content.total_tokens(estimate_tokens), by_extract, estimate_tokens) is content


@pytest.mark.parametrize("share", [0.9, 0.7, 0.5, 0.3])
async def test_content_is_compressed_further_until_it_fits(share: float) -> None:
    content = a_content(turns=30)
    target = int(content.total_tokens(estimate_tokens) * share)

    short = await compress(content, target, by_extract, estimate_tokens)

    assert short.total_tokens(estimate_tokens) <= target
    assert short.history.recent_turns[-1].turn_id == "t30"


async def test_content_that_cannot_be_compressed_enough_raises_an_error_with_the_minimum() -> None:
    with pytest.raises(CannotCompressError, match=r"\d+ tokens cannot be compressed to 3: the minimum is \d+"):
        await compress(a_content(), 3, by_extract, estimate_tokens)


TURNS = st.lists(st.tuples(st.text(max_size=200), st.sampled_from(["user", "assistant", "Maria", "tool"])), max_size=12)


@settings(max_examples=60)
@example(turns=[], chunks=[], entities=[("A", ""), ("A", ""), ("0:", "A"), ("A", "")])
@given(
    turns=TURNS,
    chunks=st.lists(st.text(max_size=120), max_size=5),
    entities=st.lists(st.tuples(st.text(max_size=80), st.text(max_size=80)), max_size=5),
)
def test_a_higher_level_never_has_more_tokens(
    turns: list[tuple[str, str]], chunks: list[str], entities: list[tuple[str, str]]
) -> None:
    content = ContextContent(
        history=a_history([a_turn(text, speaker) for text, speaker in turns]),
        entities=tuple(an_entity(f"E{i}", formatted=a, compressed=b) for i, (a, b) in enumerate(entities)),
        rag_chunks=tuple(a_chunk(text, chunk_id=str(i)) for i, text in enumerate(chunks)),
    )

    sizes = [content.total_tokens(estimate_tokens)] + [
        asyncio.run(compress_at_level(content, level, by_extract, estimate_tokens)).total_tokens(estimate_tokens)
        for level in LEVELS
    ]

    assert sizes == sorted(sizes, reverse=True)


@settings(max_examples=60)
@given(turns=TURNS.filter(bool), words=st.integers(1, 80), max_tokens=st.integers(12, 400))
def test_a_history_within_its_tokens_keeps_the_newest_turn(
    turns: list[tuple[str, str]], words: int, max_tokens: int
) -> None:
    newest = a_turn("word " * words, turn_id="newest")
    history = a_history([*(a_turn(text, speaker) for text, speaker in turns), newest], max_tokens)

    short = asyncio.run(compress_history(history, max_tokens, by_extract, estimate_tokens))

    assert estimate_tokens(short.text) <= max_tokens
    assert short.recent_turns[-1].turn_id == "newest"
    assert short.recent_turns[-1].content.startswith("word")


def test_as_a_last_resort_as_many_of_the_last_turns_are_kept_as_fit() -> None:
    history = a_history(a_dialogue(6))
    two = estimate_tokens("\n".join(turn.formatted for turn in history.recent_turns[-2:]))

    assert [turn.turn_id for turn in keep_last_turns(history, two, estimate_tokens).recent_turns] == ["t5", "t6"]
    assert keep_last_turns(history, 0, estimate_tokens).text == ""


async def test_turns_without_room_for_a_summary_are_summarised_when_the_history_is_compressed() -> None:
    turns = (a_turn("The locker code is 4711."), *a_dialogue(6, LONG + " Part {}."))
    history = a_history(turns, 120)

    short = await compress_history(history, 120, by_extract, estimate_tokens)

    assert history.summary == ""
    assert "4711" in short.summary
    assert estimate_tokens(short.text) <= 120


@pytest.mark.parametrize("after", [0, 1], ids=["last", "last but one"])
async def test_a_long_turn_does_not_displace_the_summary_of_the_others(after: int) -> None:
    pasted = a_turn("Error in the mill. " * 400, turn_id="pasted")
    turns = (a_turn("We decided that the locker opens with 4711."), *a_dialogue(60), pasted, *a_dialogue(after))
    history = a_history(turns, 1000)

    short = await compress_history(history, 1000, by_extract, estimate_tokens)

    assert "4711" in short.summary
    assert estimate_tokens(short.summary) > 200
    assert short.recent_turns[-1].turn_id == turns[-1].turn_id
    assert estimate_tokens(short.text) <= 1000


def test_entities_are_selected_by_relevance_and_compressed_where_the_full_form_does_not_fit() -> None:
    entities = [an_entity("Ben", 0.5), an_entity("Ann", 0.9), an_entity("Cy", 0.1)]
    room = estimate_tokens(ContextContent(entities=(entities[1],)).texts["entities"]) + 8

    selected = prioritize_entities(entities, room, estimate_tokens)

    assert [(entity.name, "\n" in entity.formatted) for entity in selected] == [("Ann", True), ("Ben", False)]


def test_chunks_are_selected_in_order_and_one_that_is_too_long_is_skipped() -> None:
    chunks = [a_chunk("Small.", 0.5), a_chunk(LONG * 20, 0.9), a_chunk("Tiny.", 0.7)]

    assert [chunk.content for chunk in select_chunks(chunks, 40, estimate_tokens)] == ["Small.", "Tiny."]


@pytest.mark.parametrize(("level", "selected"), [("light", 4), ("medium", 3), ("heavy", 2), ("extreme", 1)])
async def test_a_level_keeps_the_first_chunks_whatever_their_relevance(level: CompressionLevel, selected: int) -> None:
    reranked = ContextContent(rag_chunks=tuple(a_chunk(f"Fact {i} is {i}.", i / 10) for i in range(4)))

    short = await compress_at_level(reranked, level, by_extract, estimate_tokens)

    assert short.rag_chunks == reranked.rag_chunks[:selected]


async def test_a_history_without_its_turns_is_summarised_from_its_text() -> None:
    whole = a_history((a_turn("The locker code is 4711."), *a_dialogue(8, LONG + " Part {}.")), 2000)
    history = replace(whole, turns=())

    heavy = await shorten_history(history, "heavy", by_extract, estimate_tokens)

    assert "4711" in history.summary
    assert "4711" in heavy.summary
    assert heavy.text == f"[Summary: {heavy.summary}]\n\n{history.recent_turns[-1].formatted}"


@pytest.mark.parametrize("parts", [3, 2, 1, 0])
def test_a_system_prompt_can_be_rebuilt_from_its_parts(parts: int) -> None:
    prompt = system_prompt("You sell boats.", AgentPersonality(), UserPreferences())
    texts = [prompt.instructions, prompt.personality, prompt.preferences_text][:parts]

    assert SystemPrompt.of(texts).text == "\n\n".join(texts)


async def test_each_section_is_fitted_to_its_budget() -> None:
    content = a_content(turns=30, system=SystemPrompt(instructions=LONG * 3, preferences=("Be brief.",)))
    budget = {"system": 30, "history": 60, "entities": 40, "rag": 50}

    fitted = await handle_overflow(content, budget, by_extract, estimate_tokens)

    tokens = fitted.tokens(estimate_tokens)
    assert all(0 < tokens[name] <= budget[name] for name in budget)


GIVEN = ("A-48213", "ann@example.org", "9f3c2ab", "10.20.3.4", "€1,249.50", "2026-04-17")
FIGURES = (
    "We agreed on Monday that the {} of 2 open points will be settled after 30 minutes, and Helen must confirm it."
)


def with_facts(turns: int) -> tuple[DialogueTurn, ...]:
    """A dialogue that begins with facts, and goes on with other figures."""
    early = [a_turn(f"I have been waiting for a week. The label is {fact}, as you know.") for fact in GIVEN]
    return (*early, *(a_turn(FIGURES.format(i), ("assistant", "user")[i % 2]) for i in range(turns)))


@pytest.mark.parametrize("max_tokens", [200, 300, 600])
async def test_ids_and_numbers_that_were_given_early_remain_in_a_compressed_history(max_tokens: int) -> None:
    history = await compress_history(a_history(with_facts(40), max_tokens), max_tokens, by_extract, estimate_tokens)

    assert len([fact for fact in GIVEN if fact not in history.text]) <= 1
    assert history.recent_turns[-1].content == FIGURES.format(39)
    assert estimate_tokens(history.text) <= max_tokens


async def test_content_is_compressed_no_further_than_to_its_target() -> None:
    content = ContextContent(history=a_history(with_facts(40), 2_000))

    shorter = await compress(content, 250, by_extract, estimate_tokens)

    assert [fact for fact in GIVEN if fact not in shorter.history.text] == []
    assert 200 < shorter.total_tokens(estimate_tokens) <= 250


def test_a_history_an_entity_and_a_chunk_know_their_tokens() -> None:
    history, entity, chunk = a_history(a_dialogue(3)), an_entity(), a_chunk()

    assert history.token_count == estimate_tokens(history.text) > 0
    assert entity.token_count == estimate_tokens(entity.formatted) > 0
    assert chunk.token_count == estimate_tokens(chunk.formatted) > 0
    assert FormattedHistory().token_count == 0
