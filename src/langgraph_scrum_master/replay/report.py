"""Reports the recorded outcomes of gaps, without new searches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langgraph_scrum_master._internal.files import LARGEST_RECORDING, read_text
from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master.errors import ConfigError, DecodeError
from langgraph_scrum_master.messages import read_turns
from langgraph_scrum_master.model import InjectionRecord, InjectionResult, freeze
from langgraph_scrum_master.replay.databases import is_database
from langgraph_scrum_master.replay.loading import runs
from langgraph_scrum_master.replay.threads import threads
from langgraph_scrum_master.team.outcome import news_in, outcomes
from langgraph_scrum_master.team.state import merge_records, records


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tally(Plain):
    """The gaps of one agent with one reason, by outcome."""

    agent: str
    reason: str
    gaps: int = 0
    served: int = 0
    abstained: int = 0
    """Nothing relevant enough was found."""
    escalated: int = 0
    """The need came up again after `max_attempts`."""
    waiting: int = 0
    """Still pending, or closed without being served."""
    used: int = 0
    ignored: int = 0
    asked_again: int = 0
    open: int = 0
    """Served, but the outcome is not yet known."""
    tokens: int = 0
    """Of all injected texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Plain):
    """The outcomes of all gaps, by agent and reason."""

    rows: tuple[_Tally, ...]
    threads: int = 0
    """Number of threads with a gap, or 0 if the source has no threads."""

    def __post_init__(self) -> None:
        freeze(self, "rows")

    @property
    def total(self) -> _Tally:
        """The sum of all rows."""
        return _sum(self.rows, agent="", reason="")


def report(source: str | Path, thread: str | None = None) -> Report:
    """The report on an audit log, a file or folder of snapshots, or a database of checkpoints."""
    histories = dict(_histories(source, thread))
    rows: dict[tuple[str, str], list[_Tally]] = {}
    for record in (record for history in histories.values() for record in history):
        rows.setdefault((record.agent, record.reason), []).append(_tally(record))
    tallies = [_sum(each, agent=agent, reason=reason) for (agent, reason), each in sorted(rows.items())]
    return Report(rows=tuple(tallies), threads=sum(bool(name and history) for name, history in histories.items()))


def _histories(source: str | Path, thread: str | None) -> Iterator[tuple[str, list[InjectionRecord]]]:
    """The latest injection records of each thread."""
    if (logged := _audit_log(source)) is not None:
        if thread is not None:
            raise ConfigError(f"an audit log has no threads, got thread {thread!r}: remove it")
        yield "", logged
        return
    names = [thread]
    if thread is None and is_database(source):
        names = [each.thread for each in threads(str(source))]
    histories: dict[str, list[InjectionRecord]] = {}
    problem = ""
    for name in names:
        for run in runs(source, name):
            for placed in run.snapshots:
                if (snapshot := placed.snapshot) is None:
                    problem = problem or placed.problem
                    continue
                turns = tuple(read_turns(snapshot.state.get("messages")))
                history = merge_records(
                    histories.get(snapshot.thread, []), records(snapshot.state.get("injection_history"))
                )
                result = snapshot.result
                if result is not None and result.gap.gap_id not in {record.gap_id for record in history}:
                    history = merge_records(history, [replace(record_of(result), news=news_in(result, turns))])
                histories[snapshot.thread] = merge_records(history, outcomes(history, turns, ()))
    if not histories:
        why = f": {problem}" if problem else ""
        raise DecodeError(
            f"there is nothing to report on in {Path(source).name!r}{why}; pass an audit log, snapshots or checkpoints"
        )
    yield from histories.items()


def record_of(result: InjectionResult) -> InjectionRecord:
    """The history record of a result, for sources without `injection_history`."""
    gap = result.gap
    return InjectionRecord(
        gap_id=gap.gap_id,
        need=gap.need,
        agent=gap.agent,
        reason=gap.reason,
        status="injected" if result.injected else "abstained",
        at=gap.detected_at,
        attempts=1,
        escalated=result.escalated,
        tokens=result.total_tokens if result.injected else 0,
        outcome="open" if result.injected else "",
        after=result.after,
    )


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


def _tally(record: InjectionRecord) -> _Tally:
    served = record.status == "injected"
    return _Tally(
        agent=record.agent,
        reason=record.reason,
        gaps=1,
        served=served,
        abstained=record.status == "abstained" and not record.escalated,
        escalated=record.escalated,
        waiting=record.status in ("pending", "closed"),
        used=record.outcome == "used",
        ignored=record.outcome == "ignored",
        asked_again=record.outcome == "asked_again",
        open=served and record.outcome in ("", "open"),
        tokens=record.tokens if served else 0,
    )


COUNTS = (
    *("gaps", "served", "abstained", "escalated", "waiting"),
    *("used", "ignored", "asked_again", "open", "tokens"),
)
"""The counters of a tally."""


def _sum(rows: Iterable[_Tally], agent: str, reason: str) -> _Tally:
    total = _Tally(agent=agent, reason=reason)
    for row in rows:
        total = replace(total, **{name: getattr(total, name) + int(getattr(row, name)) for name in COUNTS})
    return total
