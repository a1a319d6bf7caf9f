"""Reads snapshots from files: current and earlier versions, plain states, lists of messages, and exports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from langgraph_scrum_master._internal.files import LARGEST_RECORDING, load_text, write_atomically
from langgraph_scrum_master._internal.shapes import dict_of, items_of, text_of
from langgraph_scrum_master.errors import DecodeError, NotFoundError
from langgraph_scrum_master.model import Snapshot
from langgraph_scrum_master.team.record.exports import messages_in
from langgraph_scrum_master.team.record.snapshots import (
    MOST_MESSAGES,
    SNAPSHOT_SCHEMA,
    dumped,
    plain_message,
    state_slice,
)
from langgraph_scrum_master.team.state import HOST_KEYS, READ_BACK

FILE_SUFFIXES = (".json", ".jsonl")
"""Suffixes of the files that are read from a folder."""


class Placed(NamedTuple):
    """A snapshot with its location, or the problem that prevented reading it."""

    where: str
    snapshot: Snapshot | None
    problem: str = ""
    of: int | None = None
    """The number of snapshots, if they are created lazily."""


def read_json(path: Path | str, text: str | None = None) -> Any:
    """The value in a JSON file, or in this text."""
    text = load_text(path, LARGEST_RECORDING) if text is None else text
    if not text.strip():
        raise DecodeError(f"{str(path)!r} is empty: it must hold JSON")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"{str(path)!r} is not JSON: {error}") from error


def snapshots_in(path: Path, name: str = "", folder: Path | None = None) -> Iterator[Placed]:
    """The snapshots in a JSON or JSON Lines file. Unreadable entries are returned as problems.

    A list of messages gives one snapshot per message, with the conversation up to it. If `folder` is given, links that
    lead out of it are not followed.
    """
    name = name or path.name
    try:
        text = load_text(path, LARGEST_RECORDING, folder)
        lines = _lines(text)
        if _is_lines(path, lines):
            yield from _of_lines(name, lines)
        else:
            yield from _placed(name, of_data(read_json(name, text), name))
    except (DecodeError, NotFoundError) as error:
        yield Placed(name, None, str(error))


def states_in(path: Path, text: str | None = None) -> Mapping[str, Mapping[str, Any]]:
    """The latest state of each run in a file, or in this text, by the name of the run."""
    text, name = load_text(path, LARGEST_RECORDING) if text is None else text, str(path)
    lines = _lines(text)
    if _is_lines(path, lines):
        return _latest(_of_lines(name, lines), name)
    data = read_json(name, text)
    # An empty conversation.
    if isinstance(data, Mapping) and not _is_whole(data) and data.get("messages") == []:
        return {name: data}
    snapshots = of_data(data, name)
    latest: dict[str, Mapping[str, Any]] = _latest(_placed(name, snapshots), name)
    # A state may have further keys that an agent requires.
    rest = data if isinstance(snapshots, Growing) and isinstance(data, Mapping) else {}
    return {run: {**rest, **state} if rest else state for run, state in latest.items()}


def run_name(placed: Placed) -> str:
    """The run of a snapshot: its thread, else its file if its states follow each other, else its place."""
    snapshot = _snapshot_of(placed)
    follows = snapshot.origin in ("checkpoint", "messages")
    return snapshot.thread or (placed.where.rsplit(":", 1)[0] if follows else placed.where)


def _latest(placed: Iterable[Placed], name: str) -> dict[str, Mapping[str, Any]]:
    latest: dict[str, Mapping[str, Any]] = {run_name(each): _snapshot_of(each).state for each in placed}
    if not latest:
        raise DecodeError(f"{name!r} is empty: it must hold JSON")
    return latest


def _snapshot_of(placed: Placed) -> Snapshot:
    if placed.snapshot is None:
        raise DecodeError(placed.problem)
    return placed.snapshot


def write_snapshots(path: Path, snapshots: Sequence[Snapshot]) -> None:
    """Write the snapshots as JSON Lines; a `.json` file gets one indented snapshot, or a list."""
    if path.suffix != ".json":
        write_atomically(path, "".join(map(dumped, snapshots)))
    elif len(snapshots) == 1:
        write_atomically(path, dumped(snapshots[0], indent=1))
    else:
        rows = ",\n".join(dumped(snapshot).rstrip() for snapshot in snapshots)
        write_atomically(path, f"[\n{rows}\n]\n")


def of_data(data: object, name: str) -> Sequence[Snapshot] | Growing:
    """The snapshots in plain data."""
    if isinstance(data, list) and data and all(isinstance(each, Mapping) and _is_whole(each) for each in data):
        whole = [_of_whole(each, name) for each in data]
        # LangGraph's server returns the newest state of a thread first.
        return whole[::-1] if "values" in data[0] else whole
    if isinstance(data, Mapping) and _is_whole(data):
        return [_of_whole(data, name)]
    if isinstance(data, Mapping) and any(key in data for key in _STEP_KEYS):
        return [_of_state(data, name)]
    if messages := messages_in(data):
        return Growing(messages)
    raise DecodeError(
        f"{name!r} must hold a snapshot, a state (with `messages` or another key that is read), or messages as "
        f"LangChain, OpenAI, AutoGen or CrewAI write them, got {data!r:.80}"
    )


class Growing:
    """One lazily created snapshot per message, with the conversation up to it."""

    def __init__(self, messages: Sequence[Any]) -> None:
        self._messages = [plain_message(message) for message in messages]

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Snapshot]:
        for end in range(1, len(self) + 1):
            messages = self._messages[max(0, end - MOST_MESSAGES) : end]
            yield Snapshot(state={"messages": messages}, step=end, origin="messages")


def upgraded(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Data of an earlier schema version, upgraded to the current one."""
    version = data.get("schema")
    if not isinstance(version, int) or version < 1:
        raise DecodeError(f"{name!r} has schema {version!r}, it must be a whole number from 1 to {SNAPSHOT_SCHEMA}")
    if version > SNAPSHOT_SCHEMA:
        raise DecodeError(
            f"{name!r} has schema {version}, this version reads 1 to {SNAPSHOT_SCHEMA}: install a newer one"
        )
    for step in range(version, SNAPSHOT_SCHEMA):
        data = {**UPGRADES[step](data), "schema": step + 1}
    return data


