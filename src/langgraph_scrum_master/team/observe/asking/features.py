"""Features of a unit: its n-grams, cues, form and position in the turn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from langgraph_scrum_master.team.observe.asking.cues import cues
from langgraph_scrum_master.team.observe.asking.phrases import phrases
from langgraph_scrum_master.team.observe.asking.units import CODE, Unit, Units

CHARACTERS = 4
"""Length of character n-grams."""

CUES, FORM = 0.1, 0.3
"""The weights of cues, and of form and phrases."""

_LETTER = r"(?:[^\W\d_]|[\u0900-\u0963\u0971-\u097f])"
_TOKEN = re.compile(rf"{_LETTER}+(?:['’]{_LETTER}+)?|\d+|[?？!:…]|[\u2402\u2403\u2404]|@|_+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_NUMBER = re.compile(r"\d+")
_AFTER = "\"')*_ ”」"
_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)])\s")
_HEADING = re.compile(r"\s*#")
_TURN = {
    "thought": re.compile(r"^[^\w\n]*thoughts?\b", re.I | re.M),
    "action": re.compile(r"^[^\w\n]*action(?: input)?\b", re.I | re.M),
    "observation": re.compile(r"^[^\w\n]*observation", re.I | re.M),
    "tool": re.compile(r"^\s*\[(?:tool|call)", re.I),
}


class UnitFeatures(NamedTuple):
    """Feature names of a unit, in three groups with different weights."""

    ngrams: frozenset[str]
    cues: frozenset[str]
    form: frozenset[str]

    def weighted(self) -> tuple[tuple[float, frozenset[str]], ...]:
        """The groups with their weights. N-grams are normalised by their number."""
        share = len(self.ngrams) ** -0.5 if self.ngrams else 0.0
        return (share, self.ngrams), (CUES, self.cues), (FORM, self.form)


class Sentence:
    """A unit with its tokens and its cues in order."""

    __slots__ = ("concepts", "cues", "is_question", "text", "tokens")

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.cues = [cue.concept for cue in cues(text)]
        self.concepts = frozenset(self.cues)
        self.is_question = text.rstrip(_AFTER).endswith(("?", "？"))


def tokens(text: str) -> list[str]:
    """The lower-case words and punctuation of a text; all numbers become "0"."""
    return ["0" if word[0].isdigit() else word for word in _TOKEN.findall(text.lower().replace("’", "'"))]


def features(turn: str, turn_units: Units, wanted: Sequence[int]) -> list[UnitFeatures]:
    """The features of the wanted units of a turn."""
    units = turn_units.items
    near = {j for i in wanted for j in (i - 1, i, i + 1) if 0 <= j < len(units)}
    sentences = {i: Sentence(units[i].text) for i in near}
    of_turn = frozenset(f"T{name}" for name, pattern in _TURN.items() if pattern.search(turn[:4_000]))
    if any(CODE in unit.text for unit in units):
        of_turn |= {"Tcode"}
    if turn_units.is_object:
        of_turn |= {"Tobject"}
    return [
        UnitFeatures(
            ngrams=ngrams(sentences[i]) | neighbours(sentences, i),
            cues=cue_features(sentences[i]) | _context(sentences, i),
            form=_form(turn, units, i, sentences[i]) | phrases(sentences[i].text) | of_turn,
        )
        for i in wanted
    ]


def ngrams(sentence: Sentence) -> frozenset[str]:
    """Word unigrams, bigrams and trigrams, and character n-grams."""
    names = {f"w{token}" for token in sentence.tokens}
    framed = ["^", *sentence.tokens, "$"]
    names.update(f"b{a} {b}" for a, b in pairwise(framed))
    names.update(f"t{a} {b} {c}" for a, b, c in zip(framed, framed[1:], framed[2:], strict=False))
    lowered = _NUMBER.sub("0", sentence.text.lower())
    unspaced = False
    for word in lowered.split():
        if _UNSPACED.search(word):
            unspaced = True
            names.update(f"c{word[i : i + n]}" for n in (1, 2, 3) for i in range(len(word) - n + 1))
        elif len(word) > 2:
            framed_word = f" {word} "
            names.update(f"c{framed_word[i : i + CHARACTERS]}" for i in range(len(framed_word) - CHARACTERS + 1))
    if unspaced:
        names.update((f"e{lowered[-3:]}", f"e{lowered[-2:]}", f"s{lowered[:2]}"))
    return frozenset(names)


def neighbours(sentences: dict[int, Sentence], i: int) -> frozenset[str]:
    """The first words of the neighbouring units."""
    names: set[str] = set()
    if (following := sentences.get(i + 1)) is not None:
        first = following.tokens[:2]
        names.update((f"N{' '.join(first[:1])}", f"N{' '.join(first)}"))
    if (before := sentences.get(i - 1)) is not None:
        names.add(f"P{' '.join(before.tokens[:1])}")
    return frozenset(names)


def cue_features(sentence: Sentence) -> frozenset[str]:
    """The concepts of a unit: which ones, whether in a question, and in what order."""
    concepts, end = sentence.concepts, "?" if sentence.is_question else "."
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for at, concept in enumerate(sentence.cues):
        first.setdefault(concept, at)
        last[concept] = at
    names = {f"K{concept}" for concept in concepts}
    names.update(f"K{end}{concept}" for concept in concepts)
    names.update(f"K2{a}>{b}" for a in concepts for b in concepts if a != b and first[a] < last[b])
    sequence = ["^"]
    for concept in sentence.cues:
        if concept != sequence[-1]:
            sequence.append(concept)
    sequence.append(end)
    names.update(f"Kb{a} {b}" for a, b in pairwise(sequence))
    names.update(f"K3{a} {b} {c}" for a, b, c in zip(sequence, sequence[1:], sequence[2:], strict=False))
    return frozenset(names)


def _context(sentences: dict[int, Sentence], i: int) -> frozenset[str]:
    following, before = sentences.get(i + 1), sentences.get(i - 1)
    names = {f"nK{concept}" for concept in following.concepts} if following else set()
    return frozenset(names | ({f"pK{concept}" for concept in before.concepts} if before else set()))


def _form(turn: str, units: Sequence[Unit], i: int, sentence: Sentence) -> frozenset[str]:
    from_end, size = len(units) - 1 - i, len(sentence.text)
    names = {
        f"Ffrom_end{min(from_end, 4)}",
        f"Ffrom_start{min(i, 2)}",
        f"Funits{min(len(units), 8).bit_length()}",
        f"Flength{min(size // 40, 6)}",
    }
    if sentence.is_question:
        names.update(("Fquestion", f"Fquestion{min(from_end, 4)}"))
    if "?" in sentence.text or "？" in sentence.text:
        names.add("Fmark")
    line = turn[turn.rfind("\n", 0, units[i].start) + 1 : units[i].start + 3]
    if _ITEM.match(line):
        names.add("Fitem")
    if _HEADING.match(line):
        names.add("Fheading")
    if i:
        end = units[i - 1].text[-1:]
        names.add("Fafter?" if end in "?？" else "Fafter:" if end in ":：" else "Fafter.")
    if from_end:
        names.add("Fbefore?" if units[i + 1].text[-1:] in "?？" else "Fbefore.")
    return frozenset(names)
