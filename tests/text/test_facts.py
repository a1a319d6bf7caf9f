"""Ids, numbers, dates and names in a conversation."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from langgraph_scrum_master.text.facts import facts_in, stated_facts
from langgraph_scrum_master.text.tokens import estimate_tokens


@pytest.mark.parametrize(
    "fact",
    [
        "A-48213",
        "4471-9920",
        "#20931",
        "OPS-2231",
        "9f3c2ab",
        "10.20.3.4",
        "db-04.example.net",
        "ann.lee+x@example.org",
        "https://example.org/a/17",
        "/srv/app/data7.db",
        "src/app/main.py",
        "feature/login-12",
        "v3.14.1",
        "2.0-rc2",
        "2026-03-02",
        "14 May",
        "May 14",
        "€1,249.50",
        "18,000 USD",
        "40 mg",
        "99.95",
        "+49 30 123456",
        "QRXWPL",
        "max_rows",
        "Marta Kowalczyk",
        "run-004417",
    ],
)
def test_a_fact_is_listed_with_the_words_that_say_what_it_is(fact: str) -> None:
    said = f"User: As I wrote, the label is {fact} here.\nAssistant: Thank you."

    assert stated_facts(said, 100, estimate_tokens) == f"Stated: label is {fact}."
    assert fact in facts_in(said)


@pytest.mark.parametrize("word", ["3", "12", "2nd", "10am", "tomorrow", "Monday", "either/or", "OK", "e.g.", "USA"])
def test_ordinary_words_and_small_numbers_are_no_facts(word: str) -> None:
    assert stated_facts(f"User: As I wrote, the label is {word} here.", 100, estimate_tokens) == ""


def test_ids_come_before_other_numbers_and_the_latest_statement_of_an_id_counts() -> None:
    said = "User: It lists 214 entries. My order is A-48213.\nUser: No, A-48213 is the parcel. It costs €12.50."

    assert stated_facts(said, 100, estimate_tokens) == "Stated: lists 214 entries; A-48213 is the parcel; costs €12.50."
    assert stated_facts(said, 14, estimate_tokens) == "Stated: A-48213 is the parcel."
    assert stated_facts(said, 9, estimate_tokens, known="A-48213") == "Stated: costs €12.50."
    assert stated_facts(said, 9, estimate_tokens, known="A-48213", focus="entries?") == "Stated: lists 214 entries."


@given(st.text(), st.integers(0, 40))
def test_the_list_never_exceeds_its_room(text: str, room: int) -> None:
    facts = stated_facts(text, room, estimate_tokens)

    assert facts == "" or estimate_tokens(facts) <= room
