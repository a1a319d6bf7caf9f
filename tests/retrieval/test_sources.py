from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from builders import NOW, QUESTION, a_state, texts
from langgraph_scrum_master import Decision
from langgraph_scrum_master.memory import ChromaMemory, CodePattern
from langgraph_scrum_master.model import Query
from langgraph_scrum_master.retrieval.sources import ArchitectureSource, MemorySource, SprintSource, StateSource
from langgraph_scrum_master.text.adr import parse_adr


def query(text: str) -> Query:
    return Query(text=text, agent="dev", now=NOW)


def top(contexts: Any) -> Any:
    return max(contexts, key=lambda context: context.relevance_score)


async def test_messages_out_of_the_agents_view_are_found_and_those_in_view_are_not() -> None:
    old = ("architect", "We keep idempotency keys in Redis, for 24 hours.")
    state = a_state(old, *[("dev", f"Working on step {i}.") for i in range(50)])

    found = list(await StateSource(50).find(query(QUESTION), state))
    in_view = list(await StateSource(51).find(query(QUESTION), state))

    assert texts(found) == [old[1]]
    assert found[0].relevance_score >= 0.7
    assert (found[0].title, found[0].key) == ("Earlier message by architect", "message:m0")
    assert in_view == []


@dataclass
class HostDecision:
    agent: str
    summary: str
    rationale: str


@pytest.mark.parametrize(
    "decision",
    [
        {"agent": "architect", "summary": "Idempotency keys are kept in Redis", "rationale": "locks", "timestamp": NOW},
        {"agent_type": "architect", "context": "Idempotency keys are kept in Redis", "rationale": "locks"},
        HostDecision("architect", "Idempotency keys are kept in Redis", "locks"),
    ],
)
async def test_decisions_of_either_shape_are_read(decision: object) -> None:
    found = list(await StateSource(50).find(query(QUESTION), {"decisions": [decision]}))

    assert texts(found) == ["Idempotency keys are kept in Redis\nlocks"]
    assert found[0].title == "Decision of architect"


@pytest.mark.parametrize(
    "handoff",
    [
        {"task_summary": "Use Redis for idempotency keys", "instructions": "Mind the lifetime."},
        {"relevant_decisions": [{"agent": "architect", "summary": "Use Redis for idempotency keys"}]},
        {"required_context": {"store": "Use Redis for idempotency keys"}},
    ],
)
async def test_a_handoffs_context_of_any_shape_is_read(handoff: dict[str, Any]) -> None:
    found = await StateSource(50).find(query(QUESTION), {"handoff_context": handoff})

    assert top(found).content == "Use Redis for idempotency keys"


SPRINT = {
    "sprint_plan": {
        "sprint_id": "S-9",
        "planning_rationale": "The double charge comes first because support suffers most.",
        "stories": [
            {"story_id": "PAY-42", "title": "Charge once for a repeated request", "dependencies": ["PAY-40"]},
            {"story_id": "PAY-40", "title": "Idempotency middleware", "estimated_points": 3},
        ],
    },
    "sprint_progress": {
        "snapshot": {"sprint_id": "S-9", "stories_completed": 1, "total_stories": 2, "current_story": "PAY-42"},
        "blocked_stories": [{"story_id": "PAY-42", "status": "blocked", "blocked_reason": "waits for the key store"}],
    },
}


async def test_a_storys_plan_and_progress_come_as_one_readable_context() -> None:
    found = await SprintSource().find(query("Why is PAY-42 blocked, and what does it depend on?"), SPRINT)

    best = top(found)
    assert (best.key, best.source) == ("story:PAY-42", "sprint")
    assert best.content == (
        "PAY-42: Charge once for a repeated request\nstatus: blocked\nblocked reason: waits for the key store\n"
        "depends on: PAY-40"
    )


async def test_a_story_tells_what_it_waits_for_and_what_waits_for_it() -> None:
    stories = [
        {"story_id": "PAY-1", "title": "Key store", "status": "in_progress"},
        {"story_id": "PAY-2", "title": "Charge once", "dependencies": ["PAY-1", "PAY-9"], "status": "blocked"},
    ]
    found = await SprintSource().find(query("PAY-1 PAY-2"), {"sprint_plan": {"stories": stories}})

    told = {context.key: context.content for context in found}
    assert told["story:PAY-1"].endswith("blocks: PAY-2 (blocked)")
    assert told["story:PAY-2"].endswith("depends on: PAY-1 (in progress), PAY-9")


