"""Questions that share no word with their answers: how often the answer ranks first, by embedder.

The pairs are in `data/paraphrases-*.jsonl`, by two authors, the second without having seen what the first ones find; a
pair that does share a word is refused. Each set is asked in a memory of its own, and then all in one, where more texts
share a word with a question by chance.
"""

from __future__ import annotations

import asyncio
import json
from importlib.util import find_spec
from pathlib import Path

from langgraph_scrum_master import ChromaMemory
from langgraph_scrum_master.text.terms import terms

DATA = Path(__file__).parent / "data"
BARS = {"static": 0.40, "minilm": 0.80}

Pairs = list[tuple[str, str]]


def pairs(file: Path) -> Pairs:
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        shared = set(terms(row["question"])) & set(terms(row["answer"]))
        assert not shared, f"{row['question']!r} shares {sorted(shared)} with its answer"
    return [(row["question"], row["answer"]) for row in rows]


async def found_first(embedder: str, asked: Pairs) -> int:
    memory = ChromaMemory(embedder=embedder)
    await memory.store_many([(f"a{i}", answer, {}) for i, (_, answer) in enumerate(asked)])
    hits = [(await memory.search_similar(question, k=1))[0].key == f"a{i}" for i, (question, _) in enumerate(asked)]
    return sum(hits)


def main() -> None:
    sets = [pairs(file) for file in sorted(DATA.glob("paraphrases-*.jsonl"))]
    every = [pair for each in sets for pair in each]
    for embedder, bar in BARS.items():
        if embedder == "minilm" and find_spec("onnxruntime") is None:
            print("paraphrases, minilm: skipped, the extra is not installed")
            continue
        found = [asyncio.run(found_first(embedder, each)) for each in sets]
        shares = ", ".join(f"{hits / len(each):.2f} of {len(each)}" for hits, each in zip(found, sets, strict=True))
        together = asyncio.run(found_first(embedder, every)) / len(every)
        print(
            f"paraphrases, {embedder}: {sum(found) / len(every):.2f} rank first ({shares}; bar: {bar:.2f}), "
            f"{together:.2f} with all in one memory"
        )


if __name__ == "__main__":
    main()