def _from_1(data: Mapping[str, Any]) -> dict[str, Any]:
    """Version 1 was a plain state or list of messages, or either under `state`, with `now` in seconds."""
    state, now = data.get("state"), data.get("now")
    return {
        "state": {"messages": state} if isinstance(state, list) else state,
        "at": _iso(now) if isinstance(now, int | float) else "",
        "origin": "state",
        "ran": "result" in data,
        "result": data.get("result"),
    }


def _iso(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    # Not a valid time.
    except (ValueError, OverflowError, OSError):
        return ""


UPGRADES: dict[int, Callable[[Mapping[str, Any]], dict[str, Any]]] = {1: _from_1}
"""From each version to the next."""

_STEP_KEYS = (*(key for key in HOST_KEYS if key != "messages"), *READ_BACK)
"""A state with one of these keys is a single step, not a conversation."""


def _lines(text: str) -> list[tuple[int, str]]:
    """The non-empty lines with their numbers."""
    return [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _is_lines(path: Path, lines: Sequence[tuple[int, str]]) -> bool:
    if path.suffix == ".jsonl" or len(lines) < 2:
        return path.suffix == ".jsonl"
    # If the first line is a complete value, the others are too.
    return lines[0][1].lstrip()[:1] == "{" and lines[0][1].rstrip()[-1:] == "}"


def _of_lines(name: str, lines: Sequence[tuple[int, str]]) -> Iterator[Placed]:
    rows: list[tuple[str, Any]] = []
    for number, line in lines:
        where = f"{name}:{number}"
        try:
            rows.append((where, read_json(where, line)))
        except DecodeError as error:
            yield Placed(where, None, str(error))
    states = [row for row in rows if _is_state(row[1])]
    if len(rows) > 1 and len(states) == len(rows):
        yield from _of_states(states)
        return
    if rows and not states and not any(isinstance(data, Mapping) and _is_whole(data) for _, data in rows):
        yield from _placed(name, of_data([data for _, data in rows], name))
        return
    for where, data in rows:
        try:
            yield from (Placed(where, snapshot) for snapshot in of_data(data, where))
        except DecodeError as error:
            yield Placed(where, None, str(error))


def _of_states(rows: Sequence[tuple[str, Any]]) -> Iterator[Placed]:
    """One state per line: the steps of one run if each continues the messages of the previous one."""
    histories = [items_of(state.get("messages")) for _, state in rows]
    one_run = all(after[: len(before)] == before for before, after in pairwise(histories))
    origin = "checkpoint" if one_run else "state"
    for step, (where, state) in enumerate(rows, 1):
        yield Placed(where, replace(_of_state(state, where), step=step, origin=origin))


def _placed(name: str, snapshots: Sequence[Snapshot] | Growing) -> Iterator[Placed]:
    of = len(snapshots) if isinstance(snapshots, Growing) else None
    return (Placed(name, snapshot, of=of) for snapshot in snapshots)


def _is_state(data: object) -> bool:
    return (
        isinstance(data, Mapping)
        and not _is_whole(data)
        and (isinstance(data.get("messages"), list) or any(key in data for key in _STEP_KEYS))
    )


def _of_state(data: Mapping[str, Any], name: str) -> Snapshot:
    return _decoded(upgraded({"schema": 1, "state": data}, name), name)


def _is_whole(data: Mapping[str, Any]) -> bool:
    return "schema" in data or ("values" in data and "created_at" in data)


def _of_whole(data: Mapping[str, Any], name: str) -> Snapshot:
    if "values" in data:
        return _of_server(data)
    if "state" not in data:
        hint = ": it is an audit log, which ScrumMaster(snapshots=…) writes with the states" if "gap" in data else ""
        raise DecodeError(f"{name!r} has no 'state'{hint}")
    return _decoded(upgraded(data, name), name)


def _of_server(data: Mapping[str, Any]) -> Snapshot:
    """A state in the format of LangGraph's server."""
    step = dict_of(data.get("metadata")).get("step")
    return Snapshot(
        state=state_slice(dict_of(data.get("values"))),
        at=text_of(data.get("created_at")),
        thread=text_of(dict_of(data.get("checkpoint")).get("thread_id")),
        step=step if isinstance(step, int) else 0,
        origin="checkpoint",
    )


def _decoded(data: Mapping[str, Any], name: str) -> Snapshot:
    try:
        return Snapshot.from_dict(data)
    except DecodeError as error:
        raise DecodeError(f"{name!r}: {error}") from error
