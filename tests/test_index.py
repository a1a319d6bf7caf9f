"""A real project, indexed, changed, and indexed again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore
from typer.testing import CliRunner

from langgraph_scrum_master import ChromaMemory, ConfigError, ScrumMasterError, Searcher, StoreMemory
from langgraph_scrum_master.cli.app import app
from langgraph_scrum_master.index import IndexReport, index_code, index_commits, index_documents
from langgraph_scrum_master.index.code import python_units
from langgraph_scrum_master.index.documents import sections
from langgraph_scrum_master.memory.records import RecordMemory

CACHE = '''"""Prices, kept for a while."""


class PriceCache(dict[str, int]):
    """Keeps prices for 60 seconds."""

    def store(self, name: str, price: int = 0) -> None:
        """Keep a price."""

    @property
    async def size(self) -> int:
        return len(self)


def refund(order: str, *, amount: int) -> bool:
    """Give money back."""

    def inner() -> None: ...

    return bool(inner)
'''


def git(root: Path, *arguments: str) -> None:
    who = ["-c", "user.name=Maria", "-c", "user.email=maria@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(root), *who, *arguments], check=True, capture_output=True)


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    git(root, "init", "-q")
    write(root, shop__cache_py=CACHE, README_md="# Shop\n\nSells things.\n\n## Refunds\n\nRefunds take two days.\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Add the price cache\n\nPrices change often.")
    for i in range(49):
        write(root, notes_txt=f"note {i}\n")
        git(root, "add", "-A")
        git(root, "commit", "-qm", f"Change note {i}")
    return root


@pytest.fixture(params=["chroma", "store"])
def memory(request: pytest.FixtureRequest) -> RecordMemory:
    return ChromaMemory() if request.param == "chroma" else StoreMemory(InMemoryStore())


def test_python_is_cut_into_its_units() -> None:
    units = {unit.qualified_name: unit for unit in python_units("shop/cache.py", CACHE, "shop")}

    assert [(name, unit.unit_type) for name, unit in units.items()] == [
        ("shop.cache", "module"),
        ("PriceCache", "class"),
        ("PriceCache.store", "method"),
        ("PriceCache.size", "method"),
        ("refund", "function"),
        ("refund.inner", "function"),
    ]
    assert units["PriceCache.store"].signature == "def store(self, name: str, price: int=0) -> None:"
    assert units["PriceCache"].signature == "class PriceCache(dict[str, int]):"
    assert units["PriceCache.size"].start_line == 10
    assert (units["refund"].docstring, units["refund"].project) == ("Give money back.", "shop")


def test_a_name_that_comes_twice_is_two_units() -> None:
    units = python_units("a.py", "def f(): ...\n\n\ndef f(x): ...\n")

    assert [unit.qualified_name for unit in units] == ["a", "f", "f~2"]


def test_documents_are_cut_at_their_headings() -> None:
    text = (
        "Intro.\n\n# Shop\n\n## Refunds\n\nTwo days.\n\n```sh\n# no heading\n```\n\n# Legal\n"
        + "Long paragraph. " * 100
        + "\n\n"
        + "More. " * 200
    )

    found = sections(text)

    assert [title for title, _ in found] == ["", "Shop", "Shop > Refunds", "Legal", "Legal"]
    assert "# no heading" in found[2][1]


async def test_a_project_is_found_by_what_it_says(project: Path, memory: RecordMemory) -> None:
    code, commits, documents = (
        await index_code(memory, project),
        await index_commits(memory, project),
        await index_documents(memory, project),
    )
    searcher = Searcher(memory)

    assert (code.written, commits.written, documents.written) == (6, 50, 3)
    assert (await searcher.search_code("give money back for an order"))[0][0].qualified_name == "refund"
    (found, _), *_ = await searcher.search_commits("add the price cache")
    assert (found.author, found.files_changed, found.insertions) == ("Maria", ("README.md", "shop/cache.py"), 27)
    assert found.message == "Add the price cache\n\nPrices change often."
    assert (await searcher.search_memories("How long do refunds take?"))[0].metadata[
        "title"
    ] == "README.md: Shop > Refunds"


async def test_only_changes_are_written(project: Path, memory: RecordMemory) -> None:
    for index in (index_code, index_commits, index_documents):
        await index(memory, project)

    again = [await index(memory, project) for index in (index_code, index_commits, index_documents)]
    write(project, shop__cache_py=CACHE.replace("Give money back.", "Return what was paid."), shop__new_py="X = 1\n")
    (project / "notes.txt").unlink()
    git(project, "add", "-A")
    git(project, "commit", "-qm", "Say refunds otherwise")
    changed = [await index(memory, project) for index in (index_code, index_commits, index_documents)]

    assert again == [
        IndexReport(unchanged=1),
        IndexReport(unchanged=1),
        IndexReport(unchanged=2),
    ]
    assert changed == [
        IndexReport(written=2),
        IndexReport(written=1),
        IndexReport(removed=1, unchanged=1),
    ]
    searcher = Searcher(memory)
    assert (await searcher.search_code("return what was paid"))[0][0].docstring == "Return what was paid."
    assert (await searcher.search_commits("say refunds otherwise"))[0][0].message == "Say refunds otherwise"


async def test_a_function_that_is_gone_is_found_no_more(project: Path) -> None:
    memory = ChromaMemory()
    await index_code(memory, project)
    write(project, shop__cache_py=CACHE[: CACHE.index("def refund")])

    report = await index_code(memory, project)

    assert report.removed == 2
    names = [unit.qualified_name for unit, _ in await Searcher(memory).search_code("refund money", limit=20)]
    assert "refund" not in names


async def test_an_indexing_that_was_interrupted_goes_on(project: Path) -> None:
    memory = ChromaMemory()
    write(project, **{f"m{i}_py": f"def f{i}(): ...\n" for i in range(5)})

    def stop(done: int, _total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await index_code(memory, project, progress=stop)
    rest = await index_code(memory, project)

    assert rest.unchanged == 3
    assert len(await Searcher(memory).search_code("f0 f1 f2 f3 f4 refund", limit=50)) == 16


async def test_what_cannot_be_read_is_named_and_the_rest_is_kept(project: Path) -> None:
    write(project, broken_py="def f(:\n", huge_py="x = 1\n" * 200_000)
    (project / "binary.py").write_bytes(b"\x00\x01\x02")
    (project / "latin.py").write_bytes("# größe\n".encode("latin-1"))
    memory = ChromaMemory()

    report = await index_code(memory, project)

    assert report.written == 6
    assert report.skipped == {
        "binary.py": "binary",
        "broken.py": "cannot be parsed: invalid syntax in line 1",
        "huge.py": "larger than 1,000,000 bytes",
        "latin.py": "not UTF-8",
    }


async def test_a_folder_without_git_is_indexed_but_for_its_commits(tmp_path: Path) -> None:
    write(tmp_path, a_py="def f(): ...\n", dist__b_py="def g(): ...\n", x__c_py="y = 1\n")

    report = await index_code(ChromaMemory(), tmp_path)

    assert report.written == 3
    with pytest.raises(ConfigError, match="must be in a git repository"):
        await index_commits(ChromaMemory(), tmp_path)
    with pytest.raises(ConfigError, match="there is no folder"):
        await index_code(ChromaMemory(), tmp_path / "nowhere")


async def test_a_history_that_was_written_anew_is_read_anew(project: Path) -> None:
    memory = ChromaMemory()
    await index_commits(memory, project)
    git(project, "reset", "-q", "--hard", "HEAD~1")
    write(project, other_txt="x")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "Another end")

    report = await index_commits(memory, project)

    assert report.written == 50
    assert (await Searcher(memory).search_commits("another end"))[0][0].message == "Another end"


def scrum_master(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done.stdout


def test_a_project_is_indexed_and_a_premortem_given_from_the_shell(project: Path, tmp_path: Path) -> None:
    folder, root = str(tmp_path / "memory"), str(project)
    written = [
        json.loads(scrum_master("index", what, folder, root, "--json"))["written"]
        for what in ("code", "commits", "docs")
    ]
    scrum_master("remember", folder, "Prices are cached for 60 seconds.", "--category", "fact", "--importance", "0.9")
    started = ["--domain", "debugging", "--strategy", "read-the-error", "--goal", "Find the stale price"]
    identity = scrum_master("experience", "start", folder, *started).strip()
    scrum_master("experience", "update", folder, identity, "--action", "Read the log of the cache")
    resolved = [
        "--outcome",
        "falsified",
        "--surprise",
        "A timer did it",
        "--root-cause",
        "No event",
        "--root-cause-category",
        "oversight",
    ]
    scrum_master("experience", "resolve", folder, identity, *resolved)

    (kept,) = json.loads(scrum_master("experience", "list", folder, "--json"))
    warned = scrum_master("premortem", folder, "debugging")

    assert written == [6, 50, 3]
    assert (kept["action"], kept["iteration_count"], kept["outcome_status"]) == (
        "Read the log of the cache",
        2,
        "falsified",
    )
    assert "# Premortem: debugging" in warned
    assert "Find the stale price" in warned
    assert "Prices are cached" in scrum_master("memory", "search", folder, "How long are prices cached?")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["experience", "resolve", "FOLDER", "nothing", "--outcome", "confirmed"], "there is no experience 'nothing'"),
        (["premortem", "FOLDER", "gardening"], "domain must be one of debugging,"),
        (["remember", "FOLDER", "x", "--category", "joke"], "category must be one of preference,"),
    ],
)
def test_what_the_shell_cannot_do_is_told(arguments: list[str], told: str, tmp_path: Path) -> None:
    scrum_master("remember", str(tmp_path), "Something.")

    with pytest.raises(ScrumMasterError, match=told):
        CliRunner().invoke(
            app, [str(tmp_path) if each == "FOLDER" else each for each in arguments], catch_exceptions=False
        )
