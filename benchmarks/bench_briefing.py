"""The cost of a session's briefing, as ratios within one run; medians.

- choosing among 200 lessons in a project with git and an active feature, from files to text, against a bare build of an
  FTS5 index of the same rows and one query
- `scrum-master brief` and the session-start hook as processes, against `python -c "import sqlite3, typer"`
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from bench_memory import texts
from langgraph_scrum_master import SessionBriefing
from langgraph_scrum_master.briefing.bank import CATEGORIES
from langgraph_scrum_master.briefing.matching import match_query

LESSONS = 200
ROUNDS = 31
PROCESSES = 11
BARE = "CREATE VIRTUAL TABLE t USING fts5(name, description, category, metadata_text, content_hash UNINDEXED)"


def seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def a_project(root: Path) -> None:
    bank = root / "docs" / "knowledge-bank"
    feature = root / "docs" / "features" / "001-orders"
    bank.mkdir(parents=True)
    feature.mkdir(parents=True)
    said = texts(LESSONS, Random(1))
    for place, category in enumerate(CATEGORIES):
        entries = [
            f"### Lesson {i}\n{text}\n- Cost: {text[:40]}\n- Observation count: {1 + i % 5}\n- Confidence: high\n\n"
            for i, text in enumerate(said)
            if i % len(CATEGORIES) == place
        ]
        (bank / f"{category}.md").write_text("".join(entries), encoding="utf-8")
    (feature / ".meta.json").write_text(json.dumps({"status": "active", "slug": "order-service"}), encoding="utf-8")
    (feature / "spec.md").write_text(f"# Spec\n\n{said[0]} {said[1]}\n\n## More\n", encoding="utf-8")
    git = ["git", "-C", str(root), "-c", "user.name=b", "-c", "user.email=b@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    for i in range(5):
        (root / f"part{i}.py").write_text("", encoding="utf-8")
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", "Change"], check=True)


def bare(rows: list[tuple[str, ...]], query: str) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute(BARE)
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    connection.execute("SELECT content_hash, bm25(t) FROM t WHERE t MATCH ?", (query,)).fetchall()
    connection.close()


def choosing(root: Path) -> None:
    everything = SessionBriefing(root, memory_injection_limit=LESSONS).brief()
    assert len(everything.entries) == LESSONS
    rows: list[tuple[str, ...]] = [
        (each.name, each.description, each.category, "\n".join(each.details), each.content_hash)
        for each in everything.entries
    ]
    query = match_query(everything.context_query)
    briefing = SessionBriefing(root)
    rounds = [(seconds(briefing.brief), seconds(lambda: bare(rows, query))) for _ in range(ROUNDS)]
    ours, theirs = (median(column) for column in zip(*rounds, strict=True))
    print(
        f"briefing from {LESSONS} lessons: {ours * 1e3:.1f} ms against {theirs * 1e3:.1f} ms for a bare FTS5 index: "
        f"{ours / theirs:.1f} x (bar: 20 x)"
    )


def processes(root: Path) -> None:
    command = str(Path(sys.executable).with_name("scrum-master"))
    store = str(root / "store")
    environment = {**os.environ, "SCRUM_MASTER_GLOBAL_STORE": store}

    def run(*arguments: str, given: str = "") -> float:
        return seconds(
            lambda: subprocess.run(arguments, input=given, text=True, capture_output=True, check=True, env=environment)
        )

    started = json.dumps({"session_id": "s", "cwd": str(root), "source": "startup"})
    rounds = [
        (
            run(sys.executable, "-c", "import sqlite3, typer"),
            run(command, "brief", "--project-root", str(root), "--global-store", store),
            run(command, "hook", "session-start", given=started),
        )
        for _ in range(PROCESSES)
    ]
    base, brief, hook = (median(column) for column in zip(*rounds, strict=True))
    for name, ours in (("scrum-master brief", brief), ("scrum-master hook session-start", hook)):
        print(
            f"{name}: {ours * 1e3:.0f} ms against {base * 1e3:.0f} ms for importing sqlite3 and typer: "
            f"{ours / base:.1f} x (bar: 3 x)"
        )


def main() -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder, "project")
        a_project(root)
        choosing(root)
        processes(root)


if __name__ == "__main__":
    main()
