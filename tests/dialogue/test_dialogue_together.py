"""Dialogue, entities and knowledge in one prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document as LangChainDocument
from langgraph.store.memory import InMemoryStore

from builders import NOON
from dialogue_builders import Books, a_chunk
from langgraph_scrum_master import ChromaMemory, PromptAssembler
from langgraph_scrum_master.dialogue import (
    DialogueSession,
    DialogueTurn,
    Document,
    Entity,
    EntityRegistry,
    KnowledgeBase,
    RAGConfig,
    Relation,
    TurnRecords,
)

QUERY = "What does Magige have to approve above 500 euros?"
SESSION = DialogueSession(
    id="mill",
    turns=(
        DialogueTurn(turn_id="t1", speaker="user", text="Hello!"),
        DialogueTurn(turn_id="t2", speaker="assistant", text="Hello, what can I do for you?"),
    ),
)
DOCUMENTS = {
    "Refund policy": "# Refunds\n\nRefunds take two days.\n\n## Limits\n\nAbove 500 euros Margaret Lopez approves one.",
    "Refund form": "Whoever wants to approve a refund above 500 euros fills in the form for refunds above 500 euros.",
    "Canteen": "# Menu\n\nSoup is served on Mondays, and fish on Fridays.",
}


class FirstThatNames(BaseDocumentCompressor):
    """Puts the pieces with a word first, without a word on how relevant they are."""

    word: str

    def compress_documents(
        self, documents: Sequence[LangChainDocument], query: str, callbacks: Any = None
    ) -> Sequence[LangChainDocument]:
        return sorted(documents, key=lambda document: self.word not in document.page_content)


class Broken(BaseDocumentCompressor):
    def compress_documents(
        self, documents: Sequence[LangChainDocument], query: str, callbacks: Any = None
    ) -> Sequence[LangChainDocument]:
        raise RuntimeError("no model")


@pytest.fixture(scope="module")
def memory() -> ChromaMemory:
    filled = ChromaMemory()
    base = KnowledgeBase(filled, clock=lambda: NOON)
    for title, text in DOCUMENTS.items():
        asyncio.run(base.index_document(Document(title=title, text=text, date="2026-03-02", doc_type="page")))
    return filled


@pytest.fixture
def entities() -> EntityRegistry:
    margaret = Entity(
        canonical_name="Margaret Lopez",
        aliases=("Maggie",),
        entity_type="person",
        attributes={"office": "3.14", "email": "margaret@example.org"},
        relations=(Relation(relation="reports to", target_id="john"),),
    )
    return EntityRegistry([margaret, Entity(canonical_name="John Smith", id="john")])


@pytest.fixture
def assembler(memory: ChromaMemory, entities: EntityRegistry) -> Callable[..., PromptAssembler]:
    def made(records: TurnRecords | None = None, **options: Any) -> PromptAssembler:
        base = KnowledgeBase(memory, clock=lambda: NOON, **options)
        return PromptAssembler(entities=entities, knowledge=base, records=records, clock=lambda: NOON)

    return made


def test_an_alias_with_a_typo_brings_the_entity_and_the_right_chunk_into_the_prompt(
    assembler: Callable[..., PromptAssembler],
) -> None:
    prompt = assembler().assemble(QUERY, SESSION, 400)

    assert [(each.mention, each.canonical_name) for each in prompt.resolved] == [("Magige", "Margaret Lopez")]
    assert "• Margaret Lopez (person)\n  email: margaret@example.org\n  office: 3.14\n" in prompt.text
    assert "  Related: reports to John Smith" in prompt.text
    assert prompt.text.index("Source: Refund policy (2026-03-02)") < prompt.text.index("[USER]")
    assert "Above 500 euros Margaret Lopez approves one." in prompt.messages[0].text
    assert "Soup" not in prompt.text
    assert prompt.token_count <= 400
    assert not prompt.failures
    assert {chunk.doc_type for chunk in prompt.content.rag_chunks} == {"page"}


@pytest.mark.parametrize("max_tokens", [60, 120, 180, 250])
def test_the_prompt_fits_any_limit(assembler: Callable[..., PromptAssembler], max_tokens: int) -> None:
    prompt = assembler().assemble(QUERY, SESSION, max_tokens)

    assert prompt.token_count <= max_tokens
    assert prompt.text.endswith(QUERY)


def test_the_record_of_a_turn_lists_its_entities_and_chunks(
    assembler: Callable[..., PromptAssembler],
) -> None:
    records = TurnRecords(InMemoryStore())

    prompt = assembler(records, reranker=FirstThatNames(word="Margaret")).assemble(QUERY, SESSION)

    record = records.read("mill", "turn-3")
    assert (record["entities"]["count"], record["entities"]["0"]["name"]) == (1, "Margaret Lopez")
    assert record["entities"]["0"]["attributes"] == {"email": "margaret@example.org", "office": "3.14"}
    assert record["rag"]["reranking_used"] is True
    assert record["rag"]["chunks_retrieved"] == 4
    assert record["rag"]["chunks_selected"] == len(prompt.content.rag_chunks) < 4
    assert record["rag"]["chunks"]["0"]["doc_title"] == "Refund policy"
    assert record["assembled"]["under_budget"] is True


@pytest.mark.parametrize(("word", "first"), [("Margaret", "Refund policy"), ("form", "Refund form")])
def test_the_prompt_keeps_the_rerankers_order(assembler: Callable[..., PromptAssembler], word: str, first: str) -> None:
    prompt = assembler(reranker=FirstThatNames(word=word)).assemble(QUERY, SESSION)

    assert prompt.content.rag_chunks[0].title == first
    assert prompt.text.index(f"Source: {first}") == prompt.text.index("Source: ")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reranker": Broken()},
        {"reranker": FirstThatNames(word="Margaret"), "config": RAGConfig(enable_reranking=False)},
    ],
    ids=["none", "fails", "is switched off"],
)
def test_reranking_is_not_reported_if_there_was_none(
    assembler: Callable[..., PromptAssembler], options: dict[str, Any]
) -> None:
    prompt = assembler(**options).assemble(QUERY, SESSION)

    assert prompt.reranking_used is False
    assert prompt.content.rag_chunks


def test_entities_of_earlier_turns_are_included_while_they_are_salient(
    assembler: Callable[..., PromptAssembler], entities: EntityRegistry
) -> None:
    entities.observe("Is Maggie there?")

    prompt = assembler().assemble("Who approves refunds?", SESSION)

    assert prompt.resolved == ()
    assert [entity.name for entity in prompt.content.entities] == ["Margaret Lopez"]


def test_entities_of_earlier_turns_are_included_only_in_their_own_dialogue(
    assembler: Callable[..., PromptAssembler], entities: EntityRegistry
) -> None:
    def entities_after(*before: tuple[str, str]) -> list[str]:
        return [entity.name for entity in assembler().assemble("What is the address?", before).content.entities]

    small_talk = [("user", "It is raining."), ("assistant", "It is.")]

    assert entities_after(("user", "Is Maggie there?"), ("assistant", "She is.")) == ["Margaret Lopez"]
    assert entities_after(("user", "Is Maggie there?"), *small_talk * 2) == ["Margaret Lopez"]
    assert entities_after(("user", "Is Maggie there?"), *small_talk * 3) == []
    assert entities_after(("tool", "John Smith, Margaret Lopez"), *small_talk) == []
    assert entities_after(*small_talk) == []
    assert entities.active_count == 0


def test_more_than_ten_entities_named_before_get_more_tokens() -> None:
    people = EntityRegistry([Entity(canonical_name=f"Person {chr(65 + i)}") for i in range(11)])
    names = [entity.canonical_name for entity in people]

    ten, eleven = (
        PromptAssembler(entities=people).allocate("Who leads?", [("user", ", ".join(some))])
        for some in (names[1:], names)
    )

    left = 4096 - ten["query"]
    assert (ten["entities"], eleven["entities"]) == (
        left * 15 // 100 + left * 60 // 100 // 2,
        left * 15 // 100 * 13 // 10 + (left - 400 - left * 15 // 100 - left * 15 // 100 * 13 // 10) // 2,
    )


def test_knowledge_that_is_slow_to_open_is_opened_before_the_deadline_starts() -> None:
    class Slow(Books):
        ready = False

        async def open(self) -> None:
            if not self.ready:
                await asyncio.sleep(0.3)
            self.ready = True

        async def retrieve(self, *args: Any, **options: Any) -> Any:
            await self.open()
            return await super().retrieve(*args, **options)

    prompt = PromptAssembler(knowledge=Slow(a_chunk("Paper is wood.")), deadline=0.1).assemble("What is paper?")

    assert [chunk.content for chunk in prompt.content.rag_chunks] == ["Paper is wood."]


def test_a_budget_can_be_allocated_without_a_prompt(assembler: Callable[..., PromptAssembler]) -> None:
    budget = assembler().allocate(QUERY, SESSION, 1000)

    left = 1000 - budget["query"]
    assert [budget[name] for name in ("history", "entities", "rag")] == [left * p // 100 for p in (15, 15, 60)]
