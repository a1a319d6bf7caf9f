"""The threads of a database of checkpoints, and where in it those of each are."""

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
    """When its newest checkpoint was written."""
    subgraphs: tuple[str, ...] = ()
    """Its subgraphs that have checkpoints too, by the nodes in which they are."""


class Place(NamedTuple):
    """Where checkpoints are."""

    thread: str
    namespace: str
    """That of LangGraph: empty for the graph itself."""
    name: str
    """The thread, and if it is a subgraph, which, and which call of it."""


def threads(source: str) -> list[_Thread]:
    """The threads of a database, the latest first."""
    with open_database(source) as database:
        rows = database.query(
            "SELECT thread_id, checkpoint_ns, COUNT(*) AS steps, MAX(checkpoint_id) AS newest FROM checkpoints "
            "GROUP BY thread_id, checkpoint_ns ORDER BY MIN(checkpoint_id)",
            (),
        )
    found: dict[str, list[tuple[str, int, str]]] = {}
    for thread, namespace, steps, newest in rows:
        found.setdefault(str(thread), []).append((str(namespace), int(steps), str(newest)))
    latest = sorted(found.items(), key=lambda pair: (max(newest for *_, newest in pair[1]), pair[0]), reverse=True)
    return [_thread(name, namespaces) for name, namespaces in latest]


def _thread(name: str, namespaces: Sequence[tuple[str, int, str]]) -> _Thread:
    return _Thread(
        thread=name,
        steps=sum(steps for namespace, steps, _ in namespaces if not namespace),
        newest=_written(max(newest for *_, newest in namespaces)),
        subgraphs=tuple(dict.fromkeys(_path(namespace) for namespace, *_ in namespaces if namespace)),
    )


def checkpoints_of(database: CheckpointDatabase, thread: str) -> dict[str, list[str]]:
    """The checkpoints of a thread, oldest first, by namespace, in the order in which these began."""
    rows = database.query(
        "SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id", (thread,)
    )
    found: dict[str, list[str]] = {}
    for namespace, checkpoint in rows:
        found.setdefault(str(namespace), []).append(str(checkpoint))
    return found


def places(thread: str, subgraph: str, namespaces: Iterable[str]) -> list[Place]:
    """Where the calls of a subgraph are; one place if it goes on from call to call, and for the graph itself."""
    chosen = [namespace for namespace in namespaces if _path(namespace) == subgraph]
    numbered = [f"#{number}" if ":" in namespace else "" for number, namespace in enumerate(chosen, 1)]
    return [
        Place(thread, namespace, " ".join(filter(None, (thread, subgraph, number))))
        for namespace, number in zip(chosen, numbered, strict=True)
    ]


def none_such(name: str, thread: str, subgraph: str | None, ids: Mapping[str, Sequence[str]]) -> str:
    """What to say where there is no such thread, or no such subgraph in it."""
    paths = list(dict.fromkeys(map(_path, filter(None, ids))))
    if not ids:
        return f"there is no thread {thread!r} in {name!r}: without --thread all are listed"
    if subgraph is None:
        return f"thread {thread!r} has only checkpoints of subgraphs: give --subgraph, one of {paths}"
    told = f"its subgraphs are {paths}" if paths else "it has none with checkpoints"
    return f"there is no subgraph {subgraph!r} in thread {thread!r} of {name!r}: {told}"


def unread_part(thread: str, ids: Mapping[str, Sequence[str]]) -> str:
    """What of a thread is in its subgraphs."""
    counts: Counter[str] = Counter()
    for namespace, found in ids.items():
        counts[_path(namespace)] += len(found) if namespace else 0
    told = ", ".join(f"{path} ({count})" for path, count in counts.items() if path)
    return f"thread {thread!r} has checkpoints of subgraphs, which --subgraph reads: {told}." if told else ""


def _path(namespace: str) -> str:
    """The nodes in which a subgraph is, without the ids of their tasks, and numbers of calls in one task."""
    return "/".join(part.split(":")[0] for part in namespace.split("|") if not part.isdigit())


_GREGORIAN = 0x01B21DD213814000
"""Ticks of 100 ns from the start of the calendar that UUIDs count in to the epoch."""


def _written(checkpoint: str) -> str:
    """When a checkpoint was written, as its id tells; nothing if it does not."""
    digits = checkpoint.replace("-", "")
    try:
        ticks = int(digits[:12] + digits[13:16], 16) - _GREGORIAN
        return datetime.fromtimestamp(ticks / 1e7, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""
