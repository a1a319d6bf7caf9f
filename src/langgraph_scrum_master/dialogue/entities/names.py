"""Finding names in a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import ahocorasick

from langgraph_scrum_master.dialogue.entities.entity import Entity
from langgraph_scrum_master.text.spelling import Vocabulary, Word, words_in
from langgraph_scrum_master.text.terms import STOP_WORDS

BY_NAME, BY_ALIAS = 1.0, 0.9
"""How sure it is who is meant."""

_NEAR = 0.8
"""The same for a near-miss, times the share of letters that are right."""

PERHAPS = 0.5
"""What is left of it for a name such as Will in lower case or first in a sentence: it may be the ordinary word."""

MOST_EDITS = 2
"""In all words of a name together."""


class Bearer(NamedTuple):
    """Whose name it is, and how sure that is if it is found."""

    entity_id: str
    confidence: float
    written: str


class Mention(NamedTuple):
    """Words of a text that name an entity."""

    entity_id: str
    confidence: float
    words: str


class Names:
    """The names and aliases of entities, ready to be found.

    The longest name counts, and whole words only; `C` is not found in `C++` or `C#`. Where no name stands, words that
    may be one misspelled are found as such.
    """

    def __init__(self, entities: Iterable[Entity]) -> None:
        self._bearers: dict[str, list[Bearer]] = {}
        for entity in entities:
            for bearer in _bearers(entity):
                self._bearers.setdefault(_key(words_in(bearer.written)), []).append(bearer)

    def find(self, text: str) -> list[Mention]:
        """All mentions, in the order of the text; an ambiguous name gives several."""
        if not self._bearers:
            return []
        words = words_in(text)
        exact = list(_leftmost_longest(self._hits(words)))
        taken = {i for start, end in exact for i in range(start, end)}
        found = [(start, mention) for start, end in exact for mention in self._named(text, words, start, end)]
        found += self._misspelled(text, words, self._near(words, taken))
        return [mention for _, mention in sorted(found, key=lambda each: each[0])]

    def _hits(self, words: Sequence[Word]) -> Iterator[tuple[int, int]]:
        """Where names stand, as the first word and the one after the last."""
        line = _key(words) + " "
        places = _places(words)
        for last, length in self._automaton.iter(line):
            start, end = places[last + 1 - length], places.get(last + 1)
            # In the middle of a word, the line has no place of one.
            if end is not None and not _goes_on(words, end):
                yield start, end

    def _named(self, text: str, words: Sequence[Word], start: int, end: int) -> Iterator[Mention]:
        said = _said(text, words[start:end])
        ordinary = all(word.folded in STOP_WORDS for word in words[start:end])
        for bearer in self._bearers[_key(words[start:end])]:
            if not ordinary:
                yield Mention(bearer.entity_id, bearer.confidence, said)
            elif said.split() == bearer.written.split():
                doubtful = said.islower() or _begins_a_sentence(text, words, start)
                yield Mention(bearer.entity_id, bearer.confidence * (PERHAPS if doubtful else 1), said)

    def _near(self, words: Sequence[Word], taken: set[int]) -> list[dict[str, int]]:
        """For each word that is not taken, the words of names that it may be meant for, with the number of edits."""
        distinct = {word.folded for i, word in enumerate(words) if i not in taken}
        # An ordinary word is no misspelled name.
        meant = {word: {word: 0} if word in STOP_WORDS else self._vocabulary.near(word) for word in distinct}
        return [{} if i in taken else meant[word.folded] for i, word in enumerate(words)]

    def _misspelled(
        self, text: str, words: Sequence[Word], near: Sequence[dict[str, int]]
    ) -> Iterator[tuple[int, Mention]]:
        """Near-misses, of those that begin at a word the longest with the fewest edits."""
        free = 0
        for start in range(len(words)):
            if start < free or not (meant := list(self._spellings.meant(near, start))):
                continue
            end, edits = min(((end, edits) for end, edits, _ in meant), key=lambda best: (-best[0], best[1]))
            said = _said(text, words[start:end])
            for key in (key for *best, key in meant if best == [end, edits]):
                right = 1 - edits / len(key.replace(" ", ""))
                for bearer in self._bearers[key]:
                    yield start, Mention(bearer.entity_id, bearer.confidence * _NEAR * right, said)
            free = end

    @cached_property
    def _automaton(self) -> ahocorasick.Automaton:
        automaton = ahocorasick.Automaton()
        for key in self._bearers:
            automaton.add_word(key, len(key))
        automaton.make_automaton()
        return automaton

    @cached_property
    def _spellings(self) -> _Spellings:
        spellings = _Spellings()
        for key in self._bearers:
            spellings.add(key)
        return spellings

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary({word for key in self._bearers for word in key.split()})


class _Spellings:
    """Names by their words, one after the other."""

    __slots__ = ("key", "next")

    def __init__(self) -> None:
        self.key = ""
        self.next: dict[str, _Spellings] = {}

    def add(self, key: str) -> None:
        place = self
        for word in key.split():
            place = place.next.setdefault(word, _Spellings())
        place.key = key

    def meant(self, near: Sequence[dict[str, int]], at: int, edits: int = 0) -> Iterator[tuple[int, int, str]]:
        """The names that words from there on are near-misses of, with where they end and the number of edits."""
        if self.key and edits:
            yield at, edits, self.key
        for word, more in near[at].items() if at < len(near) else ():
            if word in self.next and edits + more <= MOST_EDITS:
                yield from self.next[word].meant(near, at + 1, edits + more)


def _bearers(entity: Entity) -> Iterator[Bearer]:
    known: set[str] = set()
    for name, confidence in ((entity.canonical_name, BY_NAME), *((alias, BY_ALIAS) for alias in entity.aliases)):
        words = words_in(name)
        if (key := _key(words)) not in known:
            known.add(key)
            yield Bearer(entity.id, confidence, _said(name, words))


def _said(text: str, words: Sequence[Word]) -> str:
    """What the text says from the first of the words to the last."""
    return text[words[0].start : words[-1].end]


def _key(words: Sequence[Word]) -> str:
    """The words with a blank before each: what begins there begins a word."""
    return "".join(f" {word.folded}" for word in words)


def _places(words: Sequence[Word]) -> dict[int, int]:
    """By the place of the blank before it in their line, the number of the word; and the end."""
    places, at = {}, 0
    for i, word in enumerate(words):
        places[at] = i
        at += 1 + len(word.folded)
    return places | {at: len(words)}


def _leftmost_longest(hits: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    free = 0
    for start, end in sorted(hits, key=lambda hit: (hit[0], -hit[1])):
        if start >= free:
            yield start, end
            free = end


def _goes_on(words: Sequence[Word], end: int) -> bool:
    """Whether a sign follows that makes it another name, as in C++ and C#."""
    return end < len(words) and words[end].folded in "+#" and words[end].start == words[end - 1].end


def _begins_a_sentence(text: str, words: Sequence[Word], i: int) -> bool:
    return i == 0 or words[i - 1].folded in ".!?:" or "\n" in text[words[i - 1].end : words[i].start]
