"""The predicates, called from MeTTa."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from builders import NOON
from dialogue_builders import a_dialogue
from langgraph_scrum_master import ChromaMemory, PromptAssembler
from langgraph_scrum_master._internal.threads import wait_for
from langgraph_scrum_master.config import TokenBudget
from langgraph_scrum_master.dialogue import (
    AgentPersonality,
    DialogueSession,
    Document,
    Entity,
    EntityRegistry,
    HistoryConfig,
    KnowledgeBase,
    Relation,
    UserPreferences,
)
from langgraph_scrum_master.dialogue.compress import compress, handle_overflow, reduce_entities, truncate_system
from langgraph_scrum_master.dialogue.history import format_history, format_turns, shorten_history, transcript
from langgraph_scrum_master.dialogue.metta import bind, register_predicates
from langgraph_scrum_master.dialogue.model import SystemPrompt
from langgraph_scrum_master.dialogue.summarize import ExtractiveSummarizer, summarize_or_extract
from langgraph_scrum_master.dialogue.system import system_prompt
from langgraph_scrum_master.text.tokens import estimate_tokens

hyperon = pytest.importorskip("hyperon", reason="hyperon has no wheel for this Python")

QUERY = '"Who approves refunds above 500 euros?"'


PREDICATES = {
    "inject-context": ["String", "DialogueState", "KnowledgeBase", "Int"],
    "allocate-token-budget": ["String", "DialogueState", "Int"],
    "format-dialogue-history": ["DialogueState", "Int"],
    "format-entity-context": ["DialogueState", "(List ResolvedEntity)", "Int"],
    "retrieve-rag-chunks": ["String", "(List ResolvedEntity)", "Int"],
    "build-system-prompt": ["UserPreferences", "AgentPersonality", "Int"],
    "total-tokens": ["ContextContent"],
    "handle-overflow": ["ContextContent", "TokenBudget"],
    "compress-content": ["ContextContent", "Int"],
    "compression-level": ["Float"],
    "summarize-turns": ["(List Turn)", "Int"],
    "format-recent-turns": ["(List Turn)"],
    "assemble-history": ["(Maybe String)", "(List FormattedTurn)"],
    "select-entity-attributes": ["Entity", "Int"],
    "get-entity-relationships": ["Entity", "DialogueState"],
    "format-entity": ["Entity", "Float", "(List (Pair String String))"],
    "embed-query": ["String"],
    "search-vector-index": ["(List Float)", "Int"],
    "apply-rag-boosts": ["(List SearchResult)", "(List ResolvedEntity)"],
    "rerank-chunks": ["String", "(List SearchResult)"],
    "format-chunk": ["Chunk", "DocumentSource"],
    "format-personality": ["AgentPersonality"],
    "format-preferences": ["UserPreferences"],
    "truncate-system-prompt": ["(List String)", "Int"],
    "simplify-formatting": ["FormattedHistory"],
    "aggressive-summarize": ["FormattedHistory"],
    "reduce-entity-detail": ["(List EntityContext)"],
    "select-top-chunks": ["(List KnowledgeChunk)", "Int"],
}
"""All predicates with their arguments."""

TURNS = a_dialogue(20, "The mill by the river  makes paper, and its wheel turns all day and all night long, part {}.")
VALUES: dict[str, Any] = {
    "&state": DialogueSession(id="mill", turns=TURNS),
    "&turns": TURNS,
    "&preferences": UserPreferences(style="formal", custom_instructions=("Never say sorry.",)),
    "&expert": AgentPersonality(kind="expert", domain="paper"),
    "&tight": TokenBudget(system=20, history=60, entities=12, rag=40, query=20),
}
HISTORY = HistoryConfig(verbatim_turns=3)


@pytest.fixture(scope="module")
def parts() -> tuple[EntityRegistry, KnowledgeBase]:
    john = Entity(
        canonical_name="John Smith",
        aliases=("John",),
        attributes={"team": "Finance", "email": "john@example.org"},
        relations=(Relation(relation="reports to", target_id="maria"),),
    )
    registry = EntityRegistry([john, Entity(canonical_name="Maria", id="maria", entity_type="person")])
    base = KnowledgeBase(ChromaMemory(), clock=lambda: NOON)
    documents = {"Approval": "are approved by John Smith.", "Delay": "take a week."}
    for title, text in documents.items():
        document = Document(title=title, text=f"Refunds above 500 euros {text}", date="2026-03-02")
        asyncio.run(base.index_document(document))
    return registry, base


@pytest.fixture(scope="module")
def metta(parts: tuple[EntityRegistry, KnowledgeBase]) -> Any:
    runner = hyperon.MeTTa()
    entities, knowledge = parts
    options: Any = {"instructions": "You answer for the mill.", "history": HISTORY, "clock": lambda: NOON}
    register_predicates(runner, entities=entities, knowledge=knowledge, **options)
    for name, value in VALUES.items():
        runner.register_atom(name, hyperon.ValueAtom(value))
    return runner


@pytest.fixture(scope="module")
def assembler(parts: tuple[EntityRegistry, KnowledgeBase]) -> PromptAssembler:
    entities, knowledge = parts
    return PromptAssembler(
        instructions="You answer for the mill.",
        entities=entities,
        knowledge=knowledge,
        history=HISTORY,
        clock=lambda: NOON,
    )


async def summarize(text: str, room: int) -> str:
    return await summarize_or_extract(ExtractiveSummarizer(), text, room, "", deadline=5, count=estimate_tokens)


def value(metta: Any, expression: str) -> Any:
    """What an expression comes to in Python."""
    ((atom,),) = metta.run(f"!{expression}")
    if isinstance(atom, hyperon.ExpressionAtom):
        return [child.get_object().content for child in atom.get_children()]
    return atom.get_object().content


def answer(metta: Any, expression: str) -> Any:
    """What an expression comes to, as plain data."""
    ((atom,),) = metta.run(f"!(to-json {expression})")
    return json.loads(atom.get_object().content)


def test_entities_are_resolved_and_rendered_within_a_budget(metta: Any) -> None:
    (context,) = answer(metta, '(format-entity-context &entities (resolve-entities "Ask John") 100)')

    assert (
        context["formatted"] == "• John Smith\n  email: john@example.org\n  team: Finance\n  Related: reports to Maria"
    )
    assert answer(metta, '(format-entity-context &entities (resolve-entities "Ask John") 5)') == []


def test_an_entity_is_formatted_from_its_parts(metta: Any) -> None:
    attributes = '(select-entity-attributes (get-entity "john-smith") 1)'

    assert answer(metta, attributes) == [["email", "john@example.org"]]
    assert answer(metta, '(get-entity-relationships (get-entity "john-smith") &entities)') == [
        {"relation": "reports to", "target_id": "maria", "target_name": "Maria"}
    ]
    made = answer(metta, f'(format-entity (get-entity "maria") 0.25 {attributes})')
    assert (made["formatted"], made["relevance"]) == ("• Maria (person)\n  email: john@example.org", 0.25)


def test_chunks_are_retrieved_within_a_budget_and_the_best_of_them_selected(metta: Any) -> None:
    both = answer(metta, f'(retrieve-rag-chunks {QUERY} (resolve-entities "John") 500)')
    fitting = answer(metta, f'(retrieve-rag-chunks {QUERY} (resolve-entities "John") 45)')
    best = answer(metta, f'(select-top-chunks (retrieve-rag-chunks {QUERY} (resolve-entities "John") 500) 1)')

    assert [chunk["title"] for chunk in both] == ["Approval", "Delay"]
    assert fitting == best == both[:1]


def test_a_search_goes_step_by_step(metta: Any) -> None:
    results = f"(search-vector-index (embed-query {QUERY}) 5)"
    boosted = f'(apply-rag-boosts {results} (resolve-entities "John"))'

    before, after = answer(metta, results), answer(metta, f"(rerank-chunks {QUERY} {boosted})")

    assert len(answer(metta, f"(embed-query {QUERY})")) > 100
    by_title = {result["title"]: result["score"] for result in before}
    added = {result["title"]: round(result["score"] - by_title[result["title"]], 3) for result in after}
    assert added == {"Approval": 0.21, "Delay": 0.06}


class Letters:
    """An embedder that counts two letters."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [float(text.count("a")), float(text.count("z")), 0.1]


