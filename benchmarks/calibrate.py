"""How the constants of ranking were found, on conversations with questions whose evidence is known.

    python benchmarks/calibrate.py FOLDER

FOLDER holds JSON files as LoCoMo has them: `session_N` lists of turns with `dia_id`, `speaker` and `text`, and `qa`
with `question`, `evidence` and `category`. The data is not part of this project (its licence forbids that).

Printed:

- for each space the strength that 2 % of the other turns reach (`agrees`), with the rates at which it fires
- for each space the likeness with the most similar of the last ten turns of the session below which a fifth of the
  session's next turns stay (`diverges`), with the rates at which it fires on those and on turns of another
  conversation; and how often all that makes an alert
- for several bars of `InjectionPipeline` how often a question about another conversation gets anything, and how much of
  what was found of the evidence passes
- for several values of `RankTuning.relevance_bar` how often a question about another conversation gets anything, and
  how much evidence passes
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from langgraph_scrum_master import ChromaMemory
from langgraph_scrum_master.memory import MemoryResult
from langgraph_scrum_master.memory.records import SEARCHED
from langgraph_scrum_master.memory.store import StoreBackend
from langgraph_scrum_master.prompts.divergence import COMPARED, LEAST_WORDS, divergence
from langgraph_scrum_master.prompts.pipeline import MIN_RELEVANCE_SCORE
from langgraph_scrum_master.prompts.priority import summed_relevance
from langgraph_scrum_master.rank.query import Candidates, RankQuery
from langgraph_scrum_master.rank.relevance import calibrated
from langgraph_scrum_master.rank.spaces import SPACES, Space
from langgraph_scrum_master.rank.tuning import DEFAULT_TUNING
from langgraph_scrum_master.text.terms import terms

EVERY = 4
"""Of the questions, one in so many is taken for the spaces' thresholds."""

ADVERSARIAL = 5

HELD_BACK = 4
"""Turns at the end of a session."""

NEVER = "9999-01-01T00:00:00"


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

    def strange(self, other: Conversation) -> list[str]:
        """The questions about another conversation, without those that name somebody of this one."""
        texts = [question.text for question in other.questions]
        return [text for text in texts if not any(person in text.lower() for person in self.people)]

    def strengths(self, question: str) -> tuple[list[str], dict[str, Any]]:
        """The keys of all turns, and their strengths in each space that has something to say."""
        backend = backend_of(self.memory)
        shelf = backend.current()
        with backend.store.database.reading() as statements:
            assert shelf.row is not None
            ids = list(statements.keyed(shelf.row.id, "memory", list(self.turns)).values())
        rows = shelf.rows(ids, SEARCHED)
        asked = RankQuery(question, shelf.statistics, backend.embedder)
        candidates = Candidates.of([(rows.table, rows.numbers)])
        found = {space.name: space.strengths(asked, candidates) for space in SPACES if space.speaks(asked)}
        ids = rows.ids.tolist()
        records = shelf.records(ids)
        return [records[each].key for each in ids], found


def backend_of(memory: ChromaMemory) -> StoreBackend:
    """What is behind a memory that is in this process."""
    backend = memory._backend
    assert isinstance(backend, StoreBackend)
    return backend


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
    print(f"{'space':22} agrees  found   fires on evidence / others")
    for space in SPACES:
        if space.name in right and space.weight:
            good, rest = np.array(right[space.name]), np.array(other[space.name])
            agrees = np.quantile(rest, 0.98)
            print(
                f"{space.name:22} {space.agrees:6.2f} {agrees:6.2f}   {np.mean(good >= space.agrees):8.2f} / "
                f"{np.mean(rest >= space.agrees):.3f}"
            )


def shifts(conversations: list[Conversation]) -> None:
    """The last turns of each session are held back: they go on with it, and turns of other conversations do not."""
    random = Random(1)
    nearest: dict[bool, list[list[MemoryResult]]] = {True: [], False: []}
    for conversation in conversations:
        sessions: dict[str, list[str]] = {}
        for text, session in conversation.turns.values():
            sessions.setdefault(session, []).append(text)
        strange = [text for other in conversations if other is not conversation for text, _ in other.turns.values()]
        memory = ChromaMemory()
        long = {session: turns for session, turns in sessions.items() if len(turns) > COMPARED + HELD_BACK}
        rows = [(text, {"session": session}) for session, turns in long.items() for text in turns[:-HELD_BACK]]
        asyncio.run(memory.store_many([(f"t{i}", text, metadata) for i, (text, metadata) in enumerate(rows)]))
        for session, turns in long.items():
            asked = [(True, text) for text in turns[-HELD_BACK:]]
            for goes_on, text in [*asked, *((False, random.choice(strange)) for _ in asked)]:
                if len(terms(text)) >= LEAST_WORDS:
                    nearest[goes_on].append(asyncio.run(memory.recent(text, session, NEVER, COMPARED)))
    print(f"\n{'space':22} diverges  found   fires on turns that go on / of another conversation")
    for space in SPACES:
        own, other = (np.array([_most_like(space, each) for each in nearest[goes_on]]) for goes_on in (True, False))
        if own.any():
            found, fires = np.quantile(own, 0.2), [np.mean(some < space.diverges) for some in (own, other)]
            print(f"{space.name:22} {space.diverges:8.2f} {found:6.2f} {fires[0]:12.2f} / {fires[1]:.2f}")
    alerts = [np.mean([bool(divergence(each)) for each in nearest[goes_on]]) for goes_on in (True, False)]
    print(f"{'alert':22} {alerts[0]:28.2f} / {alerts[1]:.2f}")


def _most_like(space: Space, recent: list[MemoryResult]) -> float:
    return max((result.strengths.get(space.code, 0.0) for result in recent), default=0.0)


def prompts(conversations: list[Conversation]) -> None:
    own: list[tuple[float, float]] = []
    foreign: list[list[tuple[float, float]]] = []
    for i, conversation in enumerate(conversations):
        for question in conversation.questions[::EVERY]:
            found = asyncio.run(conversation.memory.search_similar(question.text, k=100))
            own += [(r.score, summed_relevance(r.strengths)) for r in found if r.key in question.evidence]
        for text in conversation.strange(conversations[(i + 1) % len(conversations)])[::EVERY]:
            found = asyncio.run(conversation.memory.search_similar(text, k=100))
            foreign.append([(r.score, summed_relevance(r.strengths)) for r in found])
    print(f"\nmin_relevance_score (now {MIN_RELEVANCE_SCORE})   foreign questions served   found evidence that passes")
    for needed in (0.0, 0.5, 0.6, 0.7):
        served = np.mean([any(score >= needed and agree > 0 for score, agree in each) for each in foreign])
        passes = np.mean([score >= needed and agree > 0 for score, agree in own])
        print(f"{needed:24.2f} {served:26.3f} {passes:26.3f}")


def bar(conversations: list[Conversation]) -> None:
    own: list[tuple[list[float], list[float]]] = []
    foreign: list[float] = []
    for i, conversation in enumerate(conversations):
        for question in conversation.questions:
            found = conversation.scored(question.text)
            own.append(([s for _, s in found], [s for key, s in found if key in question.evidence]))
        unknown = conversation.strange(conversations[(i + 1) % len(conversations)])
        foreign += [max((score for _, score in conversation.scored(text)), default=0.0) for text in unknown]
    print(f"\nrelevance_bar (now {DEFAULT_TUNING.relevance_bar})   foreign questions served   own evidence that passes")
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
    shifts(conversations)
    prompts(conversations)
    bar(conversations)


if __name__ == "__main__":
    main()
