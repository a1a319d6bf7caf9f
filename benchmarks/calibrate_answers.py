"""How `RankTuning.answer_weights` were found: which records answer the needs of teams at work.

    python benchmarks/calibrate_answers.py [--projects FOLDER ...] [--chats FOLDER]

Each FOLDER of `--projects` holds `corpus.jsonl` (id, doc, title, text) and `scenarios.jsonl` in the shape of
`benchmarks/data/serving/scenarios.jsonl`; the scenarios over this project's own documents are always among them.
`--chats` holds conversations as LoCoMo has them (see `calibrate.py`). Neither is part of this project.

Printed: for each project and chat, what weights that were fitted to all others do on it (served of those noticed,
share of the items that hold the answer, what is given where nothing answers), then the weights fitted to all.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from calibrate import Conversation, backend_of
from langgraph_scrum_master import ChromaMemory
from langgraph_scrum_master.memory.record_memory import CANDIDATES
from langgraph_scrum_master.memory.records import SEARCHED
from langgraph_scrum_master.memory.search import may_answer
from langgraph_scrum_master.rank.answers import NeedQuery, signs_of
from langgraph_scrum_master.rank.query import Candidates
from langgraph_scrum_master.rank.spaces import SPACES
from langgraph_scrum_master.rank.tuning import DEFAULT_TUNING, AnswerWeights
from langgraph_scrum_master.retrieval.dedupe import FAR_BELOW
from langgraph_scrum_master.team.needs import build_queries
from serving import OWN, Project, gap_of, holds, own_project, project_in

PENALTY = 1.0
SHOWN = 10
"""The likeliest candidates of a need by words, of which the weights are learned."""

ASKED = 60
"""Questions of a chat about itself, and half as many about another one."""


class Need(NamedTuple):
    group: str
    answerable: bool
    signs: Any
    holds: Any


def needs_of(project: Project, memory: ChromaMemory) -> Iterator[Need]:
    for row in project.scenarios:
        if row["kind"] in ("answerable", "unanswerable") and (found := gap_of(row)):
            gap, observation = found
            query = build_queries(gap, observation)[0]
            yield _need(project.name, row["kind"] == "answerable", memory, query.text, query.around, row["answer_keys"])


def _need(
    group: str, answerable: bool, memory: ChromaMemory, text: str, around: Sequence[tuple[str, float]], keys: Any
) -> Need:
    backend = backend_of(memory)
    shelf = backend.current()
    needed = NeedQuery(text, around, shelf.statistics, backend.embedder)
    rows = may_answer(shelf, needed, SEARCHED, CANDIDATES)
    signs, _ = signs_of(needed, Candidates.of([(rows.table, rows.numbers)]), SPACES)
    best = np.argsort(-(signs[:, 1] + 0.02 * signs[:, 4]), kind="stable")[:SHOWN]
    ids = rows.ids[best].tolist()
    records = shelf.records(ids)
    texts = [(records[each].key, records[each].text) for each in ids]
    return Need(group, answerable, signs[best], np.array([_is(keys, key, text) for key, text in texts], dtype=bool))


def _is(keys: Any, key: str, text: str) -> bool:
    return key in keys if isinstance(keys, frozenset) else holds(text, keys)


def chat_needs(conversations: Sequence[Conversation], names: Sequence[str]) -> Iterator[Need]:
    chance = Random(1)
    for i, (conversation, name) in enumerate(zip(conversations, names, strict=True)):
        own = chance.sample(conversation.questions, min(ASKED, len(conversation.questions)))
        for question in own:
            yield _need(name, True, conversation.memory, question.text, (), question.evidence)
        strange = conversation.strange(conversations[(i + 1) % len(conversations)])
        for text in chance.sample(strange, min(ASKED // 2, len(strange))):
            yield _need(name, False, conversation.memory, text, (), frozenset())


def fitted(needs: Sequence[Need]) -> AnswerWeights:
    """Logistic regression, by Newton's method; each group counts the same."""
    signs, right = np.concatenate([n.signs for n in needs]), np.concatenate([n.holds for n in needs]).astype(float)
    sizes = {group: sum(len(n.holds) for n in needs if n.group == group) for group in {n.group for n in needs}}
    share = np.concatenate([np.full(len(n.holds), 1 / sizes[n.group]) for n in needs])
    share *= len(share) / share.sum()
    scale = np.maximum(1e-6, signs.std(axis=0))
    scale[0] = 1.0
    scaled, weights = signs / scale, np.zeros(signs.shape[1])
    ridge = PENALTY * np.diag([0.0, *[1.0] * (signs.shape[1] - 1)])
    for _ in range(50):
        odds = 1 / (1 + np.exp(-scaled @ weights))
        slope = scaled.T @ (share * (odds - right)) + ridge @ weights
        curve = (scaled * (share * odds * (1 - odds))[:, None]).T @ scaled + ridge
        weights -= np.linalg.solve(curve, slope)
    return AnswerWeights(*(weights / scale).tolist())


