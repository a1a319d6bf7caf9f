"""The cost of assembling and indexing, as ratios within one run; medians.

- finding duplicates among 100 texts of 900 characters, against difflib on the same texts
- assembling up to 20 from each of five sources of 2,000 records, against what finds as many without a product: one bare
  embedding of the query and one Chroma query of 100 with documents, the same 10,000 records in one collection of a
  memory of ours
- indexing this project's own code and commits again against the first time
- finding values in 400 experiences
"""

from __future__ import annotations

import asyncio
import tempfile
import tracemalloc
from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter

from bench_memory import Bare, compare, texts
from langgraph_scrum_master import ChromaMemory, ContextAssembler, Memory
from langgraph_scrum_master.learning import CodeUnit, Commit, Experience, FormattedContext, Searcher, Value
from langgraph_scrum_master.learning.indexers import index_code, index_commits, index_values
from langgraph_scrum_master.learning.records import experiences_on
from langgraph_scrum_master.text.similarity import SaidTexts

RECORDS = 2_000
ALL = ["memories", "code", "experiences", "values", "commits"]


def seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def duplicates() -> None:
    some = [" ".join(texts(8, Random(i)))[:900] for i in range(100)]

    def ours() -> None:
        shelf = SaidTexts()
        for text in some:
            shelf.add(text)

    def difflib() -> None:
        for i, text in enumerate(some[:20]):
            for other in some[:i]:
                SequenceMatcher(None, text, other).ratio()

    mine = median(seconds(ours) for _ in range(5))
    # Of 4,950 pairs, 190 are compared.
    theirs = seconds(difflib) * 4950 / 190
    print(
        f"finding duplicates among 100 texts: {mine * 1e3:.1f} ms, 1/{theirs / mine:.0f} of difflib "
        "(bar: 50 ms or 1/20)"
    )


def shelves(kept: list[str]) -> dict[str, list[Memory]]:
    """The records of each source, by its shelf; the memories themselves have no name."""
    return {
        "": [Memory(content=text) for text in kept],
        "code": [
            CodeUnit(
                file_path=f"m{i // 20}.py", qualified_name=f"f{i}", signature=f"def f{i}():", docstring=text
            ).to_memory()
            for i, text in enumerate(kept)
        ],
        "commits": [Commit(sha=f"{i:040x}", message=text).to_memory() for i, text in enumerate(kept)],
        "values": [Value(axis="full", text=text, cluster_id=str(i)).to_memory() for i, text in enumerate(kept)],
        experiences_on("full"): [
            made
            for i, text in enumerate(kept)
            if (made := Experience(id=f"e{i}", domain="debugging", strategy="ask-user", goal=text).to_memory("full"))
        ],
    }


def assembling() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _assembling(Bare(Path(folder)))


def _assembling(bare: Bare) -> None:
    memory, random, loop = ChromaMemory(), Random(2), asyncio.new_event_loop()
    kept = texts(RECORDS, Random(1))
    every = shelves(kept)
    for name, rows in every.items():
        loop.run_until_complete((memory.beside(name) if name else memory).store_many(rows))
    bare.add([row.content for rows in every.values() for row in rows])
    assembler = ContextAssembler(Searcher(memory))

    def assemble(asked: str) -> FormattedContext:
        return loop.run_until_complete(assembler.assemble_context(asked, ALL))

    ratio = compare(
        assemble,
        bare.query,
        lambda: f"Which service {' '.join(random.sample(random.choice(kept).split(), 6))}?",
    )
    print(f"assembling from five sources against one bare query for 100 of the same records: {ratio} (bar: 3 x)")
    tracemalloc.start()
    assemble("Which service retries every order?")
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    print(f"memory allocated by one assembly: {peak:.1f} MB (bar: 50 MB)")


def indexing() -> None:
    memory, root = ChromaMemory(), Path(__file__).parents[1]
    for name, index in (("code", index_code), ("commits", index_commits)):
        first = seconds(lambda index=index: asyncio.run(index(memory, root)))  # type: ignore[misc]
        again = median(seconds(lambda index=index: asyncio.run(index(memory, root))) for _ in range(3))  # type: ignore[misc]
        print(f"indexing {name} again: {again:.2f} s against {first:.1f} s, 1/{first / again:.0f} (bar: 1/20)")


def values() -> None:
    memory = ChromaMemory()
    tried = [
        Experience(id=f"e{i}", domain="debugging", strategy="ask-user", goal=text, outcome_status="confirmed")
        for i, text in enumerate(texts(400, Random(3)))
    ]
    asyncio.run(Searcher(memory).keep_experience(*tried))
    first = seconds(lambda: asyncio.run(index_values(memory)))
    again = median(seconds(lambda: asyncio.run(index_values(memory))) for _ in range(3))
    found = len(asyncio.run(memory.beside("values").every()))
    print(
        f"deriving {found} values from 400 experiences: {first:.1f} s including the import of scikit-learn, "
        f"then {again:.2f} s"
    )


def main() -> None:
    duplicates()
    assembling()
    indexing()
    values()


if __name__ == "__main__":
    main()
