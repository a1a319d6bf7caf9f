"""Quality gates that turned work back, and what they want to know."""

from __future__ import annotations

import re

from langgraph_scrum_master.model import Gate
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.shapes import items_of, read, text_of, truthy
from langgraph_scrum_master.text.prose import sentences


def read_gates(state: State) -> tuple[Gate, ...]:
    """The gates that block now: by the state's flag, or the latest word of each gate by name."""
    blocked = state.get("gate_blocked")
    if blocked is False or (blocked is None and not items_of(state.get("gate_results"))):
        return ()
    latest = {text_of(read(result, "gate_name")): result for result in items_of(state.get("gate_results"))}
    failed = [
        _gate(name, text_of(read(result, "reason")))
        for name, result in latest.items()
        if read(result, "passed") is False
    ]
    if truthy(blocked) and (reason := text_of(state.get("gate_failure"))):
        failed = [_gate("", reason), *(gate for gate in failed if gate.reason != reason)]
    return tuple(failed)


def _gate(name: str, reason: str) -> Gate:
    return Gate(name=name, reason=reason, missing=tuple(_missing(reason)))


def _missing(reason: str) -> list[str]:
    """What the reason says is not known: the items of a list, else the sentences that say so."""
    wanting = [
        sentence
        for sentence in sentences(reason[:_LOOKED_AT])
        if _WANTS_INFORMATION.search(sentence) and (not _OF_CODE.search(sentence) or _KNOWLEDGE.search(sentence))
    ]
    listed = [item for sentence in wanting if (names := _LIST.search(sentence)) for item in _items(names[1])]
    return listed or wanting


def _items(names: str) -> list[str]:
    bare = (name.strip(" .`'\"").removeprefix("and ") for name in _COMMA.split(names))
    return [name.replace("_", " ") for name in bare if name]


_LOOKED_AT = 4_000
_WANTS_INFORMATION = re.compile(
    r"\b(?:missing|lacks?|lacking|unknown|undefined|unspecified|unclear|ambiguous|absent|insufficient (?:context|information|detail)|"
    r"(?:not|never|n't) (?:\w+ )?(?:specified|defined|provided|documented|stated|given|named|clear|known|found|mentioned|say)|"
    r"no (?:\w+ )?(?:context|information|decision|specification|spec|criteria|documentation|definition|requirements?|adr)|"
    r"needs? (?:more )?(?:context|information|clarification|detail))\b",
    re.I,
)
_OF_CODE = re.compile(
    r"\b(?:tests?|assertions?|docstrings?|lint(?:er|ing)?|type check\w*|mypy|ruff|imports?|modules?|packages?|return|statement|syntax|attribute|"
    r"elements?|variables?|functions?|methods?|class(?:es)?|files?|director(?:y|ies)|build|compil\w+|semicolon|bracket|parenthes[ie]s|"
    r"\w+error|exception|line \d+|exit code|name '|\d+ ?%)|[()\[\]{}]'",
    re.I,
)
_KNOWLEDGE = re.compile(
    r"\b(?:context|information|decisions?|specifications?|specs?|criteria|documentation|definitions?|requirements?|adrs?|contracts?|schemas?|"
    r"polic(?:y|ies)|rationale|clarification|constraints?|conventions?|glossary|design|owner|config)\b|_(?:config|requirements|criteria|policy)\b",
    re.I,
)
_LIST = re.compile(
    r"\b(?:missing|lacks?|lacking|undefined|unspecified|unknown|unclear|needs?)(?: \w+){0,2}?: *(\S.*)$", re.I | re.S
)
_COMMA = re.compile(r"[,;]\s*(?:and )?|\s+and\s+")
