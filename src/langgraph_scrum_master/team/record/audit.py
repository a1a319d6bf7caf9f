"""The audit log: one JSON object per line."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master.model import InjectionRecord

_SCHEMA = 1


class JsonlRecorder:
    """Appends each result, including its text, to a file; creates the folder if necessary."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()

    def __call__(self, result: Plain) -> None:
        """Append one line. Lines from several threads and processes do not interleave."""
        self._append(result.to_dict())

    def record_outcome(self, record: InjectionRecord) -> None:
        """Append the outcome of an injection, without words of its text."""
        self._append({"outcome_of": replace(record, news=()).to_dict()})

    def _append(self, values: dict[str, Any]) -> None:
        line = json.dumps({"schema": _SCHEMA, **values}, ensure_ascii=False, sort_keys=True) + "\n"
        with self._lock:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab", buffering=0) as file:
                file.write(line.encode(errors="backslashreplace"))
