"""The record of a dialogue's turn: what it was given, by paths such as `/context/{session}/{turn}/budget/total`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from langgraph_scrum_master.dialogue.model import InjectedContext
from langgraph_scrum_master.protocols import TokenCounter

ROOT = "context"

TurnRecord: TypeAlias = dict[str, dict[str, Any]]
"""By section."""

RECORD_SECTIONS = ("budget", "history", "entities", "rag", "system", "assembled", "turn")
"""What a record has; the last says when it was made."""


def turn_record(given: InjectedContext, count: TokenCounter) -> TurnRecord:
    """What is kept of a turn."""
    return {
        "budget": {"total": given.max_tokens, **given.budget, "strategy": given.strategy},
        "history": _history(given, count),
        "entities": _entities(given, count),
        "rag": _rag(given, count),
        "system": {
            "base_instructions": given.content.system.instructions,
            "personality": given.personality,
            "user_preferences": given.content.system.wishes,
            "total_tokens": given.tokens["system"],
        },
        "assembled": {
            "full_prompt": given.text,
            "total_tokens": given.token_count,
            "under_budget": given.token_count <= given.max_tokens,
        },
        "turn": {"at": given.at},
    }


def _history(given: InjectedContext, count: TokenCounter) -> dict[str, Any]:
    history = given.content.history
    turns = (
        {"turn_id": turn.turn_id, "speaker": turn.speaker, "content": turn.content, "tokens": count(turn.formatted)}
        for turn in history.recent_turns
    )
    return {
        "summary": history.summary,
        "summary_tokens": count(history.summed_up) if history.summary else 0,
        "verbatim_count": len(history.recent_turns),
        "total_tokens": given.tokens["history"],
        "compressed": bool(history.level),
        "compression_level": history.level,
        "turns": _numbered(turns),
    }


def _entities(given: InjectedContext, count: TokenCounter) -> dict[str, Any]:
    told = (
        {
            "entity_id": entity.entity_id,
            "name": entity.name,
            "type": entity.entity_type,
            "relevance": entity.relevance,
            "tokens": count(entity.formatted),
            "attributes": dict(entity.attributes),
        }
        for entity in given.content.entities
    )
    counts = {"count": len(given.content.entities), "total_tokens": given.tokens["entities"]}
    return counts | _numbered(told)


def _rag(given: InjectedContext, count: TokenCounter) -> dict[str, Any]:
    chunks = (
        {
            "chunk_id": chunk.chunk_id,
            "doc_title": chunk.title,
            "relevance": chunk.relevance,
            "tokens": count(chunk.formatted),
        }
        for chunk in given.content.rag_chunks
    )
    return {
        "query_used": given.query,
        "chunks_retrieved": given.chunks_retrieved,
        "chunks_selected": len(given.content.rag_chunks),
        "reranking_used": given.reranking_used,
        "total_tokens": given.tokens["rag"],
        "chunks": _numbered(chunks),
    }


def _numbered(items: Iterator[dict[str, Any]]) -> dict[str, Any]:
    return {str(i): item for i, item in enumerate(items)}


def paths(session_id: str, turn_id: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """The record as one value per path."""
    return dict(_leaves(f"/{ROOT}/{session_id}/{turn_id}", record))


def _leaves(path: str, value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(f"{path}/{name}", inner)
    else:
        yield path, value