def test_a_vector_comes_from_the_embedder_of_the_knowledge_base_and_decides_the_search() -> None:
    base = KnowledgeBase(ChromaMemory(embedder=Letters()))
    for title, text in {"A": "aaaa is said here.", "Z": "zzzz is said here."}.items():
        asyncio.run(base.index_document(Document(title=title, text=text)))
    runner = hyperon.MeTTa()
    register_predicates(runner, knowledge=base)

    vector = json.loads(value(runner, '(to-json (embed-query "az"))'))

    assert [round(number, 2) for number in vector] == [0.71, 0.71, 0.07]
    for letters, title in (("(1.0 0.0 0.0)", "A"), ("(0 3 0)", "Z")):
        best, other = answer(runner, f"(search-vector-index {letters} 2)")
        assert best["title"] == title
        assert best["score"] > 0.9 > 0.5 > other["score"]


def test_the_types_of_the_predicates_are_declared(metta: Any) -> None:
    declared = {
        name: str(metta.run(f"!(match &self (: {name} $type) $type)")[0][0]).replace("(-> ", "", 1)
        for name in PREDICATES
    }

    assert {name: kind for name, kind in declared.items() if not kind.startswith(" ".join(PREDICATES[name]))} == {}


def test_a_chunk_is_formatted_below_its_source(metta: Any) -> None:
    ((atom,),) = metta.run(
        f"!(let ($best) (select-top-chunks (retrieve-rag-chunks {QUERY} () 500) 1) (format-chunk $best $best))"
    )

    assert str(atom.get_object().content).startswith("Source: Approval (2026-03-02)\n---\nRefunds above")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('(get-entity "nobody")', "there is no entity 'nobody'"),
        ("(search-vector-index (1.0 2.0) 3)", "the memory has vectors of 256 dimensions"),
        ('(search-vector-index "refunds" 3)', "needs a vector such as embed-query returns, got 'refunds'"),
        ('(format-chunk "text" 3)', "needs a chunk and its document"),
        ("(select-top-chunks)", "missing 2 required positional arguments"),
        ('(select-top-chunks ("text") 1)', "expected a KnowledgeChunk, got 'text'"),
        ("(total-tokens &state)", "expected a ContextContent, got DialogueSession"),
        (f"(inject-context {QUERY} &state &entities 400)", "expected a KnowledgeBase, got <"),
        ("(build-system-prompt () 3 400)", "expected an AgentPersonality, got 3"),
        (f"(inject-context {QUERY} &state () 3)", "QueryTooLongError: the query alone takes"),
        ('(truncate-system-prompt ("a" "b" "c" "d") 9)', "a system prompt has at most three parts"),
    ],
)
def test_failures_are_errors_with_a_reason(metta: Any, expression: str, expected: str) -> None:
    ((atom,),) = metta.run(f"!{expression}")

    assert str(atom).startswith("(Error (")
    assert expected in str(atom)


