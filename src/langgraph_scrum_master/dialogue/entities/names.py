"""Finds the names of entities in a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import ahocorasick

from langgraph_scrum_master.dialogue.entities.entity import Entity
from langgraph_scrum_master.text.spelling import Vocabulary, Word, words_in
from langgraph_scrum_master.text.terms import STOP_WORDS

BY_NAME, BY_ALIAS = 1.0, 0.9
"""Confidence of a mention by canonical name and by alias."""

_NEAR_MISS = 0.8
"""Factor for a near-miss, multiplied by the share of correct letters."""

_AMBIGUOUS = 0.5
"""Factor for a name that may be an ordinary word, such as Will in lower case or at the start of a sentence."""

MAX_EDITS = 2
"""Maximum number of edits over all words of a name."""


class NameOwner(NamedTuple):
    """An entity that a name refers to, and the confidence of a match."""

    entity_id: str
    confidence: float
    spelling: str


class Mention(NamedTuple):
    """A mention of an entity in a text."""

    entity_id: str
    confidence: float
    words: str


class NameIndex:
    """An index of the names and aliases of entities.

    Only whole words match, and the longest name wins; `C` does not match in `C++` or `C#`. Words that match no name
    exactly may match as near-misses.
    """

    def __init__(self, entities: Iterable[Entity]) -> None:
        self._owners: dict[str, list[NameOwner]] = {}
        for entity in entities:
            for owner in _owners(entity):
                self._owners.setdefault(_key(words_in(owner.spelling)), []).append(owner)

    def find(self, text: str) -> list[Mention]:
        """All mentions in text order. An ambiguous name yields several."""
        if not self._owners:
            return []
        words = words_in(text)
        exact = list(_leftmost_longest(self._hits(words)))
        taken = {i for start, end in exact for i in range(start, end)}
        mentions = [
            (start, mention) for start, end in exact for mention in self._exact_mentions(text, words, start, end)
        ]
        mentions += self._near_mentions(text, words, self._near(words, taken))
        return [mention for _, mention in sorted(mentions, key=lambda each: each[0])]

    def _hits(self, words: Sequence[Word]) -> Iterator[tuple[int, int]]:
        """Word ranges of exact matches, as start and end."""
        line = _key(words) + " "
        word_starts = _word_starts(words)
        for last, length in self._automaton.iter(line):
            start, end = word_starts[last + 1 - length], word_starts.get(last + 1)
            # A match that ends inside a word has no end position.
            if end is not None and not _symbol_follows(words, end):
                yield start, end

    def _exact_mentions(self, text: str, words: Sequence[Word], start: int, end: int) -> Iterator[Mention]:
        mention_text = _span_text(text, words[start:end])
        ordinary = all(word.folded in STOP_WORDS for word in words[start:end])
        for owner in self._owners[_key(words[start:end])]:
            if not ordinary:
                yield Mention(owner.entity_id, owner.confidence, mention_text)
            elif mention_text.split() == owner.spelling.split():
                ambiguous = mention_text.islower() or _starts_sentence(text, words, start)
                yield Mention(owner.entity_id, owner.confidence * (_AMBIGUOUS if ambiguous else 1), mention_text)

    def _near(self, words: Sequence[Word], taken: set[int]) -> list[dict[str, int]]:
        """For each word outside an exact match, the similar words of names with their edit distances."""
        distinct = {word.folded for i, word in enumerate(words) if i not in taken}
        # A stop word is not a misspelled name.
        candidates = {word: {word: 0} if word in STOP_WORDS else self._vocabulary.near(word) for word in distinct}
        return [{} if i in taken else candidates[word.folded] for i, word in enumerate(words)]

    def _near_mentions(
        self, text: str, words: Sequence[Word], near: Sequence[dict[str, int]]
    ) -> Iterator[tuple[int, Mention]]:
        """Near-misses. At each start the longest one wins, then the one with the fewest edits."""
        free = 0
        for start in range(len(words)):
            if start < free or not (matches := list(self._trie.near_misses(near, start))):
                continue
            end, edits = min(((end, edits) for end, edits, _ in matches), key=lambda best: (-best[0], best[1]))
            mention_text = _span_text(text, words[start:end])
            for key in (key for *best, key in matches if best == [end, edits]):
                right = 1 - edits / len(key.replace(" ", ""))
                for owner in self._owners[key]:
                    yield start, Mention(owner.entity_id, owner.confidence * _NEAR_MISS * right, mention_text)
            free = end

    @cached_property
    def _automaton(self) -> ahocorasick.Automaton:
        automaton = ahocorasick.Automaton()
        for key in self._owners:
            automaton.add_word(key, len(key))
        automaton.make_automaton()
        return automaton

    @cached_property
    def _trie(self) -> _NameTrie:
        trie = _NameTrie()
        for key in self._owners:
            trie.add(key)
        return trie

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary({word for key in self._owners for word in key.split()})


class _NameTrie:
    """A trie of names, word by word."""

    __slots__ = ("key", "next")

    def __init__(self) -> None:
        self.key = ""
        self.next: dict[str, _NameTrie] = {}

    def add(self, key: str) -> None:
        node = self
        for word in key.split():
            node = node.next.setdefault(word, _NameTrie())
        node.key = key

    def near_misses(self, near: Sequence[dict[str, int]], at: int, edits: int = 0) -> Iterator[tuple[int, int, str]]:
        """Names that the words from `at` on nearly match, as end position, number of edits and key."""
        if self.key and edits:
            yield at, edits, self.key
        for word, more in near[at].items() if at < len(near) else ():
            if word in self.next and edits + more <= MAX_EDITS:
                yield from self.next[word].near_misses(near, at + 1, edits + more)


def _owners(entity: Entity) -> Iterator[NameOwner]:
    known: set[str] = set()
    for name, confidence in ((entity.canonical_name, BY_NAME), *((alias, BY_ALIAS) for alias in entity.aliases)):
        words = words_in(name)
        if (key := _key(words)) not in known:
            known.add(key)
            yield NameOwner(entity.id, confidence, _span_text(name, words))


def _span_text(text: str, words: Sequence[Word]) -> str:
    """The text from the first word to the last."""
    return text[words[0].start : words[-1].end]


def _key(words: Sequence[Word]) -> str:
    """The folded words, each preceded by a space, so that matches start at word boundaries."""
    return "".join(f" {word.folded}" for word in words)


def _word_starts(words: Sequence[Word]) -> dict[int, int]:
    """Word numbers by the offset of the preceding space in the key; the last entry is the end."""
    word_starts, at = {}, 0
    for i, word in enumerate(words):
        word_starts[at] = i
        at += 1 + len(word.folded)
    return word_starts | {at: len(words)}


def _leftmost_longest(hits: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    free = 0
    for start, end in sorted(hits, key=lambda hit: (hit[0], -hit[1])):
        if start >= free:
            yield start, end
            free = end


def _symbol_follows(words: Sequence[Word], end: int) -> bool:
    """Whether a symbol follows that makes it a different name, as in C++ and C#."""
    return end < len(words) and words[end].folded in "+#" and words[end].start == words[end - 1].end


def _starts_sentence(text: str, words: Sequence[Word], i: int) -> bool:
    return i == 0 or words[i - 1].folded in ".!?:" or "\n" in text[words[i - 1].end : words[i].start]
