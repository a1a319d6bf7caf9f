"""A real project, indexed, changed, and indexed again."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore
from typer.testing import CliRunner

from experiences import learned
from langgraph_scrum_master import ChromaMemory, ConfigError, ScrumMasterError, StoreMemory
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.errors import NotFoundError
from langgraph_scrum_master.learning import Searcher
from langgraph_scrum_master.learning.indexers import (
    IndexReport,
    index_code,
    index_commits,
    index_documents,
    index_values,
)
from langgraph_scrum_master.learning.indexers.commits import history_since
from langgraph_scrum_master.learning.indexers.documents import LONGEST, sections
from langgraph_scrum_master.memory.record_memory import RecordMemory
from projects import CACHE_PY, CART_TS, commit, git, make_project, new_repository, write

UNITS = 30
"""Of the project's code."""


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("made") / "shop")


@pytest.fixture
def project(made_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made_once, tmp_path / "shop"))


@pytest.fixture(params=["chroma", "store"])
def memory(request: pytest.FixtureRequest) -> RecordMemory:
    return ChromaMemory() if request.param == "chroma" else StoreMemory(InMemoryStore())


async def index(memory: RecordMemory, project: Path) -> list[IndexReport]:
    return [
        await index_code(memory, project),
        await index_commits(memory, project),
        await index_documents(memory, project),
        await index_values(memory),
    ]


async def test_a_project_in_six_languages_is_found_changed_and_found_again(project: Path, memory: RecordMemory) -> None:
    searcher = Searcher(memory)
    await learned(searcher)

    code, commits, documents, values = await index(memory, project)

    assert (code.written, commits.written, documents.written) == (UNITS, 50, 5)
    assert values.written
    assert not code.skipped
    for asked, name in {
        "give money back for an order": "refund",
        "put an item into the shopping cart": "Cart.add",
        "checkout button": "Checkout",
        "send a parcel from the depot": "Depot.Dispatch",
        "the tax on an amount of cents": "Rate::on",
        "cancel the order and tell the warehouse": "Order.cancel",
    }.items():
        assert (await searcher.search_code(asked))[0][0].qualified_name == name
    (found, _), *_ = await searcher.search_commits("add the price cache")
    assert (found.author, len(found.files_changed), found.deletions) == ("Maria", 10, 0)
    assert found.message == "Add the price cache\n\nPrices change often."
    best, *_ = await searcher.search_memories("How long do refunds take?")
    assert best.metadata["title"] == "README.md: Shop > Refunds"
    for wanted in ({"domain": "testing"}, {"strategy": "read-the-error"}, {"outcome": "confirmed"}):
        tried = await searcher.search_experiences("tests leave state behind", **wanted)  # type: ignore[arg-type]
        assert {
            getattr(each, {"outcome": "outcome_status"}.get(name, name)) for each, _ in tried for name in wanted
        } == {*wanted.values()}
    for axis, said in (("surprise", "only when run together"), ("root_cause", "time zone of dates")):
        assert await searcher.search_experiences(said, axis=axis)
    assert "cache" in (await searcher.search_values("stale entries of a cache"))[0][0].text

    assert [(each.written, each.removed) for each in await index(memory, project)] == [(0, 0)] * 4

    write(
        project,
        {"shop/cache.py": CACHE_PY.replace("Give money back.", "Return what was paid."), "new.go": "package a\n"},
    )
    (project / "notes.txt").unlink()
    commit(project, "Say refunds otherwise")

    assert await index(memory, project) == [
        IndexReport(written=2, unchanged=5),
        IndexReport(written=1, unchanged=50),
        IndexReport(removed=1, unchanged=3),
        IndexReport(unchanged=values.written, skipped=values.skipped),
    ]
    assert (await searcher.search_code("return what was paid"))[0][0].docstring == "Return what was paid."
    assert (await searcher.search_commits("say refunds otherwise"))[0][0].deletions == 2


async def test_what_moves_is_found_in_its_new_place_and_what_does_not_is_not_written(project: Path) -> None:
    memory = ChromaMemory()
    await index_code(memory, project)
    write(project, {"web/cart.ts": CART_TS.replace("// Sums up", "// In cents.\n// Sums up")})

    report = await index_code(memory, project)

    # What is called from there on, with its comment, and the file that is longer now.
    assert report.written == 1 + 4
    (found, _), *_ = await Searcher(memory).search_code("something for sale interface Item")
    assert (found.qualified_name, found.start_line) == ("Item", 20)


