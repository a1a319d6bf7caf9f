"""Takes snapshots and writes them to disk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from langgraph_scrum_master._internal.files import write_atomically
from langgraph_scrum_master._internal.serialisation import json_shapes
from langgraph_scrum_master._internal.shapes import absent, dict_of, items_of, mapping_of, read
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.model import InjectionResult, Snapshot, SnapshotOrigin, digest
from langgraph_scrum_master.team.state import HOST_KEYS, READ_BACK

SNAPSHOT_SCHEMA = 2
"""The current schema version; earlier versions are upgraded on reading."""

MOST_MESSAGES = 1_000
"""Number of latest messages in a snapshot: no source reads more than 500 messages before an agent's view."""

MOST_SNAPSHOTS = 200
"""Default number of snapshots in a folder; older ones are deleted."""


def taken(
    state: Mapping[str, Any],
    *,
    at: str,
    thread: str = "",
    step: int = 0,
    origin: SnapshotOrigin = "run",
    config: Mapping[str, Any] | None = None,
    sources: Iterable[str] = (),
    ran: bool = True,
    result: InjectionResult | None = None,
    keys: Iterable[str] = (),
) -> Snapshot:
    """A snapshot of a state, with the keys that the scrum master reads and the given `keys`."""
    return Snapshot(
        state=state_slice(state, keys=(*keys, *_required(config))),
        at=at,
        thread=thread,
        step=step,
        origin=origin,
        config=dict(config) if config is not None else None,
        sources=tuple(sources),
        ran=ran,
        result=result,
        written_by=_version(),
    )


def state_slice(state: Mapping[str, Any], keys: Iterable[str] = ()) -> dict[str, Any]:
    """The part of a state that is read, as JSON values: the latest messages, the known keys, and these keys."""
    handed_over = items_of(read(state.get("handoff_context"), "relevant_state_keys"))
    named = (*HOST_KEYS, *READ_BACK, *keys, *(name for name in handed_over if isinstance(name, str)))
    values = {name: plain(state[name]) for name in dict.fromkeys(named) if name != "messages" and name in state}
    if "messages" in state:
        values["messages"] = [plain_message(each) for each in items_of(state["messages"])[-MOST_MESSAGES:]]
    return values


def plain(value: object) -> Any:
    """The value as JSON; objects with fields, such as dataclasses and models, become dicts."""
    # The common case.
    if type(value) is str:
        return value
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if fields := mapping_of(value) or _attributes(value):
        return {str(name): plain(item) for name, item in fields.items()}
    return json_shapes(value)


def plain_message(message: object) -> Any:
    """The message as JSON, without empty fields."""
    # JSON has no tuples: a (role, text) pair would become a list.
    if isinstance(message, tuple) and len(message) == 2:
        return {"role": plain(message[0]), "content": plain(message[1])}
    if isinstance(message, Mapping | str):
        return plain(message)
    return {name: item for name, item in dict_of(plain(message)).items() if not absent(item)}


def dumped(snapshot: Snapshot, indent: int | None = None) -> str:
    """The snapshot as JSON, with its schema version."""
    data = {"schema": SNAPSHOT_SCHEMA, **snapshot.to_dict()}
    return json.dumps(data, ensure_ascii=False, sort_keys=True, indent=indent) + "\n"


class SnapshotRecorder:
    """Writes each snapshot to its own file in a folder and deletes the oldest files. Creates the folder.

    `keys` names the additional state keys that custom sources read.
    """

    def __init__(self, folder: str | Path, *, most: int = MOST_SNAPSHOTS, keys: Iterable[str] = ()) -> None:
        if most < 1:
            raise ConfigError(f"most must be a whole number of snapshots, 1 or more, got {most!r}")
        self._folder = Path(folder)
        self._most = most
        self.keys = tuple(keys)

    def __call__(self, snapshot: Snapshot) -> None:
        """Write one file; its name starts with the time, so that files sort by time."""
        moment = "".join(char for char in snapshot.at.split("+")[0] if char.isalnum())
        gap = snapshot.result.gap.gap_id if snapshot.result is not None else ""
        name = f"{moment}-{digest(snapshot.thread, gap)}{_SUFFIX}"
        write_atomically(self._folder / name, dumped(snapshot))
        for old in sorted(self._folder.glob(f"*{_SUFFIX}"))[: -self._most]:
            old.unlink(missing_ok=True)


_SUFFIX = ".snapshot.json"


def _attributes(value: object) -> Mapping[str, Any]:
    own = getattr(value, "__dict__", None)
    return {name: item for name, item in own.items() if name[:1] != "_"} if isinstance(own, dict) else {}


def _required(config: Mapping[str, Any] | None) -> tuple[str, ...]:
    needed = dict_of((config or {}).get("requirements"))
    return tuple(str(key) for keys in needed.values() for key in items_of(keys))


@cache
def _version() -> str:
    from importlib.metadata import version

    return version("langgraph-scrum-master")
