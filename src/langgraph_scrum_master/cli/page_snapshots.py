"""The snapshots of a page's steps, with what they have in common stored once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from langgraph_scrum_master.model import Snapshot


class Interned:
    """Distinct JSON values, and their numbers."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self.values = list(values)
        self._numbers = {json.dumps(value, sort_keys=True): number for number, value in enumerate(self.values)}

    def add(self, value: Any) -> int:
        """The number of the value."""
        number = self._numbers.setdefault(json.dumps(value, sort_keys=True), len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


class SnapshotPool:
    """The snapshots that a replay went through. Consecutive ones share their messages and most other values."""

    def __init__(self) -> None:
        self.snapshots: list[dict[str, Any]] = []
        self.messages: list[Any] = []
        self._values, self._configs = Interned(), Interned()
        self._before: list[Any] = []
        self._start = 0
        """Number of the first message of the snapshot before."""

    @property
    def values(self) -> list[Any]:
        """The values of state keys other than the messages."""
        return self._values.values

    @property
    def configs(self) -> list[Any]:
        """The recorded settings."""
        return self._configs.values

    def add(self, snapshot: Snapshot) -> None:
        """Take over the next snapshot."""
        state = {key: self._values.add(value) for key, value in snapshot.state.items() if key != "messages"}
        packed: dict[str, Any] = {"state": state, "origin": snapshot.origin, "sources": list(snapshot.sources)}
        # A list of messages has no result, and one of its steps is a state.
        packed["origin"] = "state" if snapshot.origin == "messages" else snapshot.origin
        packed["written_by"] = snapshot.written_by
        if isinstance(messages := snapshot.state.get("messages"), list):
            packed["messages"] = [self._run(messages)]
        if snapshot.config is not None:
            packed["config"] = self._configs.add(snapshot.config)
        self.snapshots.append(packed)

    def _run(self, messages: list[Any]) -> tuple[int, int]:
        """Where these messages are in the pool: they mostly continue those of the snapshot before."""
        skipped = _skipped(self._before, messages)
        follows = skipped is not None and self._start + len(self._before) == len(self.messages)
        if skipped is None or not (follows or len(messages) <= len(self._before) - skipped):
            self._start = len(self.messages)
            self.messages += messages
        else:
            self._start += skipped
            self.messages += messages[len(self._before) - skipped :]
        self._before = messages
        return self._start, self._start + len(messages)


def _skipped(before: list[Any], now: list[Any]) -> int | None:
    """How many of the oldest messages are gone, if the others are the beginning of the new ones."""
    if not before or not now:
        return None
    starts = [0] if before[0] == now[0] else [i for i, message in enumerate(before) if message == now[0]]
    fits = (i for i in starts if before[i:] == now[: len(before) - i] or before[i : i + len(now)] == now)
    return next(fits, None)
