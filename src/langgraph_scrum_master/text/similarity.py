"""Near-duplicate detection with word shingles, and with content words where texts differ in grammar or typos."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from langgraph_scrum_master.text.prose import sentences
from langgraph_scrum_master.text.terms import STOP_WORDS, numbers, stem

SHINGLE = 3
"""Words per shingle."""

_SAME = 0.9
"""The minimum share of a text's shingles that the other has, by hand."""

NEGATIONS = frozenset(
    {"no", "not", "never", "cannot", "without", "nor", "neither", "none", "nobody", "nothing", "t"}
    | {"unless", "except", "only"}
)
"""Words that reverse or restrict a statement. "don't" is tokenized into `don` and `t`."""

CRITICAL = NEGATIONS | frozenset(
    {"until", "instead", "before", "after", "above", "below", "over", "under", "off", "must", "may", "if"}
    | {"always", "all", "both", "more", "most", "less", "least"}
)
"""Words of which texts with the same meaning have the same. By hand."""

WORDS_PER_ERROR = 6
"""Duplicates may differ by one typo per this many content words, and always by one."""

MISTYPED = 5
"""The minimum length of a word for a one-letter difference to count as a typo."""

FEWEST_WORDS = 4
"""The minimum number of content words of texts that are compared with tolerance."""

MARKS = 4
"""The number of longest words by which candidates are looked up."""

SHARED = 2
"""The number of these that a near-duplicate shares: one may be mistyped, and one in a further clause."""

MOVED = 2
"""The minimum number of content words of a clause that may be elsewhere in a duplicate. The place of a single word is
its role."""

_IGNORED = STOP_WORDS - CRITICAL
_SHARED_WORDS = 1 - 1 / FEWEST_WORDS
_GRAMMAR = STOP_WORDS | CRITICAL

_WORDS = re.compile(r"\w+")
_NAMES = re.compile(r"(?<![.!?\n] )(?<!^)(?<![.!?\n])\b[A-Z]\w*|\b\w*(?:\d|_|[a-z][A-Z])\w*", re.M)


class CombinedTexts:
    """Texts that together may contain another one."""

    __slots__ = ("_numbers", "_sentences", "_shingles")

    def __init__(self, *texts: str) -> None:
        self._shingles: set[tuple[str, ...]] = set()
        self._numbers: set[str] = set()
        self._sentences: set[tuple[str, ...]] = set()
        for text in texts:
            self._shingles.update(_shingles(_words(text)))
            self._numbers.update(numbers(text))
            self._sentences.update(tuple(_words(sentence)) for sentence in sentences(text))

    def contain(self, text: str) -> bool:
        """Whether they contain all sentences of the text, nearly verbatim and with all numbers."""
        parts = sentences(text)
        # Very short parts such as headings count only if there is nothing else.
        checked = [part for part in parts if len(_words(part)) > SHINGLE or numbers(part)] or parts
        return all(map(self._contain_sentence, checked))

    def _contain_sentence(self, text: str) -> bool:
        words = _words(text)
        if not words:
            return True
        if not numbers(text) <= self._numbers:
            return False
        if len(words) <= SHINGLE:
            # So few words occur in longer texts by chance: they must be a sentence.
            return tuple(words) in self._sentences
        shingles = _shingles(words)
        return sum(shingle in self._shingles for shingle in shingles) >= _SAME * len(shingles)


class SaidTexts:
    """A set of texts without near-duplicates."""

    __slots__ = ("_first", "_further", "_gists", "_marked", "_texts", "_wordings", "_words")

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._words: list[list[str]] = []
        self._wordings: set[tuple[str, ...]] = set()
        # Most shingles occur in one text only, so that further ones are stored separately.
        self._first: dict[tuple[str, ...], int] = {}
        self._further: dict[tuple[str, ...], list[int]] = {}
        self._gists: list[_Gist] = []
        # Texts by their longest words, most of which a near-duplicate shares.
        self._marked: dict[str, list[int]] = {}

    def add(self, text: str) -> bool:
        """Add the text unless it is a near-duplicate. Returns whether it was added."""
        words = _words(text)
        # Fast path: most duplicates are exact.
        if tuple(words) in self._wordings:
            return False
        shingles = set(_shingles(words))
        known = shingles & self._first.keys()
        gist = _gist(text, words)
        if self._contains(words, shingles, known) or self._has(gist):
            return False
        index = len(self._texts)
        self._gists.append(gist)
        for word in _marks(gist):
            self._marked.setdefault(word, []).append(index)
        self._first.update(dict.fromkeys(shingles - known, index))
        for shingle in known:
            self._further.setdefault(shingle, []).append(index)
        self._texts.append(text)
        self._words.append(words)
        self._wordings.add(tuple(words))
        return True

    def _contains(self, words: list[str], shingles: set[tuple[str, ...]], known: set[tuple[str, ...]]) -> bool:
        if not words:
            return True
        if len(words) <= SHINGLE:
            return any(words == _words(sentence) for text in self._texts for sentence in sentences(text))
        needed = _SAME * len(shingles)
        if len(known) < needed:
            return False
        shared = Counter(self._first[shingle] for shingle in known)
        shared.update(chain.from_iterable(self._further.get(shingle, ()) for shingle in known))
        return any(
            count >= needed and _adds_nothing(frozenset(words), frozenset(self._words[index]))
            for index, count in shared.items()
        )

    def _has(self, gist: _Gist) -> bool:
        """Whether a text says the same."""
        if len(gist.content) < FEWEST_WORDS:
            return False
        candidates = Counter(index for word in _marks(gist) for index in self._marked.get(word, ()))
        return any(count >= SHARED and _alike(gist, self._gists[index]) for index, count in candidates.items())