class Outcome(NamedTuple):
    served: float
    precision: float
    items: float
    noise: float
    needs: int

    def __str__(self) -> str:
        return (
            f"served {self.served:.2f}  precision {self.precision:.2f}  items {self.items:.1f}  "
            f"given where nothing answers {self.noise:.2f}  ({self.needs} needs)"
        )


def outcome(needs: Sequence[Need], weights: AnswerWeights, bar: float) -> Outcome:
    served = items = good = injected = noisy = 0
    for need in needs:
        chances = 1 / (1 + np.exp(-(need.signs @ weights)))
        odds = chances / (1 - chances)
        given = np.flatnonzero((chances >= bar) & (odds >= FAR_BELOW * odds.max()))[:5]
        right = int(need.holds[given].sum())
        if need.answerable:
            served, items, good, injected = (
                served + bool(right),
                items + len(given),
                good + right,
                injected + bool(len(given)),
            )
        else:
            noisy += bool(len(given))
    answerable = sum(need.answerable for need in needs)
    return Outcome(
        served / max(1, answerable),
        good / max(1, items),
        items / max(1, injected),
        noisy / max(1, len(needs) - answerable),
        len(needs),
    )


def _mean(each: Sequence[Outcome]) -> Outcome:
    served, precision, items, noise, _ = np.mean(each, axis=0).tolist()
    return Outcome(served, precision, items, noise, sum(one.needs for one in each))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", nargs="*", type=Path, default=[])
    parser.add_argument("--chats", type=Path)
    given = parser.parse_args()
    needs: list[Need] = []
    for project in [await own_project(), *map(project_in, given.projects)]:
        memory = await project.memory()
        needs += needs_of(project, memory)
    if given.chats:
        paths = sorted(given.chats.glob("*.json"))
        needs += await asyncio.to_thread(lambda: list(chat_needs([*map(Conversation, paths)], [p.stem for p in paths])))
    groups = sorted({need.group for need in needs})
    for group in groups if len(groups) > 1 else ():
        weights = fitted([need for need in needs if need.group != group])
        print(f"{group:24}", outcome([n for n in needs if n.group == group], weights, DEFAULT_TUNING.answer_bar))
    left_out = {
        bar: [
            outcome([n for n in needs if n.group == g], fitted([n for n in needs if n.group != g]), bar) for g in groups
        ]
        for bar in (0.16, 0.18, 0.2, 0.22, 0.25, 0.28, 0.32)
    }
    for bar, each in left_out.items() if len(groups) > 1 else ():
        print(f"bar {bar:.2f}, mean of groups left out:", _mean(each))
    weights = fitted(needs)
    print("fitted to all:", ", ".join(f"{name} {value:.2f}" for name, value in weights._asdict().items()))


if __name__ == "__main__":
    assert OWN.exists(), f"{OWN} is missing"
    asyncio.run(main())
