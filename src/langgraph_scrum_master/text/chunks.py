"""Splits documents into chunks."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from langgraph_scrum_master.text.sections import Section, sections_of
from langgraph_scrum_master.text.trim import SENTENCE_END, WORD_END

_PARAGRAPH_END = re.compile(r"\n[ \t]*\n\s*")
_LINE_END = re.compile(r"\n\s*")
_NOT_WHITESPACE = re.compile(r"\S")
_ENDS = (_PARAGRAPH_END, SENTENCE_END, _LINE_END, WORD_END)


class Chunk(NamedTuple):
    """A part of a text, by its offsets."""

    section: str
    """Its headings, such as `Shop > Refunds`."""
    start: int
    end: int


def chunks(text: str, size: int, overlap: int, count: Callable[[str], int]) -> list[Chunk]:
    """Split the text into chunks of at most `size` tokens: its sections, and parts of longer ones.

    A section is split after a paragraph, else a sentence, a line or a word, if the chunk is half full. The next chunk
    repeats the last whole sentences or words, up to `overlap` tokens. Every character is in a chunk. A heading
    without text is joined to the next section.
    """
    return [chunk for section in _filled(text) for chunk in _cut(text, section, size, overlap, count)]


def parts(text: str, size: int) -> list[str]:
    """Split a text without headings into parts of at most `size` characters, without overlap."""
    whole = Section("", 0, 0, len(text))
    return [text[part.start : part.end] for part in _cut(text, whole, size, 0, len)]


def _filled(text: str) -> Iterator[Section]:
    """The sections. Those with only a heading are joined to the next."""
    first: int | None = None
    sections = sections_of(text)
    for i, section in enumerate(sections):
        first = section.start if first is None else first
        if text[section.body : section.end].strip() or i == len(sections) - 1:
            yield section._replace(start=first)
            first = None


def _cut(text: str, section: Section, size: int, overlap: int, count: Callable[[str], int]) -> Iterator[Chunk]:
    start = _skip_whitespace(text, section.start, section.end)
    last = start + len(text[start : section.end].rstrip())
    done = start
    while start < last:
        longest = _longest(text, start, last, size, count)
        if longest <= done:
            # The overlap leaves no room for new text.
            start = done
            longest = _longest(text, start, last, size, count)
        end = longest if longest == last else _best_end(text, start, done, longest, size, count)
        yield Chunk(section.title, start, start + len(text[start:end].rstrip()))
        done = _skip_whitespace(text, end, last)
        start = _overlap_start(text, start, done, overlap, count) if done < last else last


def _longest(text: str, start: int, last: int, size: int, count: Callable[[str], int]) -> int:
    """The end of the longest chunk that starts here; at least one character."""
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
    """The best offset to cut at, after `done` and preferably in the second half."""
    middle = (start + longest) // 2
    for least in (max(done, middle), done):
        for pattern in _ENDS:
            ends = [match.start() for match in pattern.finditer(text, least, longest + 1)]
            fitting = (end for end in reversed(ends) if least < end <= longest and count(text[start:end]) <= size)
            if end := next(fitting, 0):
                return end
    return longest


def _overlap_start(text: str, start: int, done: int, overlap: int, count: Callable[[str], int]) -> int:
    """The start of the next chunk: the first sentence or word of this one that fits into the overlap."""
    for pattern in (SENTENCE_END, WORD_END) if overlap else ():
        begins = [match.end() for match in pattern.finditer(text, start + 1, done) if match.end() < done]
        first = _first(begins, lambda begin: count(text[begin:done].rstrip()) <= overlap)
        if first is not None:
            return first
    return done


def _first(offsets: Sequence[int], holds: Callable[[int], bool]) -> int | None:
    """The first offset for which the predicate holds, given that it holds for all later ones."""
    i = bisect_right(offsets, False, key=holds)
    return offsets[i] if i < len(offsets) else None


def _skip_whitespace(text: str, start: int, end: int) -> int:
    """The offset after leading whitespace."""
    match = _NOT_WHITESPACE.search(text, start, end)
    return match.start() if match else end
