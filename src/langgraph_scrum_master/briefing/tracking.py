"""Records the last injection in a file in the global store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from langgraph_scrum_master._internal.files import write_atomically
from langgraph_scrum_master.briefing.bank import Lesson

_FILE = ".last-injection.json"


def write_tracking(
    entries: Sequence[Lesson],
    project: Path,
    global_store: Path,
    *,
    relevance_active: bool,
    relevance_weight: float,
    context_query: str,
    now: float,
) -> None:
    """Replace the record of the last injection atomically."""
    note = {
        "timestamp": datetime.fromtimestamp(now, UTC).isoformat(),
        "project": str(project),
        "count": len(entries),
        "relevance": {"active": relevance_active, "weight": relevance_weight, "context_query": context_query},
        "entries": [_summary(entry) for entry in entries],
    }
    write_atomically(global_store / _FILE, json.dumps(note, indent=2) + "\n")


def _summary(entry: Lesson) -> dict[str, object]:
    return {
        "name": entry.name,
        "category": entry.category,
        "hash": entry.content_hash,
        "source": entry.source,
        "score": round(entry.score, 6),
    }
