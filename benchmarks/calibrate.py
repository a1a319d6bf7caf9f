"""How the constants of ranking were found, on conversations with questions whose evidence is known.

    python benchmarks/calibrate.py FOLDER

FOLDER holds JSON files as LoCoMo has them: `session_N` lists of turns with `dia_id`, `speaker` and `text`, and `qa`
with `question`, `evidence` and `category`. The data is not part of this project (its licence forbids that).

Printed: for each space the strength that 2 % of the other turns reach (`agrees`) and the one below which 5 % of the
evidence stays (`diverges`), with the rates at which the thresholds in the code fire; and for several values of
`EARNS_ITS_TOKENS` how often a question about another conversation gets anything, and how much evidence passes.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from langgraph_scrum_master import ChromaMemory
from langgraph_scrum_master.memory.records import SEARCHED
from langgraph_scrum_master.rank.asked import Asked, Candidates
from langgraph_scrum_master.rank.relevance import EARNS_ITS_TOKENS, calibrated
from langgraph_scrum_master.rank.spaces import SPACES

EVERY = 4
"""Of the questions, one in so many is taken for the spaces' thresholds."""

ADVERSARIAL = 5


class Question(NamedTuple):
    text: str
    evidence: frozenset[str]


class Conversation:
    """A conversation in a memory of its own."""

    def __init__(self, path: Path, embedder: str = "static") -> None:
        data = json.loads(path.read_text(encoding="utf-8"))
        self.turns = dict(_turns(data))
        self.people = {text.split(":")[0].lower() for text, _ in self.turns.values()}
        self.questions = [q for q in _questions(data) if q.evidence & self.turns.keys()]
        self.memory = ChromaMemory(embedder=embedder)
        rows = [(key, text, {"session": session}) for key, (text, session) in self.turns.items()]
        asyncio.run(self.memory.store_many(rows))

    def scored(self, question: str) -> list[tuple[str, float]]:
        return [(found.key, found.score) for found in asyncio.run(self.memory.search_similar(question, k=100))]

    def strengths(self, question: str) -> tuple[list[str], dict[str, Any]]:
        """The keys of all turns, and their strengths in each space that has something to say."""
        ledger = self.memory._book
        rows = ledger.rows([i for i, _ in ledger.keyed("memory", list(self.turns))], SEARCHED)
        asked = Asked(question, ledger, self.memory._embedder)
        candidates = Candidates([row.candidate for row in rows])
        found = {space.name: space.strengths(asked, candidates) for space in SPACES if space.speaks(asked)}
        return [row.key for row in rows], found


def _turns(data: dict[str, Any]) -> Iterator[tuple[str, tuple[str, str]]]:
    for name, turns in data.items():
        if re.fullmatch(r"session_\d+", name) and isinstance(turns, list):
            for turn in turns:
                yield turn["dia_id"], (f"{turn['speaker']}: {turn.get('text', '')}", name)


def _questions(data: dict[str, Any]) -> Iterator[Question]:
    for each in data["qa"]:
        if each["category"] != ADVERSARIAL:
            evidence = {
                f"D{int(a)}:{int(b)}" for e in each.get("evidence") or [] for a, b in re.findall(r"D:?(\d+):(\d+)", e)
            }
            yield Question(each["question"], frozenset(evidence))


def spaces(conversations: list[Conversation]) -> None:
    right: dict[str, list[float]] = {}
    other: dict[str, list[float]] = {}
    for conversation in conversations:
        for question in conversation.questions[::EVERY]:
            keys, found = conversation.strengths(question.text)
            serves = np.array([key in question.evidence for key in keys])
            for name, values in found.items():
                right.setdefault(name, []).extend(values[serves].tolist())
                other.setdefault(name, []).extend(values[~serves].tolist())
    print(f"{'space':22} agrees  found   fires on evidence / others   diverges  found   fires on evidence / others")
    for space in SPACES:
        if space.name in right and space.weight:
            good, rest = np.array(right[space.name]), np.array(other[space.name])
            agrees, diverges = np.quantile(rest, 0.98), np.quantile(good, 0.05)
            print(
                f"{space.name:22} {space.agrees:6.2f} {agrees:6.2f}   {np.mean(good >= space.agrees):8.2f} / "
                f"{np.mean(rest >= space.agrees):.3f} {space.diverges:18.2f} {diverges:6.2f}   "
                f"{np.mean(good < space.diverges):8.2f} / {np.mean(rest < space.diverges):.2f}"
            )


def bar(conversations: list[Conversation]) -> None:
    own: list[tuple[list[float], list[float]]] = []
    foreign: list[float] = []
    for i, conversation in enumerate(conversations):
        for question in conversation.questions:
            found = conversation.scored(question.text)
            own.append(([s for _, s in found], [s for key, s in found if key in question.evidence]))
        strange = [q.text for q in conversations[(i + 1) % len(conversations)].questions]
        unknown = [text for text in strange if not any(person in text.lower() for person in conversation.people)]
        foreign += [max((score for _, score in conversation.scored(text)), default=0.0) for text in unknown]
    print(f"\nEARNS_ITS_TOKENS (now {EARNS_ITS_TOKENS})   foreign questions served   own evidence that passes")
    for share in (0.16, 0.18, 0.20, 0.22, 0.24, 0.26, 0.28):
        needed = calibrated(share)
        passes = sum(score >= needed for _, evidence in own for score in evidence)
        print(
            f"{share:24.2f} {np.mean(np.array(foreign) >= needed):26.3f} "
            f"{passes / sum(len(evidence) for _, evidence in own):26.3f}"
        )


def main() -> None:
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    conversations = [Conversation(path) for path in sorted(Path(sys.argv[1]).glob("*.json"))]
    spaces(conversations)
    bar(conversations)


if __name__ == "__main__":
    main()