async def test_a_function_that_is_gone_is_found_no_more(project: Path) -> None:
    memory = ChromaMemory()
    await index_code(memory, project)
    write(project, {"shop/cache.py": CACHE_PY[: CACHE_PY.index("def refund")]})

    report = await index_code(memory, project)

    assert report.removed == 2
    names = [unit.qualified_name for unit, _ in await Searcher(memory).search_code("refund money", limit=50)]
    assert "refund" not in names


MANY = {f"m{i}.py": "".join(f"def f{i}_{j}(): ...\n" for j in range(20)) for i in range(50)}
CHILD = """
import asyncio, sys
from langgraph_scrum_master import ChromaMemory
from langgraph_scrum_master.learning.indexers import index_code
asyncio.run(index_code(ChromaMemory(sys.argv[1]), sys.argv[2], progress=lambda done, _: print(done, flush=True)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_indexing_that_was_stopped_goes_on(how: signal.Signals, tmp_path: Path) -> None:
    folder, project = tmp_path / "memory", tmp_path / "project"
    write(project, MANY)
    command = [sys.executable, "-c", CHILD, str(folder), str(project)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        for line in child.stdout or ():
            if int(line) == 30:
                os.kill(child.pid, how)
                break
    assert child.returncode != 0
    memory = ChromaMemory(folder)

    rest = asyncio.run(index_code(memory, project))

    assert 0 < rest.unchanged < 50
    assert len({result.key for result in asyncio.run(memory.beside("code").every())}) == 50 * 21
    assert asyncio.run(index_code(memory, project)) == IndexReport(unchanged=50)


async def test_what_an_interrupted_indexing_kept_goes_with_its_file(project: Path) -> None:
    memory = StoreMemory(InMemoryStore())
    code = memory.beside("code")

    def stop(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await index_code(memory, project, progress=stop)
    # As if it had been stopped between keeping the units and noting that they are kept.
    noted = (await code.notes("index code", ["web/cart.ts"]))["web/cart.ts"]
    await code.save_notes("index code", {"web/cart.ts": noted | {"digest": ""}})
    (project / "web" / "cart.ts").unlink()

    report = await index_code(memory, project)

    assert (report.removed, report.unchanged) == (7, 5)
    assert not [result.key for result in await memory.beside("code").every() if "cart" in result.key]


async def test_what_cannot_be_read_is_named_and_the_rest_is_kept(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, {"broken.py": "def f(:\n", "broken.ts": "class {\n", "huge.py": "x = 1\n" * 200_000})
    (project / "binary.py").write_bytes(b"\x00\x01\x02")
    (project / "latin.py").write_bytes("# größe\n".encode("latin-1"))
    (project / "linked.py").symlink_to(project / "shop" / "cache.py")
    memory = ChromaMemory()
    monkeypatch.setitem(sys.modules, "tree_sitter_go", None)

    report = await index_code(memory, project)

    assert report.skipped == {
        "binary.py": "binary",
        "broken.py": "cannot be parsed: invalid syntax in line 1",
        "broken.ts": "cannot be parsed: syntax error in line 1",
        "huge.py": "larger than 1,000,000 bytes",
        "latin.py": "not UTF-8",
        "ship/depot.go": "go needs: pip install '.[code]' in a clone of langgraph-scrum-master",
    }
    assert report.written == UNITS - 4

    monkeypatch.undo()
    assert (await index_code(memory, project)).written == 4


async def test_a_folder_without_git_is_indexed_but_for_its_commits(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "def f(): ...\n", "dist/b.py": "def g(): ...\n", "x/c.py": "y = 1\n"})

    report = await index_code(ChromaMemory(), tmp_path)

    assert report.written == 3
    with pytest.raises(ConfigError, match="must be in a git repository: fatal: not a git repository"):
        await index_commits(ChromaMemory(), tmp_path)
    with pytest.raises(NotFoundError, match="there is no folder"):
        await index_code(ChromaMemory(), tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="must be in a git repository"):
        await index_commits(ChromaMemory(), tmp_path / "nowhere")


async def test_where_there_is_no_git_it_is_reported(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    assert (await index_documents(ChromaMemory(), project)).written == 5
    with pytest.raises(ConfigError, match="git cannot be run"):
        await index_commits(ChromaMemory(), project)


def numbers(root: Path) -> list[tuple[str, tuple[str, ...], int, int]]:
    return [(each.message, each.files_changed, each.insertions, each.deletions) for each in history_since(root, "").new]


def test_a_commit_counts_what_it_changed_by_whatever_name(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r")
    text = "".join(f"{i}\n" for i in range(30))
    commit(root, "First", {"a/one.txt": text})
    (root / "logo.png").write_bytes(b"\x00\x01")
    commit(root, "Binary and odd \x1e\x1f signs", {"zwei ü\t.txt": "x\n"})
    git(root, "mv", "a/one.txt", "a/three.txt")
    commit(root, "Rename", {"a/three.txt": text + "30\n"})
    commit(root, "Nothing")

    assert numbers(root) == [
        ("First", ("a/one.txt",), 30, 0),
        ("Binary and odd \x1e\x1f signs", ("logo.png", "zwei ü\t.txt"), 1, 0),
        ("Rename", ("a/three.txt",), 1, 0),
        ("Nothing", (), 0, 0),
    ]


async def test_what_was_merged_counts_once_and_is_not_read_again(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r")
    commit(root, "First", {"a.txt": "1\n"})
    git(root, "checkout", "-q", "-b", "side")
    commit(root, "Side", {"side.txt": "1\n"})
    git(root, "checkout", "-q", "main")
    commit(root, "Main", {"main.txt": "1\n"})
    git(root, "merge", "-q", "--no-ff", "side", "-m", "Merge side")
    memory = ChromaMemory()

    report, again = await index_commits(memory, root), await index_commits(memory, root)

    assert sorted(numbers(root)) == [
        ("First", ("a.txt",), 1, 0),
        ("Main", ("main.txt",), 1, 0),
        ("Side", ("side.txt",), 1, 0),
    ]
    assert (report, again) == (IndexReport(written=3), IndexReport(unchanged=3))


async def test_a_repository_without_commits_has_none(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "r")
    memory = ChromaMemory()

    assert await index_commits(memory, root) == IndexReport()
    commit(root, "First", {"a.txt": "1\n"})
    assert await index_commits(memory, root) == IndexReport(written=1)


def messages(results: Iterable[object]) -> set[str]:
    return {str(getattr(result, "content", "")).split("\n")[0] for result in results}


async def test_of_a_history_that_was_written_anew_only_the_difference_changes(project: Path) -> None:
    memory = ChromaMemory()
    await index_commits(memory, project)
    git(project, "reset", "-q", "--hard", "HEAD~2")

    shorter = await index_commits(memory, project)
    commit(project, "Another end", {"other.txt": "x"})
    longer = await index_commits(memory, project)

    assert (shorter, longer) == (IndexReport(removed=2, unchanged=48), IndexReport(written=1, unchanged=48))
    kept = messages(await memory.beside("commits").every())
    assert ("Another end" in kept, "Change note 49" in kept, len(kept)) == (True, False, 49)


async def test_a_clone_of_a_history_that_was_written_anew_is_the_same_project(project: Path, tmp_path: Path) -> None:
    memory = ChromaMemory()
    await index_commits(memory, project)
    git(project, "reset", "-q", "--hard", "HEAD~1")
    commit(project, "Another end")
    git(tmp_path, "clone", "-q", project.as_uri(), "clone")
    other = new_repository(tmp_path / "other")
    commit(other, "Of another project")

    report = await index_commits(memory, tmp_path / "clone")
    added = await index_commits(memory, other)

    assert report == IndexReport(written=1, removed=1, unchanged=49)
    # Nothing in common: what is kept of the first is not taken for its past.
    assert added == IndexReport(written=1, unchanged=50)


async def test_a_shallow_clone_does_not_say_what_it_cannot_know(project: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "3", project.as_uri(), "clone")
    clone, memory = tmp_path / "clone", ChromaMemory()

    shallow = await index_commits(memory, clone)
    git(clone, "fetch", "-q", "--unshallow")
    commit(clone, "One more")
    whole = await index_commits(memory, clone)

    # The oldest of three seems to have added every file.
    assert shallow == IndexReport(written=2)
    assert whole == IndexReport(written=49, unchanged=2)


def test_documents_are_cut_at_their_headings() -> None:
    text = (
        "---\ntitle: x\n---\nIntro.\n\n# Shop\n\n## Refunds\n\nTwo days.\n\n```sh\n# no heading\n\nnor\n---\n```\n\n"
        "Underlined\n---\n\n---\n\nLegal\n=====\nLong paragraph. " + "Of words. " * 180 + "\n\n" + "More. " * 200
    )

    found = sections(text)

    # Sections that are only a heading are left out.
    assert [title for title, _ in found] == ["", "Shop > Refunds", "Legal", "Legal"]
    assert found[0][1] == "Intro."
    assert "# no heading\n\nnor\n---" in found[1][1]


def test_restructured_text_is_cut_at_its_headings() -> None:
    text = (
        "====\nShop\n====\n\nIntro.\n\nRefunds\n=======\n\nLater\n-----\n\nTwo days.\n\n----\n\nMore.\n\n"
        "Legal\n=====\n\n.. x::\n\n   # no\n"
    )

    assert sections(text, rst=True) == [
        ("Shop", "Intro."),
        ("Shop > Refunds > Later", "Two days.\n\n----\n\nMore."),
        ("Shop > Legal", ".. x::\n\n   # no"),
    ]


def test_a_section_is_cut_between_paragraphs_lines_words_or_anywhere() -> None:
    for text in ("paragraph.\n\n" * 500, "a line\n" * 800, "word " * 1000, "x" * 5000):
        pieces = [piece for _, piece in sections(f"# A\n{text}")]
        assert len(pieces) > 2
        assert all(len(piece) <= LONGEST for piece in pieces)
        assert "".join("".join(pieces).split()) == "".join(text.split())


async def test_a_decision_that_was_superseded_says_so_and_no_more(project: Path) -> None:
    memory = ChromaMemory()
    write(project, {"docs/adr/README.md": "# Decisions\n\nAll of them.\n", "requirements-dev.txt": "mysql==1\n"})
    await index_documents(memory, project)

    best, *_ = await Searcher(memory).search_memories("In which database are orders kept?", category="decision")
    kept = {result.content: result for result in await memory.every()}

    assert best.content == "ADR-2: Use PostgreSQL > Decision\nOrders are kept in PostgreSQL."
    assert (best.metadata["status"], best.metadata["adr"]) == ("accepted", "ADR-2")
    superseded = kept["ADR-1: Use MySQL\nNot in force: superseded by ADR-2."]
    assert superseded.metadata["references"] == ["ADR-2"]
    assert not any("kept in MySQL" in text or "mysql==1" in text for text in kept)


def scrum_master(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done.stdout


def test_a_project_is_indexed_and_a_premortem_given_from_the_shell(project: Path, tmp_path: Path) -> None:
    folder, root = str(tmp_path / "memory"), str(project)
    written = [
        json.loads(scrum_master("index", what, "-m", folder, root, "--json"))["written"]
        for what in ("code", "commits", "docs")
    ]
    told = scrum_master("index", "code", "-m", folder, root)
    started = ["--domain", "debugging", "--strategy", "read-the-error", "--goal", "Find the stale price"]
    first = ["--hypothesis", "The key is wrong", "--tier", "bronze"]
    identity = scrum_master("experience", "start", "-m", folder, *started, *first).strip()
    scrum_master("experience", "update", "-m", folder, identity, "--action", "Read the log of the cache")
    resolved = ["--outcome", "falsified", "--surprise", "A timer did it", "--root-cause", "No event"]
    category = ["--root-cause-category", "oversight", "--takeaway", "Look for timers"]
    ended = json.loads(scrum_master("experience", "resolve", "-m", folder, identity, *resolved, *category, "--json"))

    (kept,) = json.loads(scrum_master("experience", "list", "-m", folder, "--json"))
    warned = scrum_master("premortem", "-m", folder, "debugging")
    served = json.loads(scrum_master("assemble", "-m", folder, "How is a refund given?", "--among", "code", "--json"))
    nothing = scrum_master("assemble", "-m", folder, "zebra quantum flux capacitor")

    assert written == [UNITS, 50, 5]
    assert "`refund`" in served["markdown"]
    assert served["sources_used"].keys() == {"code"}
    assert nothing == "Nothing found.\n"
    assert told == "Units written: 0, removed: 0; files unchanged: 6, skipped: 0.\n"
    assert kept == ended
    assert (kept["action"], kept["iteration_count"], kept["outcome_status"], kept["confidence_tier"]) == (
        "Read the log of the cache",
        2,
        "falsified",
        "bronze",
    )
    (before,) = kept["history"]
    assert (before["hypothesis"], before["action"]) == ("The key is wrong", "")
    assert identity in scrum_master("experience", "list", "-m", folder)
    assert "# Premortem: debugging" in warned
    assert "Find the stale price" in warned
    few = scrum_master("index", "values", "-m", folder)
    assert "Skipped full: needs 20 resolved experiences, has 1" in few


def test_a_memory_is_kept_with_what_is_known_of_it(tmp_path: Path) -> None:
    folder = str(tmp_path / "memory")
    about = ["--category", "decision", "--importance", "0.9", "--tag", "cache", "--tag", "prices", "--verified"]
    key = scrum_master("remember", "-m", folder, "Prices are cached for 60 seconds.", *about).strip()
    scrum_master("remember", "-m", folder, "Prices are in cents.")

    (found, other) = json.loads(scrum_master("memory", "search", "-m", folder, "How long are prices cached?", "--json"))

    assert found["key"] == key
    facts = found["metadata"]
    assert (facts["category"], facts["importance"], facts["tags"]) == ("decision", 0.9, ["cache", "prices"])
    assert (facts["verification_status"], facts["verified_at"]) == ("verified", facts["created_at"])
    assert (other["metadata"]["verification_status"], "tags" in other["metadata"]) == ("unverified", False)


START = ["experience", "start", "-m", "FOLDER", "--domain", "testing", "--strategy", "ask-user"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["experience", "resolve", "-m", "FOLDER", "nothing", "--outcome", "confirmed"],
            "there is no experience 'nothing'",
        ),
        (
            ["experience", "update", "-m", "FOLDER", "nothing", "--action", "x"],
            "there is no experience 'nothing'",
        ),
        (["experience", "update", "-m", "FOLDER", "OPEN"], "an iteration must have a strategy, hypothesis"),
        (
            ["experience", "update", "-m", "FOLDER", "OPEN", "--strategy", "luck"],
            "strategy must be one of systematic-elim",
        ),
        (
            ["experience", "update", "-m", "FOLDER", "DONE", "--action", "x"],
            "is already confirmed: start a new one",
        ),
        (
            ["experience", "resolve", "-m", "FOLDER", "DONE", "--outcome", "confirmed"],
            "is already confirmed: start a new one",
        ),
        (
            ["experience", "resolve", "-m", "FOLDER", "OPEN", "--outcome", "great"],
            "outcome must be one of confirmed, fals",
        ),
        (
            [
                "experience",
                "resolve",
                "--memory",
                "FOLDER",
                "OPEN",
                "--outcome",
                "falsified",
                "--root-cause-category",
                "oversight",
            ],
            "root_cause must describe the cause, got only the category 'oversight'",
        ),
        (
            [
                *["experience", "resolve", "-m", "FOLDER", "OPEN", "--outcome", "falsified"],
                *["--root-cause", "x", "--root-cause-category", "fate"],
            ],
            "root_cause_category must be one of wrong-assumption,",
        ),
        ([*START, "--goal", " "], "goal must be a non-empty text"),
        ([*START, "--goal", "x", "--tier", "platinum"], "confidence_tier must be one of gold, silver"),
        (["premortem", "-m", "FOLDER", "gardening"], "domain must be one of debugging,"),
        (["remember", "-m", "FOLDER", "x", "--category", "joke"], "category must be one of preference,"),
        (["remember", "-m", "FOLDER", " "], "text must not be empty"),
        (["remember", "-m", "FOLDER", "x", "--tag", " "], "a tag must not be empty"),
        (["index", "values", "-m", "NOWHERE"], "there is no memory in"),
        (["index", "commits", "-m", "FOLDER", "NOWHERE"], "must be in a git repository"),
    ],
)
def test_what_the_shell_cannot_do_is_reported(arguments: list[str], told: str, experienced: Path) -> None:
    meant = {"FOLDER": str(experienced), "OPEN": "open", "DONE": "done", "NOWHERE": str(experienced / "nowhere")}

    with pytest.raises(ScrumMasterError, match=told):
        CliRunner().invoke(app, [meant.get(each, each) for each in arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def experienced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with an experience that is open, and one that is resolved."""
    from langgraph_scrum_master.learning import Experience

    folder = tmp_path_factory.mktemp("memory")
    searcher = Searcher(ChromaMemory(folder))
    begun = Experience(id="open", domain="testing", strategy="ask-user", goal="Find out")
    asyncio.run(searcher.keep_experience(begun))
    asyncio.run(searcher.keep_experience(Experience.from_dict(begun.resolved("confirmed").to_dict() | {"id": "done"})))
    return folder
