"""The threads of a checkpoint database, and the namespaces of their checkpoints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from langgraph_scrum_master.replay.databases import CheckpointDatabase, open_database


class _Thread(NamedTuple):
    """A thread of a database."""

    thread: str
    steps: int
    newest: str
    """Time of the latest checkpoint."""
    subgraphs: tuple[str, ...] = ()
    """The subgraphs with checkpoints, as paths of nodes."""


class Place(NamedTuple):
    """The location of a run's checkpoints."""

    thread: str
    namespace: str
    """LangGraph's checkpoint namespace. Empty for the root graph."""
    name: str
    """The thread, and for a subgraph its path and the number of the call."""


def threads(source: str) -> list[_Thread]:
    """The threads of a database, latest first."""
    with open_database(source) as database:
        rows = database.query(
            "SELECT thread_id, checkpoint_ns, COUNT(*) AS steps, MAX(checkpoint_id) AS newest FROM checkpoints "
            "GROUP BY thread_id, checkpoint_ns ORDER BY MIN(checkpoint_id)",
            (),
        )
    grouped: dict[str, list[tuple[str, int, str]]] = {}
    for thread, namespace, steps, newest in rows:
        grouped.setdefault(str(thread), []).append((str(namespace), int(steps), str(newest)))
    latest = sorted(grouped.items(), key=lambda pair: (max(newest for *_, newest in pair[1]), pair[0]), reverse=True)
    return [_thread(name, namespaces) for name, namespaces in latest]


def _thread(name: str, namespaces: Sequence[tuple[str, int, str]]) -> _Thread:
    return _Thread(
        thread=name,
        steps=sum(steps for namespace, steps, _ in namespaces if not namespace),
        newest=_written_at(max(newest for *_, newest in namespaces)),
        subgraphs=tuple(dict.fromkeys(_path(namespace) for namespace, *_ in namespaces if namespace)),
    )


def checkpoints_of(database: CheckpointDatabase, thread: str) -> dict[str, list[str]]:
    """The checkpoint ids of a thread by namespace, oldest first."""
    rows = database.query(
        "SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id", (thread,)
    )
    by_namespace: dict[str, list[str]] = {}
    for namespace, checkpoint in rows:
        by_namespace.setdefault(str(namespace), []).append(str(checkpoint))
    return by_namespace


def places(thread: str, subgraph: str, namespaces: Iterable[str]) -> list[Place]:
    """The place of each call of a subgraph. A single place for the root graph and for a stateful subgraph."""
    chosen = [namespace for namespace in namespaces if _path(namespace) == subgraph]
    numbered = [f"#{number}" if ":" in namespace else "" for number, namespace in enumerate(chosen, 1)]
    return [
        Place(thread, namespace, " ".join(filter(None, (thread, subgraph, number))))
        for namespace, number in zip(chosen, numbered, strict=True)
    ]


def not_found_message(name: str, thread: str, subgraph: str | None, ids: Mapping[str, Sequence[str]]) -> str:
    """The error message for an unknown thread or subgraph."""
    paths = list(dict.fromkeys(map(_path, filter(None, ids))))
    if not ids:
        return f"there is no thread {thread!r} in {name!r}: omit --thread to list all"
    if subgraph is None:
        return f"thread {thread!r} has only checkpoints of subgraphs: pass --subgraph, one of {paths}"
    hint = f"its subgraphs are {paths}" if paths else "it has no subgraphs with checkpoints"
    return f"there is no subgraph {subgraph!r} in thread {thread!r} of {name!r}: {hint}"


def subgraph_note(thread: str, ids: Mapping[str, Sequence[str]]) -> str:
    """A note on the checkpoints in a thread's subgraphs."""
    counts: Counter[str] = Counter()
    for namespace, checkpoints in ids.items():
        counts[_path(namespace)] += len(checkpoints) if namespace else 0
    paths = ", ".join(f"{path} ({count})" for path, count in counts.items() if path)
    return f"thread {thread!r} has checkpoints of subgraphs, which --subgraph reads: {paths}." if paths else ""


def _path(namespace: str) -> str:
    """The path of nodes to a subgraph, without task ids and call numbers."""
    return "/".join(part.split(":")[0] for part in namespace.split("|") if not part.isdigit())


_GREGORIAN = 0x01B21DD213814000
"""100 ns ticks between the start of the Gregorian calendar, from which UUIDs count, and the epoch."""


def _written_at(checkpoint: str) -> str:
    """The time of a checkpoint, from its id, or empty if the id has none."""
    digits = checkpoint.replace("-", "")
    try:
        ticks = int(digits[:12] + digits[13:16], 16) - _GREGORIAN
        return datetime.fromtimestamp(ticks / 1e7, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""
