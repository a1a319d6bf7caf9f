"""A document in pieces."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from langgraph_scrum_master.text.sections import Section, sections_of
from langgraph_scrum_master.text.trim import SENTENCE_END, WORD_END

_PARAGRAPH_END = re.compile(r"\n[ \t]*\n\s*")
_LINE_END = re.compile(r"\n\s*")
_NO_BLANK = re.compile(r"\S")
_ENDS = (_PARAGRAPH_END, SENTENCE_END, _LINE_END, WORD_END)


class Chunk(NamedTuple):
    """A piece of a text, by its places in it."""

    section: str
    """The headings that it stands under, as in `Shop > Refunds`."""
    start: int
    end: int


def chunks(text: str, size: int, overlap: int, count: Callable[[str], int]) -> list[Chunk]:
    """The text in pieces of at most `size` tokens: its sections, and of longer ones parts, in order.

    A section is cut after a paragraph, or else a sentence, a line or a word, if that leaves the piece half full; the
    next piece begins with the last whole sentences or words before the cut that have at most `overlap` tokens. Every
    letter is in a piece. A heading with nothing below it stands with what follows.
    """
    return [chunk for section in _filled(text) for chunk in _cut(text, section, size, overlap, count)]


def parts(text: str, size: int) -> list[str]:
    """A text without headings in pieces of at most `size` characters, cut as `chunks` does, without overlap."""
    whole = Section("", 0, 0, len(text))
    return [text[part.start : part.end] for part in _cut(text, whole, size, 0, len)]


def _filled(text: str) -> Iterator[Section]:
    """The sections, those that have but a heading joined to the next."""
    begun: int | None = None
    sections = sections_of(text)
    for i, section in enumerate(sections):
        begun = section.start if begun is None else begun
        if text[section.body : section.end].strip() or i == len(sections) - 1:
            yield section._replace(start=begun)
            begun = None


def _cut(text: str, section: Section, size: int, overlap: int, count: Callable[[str], int]) -> Iterator[Chunk]:
    start = _skipped(text, section.start, section.end)
    last = start + len(text[start : section.end].rstrip())
    done = start
    while start < last:
        longest = _longest(text, start, last, size, count)
        if longest <= done:
            # What was to be repeated leaves no room for anything new.
            start = done
            longest = _longest(text, start, last, size, count)
        end = longest if longest == last else _best_end(text, start, done, longest, size, count)
        yield Chunk(section.title, start, start + len(text[start:end].rstrip()))
        done = _skipped(text, end, last)
        start = _repeated(text, start, done, overlap, count) if done < last else last


def _longest(text: str, start: int, last: int, size: int, count: Callable[[str], int]) -> int:
    """Where the longest piece from there ends; it has a letter at least."""
    low, high = start + 1, min(last, start + 4 * size)
    while high < last and count(text[start:high]) <= size:
        low, high = high, min(last, start + 2 * (high - start))
    if count(text[start:high]) <= size:
        return high
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if count(text[start:middle]) <= size else (low, middle)
    return low


def _best_end(text: str, start: int, done: int, longest: int, size: int, count: Callable[[str], int]) -> int:
    """The best place to cut, after what is done and not before the middle if that can be."""
    middle = (start + longest) // 2
    for least in (max(done, middle), done):
        for pattern in _ENDS:
            ends = [match.start() for match in pattern.finditer(text, least, longest + 1)]
            fitting = (end for end in reversed(ends) if least < end <= longest and count(text[start:end]) <= size)
            if end := next(fitting, 0):
                return end
    return longest


def _repeated(text: str, start: int, done: int, overlap: int, count: Callable[[str], int]) -> int:
    """Where the next piece begins: with whole sentences of this one, or else words, as many as may be repeated."""
    for pattern in (SENTENCE_END, WORD_END) if overlap else ():
        begins = [match.end() for match in pattern.finditer(text, start + 1, done) if match.end() < done]
        first = _first(begins, lambda begin: count(text[begin:done].rstrip()) <= overlap)
        if first is not None:
            return first
    return done


def _first(places: Sequence[int], holds: Callable[[int], bool]) -> int | None:
    """The first place for which it holds, if it holds for all that follow."""
    i = bisect_right(places, False, key=holds)
    return places[i] if i < len(places) else None


def _skipped(text: str, start: int, end: int) -> int:
    """The place after the blanks that stand there."""
    found = _NO_BLANK.search(text, start, end)
    return found.start() if found else end
