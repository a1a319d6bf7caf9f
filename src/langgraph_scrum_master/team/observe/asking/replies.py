"""The reply model: the probability that a later turn settles a question."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, TypeAlias

from langgraph_scrum_master.team.observe.acts import act_names, content_words
from langgraph_scrum_master.team.observe.asking.features import Sentence, UnitFeatures, cue_features, ngrams, tokens
from langgraph_scrum_master.team.observe.asking.model import score
from langgraph_scrum_master.team.observe.asking.units import split_units
from langgraph_scrum_master.team.observe.asking.weights import LinearWeights

Speaker: TypeAlias = Literal["other", "self", "tool"]
"""Who replies: someone else, the asker itself, or a tool."""

MOST_UNITS = 4
"""Number of units of a reply that are read."""

_KINDS = frozenset(
    [
        "how",
        "many",
        "much",
        "long",
        "which",
        "what",
        "where",
        "who",
        "when",
        "why",
        "whether",
        "or",
        "wie",
        "viele",
        "welche",
        "wo",
        "wer",
        "wann",
        "ob",
        "oder",
        "quel",
        "quelle",
        "combien",
        "où",
        "qui",
        "quand",
        "ou",
        "cuál",
        "qué",
        "cuánto",
        "cuántos",
        "dónde",
        "quién",
        "cuándo",
        "o",
        "qual",
        "quanto",
        "quantos",
        "onde",
        "quem",
        "quando",
        "quale",
        "quanti",
        "dove",
        "chi",
        "какой",
        "какая",
        "сколько",
        "где",
        "кто",
        "когда",
        "или",
        "कितने",
        "कौन",
        "कहाँ",
        "कब",
    ]
)
"""Words that indicate the kind of answer a question expects."""

_OR = frozenset(("or", "oder", "ou", "o", "или", "या"))

_DIGIT = re.compile(r"\d")
_QUESTION = ("?", "？")


def reply_features(question: str, reply: str, by: Speaker) -> UnitFeatures:
    """Features of a reply to a question."""
    sentences = [Sentence(unit.text) for unit in split_units(reply).items[:MOST_UNITS]]
    names: set[str] = set()
    cues: set[str] = set()
    for at, sentence in enumerate(sentences):
        names |= ngrams(sentence)
        own = cue_features(sentence)
        cues |= own
        cues |= {f"{by}{name}" for name in own if not name.startswith(("K2", "K3", "Kb"))}
        if at == 0:
            cues |= {f"1{name}" for name in own if not name.startswith(("K2", "K3", "Kb"))}
    form = _pair(question, reply, sentences)
    return UnitFeatures(frozenset(names), frozenset(cues), form | {f"{each}{by}" for each in form} | {f"F{by}"})


def _pair(question: str, reply: str, sentences: Sequence[Sentence]) -> frozenset[str]:
    """Features of the pair: shared words, new words, and whether the reply has the expected kind."""
    question_words, reply_words = set(content_words(question)), set(content_words(reply))
    shared = len(question_words & reply_words)
    words = sum(len(sentence.tokens) for sentence in sentences)
    own = {
        f"Fshared{min(4, shared)}",
        f"Fshare{min(3, int(5 * shared / max(1, len(question_words))))}",
        f"Fnew{min(4, len(reply_words - question_words).bit_length())}",
        f"Flength{min(6, words.bit_length())}",
        f"Fsentences{min(3, len(sentences))}",
        f"Fquestion{reply.rstrip().endswith(_QUESTION)}",
        f"Fnumber{bool(_DIGIT.search(reply))}",
        f"Fname{bool(act_names(reply) - act_names(question))}",
        f"Fsharedname{bool(act_names(reply) & act_names(question))}",
    }
    form = f"{min(4, words.bit_length())}{bool(_DIGIT.search(reply)):d}{min(2, shared)}"
    question_tokens = tokens(question)
    kinds = {token for token in question_tokens if token in _KINDS}
    opening = sentences[0].tokens[:2] if sentences else []
    return frozenset(
        own
        | {f"F{kind}{form}" for kind in kinds}
        | {f"Fopens {token}" for token in opening}
        | {f"Fform{form}", f"Fopens_with_asked{bool(opening) and opening[0] in question_tokens}"}
        | {f"Ftakes_option{bool(_options(question_tokens) & set(opening))}"}
    )


def _options(question: Sequence[str]) -> set[str]:
    """The words around each "or" of a question: an answer may repeat one."""
    places = [at for at, token in enumerate(question) if token in _OR]
    return {
        token
        for at in places
        for token in (*question[max(0, at - 2) : at], *question[at + 1 : at + 3])
        if len(token) > 2
    }


_LONGEST = 4_000
"""Characters of a question and of a reply that are read."""


def settles(question: str, reply: str, by: Speaker) -> float:
    """The probability that the reply settles the question."""
    return _settles(question[:_LONGEST], reply[:_LONGEST], by)


@lru_cache(maxsize=512)
def _settles(question: str, reply: str, by: Speaker) -> float:
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, score(_weights(), reply_features(question, reply, by))))))


@cache
def _weights() -> LinearWeights:
    return LinearWeights.from_bytes(
        (files(__package__) / "replies.weights").read_bytes(), "the package's replies.weights"
    )
