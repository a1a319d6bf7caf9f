"""Entities: resolved in texts, tracked over turns, rendered for prompts."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import BaseMessage

from langgraph_scrum_master import ConfigError
from langgraph_scrum_master.dialogue import Entity, EntityContextConfig, EntityRegistry, Relation, ResolvedEntity
from langgraph_scrum_master.dialogue.entities import entity_context, select_attributes
from langgraph_scrum_master.errors import DecodeError, NotFoundError
from langgraph_scrum_master.protocols import EntityLookup
from langgraph_scrum_master.testing import ScriptedChatModel
from langgraph_scrum_master.text.spelling import Vocabulary, spelled

JOHN = Entity(
    canonical_name="John Smith",
    entity_type="person",
    aliases=("John", "JS"),
    description="Leads the payments team.",
    attributes={"team": "Payments", "title": "Lead", "email": "john@example.org"},
    relations=(Relation(relation="reports to", target_id="maria"), Relation(relation="owns", target_id="ledger")),
)
MARIA = Entity(canonical_name="Maria López", id="maria", entity_type="person")
LEDGER = Entity(canonical_name="Ledger Service", id="ledger", entity_type="service", aliases=("the ledger",))

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(lambda name: bool(spelled(name).strip()))


def a_registry(*entities: Entity, **config: Any) -> EntityRegistry:
    return EntityRegistry(entities or (JOHN, MARIA, LEDGER), config=EntityContextConfig(**config))


def mentions(registry: EntityRegistry, text: str) -> list[tuple[str, str]]:
    return [(each.entity_id, each.mention) for each in registry.resolve(text)]


def named(*names: str) -> EntityRegistry:
    return EntityRegistry(Entity(canonical_name=name, id=name) for name in names)


def test_an_entity_is_rendered_by_a_template() -> None:
    registry = a_registry(template="{name} ({type}), {attributes}; {related}. {description}", attributes_per_entity=2)

    (context,) = registry.contexts(registry.resolve("John Smith"))

    assert context.formatted == (
        "John Smith (person), email: john@example.org, title: Lead; reports to Maria López, owns Ledger Service. "
        "Leads the payments team."
    )
    assert context.compressed == "• John Smith (person): email john@example.org"


def test_a_registry_is_a_lookup() -> None:
    assert isinstance(a_registry(), EntityLookup)


@pytest.mark.parametrize(
    ("text", "mention", "confidence"),
    [
        ("Ask John Smith.", "John Smith", 1.0),
        ("ask JOHN  SMITH'S team", "JOHN  SMITH", 1.0),
        ("Ask John-\nSmith", "John-\nSmith", 1.0),
        ("(JS) said so", "JS", 0.9),
        ("Ask Jonh Smith", "Jonh Smith", 0.8 * 8 / 9),
        ("Ask John Smth", "John", 0.9),
        ("Ask Jhon", "Jhon", 0.9 * 0.8 * 3 / 4),
    ],
)
def test_confidence_falls_from_name_to_alias_to_near_miss(text: str, mention: str, confidence: float) -> None:
    (resolved,) = a_registry().resolve(text)

    assert (resolved.entity_id, resolved.canonical_name, resolved.mention) == ("john-smith", "John Smith", mention)
    assert resolved.confidence == pytest.approx(confidence)


@pytest.mark.parametrize("text", ["", "   ", "Johnson", "Johnny Smithers", "Jo", "Jon", "smith", "JSON"])
def test_parts_of_words_and_short_or_distant_words_do_not_match(text: str) -> None:
    assert mentions(a_registry(), text) == []


def test_the_longest_name_wins_and_each_entity_resolves_once_by_its_best_mention() -> None:
    registry = named("New York", "New York Times", "York")

    assert mentions(registry, "york, New York and the New York Times: new york") == [
        ("York", "york"),
        ("New York", "New York"),
        ("New York Times", "New York Times"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "mention"),
    [
        ("José Ñandú", "jose nandu came", "jose nandu"),
        ("Jose\u0301 N\u0303andu\u0301", "José Ñandú", "José Ñandú"),
        ("Straße", "STRASSE 5", "STRASSE"),
        ("田中", "田中さんは来ました", "田中"),
        ("김철수", "김철수는 왔다", "김철수"),
        ("Ｆｕｌｌ", "full width", "full"),
        ("Дмитрий", "ДМИТРИЙ пришёл", "ДМИТРИЙ"),
        ("O’Brien", "o'brien's", "o'brien"),
        ("Jean-Luc", "Jean Luc", "Jean Luc"),
        ("❤️", "with ❤!", "❤"),
    ],
)
def test_names_are_found_whatever_their_case_accents_and_script(name: str, text: str, mention: str) -> None:
    assert mentions(named(name), text) == [(name, mention)]


@pytest.mark.parametrize("name", ["C++", ".NET", "AT&T", "a.b*(c", "[x]", "\\d+", "node.js", "(", "^$", "foo|bar"])
def test_names_with_symbols_match_exactly(name: str) -> None:
    registry = named(name, "zzz")

    assert mentions(registry, f"We use {name} here") == [(name, name)]
    assert mentions(registry, "We use 12 dd here, ax bc") == []


def test_a_name_followed_by_a_symbol_is_a_different_name() -> None:
    registry = named("C", "C++")

    assert mentions(registry, "C++, C# and C") == [("C++", "C++"), ("C", "C")]
    assert mentions(registry, "C#") == []


def test_a_name_that_is_an_ordinary_word_matches_exactly_and_with_less_confidence_where_it_is_ambiguous() -> None:
    registry = named("Will", "go")

    assert mentions(registry, "it will do, WILL it?") == []
    assert [(each.entity_id, each.confidence) for each in registry.resolve("We asked Will. Let us go")] == [
        ("Will", 1.0),
        ("go", 0.5),
    ]
    assert [each.confidence for each in registry.resolve("Will it rain?")] == [0.5]
    assert mentions(named(" The Who\n"), "Those are the who? We heard The  Who.") == [(" The Who\n", "The  Who")]


def test_of_two_who_share_an_alias_the_more_salient_comes_first() -> None:
    smith, doe = JOHN, Entity(canonical_name="John Doe", aliases=("John",))
    registry = a_registry(smith, doe)

    registry.observe("John Doe called.")
    then = mentions(registry, "What did John say?")
    registry.observe("")
    registry.observe("John Smith called.")

    assert then == [("john-doe", "John"), ("john-smith", "John")]
    assert mentions(registry, "What did John say?") == then[::-1]


def test_numbers_never_match_as_near_misses() -> None:
    assert mentions(named("Story 12345678", "Apollo11"), "Story 12345679 and Apollo12") == []


@given(names, st.lists(names, max_size=5))
def test_every_entity_is_found_by_its_own_name(name: str, others: list[str]) -> None:
    registry = EntityRegistry(Entity(canonical_name=each, id=str(i)) for i, each in enumerate([name, *others]))

    first = {each.entity_id: each for each in registry.resolve(name)}.get("0")

    # An ordinary word on its own is doubtful.
    assert first is not None
    assert first.confidence in (1.0, 0.5)
    assert spelled(first.mention) == spelled(name)


@given(st.text(max_size=200))
def test_mentions_are_always_part_of_the_text(text: str) -> None:
    for each in a_registry().resolve(text):
        assert each.mention in text
        assert 0 < each.confidence <= 1


@given(st.text("abcde", min_size=5, max_size=9), st.integers(0, 8), st.sampled_from("abcdexyz"))
def test_a_word_with_one_wrong_letter_is_a_near_miss(word: str, place: int, letter: str) -> None:
    place = 1 + place % (len(word) - 1)
    vocabulary = Vocabulary({word})

    for wrong in (word[:place] + letter + word[place:], word[:place] + letter + word[place + 1 :]):
        assert vocabulary.near(wrong) == {word: int(wrong != word)}


def test_five_thousand_names_are_found_in_a_long_text_in_no_time() -> None:
    parts = [a + b + c for a in "kmlrst" for b in ("ara", "eli", "ovo", "uni") for c in ("bek", "dan", "fur", "gol")]
    people = [f"{one.title()} {two.title()}" for one in parts for two in parts][:5000]
    registry = named(*people)
    text = " ".join(f"Then {people[i * 7 % 5000]} met somebody on the way to work." for i in range(1800))
    registry.resolve("warm up")

    started = time.process_time()
    resolved = registry.resolve(text)
    seconds = time.process_time() - started

    assert len(text) > 90_000
    assert len(resolved) == 1800
    assert seconds < 1


def test_salience_halves_with_the_turns_and_comes_back_with_a_mention() -> None:
    registry = a_registry(half_life=2)

    registry.observe("John Smith is here.")
    course = [registry.salience("john-smith")]
    for text in ("So?", "Well.", "", "Ask JS."):
        registry.observe(text)
        course.append(registry.salience("john-smith"))

    assert course == pytest.approx([1, 0.5**0.5, 0.5, 0.5**1.5, 0.9])
    assert registry.salience("maria") == 0


def test_lookups_change_nothing() -> None:
    registry = a_registry()
    before = [entity.to_dict() for entity in registry]

    registry.contexts(registry.resolve("John Smith and Maria López"))

    assert [entity.to_dict() for entity in registry] == before
    assert registry.active_count == 0


def test_after_texts_a_registry_is_as_salient_as_if_it_had_observed_them_and_stays_as_it_was() -> None:
    registry, observing = a_registry(), a_registry()
    texts = ["John Smith is ill.", "Who is John?", "Maria López is there.", "Good."]
    for text in texts:
        observing.observe(text)
    observing.observe("And now?")

    following = registry.after(texts)

    assert {entity.id: entity.salience for entity in following} == pytest.approx(
        {entity.id: entity.salience for entity in observing}
    )
    assert following.resolve("John") == registry.resolve("John")
    assert registry.active_count == 0


def test_what_is_more_salient_in_a_registry_is_so_after_texts_too() -> None:
    registry = a_registry()
    registry.observe("John Smith is ill.")

    assert registry.after(["Good."] * 30).salience("john-smith") == 1


def test_active_entities_are_the_salient_ones() -> None:
    registry = a_registry(half_life=1)

    counts = []
    for text in ("John and Maria López", "Maria López", "", "", "", ""):
        registry.observe(text)
        counts.append(registry.active_count)

    assert counts == [2, 2, 2, 2, 1, 0]


def test_an_entity_is_rendered_with_name_type_description_attributes_and_relations() -> None:
    registry = a_registry()

    (context,) = registry.contexts(registry.resolve("Who is John?"))

    assert context.formatted == (
        "• John Smith (person)\n"
        "  Leads the payments team.\n"
        "  email: john@example.org\n"
        "  title: Lead\n"
        "  team: Payments\n"
        "  Related: reports to Maria López, owns Ledger Service"
    )
    assert context.compressed == "• John Smith (person): email john@example.org"
    assert context.relevance == 0.9
    assert [each.target_id for each in context.relationships] == ["maria", "ledger"]


def test_an_entity_without_details_is_rendered_by_its_name() -> None:
    registry = named("Zed")

    (context,) = registry.contexts(registry.resolve("Zed"))

    assert context.formatted == context.compressed == "• Zed"


def test_named_entities_come_before_salient_ones_which_count_seven_tenths() -> None:
    registry = a_registry()
    registry.observe("Maria López, John Smith and the ledger")

    contexts = registry.contexts(registry.resolve("the ledger?"))

    assert [(each.entity_id, round(each.relevance, 2)) for each in contexts] == [
        ("ledger", 0.9),
        ("john-smith", 0.7),
        ("maria", 0.7),
    ]


def test_entities_mentioned_long_ago_are_left_out() -> None:
    registry = a_registry(half_life=1, min_relevance=0.3)
    registry.observe("John Smith")
    registry.observe("")
    before = len(registry.contexts([]))
    registry.observe("")

    assert (before, len(registry.contexts([]))) == (1, 0)


@pytest.mark.parametrize(("known", "expected"), [(9, 9), (10, 10), (11, 10)])
def test_ten_entities_are_rendered_by_default(known: int, expected: int) -> None:
    registry = named(*(f"Entity{chr(97 + i)}" for i in range(known)))
    text = " ".join(entity.canonical_name for entity in registry)
    registry.observe(text)

    for resolved in (registry.resolve(text), []):
        assert len(registry.contexts(resolved)) == expected


def test_preferred_attributes_come_first() -> None:
    many = {"shoe": "43", "location": "Oslo", "Phone": "1", "blank": " ", "email": "a@b.c", "hat": "56", "title": "x"}
    entity = Entity(canonical_name="A", attributes=many)

    chosen = [name for name, _ in select_attributes(entity, 6)]

    assert chosen == ["email", "Phone", "title", "location", "shoe", "hat"]
    assert [name for name, _ in select_attributes(entity, 2)] == ["email", "Phone"]
    assert select_attributes(entity, 0) == []


def test_relations_to_removed_entities_are_hidden_until_they_are_added_again() -> None:
    registry = a_registry()

    gone = (registry.remove("maria"), registry.remove("maria"))
    without = registry.contexts(registry.resolve("John"))[0]
    registry.add(MARIA)

    assert gone == (True, False)
    assert "Related: owns Ledger Service" in without.formatted
    assert "reports to Maria" in registry.contexts(registry.resolve("John"))[0].formatted


def test_resolved_entities_that_were_removed_are_skipped() -> None:
    resolved = ResolvedEntity(entity_id="nobody", canonical_name="Nobody", confidence=1.0)

    assert a_registry().contexts([resolved]) == []


def test_relations_can_be_left_out() -> None:
    registry = a_registry(include_relationships=False)

    assert "Related" not in registry.contexts(registry.resolve("John"))[0].formatted


@given(names, st.text(max_size=50), st.text(max_size=800), st.dictionaries(st.text(max_size=20), st.text(max_size=600)))
def test_an_entity_renders_as_one_entry_that_its_content_cannot_break(
    name: str, kind: str, description: str, attributes: dict[str, str]
) -> None:
    entity = Entity(canonical_name=name, entity_type=kind, description=description, attributes=attributes)
    context = entity_context(entity, 0.5, select_attributes(entity, 3))

    assert all(line.startswith(("•", "  ")) for line in context.formatted.split("\n"))
    assert sum(line.startswith("•") for line in context.formatted.split("\n")) == 1
    assert "\n" not in context.compressed
    assert len(context.compressed) <= len(context.formatted)


def test_an_entity_can_be_changed_and_is_then_found_by_its_new_names() -> None:
    registry = a_registry()

    registry.update("maria", canonical_name="Maria Berg", attributes={"phone": "42"})

    assert mentions(registry, "Maria López") == []
    assert "phone: 42" in registry.contexts(registry.resolve("Maria Berg"))[0].formatted


def test_adding_again_changes_nothing_but_a_different_entity_with_that_id_is_rejected() -> None:
    registry = a_registry()
    registry.observe("John Smith")

    registry.add(JOHN)

    assert (len(registry), registry.salience("john-smith")) == (3, 1.0)
    with pytest.raises(ConfigError, match="there is another entity with the id 'john-smith'"):
        registry.add(Entity(canonical_name="John Smith", description="Another."))


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (lambda registry: registry.update("maria", id="x"), r"that can be changed are .*, got \['id'\]"),
        (lambda registry: registry.add("John"), "expected an Entity with a canonical_name, got 'John'"),
        (lambda registry: Entity(canonical_name=" \n"), "a name must contain a letter"),
        (
            lambda registry: Entity(canonical_name="A", aliases=cast(Any, "AB")),
            "aliases must be a list of str, got 'AB'",
        ),
        (lambda registry: Entity(canonical_name="A", attributes=cast(Any, ["x"])), "attributes must be a dict"),
        (lambda registry: EntityContextConfig(max_entities=-1), "max_entities must be a whole number, 0 or more"),
        (lambda registry: EntityContextConfig(half_life=0), "half_life must be a number from 0.01"),
    ],
)
def test_invalid_entities_are_rejected(work: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        work(a_registry())


def test_an_entity_must_be_known_to_be_changed_or_mentioned() -> None:
    with pytest.raises(NotFoundError, match="there is no entity 'nobody': add it first"):
        a_registry().update("nobody", description="x")
    with pytest.raises(NotFoundError, match="there is no entity 'nobody'"):
        a_registry().mention("nobody")


def test_a_registry_survives_saving_and_loading(tmp_path: Path) -> None:
    registry = a_registry()
    registry.observe("John Smith and Maria López")
    registry.observe("the ledger")
    path = tmp_path / "new" / "entities.json"

    registry.save(path)
    again = EntityRegistry.load(path)
    for each in (registry, again):
        each.observe("John")

    assert list(again) == list(registry)
    assert again.contexts([]) == registry.contexts([])
    assert [file.name for file in path.parent.iterdir()] == ["entities.json"]


WRITTEN = {
    "a.toml": '[[entities]]\ncanonical_name = "Ada"\naliases = ["Countess"]\n[entities.attributes]\nborn = 1815\n',
    "a.json": '[{"canonical_name": "Ada", "aliases": ["Countess"], "attributes": {"born": 1815}}]',
    "a.jsonl": '{"canonical_name": "Ada", "aliases": ["Countess"], "attributes": {"born": 1815}}\n\n',
}


@pytest.mark.parametrize("name", WRITTEN)
def test_entities_are_read_from_a_file_written_by_hand(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(WRITTEN[name])

    assert list(EntityRegistry.load(tmp_path / name)) == [
        Entity(canonical_name="Ada", aliases=("Countess",), attributes={"born": "1815"})
    ]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.json", "{", "cannot be read as .json or .jsonl or .toml"),
        ("a.yaml", "x: 1", "unknown suffix '.yaml'"),
        ("a.json", '{"entities": 3}', "must contain a list of `entities`"),
        ("a.json", '[{"name": "x"}]', "a.json, entity 1: not an Entity: canonical_name"),
        ("a.json", '[{"canonical_name": ""}]', "a.json, entity 1: .*a name must contain"),
    ],
)
def test_an_invalid_file_is_an_error(name: str, text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(DecodeError, match=expected):
        EntityRegistry.load(tmp_path / name)
    with pytest.raises(NotFoundError, match="cannot read"):
        EntityRegistry.load(tmp_path / "nowhere.json")


def a_model(answer: str) -> ScriptedChatModel:
    def script(prompt: list[BaseMessage]) -> str:
        if answer == "fail":
            raise ConnectionError("the model is down")
        return answer

    return ScriptedChatModel(script=script)


async def test_a_model_adds_only_new_entities_of_the_text() -> None:
    extracted = [
        {"name": "Grace Hopper", "type": "person", "description": "Found the bug."},
        {"name": "JOHN SMITH", "type": "person"},
        {"name": "Alan Turing", "type": "person"},
        {"name": ""},
        "nonsense",
    ]
    registry = EntityRegistry([JOHN], model=a_model(f"Here you are:\n```json\n{json.dumps(extracted)}\n```"))

    resolved = await registry.aobserve("Grace Hopper told John Smith about the bug.")

    assert [each.entity_id for each in resolved] == ["grace-hopper", "john-smith"]
    assert len(registry) == 2
    assert registry.contexts(registry.resolve("Grace Hopper"))[0].formatted == (
        "• Grace Hopper (person)\n  Found the bug."
    )


@pytest.mark.parametrize("answer", ["fail", "I cannot.", "[{]"])
async def test_known_entities_are_found_if_the_model_fails(answer: str, logged: list[dict[str, Any]]) -> None:
    registry = EntityRegistry([JOHN], model=a_model(answer))

    resolved = await registry.aobserve("John Smith met Grace Hopper.")

    assert [each.entity_id for each in resolved] == ["john-smith"]
    assert [entry["event"] for entry in logged] == ["extraction.failed"]


async def test_a_slow_model_times_out(logged: list[dict[str, Any]]) -> None:
    class Slow:
        async def ainvoke(self, input: Any) -> Any:
            await asyncio.sleep(60)

    registry = EntityRegistry([JOHN], model=Slow())

    assert await registry.aobserve("John Smith", deadline=0.01)
    assert [entry["event"] for entry in logged] == ["extraction.failed"]
