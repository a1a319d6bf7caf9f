"""Tokenizes texts into content words."""

from __future__ import annotations

from functools import cache
from typing import Any

from langgraph_scrum_master._internal.caches import text_cache
from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master._internal.shapes import well_formed

_WORD = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*(?:[.\-][A-Za-z0-9_]+)*|\d+(?:\.\d+)*|[^\W\d_]+")
_PARTS = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_UNSPACED = lazy_pattern(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
"""Scripts that are indexed by character pairs: Chinese, Japanese and Korean."""
_NUMBER = lazy_pattern(r"\d+(?:[.,]\d+)*")
_PLAIN = lazy_pattern(r"[^\W_]+")

STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any anybody anyone are as ask at be because been before being below
    between blocked both but by can cannot clarification clarify could did do does doing don down during each else ever
    every few for from further get give go going had has have having he help her here hers him his how i if in
    information into is it its itself just know let like make may me might mine more most must my need needs no nor not
    now of off ok on once one only or other our ours out over own per please proceed provide really same say says see
    shall she should so some somebody someone specified specify such sure tell than thank thanks that the their theirs
    them then there these they thing things this those through to too unclear under until up upon us use used using very
    want was we well were what when where whether which while who whom whose why will with within without would yes yet
    you your yours
    """.split()  # noqa: SIM905 - a list of 170 quoted words is no easier to read
)


def terms(text: str) -> list[str]:
    """The stemmed content words in order, without stop words. Identifiers are included both whole and split.

    Chinese, Japanese and Korean are split into overlapping character pairs.
    """
    return [stem(word) for word in words(text)]


def words(text: str) -> list[str]:
    """Like `terms`, in lower case but not stemmed."""
    result: list[str] = []
    text = well_formed(text)
    for word in _WORD.findall(text):
        if (lowered := word.lower()) in STOP_WORDS:
            continue
        if _UNSPACED.search(word):
            result.extend(_pairs(lowered))
            continue
        result.append(lowered)
        parts = [part.lower() for part in _PARTS.findall(word)]
        if len(parts) > 1:
            result.extend(part for part in parts if part not in STOP_WORDS)
    return result


def _pairs(word: str) -> list[str]:
    """Overlapping character pairs of the parts without spaces, and the other parts as they are."""
    runs = _UNSPACED.findall(word)
    pairs = [run[i : i + 2] for run in runs for i in range(max(1, len(run) - 1))]
    return [*pairs, *(rest for rest in _UNSPACED.split(word) if rest)]


def plain_words(*texts: str) -> list[str]:
    """The distinct alphanumeric words of the texts, as first spelled."""
    seen: dict[str, str] = {}
    for text in texts:
        for word in _PLAIN.findall(text):
            seen.setdefault(word.lower(), word)
    return list(seen.values())


def numbers(text: str) -> frozenset[str]:
    """The numbers in a text."""
    return frozenset(_NUMBER.findall(text))


@text_cache(500_000)
def stem(word: str) -> str:
    """The English stem of a lower-case word."""
    return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> Any:
    import Stemmer

    # Without a cache of its own: `stem` has one, and stemming is faster than looking in both.
    return Stemmer.Stemmer("english", 0)
