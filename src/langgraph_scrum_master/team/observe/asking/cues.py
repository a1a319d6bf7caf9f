"""Cues: words and phrases in eleven languages, mapped to concepts.

A model that learns from "could you send me" also knows "¿puede enviarme": both are CAN, TELL, ME.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from langgraph_scrum_master._internal.patterns import lazy_pattern

_ASKING = frozenset(
    ("WH", "WHETHER", "PLEASE", "TELL", "NEED", "KNOW", "UNSURE", "LACK", "STUCK", "PREFER", "CAN", "YOU", "NEG")
)
"""A sentence that asks has a cue for one of these concepts, or a question mark."""

OFTEN_MISTYPED = (
    "which",
    "what",
    "where",
    "when",
    "whats",
    "wheres",
    "does",
    "know",
    "need",
    "please",
    "provide",
    "could",
)
"""Words that are also recognised with a letter dropped, doubled or swapped."""

_WORDS = frozenset(("wat", "hat", "wen", "hen", "were", "here", "want", "now", "doe", "des", "dos", "odes", "ned"))
"""Typos that are words of their own."""

_UNSPACED = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# `re` does not count Devanagari vowel signs as word characters.
_MARKS = lazy_pattern(r"[^\w\u0900-\u0963\u0966-\u097f'\-@\s]+")
_SPACES = lazy_pattern(r"\s+")
_TO_SPACES = str.maketrans(dict.fromkeys('.,;:!…()[]{}"“”„«»/\\*#|<>=+\n\t`', " ") | {"’": "'"})


class Cue(NamedTuple):
    """A concept and its position in the text."""

    start: int
    concept: str


def cues(text: str) -> list[Cue]:
    """The cues of a text, in order."""
    spaced = _MARKS.sub(lambda match: f" {match.group()} ", text.lower().replace("’", "'"))
    prepared = _SPACES.sub(" ", f" {spaced} ")
    matches = [
        Cue(end - length + 1, concept)
        for end, (length, concepts) in _automaton(asking=False).iter(prepared)
        for concept in concepts
    ]
    matches.sort()
    return matches


def may_ask(text: str) -> bool:
    """Whether the text has a question mark or a cue; without one it cannot ask."""
    if "?" in text or "？" in text:
        return True
    # A fast check for most turns: it stops at the first cue.
    plain = f" {text.lower().translate(_TO_SPACES)} "
    return next(_automaton(asking=True).iter(plain), None) is not None


@cache
def _automaton(asking: bool) -> Any:
    """An automaton for the cues: of all concepts, or only of those in `_ASKING`."""
    import ahocorasick

    automaton = ahocorasick.Automaton()
    for pattern, concepts in _patterns().items():
        if not asking or not _ASKING.isdisjoint(concepts):
            automaton.add_word(pattern, (len(pattern), tuple(sorted(concepts))))
    automaton.make_automaton()
    return automaton


@cache
def _patterns() -> dict[str, set[str]]:
    concepts: dict[str, set[str]] = {}
    for line in (files(__package__) / "cues.txt").read_text("utf-8").splitlines():
        concept, _, entries = line.partition(":")
        if line.startswith("#") or not entries:
            continue
        for entry in filter(None, (each.strip().lower() for each in entries.split(","))):
            concepts.setdefault(_pattern(entry), set()).add(concept)
    for word in OFTEN_MISTYPED:
        meant = frozenset(concepts.get(_pattern(word), ("WH",)))
        for typo in _typos(word):
            concepts.setdefault(_pattern(typo), set()).update(meant)
    return concepts


def _pattern(entry: str) -> str:
    if _UNSPACED.search(entry):
        return entry.rstrip("-")
    if entry == "n't":
        return "n't "
    if entry.startswith("-"):
        return f"{entry} "
    return f" {entry[:-1]}" if entry.endswith("-") else f" {entry} "


def _typos(word: str) -> set[str]:
    swapped = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)}
    dropped = {word[:i] + word[i + 1 :] for i in range(1, len(word))}
    doubled = {word[:i] + word[i] + word[i:] for i in range(len(word))}
    return (swapped | dropped | doubled | {word}) - _WORDS
