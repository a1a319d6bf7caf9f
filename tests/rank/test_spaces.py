"""The thirteen similarity spaces."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pydoc_data.topics import topics
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from langgraph_scrum_master.rank import word_vectors
from langgraph_scrum_master.rank.corpus import TextCorpus
from langgraph_scrum_master.rank.embedders import embedder_for
from langgraph_scrum_master.rank.features import Features, features_of, vocabulary
from langgraph_scrum_master.rank.match import Match
from langgraph_scrum_master.rank.products import cosines, dot_products
from langgraph_scrum_master.rank.query import Candidates, RankQuery, document_vectors, packed_vector
from langgraph_scrum_master.rank.relevance import agreement, relevance
from langgraph_scrum_master.rank.spaces import SPACES
from langgraph_scrum_master.rank.table import Candidate
from langgraph_scrum_master.text.references import own_reference, references

NOW = 1772452800.0
DAY = 86_400.0
BY_NAME = {space.name.split()[0]: space for space in SPACES}


def compared(query: str, *texts: str, created: tuple[float, ...] = ()) -> tuple[RankQuery, Candidates]:
    embedder = embedder_for("static")
    features = features_of(texts)
    corpus = TextCorpus(zip(features, map(vocabulary, texts), strict=True))
    vectors = document_vectors(texts, corpus, embedder)
    found = [
        Candidate(
            features=each.pack(),
            vector=packed_vector(vector),
            context=packed_vector(vector),
            session="s",
            position=i,
            created=created[i] if created else 0.0,
        )
        for i, (each, vector) in enumerate(zip(features, vectors, strict=True))
    ]
    return RankQuery(query, corpus, embedder, now=NOW), Candidates(found)


def strengths(name: str, query: str, *texts: str, **options: Any) -> list[float]:
    found: list[float] = BY_NAME[name].strengths(*compared(query, *texts, **options)).tolist()
    return found


@pytest.mark.parametrize(
    ("name", "query", "better", "worse"),
    [
        ("E1", "Which database stores the orders?", "PostgreSQL is our SQL server.", "The lunch break is at noon."),
        ("E6", "retry policy of payments", "Payments have a retry policy.", "The policy of holidays is new."),
        ("E7", "fix parse_order_id", "parseOrderId fails on letters.", "The parser of orders fails on letters."),
        ("E8", "What does ADR-7 say?", "ADR-007: Outbox pattern", "ADR-017: Colour palette"),
        ("E9", "idempotancy keys", "Idempotency keys are in Redis.", "Invoices are printed in Berlin."),
        ("E10", "Which database stores the orders?", "PostgreSQL is our SQL server.", "The lunch break is at noon."),
        ("E11", "What did Maria decide?", "Maria chose the outbox.", "Peter chose the outbox."),
        ("E12", "car repair costs", "The price to fix a vehicle is high.", "Buttons are navy and coral."),
        ("E13", "buy a vehicle", "He wants to purchase a car.", "She likes to swim in lakes."),
    ],
)
def test_each_space_prefers_the_similar_text(name: str, query: str, better: str, worse: str) -> None:
    right, wrong = strengths(name, query, better, worse)

    assert right > wrong


def test_a_cause_is_no_effect() -> None:
    cause = "The outage happened because the disk was full."
    effect = "The full disk led to an outage."

    asked_why = strengths("E5", "Why was there an outage?", cause, effect)
    asked_what = strengths("E5", "What happened after the disk was full, what was the effect?", cause, effect)

    assert asked_why[0] / strengths("E1", "Why was there an outage?", cause, effect)[0] == pytest.approx(1.2)
    assert asked_why[0] > asked_why[1]
    assert asked_what[1] > asked_what[0]


def test_a_space_that_the_query_says_nothing_for_does_not_count() -> None:
    plain = agreement(*compared("which store do we take", "Redis"))
    named = agreement(*compared("which store does Maria take for parse_id, and why, see ADR-7", "Redis"))

    assert (plain.maximum, named.maximum) == (5.5, 8.5)


def test_time_is_seen_and_does_not_count() -> None:
    texts, created = ("a", "b", "c"), (NOW, NOW - 7 * DAY, NOW - 4 * DAY)

    assert strengths("E2", "q", *texts, created=created)[:2] == [1.0, 0.5]
    assert strengths("E3", "q", *texts, created=created) == pytest.approx([1.0, 1.0, 0.52], abs=0.01)
    assert strengths("E4", "q", *texts, created=created) == pytest.approx([1 / 3, 1 / 2, 1.0])
    assert [space.weight for space in SPACES if space.category == "temporal"] == [0.0, 0.0, 0.0]


def test_the_weights_add_up_to_eight_and_a_half() -> None:
    assert sum(space.weight for space in SPACES) == 8.5
    assert [space.name.split()[0] for space in SPACES] == [f"E{i}" for i in range(1, 14)]


texts = st.lists(st.text(max_size=60), min_size=1, max_size=6)


@given(st.text(max_size=60), texts)
def test_strengths_and_scores_run_from_0_to_1_for_any_text(query: str, found: list[str]) -> None:
    asked, candidates = compared(query, *found)
    for space in SPACES:
        if space.speaks(asked):
            values = space.strengths(asked, candidates)
            assert values.shape == (len(found),)
            assert np.all((values >= 0) & (values <= 1 + 1e-6)), space.name

    assert all(0 <= match.score <= 1 for match in relevance(query, found, embedder_for("static")))


@given(st.text(max_size=200))
def test_features_are_the_same_again_after_packing(text: str) -> None:
    (made,) = features_of([text])

    again = Features.unpack(made.pack())

    assert again.pack() == made.pack()
    assert (again.own, again.causal, again.size) == (made.own, made.causal, made.size)


def test_a_record_is_known_by_any_of_its_spellings() -> None:
    assert references("see ADR-007, adr 7, Story 10.6 and FR12") == ["adr:7", "adr:7", "story:10.6", "fr:12"]
    assert own_reference("# ADR-0012: Keys in Redis\nsupersedes ADR-3") == "adr:12"
    assert own_reference("Some text that mentions ADR-3 only much further down, after sixty letters: ADR-3") == ""


def test_a_lone_match_scores_as_well_in_a_small_memory_as_in_a_large_one() -> None:
    match = "We keep idempotency keys of payment requests in Redis."
    others = [f"Meeting {i} was about the colour of button {i}." for i in range(300)]

    (alone,) = relevance("Where are idempotency keys kept?", [match], embedder_for("static"))
    among = relevance("Where are idempotency keys kept?", [match, *others], embedder_for("static"))

    assert alone.score >= 0.7
    assert among[0].score >= 0.7 > max(match.score for match in among[1:])


def test_products_are_correct_and_computed_in_the_calling_thread() -> None:
    random = np.random.default_rng(1)
    rows, others = (random.random((count, 256), dtype="float32") for count in (48, 3000))

    # What other tests have set going is at rest by then.
    time.sleep(0.2)
    all_threads, own = time.process_time(), time.thread_time()
    for _ in range(20):
        dot_products(rows, others)
        cosines(others, rows[0])
    own, all_threads = time.thread_time() - own, time.process_time() - all_threads

    np.testing.assert_allclose(dot_products(rows, others), rows @ others.T, rtol=1e-4)
    np.testing.assert_allclose(cosines(others, rows[0]), others @ rows[0], rtol=1e-4)
    assert dot_products(rows[:0], others).shape == (0, 3000)
    assert all_threads < 1.5 * own + 0.02


def test_earlier_queries_change_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    words = sorted({word for name in topics for word in re.findall(r"[a-z]{4,}", topics[name].lower())})
    random = Random(3)

    def after(before: Sequence[str]) -> list[Match]:
        monkeypatch.setattr(word_vectors, "_current", known := word_vectors.WordVectors())
        known.rows(before)
        return relevance(query, texts, embedder_for("static"))

    for _ in range(400):
        texts = [" ".join(random.sample(words, random.randint(2, 12))) for _ in range(random.randint(1, 6))]
        query, others = " ".join(random.sample(words, random.randint(1, 6))), " ".join(texts).split()
        random.shuffle(others)
        assert after(()) == after(others[: len(others) // 2])


def test_stored_vectors_are_read_exactly() -> None:
    halves = np.arange(1 << 16, dtype="<u2").view("<f2")
    finite = halves[np.isfinite(halves)]
    packed = finite.tobytes()
    candidates = Candidates([Candidate(features=features_of(["text"])[0].pack(), vector=packed, context=packed)])

    assert np.array_equal(candidates.vectors[0], finite.astype("float32"))
