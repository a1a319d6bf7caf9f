"""A quality gate turned the work back for want of information."""

from __future__ import annotations

import re
from collections.abc import Iterator

from langgraph_scrum_master.detect.gap import gap
from langgraph_scrum_master.model import ContextGap, Observation

CONFIDENCE = 0.85

_WANTS_INFORMATION = re.compile(
    r"\b(?:missing|lacks?|lacking|unknown|undefined|unspecified|unclear|ambiguous|absent|insufficient (?:context|information|detail)|"
    r"(?:not|never|n't) (?:\w+ )?(?:specified|defined|provided|documented|stated|given|named|clear|known|found|mentioned|say)|"
    r"no (?:\w+ )?(?:context|information|decision|specification|spec|criteria|documentation|definition|requirements?|adr)|"
    r"needs? (?:more )?(?:context|information|clarification|detail))\b",
    re.I,
)


def gate_failure(observation: Observation) -> Iterator[ContextGap]:
    """A gap for each gate whose reason speaks of something missing; other failures are not for context to cure."""
    for failed in observation.gates:
        if _WANTS_INFORMATION.search(failed.reason):
            yield gap(
                observation,
                agent=observation.current_agent,
                reason="gate_failure",
                query=failed.reason,
                confidence=CONFIDENCE,
                indicators=(f"gate {failed.name or 'gate_failure'}",),
            )
