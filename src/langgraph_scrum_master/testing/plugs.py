"""Conformance tests for sources, detectors and embedders. Needs pytest.

Subclass one in a test file and return the object under test:

    class TestRunbook(SourceConformance):
        def source(self):
            return Runbook()
"""

from __future__ import annotations

import asyncio
import math
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any

from langgraph_scrum_master.model import ContextGap, Observation, Query, RetrievedContext
from langgraph_scrum_master.protocols import Detector, Embedder, Source
from langgraph_scrum_master.scrum_master import ScrumMaster
from langgraph_scrum_master.testing.builders import NOON, a_state
from langgraph_scrum_master.testing.conformance import lets_others_run


class SourceConformance:
    """Tests for the rules of `Source`."""

    query = "To which queue do refunds go?"
    """A query for which the source finds contexts."""

    def source(self) -> Source:
        """The source under test."""
        raise NotImplementedError("return the source under test")

    def state(self) -> dict[str, Any]:
        """A state in which the source finds contexts."""
        return a_state(("user", "Build the refunds."), ("dev", self.query))

    def test_it_keeps_the_protocol(self) -> None:
        assert isinstance(self.source(), Source)
        assert isinstance(self.source().name, str)

    def test_it_finds_contexts_with_texts_and_scores_from_0_to_1(self) -> None:
        contexts = self._find(self.source(), self.state())

        assert contexts
        assert all(isinstance(context, RetrievedContext) for context in contexts)
        assert all(context.content.strip() for context in contexts)
        assert all(0 <= context.relevance_score <= 1 for context in contexts)

    def test_it_offers_about_as_many_as_it_is_asked_for(self) -> None:
        assert len(self._find(self.source(), self.state(), k=1)) <= 3

    def test_it_changes_nothing_in_the_state(self) -> None:
        state = self.state()
        before = deepcopy(state)

        self._find(self.source(), state)

        assert state == before

    def test_the_same_question_gets_the_same_answer(self) -> None:
        source, state = self.source(), self.state()

        # The caller sets `retrieved_at`, not the source.
        once, again = ([replace(context, retrieved_at="") for context in self._find(source, state)] for _ in range(2))
        assert once == again

    def test_it_does_not_hold_up_the_event_loop(self) -> None:
        source, state = self.source(), self.state()

        assert asyncio.run(lets_others_run(lambda: source.find(self._query(), state)))

    def _find(self, source: Source, state: dict[str, Any], k: int = 20) -> list[RetrievedContext]:
        async def find() -> list[RetrievedContext]:
            return list(await source.find(self._query(k), state))

        return asyncio.run(find())

    def _query(self, k: int = 20) -> Query:
        return Query(text=self.query, agent="dev", now=NOON, k=k)


class DetectorConformance:
    """Tests for the rules of `Detector`."""

    def detector(self) -> Detector:
        """The detector under test."""
        raise NotImplementedError("return the detector under test")

    def stuck(self) -> Sequence[dict[str, Any]]:
        """States in which the detector finds a gap."""
        raise NotImplementedError("return states with a gap")

    def healthy(self) -> Sequence[dict[str, Any]]:
        """Further states without a gap; an empty state and a healthy team are always tested."""
        return ()

    def test_it_finds_gaps_with_evidence_and_a_confidence_from_0_to_1(self) -> None:
        for state in self.stuck():
            gaps = self._gaps(state)
            assert gaps, state
            assert all(isinstance(gap, ContextGap) for gap in gaps)
            assert all(gap.agent and gap.context_query and gap.indicators for gap in gaps)
            assert all(0 < gap.confidence <= 1 for gap in gaps)

    def test_it_is_silent_on_a_healthy_team(self) -> None:
        for state in (_HEALTHY_TEAM, {}, *self.healthy()):
            assert self._gaps(state) == [], state
        assert list(self.detector()(Observation(now=NOON))) == []

    def test_it_keeps_no_state_and_gives_the_same_evidence_the_same_id(self) -> None:
        for state in self.stuck():
            first = self._gaps(state)
            self._gaps(_HEALTHY_TEAM)
            assert self._gaps(state) == first

    def test_it_does_no_input_or_output(self) -> None:
        for state in self.stuck():
            observation = _observe(state)
            # Lazy imports at first use are allowed.
            list(self.detector()(observation))
            with _audit_events() as events:
                list(self.detector()(observation))
            assert events == [], state

    def _gaps(self, state: dict[str, Any]) -> list[ContextGap]:
        return list(self.detector()(_observe(state)))


class EmbedderConformance:
    """Tests for the rules of `Embedder`."""

    texts = (
        "Refunds go to the queue billing-v2.",
        "日本語のテキストです。",
        "",
        " ",
        "a\x00b",
        "x" * 20_000,
        "🚀" * 50,
    )

    def embedder(self) -> Embedder:
        """The embedder under test."""
        raise NotImplementedError("return the embedder under test")

    def test_each_text_gets_one_vector_and_all_have_one_length(self) -> None:
        embedder = self.embedder()

        vectors = embedder.embed_documents(list(self.texts))
        query_vector = embedder.embed_query("To which queue do refunds go?")

        assert len(vectors) == len(self.texts)
        assert {len(vector) for vector in vectors} == {len(query_vector)}
        assert len(query_vector) > 0

    def test_vectors_are_made_of_finite_numbers(self) -> None:
        for vector in self.embedder().embed_documents(list(self.texts)):
            assert all(math.isfinite(number) for number in vector)

    def test_the_same_text_gets_the_same_vector_whatever_stands_beside_it(self) -> None:
        embedder, (first, second, *_) = self.embedder(), self.texts

        together = embedder.embed_documents([first, second])
        alone = embedder.embed_documents([first])

        assert _near(together[0], alone[0])
        assert _near(embedder.embed_query(first), embedder.embed_query(first))

    def test_no_texts_get_no_vectors(self) -> None:
        assert len(self.embedder().embed_documents([])) == 0


_HEALTHY_TEAM = a_state(
    ("user", "Build the refunds."), ("dev", "I added the endpoint."), ("tester", "All 12 tests pass.")
)


def _observe(state: dict[str, Any]) -> Observation:
    return ScrumMaster(clock=lambda: 1772452800.0).observe(state)


def _near(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-4) for a, b in zip(one, other, strict=True))


@contextmanager
def _audit_events() -> Iterator[list[str]]:
    """Collects the audit events of this thread for files, sockets and processes."""
    global _listener
    if not _hooked:
        # An audit hook cannot be removed.
        _hooked.append(True)
        sys.addaudithook(_on_event)
    events: list[str] = []
    _listener = (threading.get_ident(), events)
    try:
        yield events
    finally:
        _listener = None


_hooked: list[bool] = []
_listener: tuple[int, list[str]] | None = None
_OUTSIDE = (
    "open",
    "os.listdir",
    "os.scandir",
    "socket.connect",
    "socket.getaddrinfo",
    "subprocess.Popen",
    "sqlite3.connect",
)


def _on_event(event: str, _args: tuple[Any, ...]) -> None:
    if _listener is not None and event in _OUTSIDE and threading.get_ident() == _listener[0]:
        _listener[1].append(event)
