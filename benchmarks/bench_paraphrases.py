"""Questions whose answers share no word with them: how often the answer comes first among all, by embedder.

The pairs are in `data/paraphrases.jsonl`; a pair that does share a word is refused.
"""

from __future__ import annotations

import asyncio
import json
from importlib.util import find_spec
from pathlib import Path

from langgraph_scrum_master import ChromaMemory
from langgraph_scrum_master.text.terms import terms

DATA = Path(__file__).parent / "data" / "paraphrases.jsonl"
BARS = {"static": 0.40, "minilm": 0.80}


def pairs() -> list[tuple[str, str]]:
    rows = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        shared = set(terms(row["question"])) & set(terms(row["answer"]))
        assert not shared, f"{row['question']!r} shares {sorted(shared)} with its answer"
    return [(row["question"], row["answer"]) for row in rows]


async def found_first(embedder: str, asked: list[tuple[str, str]]) -> float:
    memory = ChromaMemory(embedder=embedder)
    await memory.store_many([(f"a{i}", answer, {}) for i, (_, answer) in enumerate(asked)])
    hits = [(await memory.search_similar(question, k=1))[0].key == f"a{i}" for i, (question, _) in enumerate(asked)]
    return sum(hits) / len(hits)


def main() -> None:
    asked = pairs()
    for embedder, bar in BARS.items():
        if embedder == "minilm" and find_spec("onnxruntime") is None:
            print("paraphrases, minilm: skipped, the extra is not installed")
            continue
        rate = asyncio.run(found_first(embedder, asked))
        print(f"paraphrases, {embedder}: {rate:.2f} of {len(asked)} come first (bar: {bar:.2f})")


if __name__ == "__main__":
    main()