async def test_the_sprints_rationale_and_state_are_found() -> None:
    found = {context.key: context for context in await SprintSource().find(query("sprint progress"), SPRINT)}

    assert "double charge" in found["sprint:plan"].content
    assert "stories completed: 1" in found["sprint:progress"].content


@pytest.mark.parametrize("plan", [None, "text", 7, {"stories": None}, {"stories": [None, {}]}])
async def test_a_sprint_of_another_shape_gives_nothing(plan: object) -> None:
    assert list(await SprintSource().find(query("story"), {"sprint_plan": plan, "sprint_progress": plan})) == []


@pytest.fixture
def adrs(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "0005-old.md").write_text("# Idempotency keys in PostgreSQL\n\n## Status\n\nSuperseded by ADR-0012\n")
    (tmp_path / "sub" / "0012-new.md").write_text(
        "# Idempotency keys in Redis\n\n## Status\n\nAccepted\n\n## Decision\n\nWe keep them for 24 hours.\n"
    )
    (tmp_path / "notes.txt").write_text("Idempotency keys: not Markdown")
    return tmp_path


async def test_adrs_in_force_are_found_in_the_folder_and_superseded_ones_are_not(adrs: Path) -> None:
    found = list(await ArchitectureSource(str(adrs)).find(query(QUESTION), {}))

    assert [(context.key, context.title) for context in found] == [("adr:sub/0012-new.md", "Idempotency keys in Redis")]
    assert found[0].relevance_score >= 0.7
    assert "24 hours" in found[0].content


async def test_a_superseded_decision_leads_to_the_one_that_took_its_place(tmp_path: Path) -> None:
    (tmp_path / "0001-a.md").write_text(
        "---\nstatus: superseded by ADR-0002\n---\n# Row locks for the ledger\n\nLocks.\n"
    )
    (tmp_path / "0002-b.md").write_text(
        "# 2. Optimistic writes\n\n* Status: Superseded by [ADR-3](0003-c.md)\n\nRetry.\n"
    )
    (tmp_path / "0003-c.md").write_text(
        "# ADR 3: Append only\n\n- **Status**: accepted\n\nNothing is changed in place.\n"
    )
    (tmp_path / "0004-d.md").write_text(
        "# Row locks everywhere\n\n## Status\n\nRejected\n\nRow locks for the ledger.\n"
    )
    (tmp_path / "0005-e.md").write_text("# Row locks of old\n\n## Status\n\nSuperseded\n\nRow locks for the ledger.\n")

    found = list(await ArchitectureSource(str(tmp_path)).find(query("Do we take row locks for the ledger?"), {}))

    assert [(context.key, context.title) for context in found] == [("adr:0003-c.md", "ADR 3: Append only")]
    assert found[0].relevance_score >= 0.7


@pytest.mark.parametrize(
    "status",
    [
        "Superceded by [9. Use X](0009-use-x.md)",
        "Accepted\n\nSuperseded by [9. X](0009.md)",
        "[superseded by ADR-9]",
        "~~Accepted~~ Superseded by 9",
        "Obsolete",
        "Not accepted",
        "Pending",
    ],
)
def test_what_is_not_to_be_followed_is_known_in_any_spelling(status: str) -> None:
    adr = parse_adr(f"# Title\n\n## Status\n\n{status}\n\n## Decision\n\nText.\n", "0001-title")

    assert not adr.in_force
    assert adr.successor == ("9" if "9" in status else "")
    assert "Text." in adr.text


async def test_constraints_and_adrs_in_the_state_are_found() -> None:
    state = {
        "tech_constraints": ["Idempotency keys must expire within a day."],
        "adrs": [
            {"id": "ADR-5", "title": "Keys", "status": "superseded", "decision": "Idempotency keys in PostgreSQL"}
        ],
    }

    found = list(await ArchitectureSource(None).find(query("idempotency keys"), state))

    assert texts(found) == ["Idempotency keys must expire within a day."]


