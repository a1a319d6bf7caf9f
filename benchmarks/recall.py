"""How much of what serves a question is found, in chat and in project memory side by side.

    python benchmarks/recall.py CONVERSATIONS PROJECTS [EMBEDDER]

CONVERSATIONS is a folder as `calibrate.py` takes it. PROJECTS holds a folder per project, each with `corpus.jsonl`
(`id`, `doc`, `order`, `text` of a piece of a document; the order of what was there from the start is -1) and
`queries.jsonl` (`story`, `order`, `kind`, `text` and `targets`, which maps what must be found to the documents that
have it). A project is asked four times as it grows; what is later than the query, or its own story, is left out.
Neither data set is part of this project.

Printed: the share found among the ten best, and in the best that fit into 1150 tokens (four characters each).
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from calibrate import Conversation
from langgraph_scrum_master import ChromaMemory

BUDGET = 1150
PER_ITEM = 24
"""Characters that the frame of each takes."""

STAGES = 4


def packed(keys: Sequence[str], texts: dict[str, str]) -> set[str]:
    """The first that fit; one that does not is passed over."""
    kept: set[str] = set()
    left = BUDGET
    for key in keys:
        cost = -(-(len(texts[key]) + PER_ITEM) // 4)
        if cost <= left:
            kept.add(key)
            left -= cost
    return kept


def chat(folder: Path, embedder: str) -> None:
    shares: list[tuple[float, float]] = []
    for path in sorted(folder.glob("*.json")):
        conversation = Conversation(path, embedder)
        texts = {key: text for key, (text, _) in conversation.turns.items()}
        for question in conversation.questions:
            keys = [key for key, _ in conversation.scored(question.text)]
            wanted = question.evidence & texts.keys()
            shares.append(tuple(len(wanted & found) / len(wanted) for found in (set(keys[:10]), packed(keys, texts))))  # type: ignore[arg-type]
    ten, fitting = (sum(column) / len(shares) for column in zip(*shares, strict=True))
    print(f"chat, {len(shares)} questions: {ten:.3f} among ten, {fitting:.3f} in {BUDGET} tokens")


def projects(folder: Path, embedder: str) -> None:
    shares: dict[str, list[float]] = {}
    for project in sorted(path for path in folder.iterdir() if path.is_dir()):
        corpus = {row["id"]: row for row in _rows(project / "corpus.jsonl")}
        queries = list(_rows(project / "queries.jsonl"))
        end = max(query["order"] for query in queries) + 1
        for stage in range(STAGES):
            asked = [query for query in queries if query["order"] * STAGES // end == stage]
            if not asked:
                continue
            newest = max(query["order"] for query in asked)
            memory = ChromaMemory(embedder=embedder)
            there = [row for row in corpus.values() if row["order"] < newest]
            asyncio.run(memory.store_many([(row["id"], row["text"], {"session": row["doc"]}) for row in there]))
            for query in asked:
                shares.setdefault(query["kind"], []).append(_covered(memory, query, corpus))
    for kind, found in shares.items():
        print(f"project memory, {len(found)} queries of kind {kind}: {sum(found) / len(found):.3f} in {BUDGET} tokens")


def _covered(memory: ChromaMemory, query: dict[str, Any], corpus: dict[str, dict[str, Any]]) -> float:
    def may_be_shown(row: dict[str, Any]) -> bool:
        own = row["doc"] == f"plan:{query['story']}"
        return not own if row["order"] < 0 else row["order"] < query["order"]

    found = [result.key for result in asyncio.run(memory.search_similar(query["text"], k=100))]
    shown = [key for key in found if may_be_shown(corpus[key])]
    documents = {corpus[key]["doc"] for key in packed(shown, {key: corpus[key]["text"] for key in shown})}
    return sum(not documents.isdisjoint(docs) for docs in query["targets"].values()) / len(query["targets"])


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def main() -> None:
    if len(sys.argv) not in (3, 4) or not all(Path(folder).is_dir() for folder in sys.argv[1:3]):
        sys.exit(__doc__)
    embedder = sys.argv[3] if len(sys.argv) > 3 else "static"
    chat(Path(sys.argv[1]), embedder)
    projects(Path(sys.argv[2]), embedder)


if __name__ == "__main__":
    main()