def test_all_predicates_are_registered_with_their_arguments(parts: tuple[EntityRegistry, KnowledgeBase]) -> None:
    class Names(dict[str, Any]):
        def register_atom(self, name: str, atom: Any) -> None:
            self[name] = atom

        def run(self, program: str) -> None:
            pass

    known: Any = Names()
    register_predicates(known, entities=parts[0], knowledge=parts[1])

    assert set(PREDICATES) <= set(known)
    for name, given in PREDICATES.items():
        call = known[name].get_object().execute
        assert "missing 1 required positional argument" in str(call(*[hyperon.E()] * (len(given) - 1))), name
        assert "missing" not in str(call(*[hyperon.E()] * len(given))), name


QUERY_IN_STATE = f"{QUERY} &state"
INJECTED = f"(inject-context {QUERY_IN_STATE} &knowledge 4000)"
CONTENT = f"(py-dot {INJECTED} content)"


def test_a_whole_prompt_is_assembled(metta: Any, assembler: PromptAssembler) -> None:
    made = assembler.assemble(QUERY.strip('"'), VALUES["&state"], 400)

    assert value(metta, f"(inject-context {QUERY_IN_STATE} &knowledge 400)") == made
    assert made.content.rag_chunks
    assert value(metta, f"(py-dot (py-dot (inject-context {QUERY_IN_STATE} () 400) content) rag_chunks)") == ()
    assert answer(metta, f"(inject-context {QUERY_IN_STATE} &knowledge 400)")["token_count"] == made.token_count


def test_a_dialogue_can_be_written_in_metta(metta: Any, assembler: PromptAssembler) -> None:
    turns = [("user", "Hello!"), ("assistant", "Hello. What can I do?")]

    made = value(metta, '(inject-context "Who is John?" ((user "Hello!") (assistant "Hello. What can I do?")) () 900)')

    assert made.content.history == assembler.assemble("Who is John?", turns, 900).content.history
    assert value(metta, '(summarize-turns ((user "Hello!") (Maria "Hi.")) 50)') == "User: Hello! Maria: Hi."
    assert [entity.name for entity in made.content.entities] == ["John Smith"]


def test_a_budget_is_allocated(metta: Any, assembler: PromptAssembler) -> None:
    budget = assembler.allocate(QUERY.strip('"'), VALUES["&state"], 900)

    assert answer(metta, f"(allocate-token-budget {QUERY_IN_STATE} 900)") == dict(budget)
    assert budget["history"] > budget["rag"] > 0


