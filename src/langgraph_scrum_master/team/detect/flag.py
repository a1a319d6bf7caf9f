"""Detects explicit statements that something is missing, and handoffs without required keys."""

from __future__ import annotations

from collections.abc import Iterator

from langgraph_scrum_master.model import ContextGap, Observation
from langgraph_scrum_master.team.detect.gap import current_work, gap
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning


def explicit_flag(observation: Observation, tuning: DetectionTuning = DEFAULT_DETECTION) -> Iterator[ContextGap]:
    """A gap for each flag."""
    for flag in observation.flags:
        yield gap(
            observation,
            agent=flag.agent,
            reason="explicit_flag",
            query=current_work(observation, flag.agent) or flag.need if flag.unnamed else flag.need,
            confidence=tuning.flag_confidence,
            indicators=(f"flag@{flag.origin}",),
            missing=flag.missing,
            parts=flag.parts,
            about=f"flag {flag.origin}" if flag.unnamed else "",
        )
