"""Memories that a person or an agent writes down, and changes later."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from langgraph_scrum_master._internal.shapes import one_of
from langgraph_scrum_master.errors import ConfigError, NotFoundError
from langgraph_scrum_master.learning.records import MemoryCategory
from langgraph_scrum_master.memory.records import Memory
from langgraph_scrum_master.model import utc_now
from langgraph_scrum_master.protocols import BatchMemory, LookupMemory, require


def noted(
    text: str,
    category: MemoryCategory | str = "fact",
    importance: float = 0.5,
    *,
    tags: Iterable[str] = (),
    verified: bool = False,
    now: str | None = None,
) -> Memory:
    """A new memory with a category, an importance, tags and a verification status."""
    if not text.strip():
        raise ConfigError(f"text must not be empty, got {text!r}")
    if not 0 <= importance <= 1:
        raise ConfigError(f"importance must be from 0 to 1, got {importance!r}")
    now = now or utc_now()
    labels = sorted({tag.strip() for tag in tags})
    if "" in labels:
        raise ConfigError(f"a tag must not be empty, got {tags!r}")
    metadata: dict[str, Any] = {
        "category": one_of("category", category, MemoryCategory),
        **({"tags": labels} if labels else {}),
        "verification_status": "verified" if verified else "unverified",
        **({"verified_at": now} if verified else {}),
    }
    return Memory(content=text, importance=importance, created_at=now, metadata=metadata)


def edited(
    memory: Memory,
    *,
    text: str | None = None,
    category: str | None = None,
    importance: float | None = None,
    tags: Iterable[str] | None = None,
    verified: bool | None = None,
    now: str | None = None,
) -> Memory:
    """The memory with these changes; what is None stays. The key and the time of creation stay too."""
    now = now or utc_now()
    metadata = memory.metadata
    made = noted(
        memory.content if text is None else text,
        category if category is not None else metadata.get("category", "fact"),
        memory.importance if importance is None else importance,
        tags=metadata.get("tags", ()) if tags is None else tags,
        verified=metadata.get("verification_status") == "verified" if verified is None else verified,
        now=now,
    )
    if verified is None and "verified_at" in metadata:
        made.metadata["verified_at"] = metadata["verified_at"]
    rest = {name: value for name, value in metadata.items() if name not in ("verified_at", "tags")}
    return replace(
        memory, content=made.content, importance=made.importance, metadata=rest | made.metadata | {"edited_at": now}
    )


async def change_memory(memory: LookupMemory, key: str, **changes: Any) -> Memory:
    """Apply changes (see `edited`) to the memory with this key, store it and return it."""
    if all(value is None for value in changes.values()):
        raise ConfigError(f"nothing to change: give {', '.join(changes)}")
    require(memory, "change_memory", "lookup", "batches")
    found = (await memory.get_many([key])).get(key)
    if found is None:
        raise NotFoundError(f"there is no memory {key!r}: list all memories to see their keys")
    changed = edited(found.memory, **changes)
    await cast("BatchMemory", memory).store_many([changed])
    return changed