def test_a_history_is_formatted_step_by_step_as_it_is_at_once(metta: Any) -> None:
    history = wait_for(format_history(TURNS, 400, summarize, estimate_tokens, HISTORY))
    recent, older = format_turns(TURNS[-3:], HISTORY), wait_for(summarize(transcript(TURNS[:-3]), 80))
    metta.register_atom("&older", hyperon.ValueAtom(TURNS[:-3]))
    metta.register_atom("&recent", hyperon.ValueAtom(TURNS[-3:]))

    assert value(metta, "(format-dialogue-history &state 400)") == history
    assert value(metta, "(summarize-turns &older 80)") == older != ""
    assert value(metta, "(format-recent-turns &recent)") == list(recent)
    rendered = value(metta, "(assemble-history (summarize-turns &older 80) (format-recent-turns &recent))")
    assert rendered == f"[Conversation summary: {older}]\n\nRecent conversation:\n" + "\n".join(
        t.formatted for t in recent
    )
    assert value(metta, "(assemble-history () (format-recent-turns &recent))").startswith("Recent conversation:\n")


def test_a_system_prompt_is_built_whole_or_from_its_parts(metta: Any) -> None:
    prompt = system_prompt("You answer for the mill.", VALUES["&expert"], VALUES["&preferences"])
    parts = '("You answer for the mill." (format-personality &expert) (format-preferences &preferences))'

    assert value(metta, "(format-personality &expert)") == prompt.personality
    assert value(metta, "(format-preferences &preferences)") == prompt.preferences_text
    assert value(metta, "(build-system-prompt &preferences &expert 400)") == prompt.text
    assert value(metta, "(build-system-prompt () () 400)") == "You answer for the mill."
    for tokens in (400, 40, 20, 6):
        expected = truncate_system(prompt, tokens, estimate_tokens).text
        assert value(metta, f"(build-system-prompt &preferences &expert {tokens})") == expected
        assert value(metta, f"(truncate-system-prompt {parts} {tokens})") == expected
    assert SystemPrompt.of([expected]).text == expected


def test_content_is_counted_and_fitted(metta: Any) -> None:
    content = value(metta, CONTENT)

    assert value(metta, f"(total-tokens {CONTENT})") == content.total_tokens(estimate_tokens) > 150
    fitted = wait_for(handle_overflow(content, VALUES["&tight"], summarize, estimate_tokens))
    assert value(metta, f"(handle-overflow {CONTENT} &tight)") == fitted != content
    short = wait_for(compress(content, 150, summarize, estimate_tokens))
    assert value(metta, f"(compress-content {CONTENT} 150)") == short != content


@pytest.mark.parametrize(
    ("reduction", "level"),
    [(0.1, "light"), (0.2, "medium"), (0.39, "medium"), (0.4, "heavy"), (0.59, "heavy"), (0.6, "extreme")],
)
def test_the_compression_level_depends_on_the_reduction(metta: Any, reduction: float, level: str) -> None:
    assert value(metta, f"(compression-level {reduction})") == level


@pytest.mark.parametrize(("predicate", "level"), [("simplify-formatting", "light"), ("aggressive-summarize", "heavy")])
def test_a_history_is_shortened(metta: Any, predicate: str, level: Any) -> None:
    history = wait_for(format_history(TURNS, 400, summarize, estimate_tokens, HISTORY))

    short = value(metta, f"({predicate} (format-dialogue-history &state 400))")

    assert short == wait_for(shorten_history(history, level, summarize, estimate_tokens))
    assert short.level == level


def test_entities_are_reduced(metta: Any, parts: tuple[EntityRegistry, KnowledgeBase]) -> None:
    contexts = parts[0].contexts(parts[0].resolve("Ask John"))

    briefer = value(metta, '(reduce-entity-detail (format-entity-context &state (resolve-entities "Ask John") 100))')

    assert briefer == reduce_entities(contexts, estimate_tokens) != contexts
    assert briefer[0].formatted == "• John Smith: email john@example.org"


def test_options_can_be_created_in_metta(metta: Any) -> None:
    preferences = '((py-atom langgraph_scrum_master.dialogue.UserPreferences) (Kwargs (style "casual")))'

    assert "casually" in value(metta, f"(build-system-prompt {preferences} () 400)")


def test_custom_predicates_can_be_bound(metta: Any) -> None:
    bind(metta, {"double": lambda texts: [text * 2 for text in texts]})

    assert value(metta, '(double ("a" b))') == ["aa", "bb"]
