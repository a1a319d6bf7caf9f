"""How often the prompt hook speaks: for prompts that a memory helps with, and for ordinary ones, which need nothing.

Two memories: the records of six invented projects (`data/prompts/projects.txt`), and the sections of this repository's
documentation. `needs` are prompts that one of the records helps with, `ordinary` are those of `ordinary.txt`, and
`elsewhere` are prompts of a project whose records are not in the memory. The thresholds are also chosen on five
projects and measured on the sixth, with its prompts and a sixth of the ordinary ones.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from langgraph_scrum_master import ChromaMemory, Memory
from langgraph_scrum_master.cli.hook import MIN_ANSWER_SCORE
from langgraph_scrum_master.learning.indexers import index_documents
from langgraph_scrum_master.model import Query
from langgraph_scrum_master.prompts.similar import SHARED_TERMS, enough, shared_terms
from langgraph_scrum_master.retrieval.sources.memory import answers_in
from langgraph_scrum_master.text.terms import terms

HERE = Path(__file__).parent
DATA, DOCS = HERE / "data" / "prompts", HERE.parent / "docs"
BARS, SHARED = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85), (0, 1, 2, 3)
MOST_NOISE = 0.05
"""The share of ordinary prompts that may get something, when thresholds are chosen."""


class Project(NamedTuple):
    name: str
    records: list[str]
    needs: list[tuple[str, str]]
    """Prompts, each with the key of the record that helps."""


class Asked(NamedTuple):
    """A prompt with the score and the shared terms of each candidate, and whether it is the one that helps."""

    kind: str
    group: str
    words: int
    candidates: list[tuple[float, int, bool]]

    def served(self, bar: float, shared: int) -> list[bool]:
        """The candidates that the hook would give."""
        return [helps for score, n, helps in self.candidates if score >= bar and enough(n, self.words, shared)]


def lines(name: str) -> list[str]:
    return [line for line in (DATA / name).read_text().splitlines() if line and not line.startswith("# ")]


def projects() -> list[Project]:
    found: list[Project] = []
    for line in lines("projects.txt"):
        kind, rest = line.split(" ", 1)
        if kind == "##":
            found.append(Project(rest, [], []))
        elif kind == "-":
            found[-1].records.append(rest)
        else:
            number, prompt = rest.split(" ", 1)
            found[-1].needs.append((prompt, f"{found[-1].name}:{number}"))
    return found


async def memory_of(some: Iterable[Project]) -> ChromaMemory:
    memory = ChromaMemory()
    rows = [Memory(content=text, key=f"{each.name}:{i}") for each in some for i, text in enumerate(each.records, 1)]
    await memory.store_many(rows)
    return memory


async def ask(memory: ChromaMemory, prompt: str, kind: str, group: str, wanted: str = "") -> Asked:
    found = await answers_in(memory, Query(text=prompt, agent="", now="2026-03-02T10:00:00Z", k=100))
    words = frozenset(terms(prompt))
    helps = re.compile(rf"(?:^|\b|/){re.escape(wanted)}(?!\d)") if wanted else None
    return Asked(
        kind,
        group,
        len(words),
        [(each.score, shared_terms(each.content, words), bool(helps and helps.search(each.key))) for each in found],
    )


async def in_projects() -> list[Asked]:
    some, asked = projects(), []
    whole = await memory_of(some)
    for each in some:
        others = await memory_of(other for other in some if other is not each)
        for prompt, wanted in each.needs:
            asked.append(await ask(whole, prompt, "needs", each.name, wanted))
            asked.append(await ask(others, prompt, "elsewhere", each.name))
    for i, prompt in enumerate(lines("ordinary.txt")):
        asked.append(await ask(whole, prompt, "ordinary", some[i % len(some)].name))
    return asked


async def in_docs() -> list[Asked]:
    memory = ChromaMemory()
    await index_documents(memory, DOCS)
    pages = (line.split(": ", 1) for line in lines("docs.txt"))
    asked = [await ask(memory, prompt, "needs", "docs", page) for page, prompt in pages]
    asked += [await ask(memory, prompt, "ordinary", "docs") for prompt in lines("ordinary.txt")]
    return asked + [await ask(memory, prompt, "elsewhere", "docs") for each in projects() for prompt, _ in each.needs]


def share(asked: Sequence[Asked], kind: str, bar: float, shared: int, helps: bool = False) -> float:
    served = [each.served(bar, shared) for each in asked if each.kind == kind]
    return mean(any(some) if helps else bool(some) for some in served)


def chosen(asked: Sequence[Asked]) -> tuple[float, int]:
    """The thresholds that serve most needs with little noise."""
    quiet = [(b, n) for b in BARS for n in SHARED if share(asked, "ordinary", b, n) <= MOST_NOISE]
    return max(quiet, key=lambda pair: (share(asked, "needs", pair[0], pair[1], helps=True), pair))


def told(name: str, asked: Sequence[Asked], bar: float, shared: int) -> str:
    return (
        f"{name:24} bar {bar:.2f} shared {shared}: needs {share(asked, 'needs', bar, shared, helps=True):.2f}, "
        f"ordinary {share(asked, 'ordinary', bar, shared):.2f}, elsewhere {share(asked, 'elsewhere', bar, shared):.2f}"
    )


def main() -> None:
    own, docs = asyncio.run(in_projects()), asyncio.run(in_docs())
    for name, asked in (("six projects", own), ("documentation", docs)):
        for bar in (0.6, 0.7, MIN_ANSWER_SCORE):
            for shared in (0, SHARED_TERMS):
                print(told(name, asked, bar, shared))
    out: list[Asked] = []
    held: list[tuple[Asked, float, int]] = []
    for group in sorted({each.group for each in own}):
        bar, shared = chosen([*(each for each in own if each.group != group), *docs])
        part = [each for each in own if each.group == group]
        out += part
        held += [(each, bar, shared) for each in part]
        print(told(f"without {group}", part, bar, shared))
    rates = {
        kind: mean(
            any(each.served(b, n)) if kind == "needs" else bool(each.served(b, n))
            for each, b, n in held
            if each.kind == kind
        )
        for kind in ("needs", "ordinary", "elsewhere")
    }
    print("left out: " + ", ".join(f"{kind} {rate:.2f}" for kind, rate in rates.items()))
    for name, asked in (("six projects", own), ("documentation", docs)):
        print(f"hook noise: {told(name, asked, MIN_ANSWER_SCORE, SHARED_TERMS)}")


if __name__ == "__main__":
    main()
