"""The whole chain on teams at work: who lacks context, and what is it given?

    python benchmarks/serving.py [--embedder static|minilm] [--assistant recorded] [--errors N]

The scenarios in `data/serving` are about this project's own documents and the decisions of its example team, written
for this project. The memory holds every section of them. What is counted:

    noticed     of those who lack something: a gap of theirs is found
    served      of those whose answer is in memory: the text they are given holds it
    precision   of the items given there: the share that holds the answer
    noise       of those whose answer is not in memory: something is given anyway
    alarmed     of healthy teams: a gap is found; intruded: something is given
    circular    of teams that go in circles: that is found

`--assistant recorded` lets a chat model's part be played by what a careful reader noted down as the need.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scenarios import agent_name, messages

from langgraph_scrum_master import ChromaMemory, ContextGap, ScrumMaster
from langgraph_scrum_master.index import index_documents
from langgraph_scrum_master.memories import Decision
from langgraph_scrum_master.model import Observation

ROOT = Path(__file__).parents[1]
OWN = Path(__file__).parent / "data" / "serving" / "scenarios.jsonl"
TEAM = ROOT / "graphs" / "delivery_team_memory"

LEFT_OUT = {"figures.md", "api.md", "licences.md"}
"""Pages of numbers and names, in which every word stands."""


class Project(NamedTuple):
    """A project's records, and scenarios of a team that works with them."""

    name: str
    records: list[tuple[str, str, dict[str, Any]]]
    scenarios: list[dict[str, Any]]

    async def memory(self, embedder: str = "static") -> ChromaMemory:
        memory = ChromaMemory(embedder=embedder)
        await memory.store_many(self.records)
        return memory


def documents() -> list[Path]:
    """The documents that the scenarios are about, by their paths in the project."""
    pages = [path for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in LEFT_OUT]
    return [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *pages, *sorted((TEAM / "adr").glob("*.md"))]


async def own_project() -> Project:
    """This project's documents, cut as the indexer cuts them, and its example team's decisions."""
    with tempfile.TemporaryDirectory() as folder:
        for path in documents():
            copy = Path(folder, path.relative_to(ROOT))
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        memory = ChromaMemory()
        await index_documents(memory, folder)
        pieces = [(each.key, each.content, each.metadata) for each in await memory.every()]
    decisions = [Decision(**each) for each in json.loads((TEAM / "decisions.json").read_text("utf-8"))]
    pieces += [(each.id, each.text, {"title": f"Decision {each.id}"}) for each in decisions]
    return Project("docs", pieces, _rows(OWN))


def project_in(folder: Path) -> Project:
    """A project that is kept elsewhere, in `corpus.jsonl` and `scenarios.jsonl`."""
    chunks = _rows(folder / "corpus.jsonl")
    records = [(c["id"], c["text"], {"session": c["doc"], "title": c["title"]}) for c in chunks]
    return Project(folder.name, records, _rows(folder / "scenarios.jsonl"))


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def holds(text: str, keys: Sequence[Sequence[str]]) -> bool:
    """Whether the text has all strings of one of the alternatives."""
    low = text.lower()
    return any(all(key.lower() in low for key in each) for each in keys)


def gap_of(row: dict[str, Any]) -> tuple[ContextGap, Observation] | None:
    """The asker's gap as it is found, and what was observed; None if it is not."""
    sighting = ScrumMaster()._pipeline.sight({"messages": messages(row)})
    own = (gap for gap in sighting.gaps if agent_name(gap.agent) == agent_name(row["asker"]))
    return next(((gap, sighting.observation) for gap in own), None)
