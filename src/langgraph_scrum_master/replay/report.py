"""What came of the gaps of a run, as it was recorded: nothing is looked for again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
    """Gaps of one agent for one reason, and what came of them."""

    agent: str
    reason: str
    gaps: int = 0
    served: int = 0
    abstained: int = 0
    """Nothing good enough was found."""
    escalated: int = 0
    """The need came up again after all attempts."""
    waiting: int = 0
    """Still waiting for its turn, or gone by itself meanwhile."""
    used: int = 0
    ignored: int = 0
    asked_again: int = 0
    open: int = 0
    """Served, and the agent has not said enough since to tell."""
    tokens: int = 0
    """Of all texts that were given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Plain):
    """What came of all gaps, by agent and reason."""

    rows: tuple[_Tally, ...]
    threads: int = 0
    """Conversations in which there was a gap; 0 if the source does not tell."""

    def __post_init__(self) -> None:
        freeze(self, "rows")

    @property
    def total(self) -> _Tally:
        """All rows added up."""
        return _added(self.rows, agent="", reason="")


def report(source: str | Path, thread: str | None = None) -> Report:
    """The report on an audit log, a file or folder of snapshots, or a database of checkpoints."""
    histories = dict(_histories(source, thread))
    rows: dict[tuple[str, str], list[_Tally]] = {}
    for record in (record for history in histories.values() for record in history):
        rows.setdefault((record.agent, record.reason), []).append(_tally(record))
    found = [_added(each, agent=agent, reason=reason) for (agent, reason), each in sorted(rows.items())]
    return Report(rows=tuple(found), threads=sum(bool(name and history) for name, history in histories.items()))


def _histories(source: str | Path, thread: str | None) -> Iterator[tuple[str, list[InjectionRecord]]]:
    """The records of each thread, as far as they are known in the end."""
    if (logged := _audit_log(source)) is not None:
        if thread is not None:
            raise ConfigError(f"an audit log does not tell threads apart, got the thread {thread!r}: leave it out")
        yield "", logged
        return
    names = [thread]
    if thread is None and is_database(source):
        names = [each.thread for each in threads(str(source))]
    found: dict[str, list[InjectionRecord]] = {}
    problem = ""
    for name in names:
        for run in runs(source, name):
            for placed in run.snapshots:
                if (snapshot := placed.snapshot) is None:
                    problem = problem or placed.problem
                    continue
                turns = tuple(read_turns(snapshot.state.get("messages")))
                kept = merge_records(found.get(snapshot.thread, []), records(snapshot.state.get("injection_history")))
                result = snapshot.result
                if result is not None and result.gap.gap_id not in {record.gap_id for record in kept}:
                    kept = merge_records(kept, [replace(record_of(result), news=news_in(result, turns))])
                found[snapshot.thread] = merge_records(kept, outcomes(kept, turns, ()))
    if not found:
        why = f": {problem}" if problem else ""
        raise DecodeError(
            f"there is nothing to report on in {Path(source).name!r}{why}; give an audit log, snapshots or checkpoints"
        )
    yield from found.items()


def record_of(result: InjectionResult) -> InjectionRecord:
    """The history record of a result, for sources that do not hold the state's own."""
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
    """The records that an audit log comes to; None if the source is none."""
    path = Path(source)
    if path.suffix != ".jsonl" or not path.is_file():
        return None
    kept: list[InjectionRecord] = []
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in filter(str.strip, file):
                said = json.loads(line)
                if not isinstance(said, dict) or not ({"gap", "outcome_of"} & said.keys()):
                    return kept or None
                kept = merge_records(kept, [_logged(said)])
    except (OSError, ValueError, DecodeError):
        return kept or None
    return kept


def _logged(said: dict[str, Any]) -> InjectionRecord:
    if "outcome_of" in said:
        return InjectionRecord.from_dict(said["outcome_of"])
    return record_of(InjectionResult.from_dict({key: value for key, value in said.items() if key != "schema"}))


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
"""What is counted."""


def _added(rows: Iterable[_Tally], agent: str, reason: str) -> _Tally:
    found = _Tally(agent=agent, reason=reason)
    for row in rows:
        found = replace(found, **{name: getattr(found, name) + int(getattr(row, name)) for name in COUNTS})
    return found
