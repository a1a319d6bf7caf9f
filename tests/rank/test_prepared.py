"""Texts that are ranked at every gap are read once."""

from __future__ import annotations

from pathlib import Path

import pytest

from langgraph_scrum_master import InjectionConfig, ScrumMaster
from langgraph_scrum_master.rank import prepared
from langgraph_scrum_master.rank.answers import answers_among
from langgraph_scrum_master.rank.embedders import embedder_for

ASKS = {"messages": [{"role": "assistant", "name": "dev", "content": "How long are sessions kept?"}]}


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "_cache", prepared._Cache())


def adr(folder: Path, hours: int) -> ScrumMaster:
    (folder / "0001-sessions.md").write_text(f"# ADR-1: Sessions\n\nSessions are kept for {hours} hours.\n")
    config = InjectionConfig(enabled_sources=("architecture",), architecture_path=str(folder))
    return ScrumMaster(config=config)


def given(master: ScrumMaster) -> str:
    result = master.evaluate(ASKS)
    assert result is not None
    return result.contexts_retrieved[0].content


def test_a_text_is_read_once_however_often_it_is_ranked() -> None:
    (first,), (again,) = prepared.prepared(["Sessions are kept."]), prepared.prepared(["Sessions are kept."])

    assert first is again


def test_a_changed_file_counts_from_the_next_gap_on(tmp_path: Path) -> None:
    assert given(adr(tmp_path, 12)) == "Sessions are kept for 12 hours."
    assert given(adr(tmp_path, 24)) == "Sessions are kept for 24 hours."


def test_scores_do_not_depend_on_what_was_ranked_before() -> None:
    texts = [f"Sessions of shop {i} are kept for {i} hours." for i in range(150)]
    static = embedder_for("static")

    cold = answers_among("How long are sessions of shop 7 kept?", (), texts, static)

    assert answers_among("How long are sessions of shop 7 kept?", (), [*texts, texts[3]][:150], static) == cold
    assert max(range(150), key=lambda i: cold[i].score) == 7


def test_the_cache_stays_within_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "MAX_PREPARED_BYTES", 200_000)
    texts = [f"Text {i}: " + " ".join(f"word{i}x{j}" for j in range(200)) for i in range(40)]

    first, *_, last = [prepared.prepared([text])[0] for text in texts]

    assert prepared._cache._bytes <= 200_000
    assert prepared.prepared([texts[-1]])[0] is last
    assert prepared.prepared([texts[0]])[0] is not first
