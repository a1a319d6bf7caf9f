"""The record of a dialogue turn's prompt, addressed by paths such as `/context/{session}/{turn}/budget/total`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from langgraph_scrum_master.dialogue.model import InjectedContext
from langgraph_scrum_master.protocols import TokenCounter

ROOT = "context"

TurnRecord: TypeAlias = dict[str, dict[str, Any]]
"""Fields by section."""

RECORD_SECTIONS = ("budget", "history", "entities", "rag", "system", "assembled", "turn")
"""The sections of a record. `turn` holds the time of assembly."""


def turn_record(prompt: InjectedContext, count: TokenCounter) -> TurnRecord:
    """The record of an assembled prompt."""
    return {
        "budget": {"total": prompt.max_tokens, **prompt.budget, "strategy": prompt.strategy},
        "history": _history(prompt, count),
        "entities": _entities(prompt, count),
        "rag": _rag(prompt, count),
        "system": {
            "base_instructions": prompt.content.system.instructions,
            "personality": prompt.personality,
            "user_preferences": prompt.content.system.preferences_text,
            "total_tokens": prompt.tokens["system"],
        },
        "assembled": {
            "full_prompt": prompt.text,
            "total_tokens": prompt.token_count,
            "under_budget": prompt.token_count <= prompt.max_tokens,
        },
        "turn": {"at": prompt.at},
    }


def _history(prompt: InjectedContext, count: TokenCounter) -> dict[str, Any]:
    history = prompt.content.history
    turns = (
        {"turn_id": turn.turn_id, "speaker": turn.speaker, "content": turn.content, "tokens": count(turn.formatted)}
        for turn in history.recent_turns
    )
    return {
        "summary": history.summary,
        "summary_tokens": count(history.summary_line) if history.summary else 0,
        "verbatim_count": len(history.recent_turns),
        "total_tokens": prompt.tokens["history"],
        "compressed": bool(history.level),
        "compression_level": history.level,
        "turns": _numbered(turns),
    }


def _entities(prompt: InjectedContext, count: TokenCounter) -> dict[str, Any]:
    entities = (
        {
            "entity_id": entity.entity_id,
            "name": entity.name,
            "type": entity.entity_type,
            "relevance": entity.relevance,
            "tokens": count(entity.formatted),
            "attributes": dict(entity.attributes),
        }
        for entity in prompt.content.entities
    )
    counts = {"count": len(prompt.content.entities), "total_tokens": prompt.tokens["entities"]}
    return counts | _numbered(entities)


def _rag(prompt: InjectedContext, count: TokenCounter) -> dict[str, Any]:
    chunks = (
        {
            "chunk_id": chunk.chunk_id,
            "doc_title": chunk.title,
            "relevance": chunk.relevance,
            "tokens": count(chunk.formatted),
        }
        for chunk in prompt.content.rag_chunks
    )
    return {
        "query_used": prompt.query,
        "chunks_retrieved": prompt.chunks_retrieved,
        "chunks_selected": len(prompt.content.rag_chunks),
        "reranking_used": prompt.reranking_used,
        "total_tokens": prompt.tokens["rag"],
        "chunks": _numbered(chunks),
    }


def _numbered(items: Iterator[dict[str, Any]]) -> dict[str, Any]:
    return {str(i): item for i, item in enumerate(items)}


def paths(session_id: str, turn_id: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """The record flattened to one value per path."""
    return dict(_leaves(f"/{ROOT}/{session_id}/{turn_id}", record))


def _leaves(path: str, value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(f"{path}/{name}", inner)
    else:
        yield path, value
