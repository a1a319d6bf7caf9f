"""Which texts are near-duplicates of each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from langgraph_scrum_master.text.similarity import SaidTexts

PAIRS = json.loads(Path(__file__).with_name("near_duplicates.json").read_text(encoding="utf-8"))
"""By style. Nothing was chosen on the styles that are left out."""


def styles(*groups: str) -> list[object]:
    return [
        pytest.param(pairs, id=f"{group}-{style}".replace(" ", "-"))
        for group in groups
        for style, pairs in PAIRS[group].items()
    ]


def repeats(first: str, second: str) -> bool:
    """Whether the second text is a duplicate of the first."""
    texts = SaidTexts()
    texts.add(first)
    return not texts.add(second)


@pytest.mark.parametrize("pairs", styles("duplicates", "duplicates left out"))
def test_a_text_that_says_the_same_is_a_duplicate(pairs: list[list[str]]) -> None:
    assert [pair for one, other in pairs for pair in ((one, other), (other, one)) if not repeats(*pair)] == []


@pytest.mark.parametrize("pairs", styles("different", "different left out"))
def test_a_text_with_another_number_name_negation_or_object_is_no_duplicate(pairs: list[list[str]]) -> None:
    assert [second for first, second in pairs if repeats(first, second)] == []


def test_a_text_that_is_contained_in_another_is_a_duplicate() -> None:
    (whole, part), *_ = ((long, short) for short, long in PAIRS["different left out"]["additions that matter"])

    assert repeats(whole, part)


def test_duplicates_are_found_among_many_texts() -> None:
    texts = SaidTexts()
    pairs = [pair for style in PAIRS["duplicates"].values() for pair in style]

    assert [first for first, _ in pairs if not texts.add(first)] == []
    assert [second for _, second in pairs if texts.add(second)] == []
