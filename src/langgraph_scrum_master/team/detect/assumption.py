"""Detects assumptions. Only with `InjectionConfig.assumptions`, since most assumptions are harmless."""

from __future__ import annotations

import re
from collections.abc import Iterator

from langgraph_scrum_master.model import ContextGap, Observation, Span
from langgraph_scrum_master.team.detect.gap import gap
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning

_I = (
    r"(?:i|we|let us|let['’]?s|you|one)"
    r"(?:['’](?:ll|m|re|d|ve)|\s+(?:will|would|can|could|may|might|must|have to|need to))?"
)
_GIVEN = r"(?:given|specified|stated|provided|mentioned|said|defined|known|set|documented|clear|available|told)"
_NOT_GIVEN = (
    rf"(?:(?:not|n['’]t|never)\s+(?:\w+\s+){{0,2}}{_GIVEN}|(?:no|none|nothing|nobody)\b[^.]{{0,60}}{_GIVEN}"
    r"|unspecified|unknown|missing|unclear|undefined|does(?:n['’]t| not)\s+(?:say|specify|state|mention))"
)
_ASSUMES = re.compile(
    rf"\b{_I}\s+(?:\w+\s+){{0,2}}(?:assum(?:e|ing)|presum(?:e|ing)|suppos(?:e|ing))\b(?!\s+(?:nothing|no|none|never)\b)"
    r"|^[^\w\n]*(?:assuming|supposing|presumably)\b|\b(?:my|our|the)\s+assumption\s+(?:is|here|for now)\b|\bassumption:"
    r"|\bunless (?:i am |i'm |we are )?told otherwise\b"
    r"|\bso i(?:['’]ve)?\s+(?:went with|go with|took|used|picked|chose)\b"
    rf"|\b{_I}\s+(?:\w+\s+){{0,2}}(?:use|using|take|taking|pick|go(?:ing)? with|default(?:ing)? to|set|choose|put)\b"
    rf"[^.]{{0,120}}\b(?:since|as|because|for now|by default|as a default|placeholder)\b"
    rf"|\b(?:since|as|because)\b[^.]{{0,80}}{_NOT_GIVEN}[^.]{{0,80}}\b(?:use|take|assume|default|go with|pick|set)\b"
    r"|\bfor (?:the sake of|simplicity|now),?[^.]{0,40}\bassum"
    r"|\b(?:ich|wir)\s+nehme?n?\b[^.]{0,60}\ban\b|\bangenommen\b|\bgehe?n?\s+(?:mal\s+)?davon\s+aus\b"
    r"|\b(?:je|on|nous)\s+(?:vais\s+|va\s+|allons\s+)?suppos|\bsupposons\b|\bpars? du principe\b"
    r"|\bsupong(?:o|amos)\b|\basum(?:o|imos|iré|amos)\b|\bvoy a (?:suponer|asumir)\b"
    r"|\bsuponh(?:o|amos)\b|\bvou assumir\b|\bassumo\b|\bsupponiamo\b|\bipotizz"
    r"|假设|假定|と仮定|と想定|предположим|допустим|가정하|मान लेत",
    re.I | re.M,
)
_SENTENCE = re.compile(r"\S(?:[^.!?。？！\n]|[.!?](?=\S))*[.!?。？！]*")
_ONLY_ARGUES = re.compile(r"\b(?:if|for contradiction|contradiction|proof|without loss of generality|wlog)\b", re.I)


def assumption_made(observation: Observation, tuning: DetectionTuning = DEFAULT_DETECTION) -> Iterator[ContextGap]:
    """A gap for each of the latest turns with an assumption."""
    for turn in observation.turns[-tuning.assumption_turns :]:
        if turn.kind != "agent" or not _ASSUMES.search(turn.text):
            continue
        sentences = [each for each in _SENTENCE.finditer(turn.text) if _ASSUMES.search(each[0])]
        assumptions = [each for each in sentences if not _ONLY_ARGUES.search(each[0])]
        if assumptions:
            texts = tuple(each[0].strip() for each in assumptions)
            yield gap(
                observation,
                agent=turn.agent,
                reason="assumption_made",
                query=" ".join(texts),
                confidence=tuning.assumption_confidence,
                indicators=(f"assumes@{turn.id}",),
                parts=texts,
                spans=tuple(Span(message=turn.id, start=each.start(), end=each.end()) for each in assumptions),
            )
