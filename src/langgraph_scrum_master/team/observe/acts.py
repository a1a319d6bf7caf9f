"""Acts: what an agent does in a turn: a tool call, code to run, or a statement."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Literal, TypeAlias

from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master.model import ToolCall, Turn
from langgraph_scrum_master.team.observe.handoffs import is_handoff
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning
from langgraph_scrum_master.text.terms import STOP_WORDS

ActKind: TypeAlias = Literal["call", "code", "statement"]

_LONGEST = 4_000
"""Maximum characters of an act or an outcome that are compared."""

SHORTEST_CODE = 20
"""Shorter code blocks do not count as code to run."""

STEM = 5
"""Words are compared by their first letters: renamed, renaming."""

_WORD = lazy_pattern(r"[\w\u0900-\u0963\u0971-\u097f]+")
_UNSPACED = lazy_pattern(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_FENCE = lazy_pattern(r"```\w*\n?(.*?)(?:```|\Z)", re.S)
_COUNTER = lazy_pattern(
    r"\b(?:attempt|try|retry|step|round|thought|action|observation|trial|turn|iteration)"
    r"(?: (?:no|nr|number))?\W{0,3}\d+",
    re.I,
)
_COUNTER_HINTS = ("ttempt", "try", "tep", "ound", "ought", "ction", "vation", "rial", "urn", "ration")
_NAME = lazy_pattern(
    r"(?<!\w)[^\W\d_]*+[\d_]\w*|(?<![a-z])[a-z]+[A-Z]\w*|(?<![A-Z])[A-Z][^\Wa-z]*+[a-z][^\WA-Z]*+[A-Z]\w*"
    r"|(?<!\w)\w++(?:[./]\w++)+"
    r"|\[[^\]\n]{1,80}\]|\"[^\"\n]{1,120}\"|'[^'\n]{1,120}'|`[^`\n]{1,120}`"
)
_LINE = 4
_EDIT = lazy_pattern(
    r"\w*(?:edit|write|patch|replace|apply|insert|append|create|update|save|delete|remove|rename|move)", re.I
)
_FAILURE = lazy_pattern(
    r"\b(?:\w*errors?|fail(?:ed|ure|s)?|denied|refused|forbidden|not found|no (?:such|results?|match\w*|hits|data)"
    r"|nothing|invalid|timed? ?out|cannot|unable|\w*exception|traceback|unauthorized|unavailable|rejected"
    r"|0 (?:hits|results|matches)"
    r"|[45]\d\d|erro|erreur|fehler\w*|ошибка|denegado)\b|错误|失败|エラー|見つかりません|오류|실패|त्रुटि",
    re.I,
)


class Act:
    """One act, with its outcome once that is known."""

    def __init__(self, kind: ActKind, turn: Turn, text: str, tuning: DetectionTuning = DEFAULT_DETECTION) -> None:
        self._slots = tuning.template_slots
        self.kind = kind
        self.turn = turn
        self.text = text
        self.sequence = tuple(content_words(text))
        self.all_words = frozenset(self.sequence)
        """All words."""
        short = kind == "statement" and len(text) < tuning.shortest_statement
        self.words = frozenset() if short else self.all_words
        """The words to recognise a repetition by; empty for a short statement."""
        self.outcome: ActOutcome | None = None
        self.repeats: Act | None = None
        """The first act in the chain of repetitions."""

    @property
    def edits(self) -> bool:
        """Whether it is a call that changes something: a later repetition then acts on something else."""
        return self.kind == "call" and bool(_EDIT.match(self.text))

    @property
    def failed(self) -> bool:
        """Whether it has an outcome and that is a failure."""
        return self.outcome is not None and is_failure(self.outcome.text)

    @cached_property
    def names(self) -> frozenset[str]:
        """Identifiers, numbers, quoted and bracketed values, and lines of code."""
        lines = self.text[:_LONGEST].splitlines() if self.kind != "statement" else ()
        own = {line.strip() for line in lines if len(line.strip()) >= _LINE} if len(lines) > 1 else set()
        return act_names(self.text) | own

    def fills_template_of(self, earlier: Act, known: Collection[str]) -> bool:
        """Whether it is an earlier act with one or two new words: the next item of a batch."""
        if len(self.sequence) != len(earlier.sequence):
            return False
        slots = [mine for mine, other in zip(self.sequence, earlier.sequence, strict=True) if mine != other]
        return 0 < len(slots) <= self._slots and all(word not in known for word in slots)


class ActOutcome:
    """The result of a tool call."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = frozenset(content_words(text))

    @cached_property
    def names(self) -> frozenset[str]:
        """The names in it."""
        return act_names(self.text)


def acts_of(turn: Turn, tuning: DetectionTuning = DEFAULT_DETECTION) -> Iterator[Act]:
    """The acts of an agent's turn; the text of a handoff is a statement."""
    calls = [call for call in turn.tool_calls if not is_handoff(call)] if turn.tool_calls else ()
    for call in calls:
        yield Act("call", turn, f"{call.name} {_arguments(call)}", tuning)
    if calls:
        return
    code = (
        [block for block in _FENCE.findall(turn.text) if len(block.strip()) > SHORTEST_CODE]
        if "```" in turn.text
        else []
    )
    if code:
        yield Act("code", turn, "\n".join(code), tuning)
    elif turn.text.strip():
        yield Act("statement", turn, turn.text, tuning)


def is_failure(text: str) -> bool:
    """Whether a tool returned an error or nothing."""
    return not text.strip() or bool(_FAILURE.search(text[:_LONGEST]))


def content_words(text: str) -> list[str]:
    """Stems of the content words; character bigrams for scripts without spaces."""
    words = _WORD.findall(_without_counters(text[:_LONGEST].lower()))
    if text.isascii():
        return [word if word.isdigit() else word[:STEM] for word in words if word not in STOP_WORDS]
    return [part for word in words if word not in STOP_WORDS for part in _parts(word)]


def act_names(text: str) -> frozenset[str]:
    """Words with a digit, an underscore or an inner capital, paths, quoted and bracketed values."""
    names = _NAME.findall(_without_counters(text[:_LONGEST]))
    return frozenset([name.strip("\"'`[]").lower() for name in names])


def _without_counters(text: str) -> str:
    """The text without the numbers of attempts and steps."""
    return _COUNTER.sub(" ", text) if any(map(text.__contains__, _COUNTER_HINTS)) else text


def _parts(word: str) -> list[str]:
    if _UNSPACED.search(word):
        return [word[i : i + 2] for i in range(max(1, len(word) - 1))]
    return [word if word.isdigit() else word[:STEM]]


def _arguments(call: ToolCall) -> str:
    return "\n".join(_flat(json.loads(call.arguments)))


def _flat(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            # The name of an only argument carries no information.
            yield from _flat(each) if len(value) == 1 else (f"{key} {part}" for part in _flat(each))
    elif isinstance(value, list):
        for each in value:
            yield from _flat(each)
    else:
        yield value if isinstance(value, str) else json.dumps(value)
