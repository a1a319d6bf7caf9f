"""Reports the recorded outcomes of gaps, without new searches."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph_scrum_master._internal.files import LARGEST_RECORDING, read_text
from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master.errors import ConfigError, DecodeError
from langgraph_scrum_master.model import InjectionRecord, InjectionResult, freeze
from langgraph_scrum_master.replay.inventory import Inventory, counted
from langgraph_scrum_master.replay.loading import runs
from langgraph_scrum_master.replay.tally import Histories, Tally, record_of, summed
from langgraph_scrum_master.team.state import merge_records


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Plain):
    """The outcomes of all gaps, by agent and reason."""

    rows: tuple[Tally, ...]
    threads: int = 0
    """Number of threads with a gap, or 0 if the source has no threads."""
    source: str = ""
    """What was read."""

    def __post_init__(self) -> None:
        freeze(self, "rows")

    @property
    def total(self) -> Tally:
        """The sum of all rows."""
        return summed(self.rows, agent="", reason="")


def report(source: str | Path, thread: str | None = None, subgraph: str | None = None) -> Report:
    """The report on an audit log, or on any source of a replay."""
    histories, read = _histories(source, thread, subgraph)
    named = sum(bool(name and history) for name, history in histories.by_thread.items())
    return Report(rows=histories.tallies(), threads=named, source=read)


def _histories(source: str | Path, thread: str | None, subgraph: str | None) -> tuple[Histories, str]:
    histories, problem = Histories(), ""
    if (logged := _audit_log(source)) is not None:
        if thread is not None:
            raise ConfigError(f"an audit log has no threads, got thread {thread!r}: remove it")
        histories.by_thread[""] = logged
        return histories, f"{Path(source).name}: audit log of {counted(len(logged), 'gap')}"
    inventory = Inventory(source)
    for run in runs(source, thread, subgraph, most=None):
        for placed in run.snapshots:
            inventory.add(placed)
            if placed.snapshot is not None:
                histories.add(placed.snapshot)
            problem = problem or placed.problem
    if not histories.by_thread:
        why = f": {problem}" if problem else ""
        raise DecodeError(
            f"there is nothing to report on in {Path(source).name!r}{why}; pass an audit log, snapshots or checkpoints"
        )
    return histories, str(inventory)


def _audit_log(source: str | Path) -> list[InjectionRecord] | None:
    """The records of an audit log, or None if the source is not one."""
    path = Path(source)
    if path.suffix != ".jsonl" or not path.is_file():
        return None
    history: list[InjectionRecord] = []
    try:
        for line in filter(str.strip, read_text(path, LARGEST_RECORDING, errors="replace").split("\n")):
            entry = json.loads(line)
            if not isinstance(entry, dict) or not ({"gap", "outcome_of"} & entry.keys()):
                return history or None
            history = merge_records(history, [_entry_record(entry)])
    except (OSError, ValueError, DecodeError):
        return history or None
    return history


def _entry_record(entry: dict[str, Any]) -> InjectionRecord:
    if "outcome_of" in entry:
        return InjectionRecord.from_dict(entry["outcome_of"])
    return record_of(InjectionResult.from_dict({key: value for key, value in entry.items() if key != "schema"}))
