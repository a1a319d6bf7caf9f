"""The predicates, asked from MeTTa."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from builders import NOON
from langgraph_scrum_master import ChromaMemory, Document, Entity, EntityRegistry, KnowledgeBase, Relation
from langgraph_scrum_master.metta import register_predicates

hyperon = pytest.importorskip("hyperon", reason="hyperon has no wheel for this Python")

ASKED = '"Who approves refunds above 500 euros?"'


@pytest.fixture(scope="module")
def metta() -> Any:
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
    runner = hyperon.MeTTa()
    register_predicates(runner, entities=registry, knowledge=base)
    return runner


def answer(metta: Any, expression: str) -> Any:
    """What an expression comes to, as plain data."""
    ((atom,),) = metta.run(f"!(to-json {expression})")
    return json.loads(atom.get_object().content)


def test_entities_are_resolved_and_told_within_a_budget(metta: Any) -> None:
    (told,) = answer(metta, '(format-entity-context &entities (resolve-entities "Ask John") 100)')

    assert told["formatted"] == "• John Smith\n  email: john@example.org\n  team: Finance\n  Related: reports to Maria"
    assert answer(metta, '(format-entity-context &entities (resolve-entities "Ask John") 5)') == []


def test_an_entity_is_put_together_from_its_parts(metta: Any) -> None:
    attributes = '(select-entity-attributes (get-entity "john-smith") 1)'

    assert answer(metta, attributes) == [["email", "john@example.org"]]
    assert answer(metta, '(get-entity-relationships (get-entity "john-smith") &entities)') == [
        {"relation": "reports to", "target_id": "maria", "target_name": "Maria"}
    ]
    made = answer(metta, f'(format-entity (get-entity "maria") 0.25 {attributes})')
    assert (made["formatted"], made["relevance"]) == ("• Maria (person)\n  email: john@example.org", 0.25)


def test_chunks_are_retrieved_within_a_budget_and_the_best_of_them_selected(metta: Any) -> None:
    both = answer(metta, f'(retrieve-rag-chunks {ASKED} (resolve-entities "John") 500)')
    fitting = answer(metta, f'(retrieve-rag-chunks {ASKED} (resolve-entities "John") 45)')
    best = answer(metta, f'(select-top-chunks (retrieve-rag-chunks {ASKED} (resolve-entities "John") 500) 1)')

    assert [chunk["title"] for chunk in both] == ["Approval", "Delay"]
    assert fitting == best == both[:1]


def test_a_search_goes_step_by_step(metta: Any) -> None:
    found = f"(search-vector-index (embed-query {ASKED}) 5)"
    boosted = f'(apply-rag-boosts {found} (resolve-entities "John"))'

    before, after = answer(metta, found), answer(metta, f"(rerank-chunks {ASKED} {boosted})")

    assert len(answer(metta, f"(embed-query {ASKED})")) > 100
    by_title = {result["title"]: result["score"] for result in before}
    added = {result["title"]: round(result["score"] - by_title[result["title"]], 3) for result in after}
    assert added == {"Approval": 0.21, "Delay": 0.06}


def test_a_chunk_is_formatted_below_its_source(metta: Any) -> None:
    ((atom,),) = metta.run(
        f"!(let ($best) (select-top-chunks (retrieve-rag-chunks {ASKED} () 500) 1) (format-chunk $best $best))"
    )

    assert str(atom.get_object().content).startswith("Source: Approval (2026-03-02)\n---\nRefunds above")


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ('(get-entity "nobody")', "there is no entity 'nobody'"),
        ("(search-vector-index (1.0 2.0) 3)", "must be given what embed-query gave"),
        ('(format-chunk "text" 3)', "must be given a piece and its document"),
        ("(select-top-chunks)", "missing 2 required positional arguments"),
    ],
)
def test_what_goes_wrong_is_an_error_that_says_why(metta: Any, expression: str, told: str) -> None:
    ((atom,),) = metta.run(f"!{expression}")

    assert str(atom).startswith("(Error (")
    assert told in str(atom)
