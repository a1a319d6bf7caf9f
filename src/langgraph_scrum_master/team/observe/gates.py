"""Reads failed quality gates from the state's keys, and the information they miss."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from langgraph_scrum_master._internal.logs import not_understood
from langgraph_scrum_master._internal.shapes import absent, fields_text, items_of, mapping_of, read, text_of, truthy
from langgraph_scrum_master.model import Gate
from langgraph_scrum_master.protocols import State
from langgraph_scrum_master.text.prose import sentences
from langgraph_scrum_master.text.terms import terms

PASSED = ("passed", "ok", "success", "approved", "is_valid", "valid")
"""Boolean fields that say whether a gate passed."""

STATUSES = ("status", "result", "outcome", "verdict", "state", "decision")
"""Text fields that say it."""

NAMES = ("gate_name", "gate", "name", "check", "id")
REASONS = (
    *("reason", "reasons", "message", "messages", "detail", "details", "explanation", "feedback", "error", "errors"),
    *("why", "description", "comment", "comments", "summary", "findings", "issues", "failures", "failed_checks"),
)
"""Fields with the reason."""

MISSING = ("missing", "missing_context", "missing_information", "missing_inputs", "missing_fields")
"""Fields that name what is missing."""

PASS = re.compile(
    r"\b(?:pass(?:ed|es)?|ok(?:ay)?|success(?:ful)?|approved|accepted|green|lgtm|all good|cleared)\b", re.I
)
FAIL = re.compile(
    r"\b(?:fail(?:ed|s|ure)?|block(?:ed|ing)?|reject(?:ed|s)?|denied|error|red|not passed|needs? work|changes requested)\b",
    re.I,
)


def read_gates(state: State) -> tuple[Gate, ...]:
    """The gates that block now, by the state's flag or by the latest result of each gate."""
    blocked, failure = state.get("gate_blocked"), state.get("gate_failure")
    if blocked is False:
        return ()
    failed = [gate for name, result in _results(state.get("gate_results")) if (gate := _failed(name, result))]
    if failure is not None and failure is not False:
        reported = [gate for each in _failures(failure) if (gate := _failed("", each, failed=True))]
        reasons = {gate.reason for gate in reported}
        failed = [*reported, *(gate for gate in failed if gate.reason not in reasons)]
    return tuple(failed)


def _results(given: Any) -> Iterator[tuple[str, Any]]:
    """The latest result of each gate, from a list, a dict by name, or a single result."""
    if given is None:
        return
    values = mapping_of(given)
    if values and any(name in values for name in (*PASSED, *STATUSES)):
        yield _name(values), given
    elif values:
        for name, result in values.items():
            yield str(name), {"passed": result} if isinstance(result, bool) else result
    elif items := items_of(given):
        latest = {_name(result) or f"#{i}": result for i, result in enumerate(items)}
        yield from latest.items()
    elif not absent(given):
        not_understood("gate_results", given, "a list of results, or a dict of them by name")


def _failures(given: Any) -> Iterator[Any]:
    if isinstance(given, str):
        if given.strip():
            yield {"reason": given}
    elif items := items_of(given):
        for each in items:
            yield from _failures(each)
    elif mapping_of(given):
        yield given
    elif given is not True and not absent(given):
        not_understood("gate_failure", given, "a text, a dict or a list of such")


def _failed(name: str, result: Any, failed: bool = False) -> Gate | None:
    """The gate if this result is a failure."""
    if isinstance(result, str):
        failed, result = (
            failed or (bool(FAIL.search(result)) and not PASS.fullmatch(result.strip())),
            {"reason": result},
        )
    if not failed and not _is_failure(result):
        return None
    reason = next(filter(None, (_text(read(result, field)) for field in REASONS)), "")
    named = tuple(need for field in MISSING for need in _listed(read(result, field)))
    missing = named or tuple(missing_in(reason))
    return Gate(
        name=(name if not name.startswith("#") else "") or _name(result),
        reason=reason or ", ".join(named),
        missing=missing,
        unnamed=is_unnamed(missing),
    )


def _is_failure(result: Any) -> bool:
    for field in PASSED:
        if isinstance(passed := read(result, field), bool):
            return not passed
    status = next((word for field in STATUSES if (word := text_of(read(result, field)))), "")
    return bool(FAIL.search(status)) and not PASS.fullmatch(status.strip())


def _name(result: Any) -> str:
    return next((name for field in NAMES if (name := text_of(read(result, field)))), "")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if items := items_of(value):
        return ". ".join(filter(None, (fields_text(item).replace("\n", ", ") for item in items)))
    return fields_text(value) if isinstance(value, Mapping) else ""


def _listed(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, Mapping):
        return [str(name).replace("_", " ") for name, lacks in value.items() if truthy(lacks)]
    return [text.replace("_", " ") for item in items_of(value) if (text := text_of(item) or fields_text(item))]


def missing_in(reason: str) -> list[str]:
    """The missing information in a reason: the items of a list, else the sentences about it."""
    wanting = [
        sentence
        for sentence in sentences(reason[:_LONGEST])
        if _WANTS_INFORMATION.search(sentence) and (not _OF_CODE.search(sentence) or _KNOWLEDGE.search(sentence))
    ]
    listed = [item for sentence in wanting if (names := _LIST.search(sentence)) for item in _items(names[1])]
    return listed or wanting


def is_unnamed(needs: tuple[str, ...]) -> bool:
    """Whether the needs only say that something is missing, not what."""
    return bool(needs) and all(_generic().issuperset(terms(need)) for need in needs)


@cache
def _generic() -> frozenset[str]:
    return frozenset(
        terms(
            "missing context information details insufficient incomplete lacking absent requirement requirements data input"
            " inputs gate check failed blocked work story task agent more additional necessary needed required unavailable"
        )
    )


def _items(names: str) -> list[str]:
    bare = (name.strip(" .`'\"").removeprefix("and ") for name in _COMMA.split(names))
    return [name.replace("_", " ") for name in bare if name]


_LONGEST = 4_000
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
_COMMA = re.compile(r"[,;]\s*(?:and )?|(?<!\s)\s+and\s+")
