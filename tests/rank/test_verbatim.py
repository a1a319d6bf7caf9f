"""A record that says a query word for word comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from langgraph_scrum_master import ChromaMemory, Memory
from langgraph_scrum_master.text.terms import terms

DOCS = Path(__file__).parents[2] / "docs"


def paragraphs() -> list[Memory]:
    """The paragraphs of the documentation, those of a page in one session."""
    return [
        Memory(key=f"{page.stem} {i}", content=" ".join(paragraph.split()), session=page.stem)
        for page in sorted(DOCS.glob("*.md"))
        for i, paragraph in enumerate(page.read_text(encoding="utf-8").split("\n\n"))
        if len(paragraph.split()) >= 12
    ]


@pytest.mark.parametrize("share", ["the whole record", "eight words of it"])
async def test_the_record_with_the_words_of_the_query_is_first_and_its_score_is_above_the_others(share: str) -> None:
    memory, rows = ChromaMemory(), paragraphs()
    await memory.store_many(rows)

    for row in rows[::17]:
        said = row.content.split()
        query = row.content if share == "the whole record" else " ".join(said[len(said) // 3 :][:8]).upper()
        # Stop words alone find nothing in particular.
        if len(terms(query)) < 2:
            continue
        found = await memory.search_similar(query, k=5)

        having = [query.lower() in each.content.lower() for each in found]
        assert having[0], row.key
        assert having == sorted(having, reverse=True)
        assert found[0].score > found[having.count(True)].score if not all(having) else True


async def test_without_such_a_record_the_order_is_that_of_relevance() -> None:
    memory = ChromaMemory()
    await memory.store_many(paragraphs()[:50])

    found = await memory.search_similar("the of and to is in which", k=5)

    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