class _Gist(NamedTuple):
    """What a text says, without its grammar."""

    content: tuple[str, ...]
    """The stems of its content words, in order."""
    spelled: dict[str, str]
    """The word of each stem."""
    critical: tuple[str, ...]
    size: int
    """Letters of its content words."""
    text: str


def _gist(text: str, words: Sequence[str]) -> _Gist:
    spelled = [word for word in words if word not in _GRAMMAR and (len(word) > 1 or not word.isalpha())]
    content = tuple(map(stem, spelled))
    return _Gist(
        content=content,
        spelled=dict(zip(content, spelled, strict=True)),
        critical=tuple(sorted(word for word in words if word in CRITICAL)),
        size=sum(map(len, spelled)),
        text=text,
    )


def _marks(gist: _Gist) -> list[str]:
    return sorted(set(gist.content), key=lambda word: (-len(word), word))[:MARKS]


def _alike(one: _Gist, other: _Gist) -> bool:
    """Whether two texts say the same, but for typos, grammar, and a short clause before or after."""
    # Nearly all pairs end here.
    if one.critical != other.critical or 2 * min(one.size, other.size) < _SAME * (one.size + other.size):
        return False
    if len(one.spelled.keys() & other.spelled.keys()) < _SHARED_WORDS * min(len(one.spelled), len(other.spelled)):
        return False
    short, long = sorted((one, other), key=lambda gist: len(gist.content))
    length, further = len(short.content), len(long.content) - len(short.content)
    spelled = one.spelled | other.spelled
    same = any(_same(short.content, long.content[i : i + length], spelled) for i in range(further + 1))
    return same and _names_are_in(one.text, other.text) and _names_are_in(other.text, one.text)


def _names_are_in(text: str, other: str) -> bool:
    """Whether all names and numbers of a text occur in the other."""
    names = {word.lower() for word in _NAMES.findall(text)}
    return names <= {*_words(other)} and numbers(text) <= numbers(other)


def _same(one: Sequence[str], other: Sequence[str], spelled: Mapping[str, str]) -> bool:
    """Whether two texts of the same length have the same words in about the same order, except for typos."""
    mine, theirs = Counter(one), Counter(other)
    wrong, right = sorted((mine - theirs).elements()), sorted((theirs - mine).elements())
    if len(wrong) > max(1, len(one) // WORDS_PER_ERROR):
        return False
    if not all(_mistyped(spelled[a], spelled[b]) for a, b in zip(wrong, right, strict=True)):
        return False
    meant = dict(zip(right, wrong, strict=True))
    return _reordered(list(one), [meant.get(word, word) for word in other])


def _reordered(one: list[str], other: list[str]) -> bool:
    """Whether two lists of the same words are equal but for the order of clauses."""
    start = 0
    while one != other and start < len(one):
        run = max(_common(one[start:], other[i:]) for i, word in enumerate(other) if word == one[start])
        if run < MOVED:
            return False
        start += run
    return True


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of words with which both begin."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _mistyped(one: str, other: str) -> bool:
    """Whether two words differ by one letter or a transposition."""
    if min(len(one), len(other)) < MISTYPED or one[0] != other[0] or not (one + other).isalpha():
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    one, other = one[start:], other[start:]
    return (
        one[1:] == other[1:]
        or one[1:] == other
        or one == other[1:]
        or (one[:2] == other[1::-1] and one[2:] == other[2:])
    )


class ExactTexts:
    """A set of texts that ignores case and punctuation."""

    __slots__ = ("_texts",)

    def __init__(self, *texts: str) -> None:
        self._texts = {tuple(_words(text)) for text in texts}

    def __contains__(self, text: str) -> bool:
        return tuple(_words(text)) in self._texts


def _adds_nothing(words: frozenset[str], known: frozenset[str]) -> bool:
    """Whether only stop words are new, and the negations are the same."""
    return words - known <= _IGNORED and words & NEGATIONS == known & NEGATIONS


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())


def _shingles(words: list[str]) -> list[tuple[str, ...]]:
    return list(zip(*(words[i:] for i in range(SHINGLE)), strict=False))
