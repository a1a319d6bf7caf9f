"""Talk in circles: agents that undo each other's work, pass a question around or restate what was said, in any wording.

A small logistic model over the latest short statements. `benchmarks/train_circles.py` fits its weights (`TalkWeights`)
and prints the results with each author's scenarios left out.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from langgraph_scrum_master._internal.patterns import lazy_pattern
from langgraph_scrum_master.model import Cycle, Turn
from langgraph_scrum_master.team.observe.acts import Act, is_failure
from langgraph_scrum_master.team.observe.cycles import topic_of
from langgraph_scrum_master.team.observe.handoffs import is_handoff
from langgraph_scrum_master.team.tuning import DEFAULT_DETECTION, DetectionTuning

_AGAIN = lazy_pattern(
    r"\b(?:again|back|still|once more|(?:second|third|fourth|fifth|sixth) time|restor\w+|revert\w*|undo\w*|undid"
    r"|re-?(?:add|appl|open|nam|introduc|insert|set)\w*|same|as i said|as discussed"
    r"|wieder\w*|erneut|noch ?mal|zurück\w*|nach wie vor|de nuevo|otra vez|vuel\w+|encore|de nouveau|à nouveau|remis\w*"
    r"|rétabli\w*|novamente|de novo|outra vez|volt\w+|ancora|di nuovo|nuovamente|ripristin\w*|rimess\w*"
    r"|снова|опять|обратно|ещё раз|еще раз|верну\w*|по-прежнему|फिर|दोबारा|वापस)\b"
    r"|又|再次|改回|重新|还是|また|再び|戻し|やはり|다시|또|되돌|여전히",
    re.I,
)
_DONE = lazy_pattern(
    r"\b(?:done|fixed|pass(?:ed|es)?|green|merged|works|resolved|solved|finished|completed?|deployed|shipped|settled"
    r"|fertig|erledigt|grün|behoben|terminé\w*|résolu\w*|listo|hecho|resuelto|feito|pronto|resolvido|fatto|risolto"
    r"|готово|исправ\w*|решено|हो गया|हो गई)\b|完成|通过|解决|搞定|完了|済み|通り|완료|해결|통과",
    re.I,
)


class Statement(NamedTuple):
    """A statement of an agent, compared with earlier ones."""

    act: Act
    known: float
    """The share of its words that were said before; 1 if it has none."""
    new_name: bool

    @property
    def again(self) -> bool:
        """Whether it is about doing something again or undoing it."""
        return bool(_AGAIN.search(self.act.turn.text))

    @property
    def done(self) -> bool:
        """Whether it reports something done."""
        return bool(_DONE.search(self.act.turn.text))


class Talk:
    """The latest short statements since the last new material."""

    __slots__ = ("_count", "_earlier", "_failures", "_latest", "_most", "_names", "_tuning", "_weights", "_words")

    def __init__(self, tuning: DetectionTuning = DEFAULT_DETECTION) -> None:
        self._tuning = tuning
        self._weights = tuning.talk
        self._most = tuning.talk.most
        self._latest: deque[Statement] = deque(maxlen=tuning.talk_window)
        self._earlier: deque[Act] = deque(maxlen=tuning.talk_look_back + tuning.talk_window)
        self._words: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._count = self._failures = 0

    def add(self, turn: Turn, acts: Sequence[Act]) -> None:
        """Process the next turn with its acts. Human messages, plans, long texts and tool results reset the talk."""
        if turn.kind == "agent" and _talks(turn, self._tuning.talk_longest):
            for act in acts:
                self._latest.append(self._statement(act))
        elif turn.kind == "tool" and is_failure(turn.text):
            self._failures += 1
        elif not _confirms_handoff(turn):
            self._latest.clear()
            self._earlier.clear()
            self._words.clear()
            self._names.clear()
            self._failures = 0

    @property
    def progress(self) -> bool:
        """Whether the talk is not a circle."""
        if len(self._latest) < self._tuning.talk_fewest:
            return True
        # Enough new names rule out a circle; most turns return here.
        return self._upper_bound() <= 0 or self.score() <= 0

    def __len__(self) -> int:
        """Number of statements in the window."""
        return len(self._latest)

    def _upper_bound(self) -> float:
        """Upper bound of the score, without the expensive features."""
        fresh = sum([statement.new_name for statement in self._latest]) / len(self._latest)
        on_topic = self._weights.on_topic if "topic" in self._latest[-1].act.turn.marks else 0.0
        return self._weights.bias + on_topic + self._most + self._weights.new_name * fresh

    def cycles(self) -> tuple[Cycle, ...]:
        """The circle, if there is one."""
        if self.progress:
            return ()
        return (_cycle([statement.act.turn for statement in self._latest], self._tuning.talk_confidence),)

    def features(self) -> dict[str, float]:
        """The features of the model."""
        latest = self._latest
        size = len(latest)
        return {
            "known": sum(statement.known for statement in latest) / size,
            "own": sum(self._own(statement.act) for statement in latest) / size,
            "again": sum(statement.again for statement in latest) / size,
            "new_name": sum(statement.new_name for statement in latest) / size,
            "done": sum(statement.done for statement in latest) / size,
            "failures": min(self._failures, 4) / 4,
        }

    def score(self) -> float:
        """The log odds of a circle, minus the threshold."""
        weights, turns = self._weights, [statement.act.turn for statement in self._latest]
        on_topic = weights.on_topic if topic_of(turns) else 0.0
        return weights.bias + on_topic + weights.weighted_sum(self.features())

    def _own(self, act: Act) -> float:
        """Word overlap with earlier statements of the same agent."""
        before = takewhile(lambda each: each is not act, self._earlier)
        return max(
            (_overlap(act.all_words, each.all_words) for each in before if each.turn.agent == act.turn.agent),
            default=0.0,
        )

    def _statement(self, act: Act) -> Statement:
        self._count += 1
        since = max(0, self._count - self._tuning.talk_look_back - 1)
        words, last_use = act.all_words, self._words
        fresh = [word for word in words if last_use.get(word, 0) <= since]
        known = 1 - len(fresh) / len(words) if words else 1.0
        # A new number is a new name and cheap to check.
        new_name = any(word[0].isdigit() for word in fresh)
        if not new_name:
            new_name = any(self._names.get(name, last_use.get(name, 0)) <= since for name in act.names)
            self._names.update(dict.fromkeys(act.names, self._count))
        for word in words:
            last_use[word] = self._count
        self._earlier.append(act)
        return Statement(act, known, new_name)


def _talks(turn: Turn, longest: int) -> bool:
    return len(turn.text) <= longest and all(map(is_handoff, turn.tool_calls)) and "```" not in turn.text


def _confirms_handoff(turn: Turn) -> bool:
    return turn.kind == "tool" and turn.agent.startswith("transfer_")


def _overlap(words: frozenset[str], others: frozenset[str]) -> float:
    return len(words & others) / max(1, min(len(words), len(others)))


def _cycle(turns: Sequence[Turn], confidence: float) -> Cycle:
    agents = tuple(dict.fromkeys(turn.agent for turn in turns))
    times = [turn.time for turn in turns if turn.time is not None]
    return Cycle(
        agent=turns[-1].agent,
        topic=topic_of(turns) or turns[-1].text,
        count=len(turns),
        evidence=tuple(turn.id for turn in turns),
        kind="topic_cycle",
        agents=agents,
        about=f"circle of {' '.join(sorted(agents))}",
        first=min(times, default=None),
        last=max(times, default=None),
        confidence=confidence,
    )
