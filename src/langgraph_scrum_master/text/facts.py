"""Ids, numbers, dates and names in a conversation, each with the words that say what it is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master.text.prose import sentences
from langgraph_scrum_master.text.terms import STOP_WORDS, terms

HEADING = "Stated: "

_BEFORE, _AFTER, _AFTER_ALONE = 5, 2, 4
"""Words before and after a fact that say what it is, and after one without words before it. By hand."""

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_UNIT = r"(?:€|\$|£|USD|EUR|GBP|CHF|JPY|euros?|dollars?|pounds?|mg|ml|kg|km|cm|mm|[KMGT]i?B|kWh?|°C)"
_FACT = lazy_pattern(
    r"https?://[^\s<>\"')]+[\w/]"
    r"|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? {_MONTH}(?:,? \d{{4}})?|\b{_MONTH} \d{{1,2}}\b(?:,? \d{{4}})?"
    rf"|[€$£¥] ?\d(?:[\d.,]*\d)?(?: ?[kKM]\b)?|\b(?<!\d[.,])\d+(?:[.,]\d+)* ?{_UNIT}(?!\w)"
    r"|(?<![\d()/-])(?<![\d()/-] )\+?\d[\d()/-]*(?: [\d()/-]+)+\d"
    r"|(?:\b[A-Z]{1,3}(?:-[A-Z]{1,3})? (?=\d{3}))\d+"
    r"|(?:~|\.{1,2})?(?:/[\w.@-]+){2,}"
    r"|(?<![\w-])[A-Z][a-z][\w-]+(?: [A-Z][a-z][\w-]+)+"
    r"|#?\b\w(?:[\w.:@+/-]*\w)?"
)
_CLAUSE = lazy_pattern(r"[,;:()–—]\s+|(?<!\s)\s+(?:[-–—]|and|but|because|which|so|und|aber|y|et|mais)\s+")
_ORDINAL = lazy_pattern(r"\d+(?:st|nd|rd|th|am|pm|x|k|s|h)?", re.I)
_CLOCK = lazy_pattern(r"\d{1,2}:\d\d")
_YEAR = lazy_pattern(r"(?:19|20)\d\d")
_NAME = lazy_pattern(r"[A-Z][a-z][\w-]+(?: [A-Z][a-z][\w-]+)+")
_DECIMAL = lazy_pattern(r"\d+[.,]\d+")

_MARKS = " .,;:!?"
_EMPTY = STOP_WORDS - {"not", "no"}

_STRONG, _MEDIUM, _WEAK = 3.0, 2.0, 1.0
"""Weights of facts that nothing else can stand for (ids, addresses, paths), of dates, amounts and names, and of other
numbers. By hand."""


class _Fact(NamedTuple):
    text: str
    start: int
    end: int
    weight: float


class _Statement(NamedTuple):
    """A few words with one or more facts."""

    text: str
    facts: tuple[str, ...]
    weight: float
    position: int


def stated_facts(text: str, room: int, count: Callable[[str], int], *, known: str = "", focus: str = "") -> str:
    """A line with the facts in the text that are not in `known`, each with the words around it, in at most `room`
    tokens; empty if there are none.

    Ids come before dates, amounts and names, and these before other numbers; what is on the focus, was referred to
    again, or was said later comes first among equals.
    """
    ranked = [each for each in _statements(text, focus) if not all(fact in known for fact in each.facts)]
    fewest, most = 0, len(ranked)
    while fewest < most:
        middle = (fewest + most + 1) // 2
        fewest, most = (middle, most) if count(_line(ranked[:middle])) <= room else (fewest, middle - 1)
    return _line(ranked[:fewest])


def facts_in(text: str) -> frozenset[str]:
    """The ids, dates, amounts and names in a text, without other numbers."""
    found = chain.from_iterable(map(_in_sentence, sentences(text)))
    return frozenset(fact for each in found if each.weight >= _MEDIUM for fact in each.facts)


def _line(chosen: Sequence[_Statement]) -> str:
    ordered = sorted(chosen, key=lambda each: each.position)
    return f"{HEADING}{'; '.join(each.text for each in ordered)}." if ordered else ""


def _statements(text: str, focus: str) -> list[_Statement]:
    """The statements of a conversation, the most important first. Of several on the same facts, the last one."""
    latest: dict[tuple[str, ...], _Statement] = {}
    times: Counter[str] = Counter()
    for position, sentence in enumerate(sentences(text)):
        for each in _in_sentence(sentence):
            latest[each.facts] = each._replace(position=position)
            times.update(each.facts)
    wanted = frozenset(terms(focus))

    def importance(each: _Statement) -> tuple[float, int]:
        again = min(2, max(times[fact] for fact in each.facts) - 1)
        return (-each.weight - 0.5 * again - 1.5 * bool(wanted.intersection(terms(each.text))), -each.position)

    return sorted(latest.values(), key=importance)


@lru_cache(maxsize=4_096)
def _in_sentence(sentence: str) -> tuple[_Statement, ...]:
    starts = [0, *(match.end() for match in _CLAUSE.finditer(sentence))]
    clauses = zip(starts, [*starts[1:], len(sentence)], strict=True)
    return tuple(each for start, end in clauses for each in _in_clause(sentence[start:end]))


def _in_clause(clause: str) -> Iterator[_Statement]:
    words = list(re.finditer(r"\S+", clause))
    group: list[_Fact] = []
    for fact in [*_facts(clause), None]:
        if group and (fact is None or sum(group[-1].end <= word.start() < fact.start for word in words) > _BEFORE):
            yield _statement(clause, words, group)
            group = []
        if fact is not None:
            group.append(fact)


def _statement(clause: str, words: Sequence[re.Match[str]], group: Sequence[_Fact]) -> _Statement:
    start, end = group[0].start, group[-1].end
    before = [word for word in words if word.end() <= start][-_BEFORE:]
    while before and before[0][0].lower().strip(_MARKS) in _EMPTY:
        before.pop(0)
    after = [word for word in words if word.start() >= end][: _AFTER if before else _AFTER_ALONE]
    while after and after[-1][0].lower().strip(_MARKS) in _EMPTY:
        after.pop()
    text = clause[before[0].start() if before else start : after[-1].end() if after else end].strip(_MARKS)
    weight = max(fact.weight for fact in group) + 0.1 * (len(group) - 1)
    return _Statement(text, tuple(fact.text for fact in group), weight, 0)


def _facts(clause: str) -> Iterator[_Fact]:
    for match in _FACT.finditer(clause):
        text = match[0].strip()
        if weight := _weight(text):
            yield _Fact(text, match.start(), match.start() + len(match[0].rstrip()), weight)


def _weight(text: str) -> float:
    """How much the loss of a token would hurt; 0 if it is an ordinary word or a small number."""
    digits = sum(map(str.isdecimal, text))
    if _NAME.fullmatch(text):
        return 0.0 if text.split(maxsplit=1)[0].lower() in STOP_WORDS else _MEDIUM
    if "@" in text or "://" in text or text[0] in "#/~":
        return _STRONG if len(text) > 2 else 0.0
    if not digits:
        return _wordlike(text)
    if text.isdecimal():
        return _WEAK if len(text) == 3 or _YEAR.fullmatch(text) else _STRONG if digits >= 4 else 0.0
    if _ORDINAL.fullmatch(text):
        return 0.0
    if " " in text or text[0] in "€$£¥" or _CLOCK.fullmatch(text) or _DECIMAL.fullmatch(text):
        return _MEDIUM if digits > 1 else _WEAK
    return _STRONG


def _wordlike(text: str) -> float:
    """The weight of a token without digits: a code in capitals, a path, an identifier, alternatives such as a/b."""
    if (
        (text.isupper() and len(text) >= 5)
        or text.count("/") > 1
        or ("/" in text and not text.replace("/", "").isalpha())
    ):
        return _STRONG
    if "_" in text or (not text.isupper() and text[1:] != text[1:].lower() and text.isalnum()):
        return _MEDIUM
    return _WEAK if "/" in text and STOP_WORDS.isdisjoint(text.split("/")) else 0.0