@pytest.mark.parametrize(
    "old",
    [
        {"id": "ADR-5", "title": "Row locks for the ledger", "status": "Superseded by ADR-9"},
        {"id": "ADR-5", "title": "Row locks for the ledger", "status": "superseded", "superseded_by": "ADR-9"},
        "# ADR-5: Row locks for the ledger\n\n## Status\n\nSuperseded by ADR-9\n",
        {"id": "ADR-5", "title": "Row locks for the ledger", "superseded_by": 9},
        {"id": "ADR-5", "title": "Row locks for the ledger", "superseded_by": ["ADR-9"]},
    ],
)
async def test_a_superseded_decision_in_the_state_leads_to_its_successor(old: object) -> None:
    new = {"id": "ADR-9", "title": "Append only", "superseded_by": "None", "decision": "Nothing is changed in place."}

    found = list(
        await ArchitectureSource(None).find(query("Do we take row locks for the ledger?"), {"adrs": [old, new]})
    )

    assert [(context.key, context.title) for context in found] == [("state:ADR-9", "Append only")]
    assert found[0].relevance_score >= 0.7


async def test_a_folder_that_is_not_there_is_an_error_and_not_silence(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="architecture_path must be a folder"):
        await ArchitectureSource(str(tmp_path / "nowhere")).find(query("x"), {})


class Fails:
    """Embeds texts, and then no query."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0, 0.5] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        raise ConnectionError("model server is down")


async def test_if_the_query_cannot_be_embedded_its_words_find_and_that_is_reported(
    logged: list[dict[str, Any]],
) -> None:
    memory = ChromaMemory(embedder=Fails())
    await memory.store_embedding("keys", "We keep idempotency keys of payments in Redis, each for 24 hours.", {})
    await memory.store_embedding("logo", "The logo is blue on a white ground.", {})

    found = list(await MemorySource(memory).find(query("Where are the idempotency keys of payments kept?"), {}))

    assert [context.key for context in found if context.relevance_score >= 0.7] == ["keys"]
    assert "E1" not in found[0].strengths
    assert [entry["error"] for entry in logged if entry["event"] == "query.not_embedded"] == [
        "ConnectionError: model server is down"
    ]


async def test_memories_decisions_and_patterns_are_offered_once_each() -> None:
    memory = ChromaMemory()
    await memory.store_embedding("note-1", "Idempotency keys expire after a day.", {"title": "Note"})
    await memory.store_decision(Decision(id="D-1", agent_type="architect", context="Keep idempotency keys in Redis."))
    await memory.store_pattern(
        CodePattern(pattern_type="design_pattern", name="idempotency", value="keys in middleware")
    )

    found = list(await MemorySource(memory).find(query("idempotency keys"), {}))

    assert len(found) == 3
    assert {context.title for context in found} == {"Note", "D-1, decision of architect", "Pattern: idempotency"}
    assert all(context.relevance_score >= 0.7 for context in found)


async def test_the_other_parts_of_a_handoff_are_read() -> None:
    class Handoff:
        source_agent = "architect"
        target_agent = "dev"
        decisions = (HostDecision("architect", "Idempotency keys are kept in Redis", "locks"),)

    for handoff in (
        Handoff(),
        {"recent_messages": [{"content": "Idempotency keys are kept in Redis"}]},
        {"relevant_state_keys": ["key_store"]},
    ):
        state = {"handoff_context": handoff, "key_store": {"idempotency_keys": "kept in Redis"}}
        assert "kept in Redis" in top(await StateSource(50).find(query(QUESTION), state)).content


async def test_the_agents_own_messages_are_not_offered_to_it() -> None:
    state = a_state(("dev", QUESTION), ("architect", "Idempotency keys are kept in a store."))

    found = list(await StateSource(0).find(query(QUESTION), state))

    assert [context.title for context in found] == ["Earlier message by architect"]


async def test_a_file_too_large_for_an_adr_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "big.md").write_text("# Idempotency keys\n" + "x" * 1_000_001)

    assert list(await ArchitectureSource(str(tmp_path)).find(query(QUESTION), {})) == []
