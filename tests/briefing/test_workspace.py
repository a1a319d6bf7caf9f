"""What projects, with real git repositories, tell of a session, and what happens when they are broken."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from time import perf_counter

import pytest

from langgraph_scrum_master.briefing.workspace import (
    MAX_KEYWORDS,
    collect_context_signals,
    collect_git_signals,
    path_keywords,
)


class Project:
    """A folder that may be a git repository and have features."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.warnings: list[str] = []

    def git(self, *arguments: str) -> None:
        who = ["-c", "user.name=Maria", "-c", "user.email=maria@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(self.root), *who, *arguments], check=True, capture_output=True)

    def commit(self, *paths: str) -> None:
        for path in paths:
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(f"{path}\n", encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-qm", "Change")

    def feature(self, name: str, meta: object, spec: str | None = None, modified: float = 1e9) -> Path:
        folder = self.root / "docs" / "features" / name
        folder.mkdir(parents=True)
        note = folder / ".meta.json"
        note.write_text(meta if isinstance(meta, str) else json.dumps(meta), encoding="utf-8")
        os.utime(note, (modified, modified))
        if spec is not None:
            (folder / "spec.md").write_text(spec, encoding="utf-8")
        return folder

    def changed(self) -> list[str]:
        return collect_git_signals(self.root, self.warnings.append)

    def about(self) -> str:
        return collect_context_signals(self.root, self.warnings.append)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def repository(project: Project) -> Project:
    project.git("init", "-q", "-b", "main")
    return project


ACTIVE = {"status": "active", "slug": "config-parser", "lastCompletedPhase": "design"}


def test_the_files_of_the_last_three_commits_give_their_parts(repository: Project) -> None:
    for paths in (
        ["old/first.md"],
        ["a.txt"],
        ["plugins/hooks/lib/memory.py"],
        [".env", "src/.cache/x.js", "größe.rs"],
    ):
        repository.commit(*paths)

    assert set(repository.changed()) == {"a", "txt", "plugins", "hooks", "lib", "memory", "py", "größe", "rs"}
    assert repository.warnings == []


def test_a_path_is_cut_at_slashes_and_dots_in_order() -> None:
    assert path_keywords(["plugins/hooks/lib/memory.py"]) == ["plugins", "hooks", "lib", "memory", "py"]
    assert path_keywords(["lib/a.py", "lib/b.py", ".git/x", "lib/.b/c", ""]) == ["lib", "a", "py", "b"]


def test_at_most_twenty_keywords_are_taken(repository: Project) -> None:
    repository.commit("start")
    repository.commit(*(f"f{i}.py" for i in range(30)))

    assert len(repository.changed()) == MAX_KEYWORDS == 20


def test_with_two_commits_the_last_one_counts(repository: Project) -> None:
    repository.commit("first.py")
    repository.commit("second.py")

    assert repository.changed() == ["second", "py"]


def test_a_single_commit_none_at_all_and_a_detached_head_tell_nothing(repository: Project) -> None:
    unborn = repository.changed()
    repository.commit("first.py")
    single = repository.changed()
    repository.commit("second.py")
    repository.git("checkout", "-q", "--detach")
    detached = repository.changed()

    assert (unborn, single, detached) == ([], [], [])
    assert repository.warnings == []


def test_a_repository_whose_variables_are_set_elsewhere_is_read_itself(
    repository: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("first.py")
    repository.commit("second.py")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))

    assert repository.changed() == ["second", "py"]


def test_a_folder_without_git_is_reported(project: Project) -> None:
    assert project.changed() == []
    (warning,) = project.warnings
    assert "not a git repository" in warning


def test_a_machine_without_git_is_reported(
    repository: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert repository.changed() == []
    (warning,) = repository.warnings
    assert "git cannot be run" in warning


def test_a_git_that_hangs_is_given_up(repository: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tmp_path / "bin" / "git"
    hanging.parent.mkdir()
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    hanging.chmod(0o755)
    monkeypatch.setenv("PATH", f"{hanging.parent}:{os.environ['PATH']}")

    started = perf_counter()
    found = collect_git_signals(repository.root, repository.warnings.append, seconds=0.2)

    assert found == []
    assert perf_counter() - started < 2
    assert repository.warnings == ["git signals are ignored: git took longer than 0.2 s"]


def test_the_active_feature_tells_its_slug_its_first_paragraph_and_its_phase(repository: Project) -> None:
    repository.feature("017-old", {"status": "completed", "slug": "old-thing"})
    repository.feature(
        "018-x", ACTIVE, "# Spec: Reading\n\nRead the old config, all of it.\n\n## Overview\nNot this.\n"
    )
    repository.commit("first.py")
    repository.commit("src/config.toml")

    assert repository.about() == "config parser Spec Reading Read the old all of it design src toml"


def test_of_several_active_features_the_one_noted_last_counts(project: Project) -> None:
    project.feature("001-a", {**ACTIVE, "slug": "first"}, modified=2e9)
    project.feature("002-b", {**ACTIVE, "slug": "second"}, modified=1e9)

    assert project.about() == "first design"


@pytest.mark.parametrize(
    ("meta", "about", "message"),
    [
        ("{broken", "", "is not JSON"),
        ("[1]", "", "must be a JSON object, got '[1]'"),
        ("[" * 100_000, "", "recursion"),
        ({"status": "active"}, "The spec", "must have a text as 'slug', got None"),
        ({"status": "active", "slug": 7, "lastCompletedPhase": 3}, "The spec", "must have a text as 'slug', got 7"),
    ],
)
def test_a_feature_with_a_broken_note_is_reported_and_what_is_sound_counts(
    project: Project, meta: object, about: str, message: str
) -> None:
    folder = project.feature("001-a", meta, "The spec.")

    assert project.about() == about
    assert project.warnings[0].startswith(str(folder / ".meta.json"))
    assert message in project.warnings[0]


@pytest.mark.parametrize("phase", [None, 3, ""])
def test_a_phase_that_is_none_does_not_count(project: Project, phase: object) -> None:
    project.feature("001-a", {**ACTIVE, "lastCompletedPhase": phase})

    assert project.about() == "config parser"


def test_a_description_that_cannot_be_read_does_not_count(project: Project) -> None:
    folder = project.feature("001-a", ACTIVE)
    (folder / "spec.md").write_bytes(b"\xff\xfe\0")

    assert project.about() == "config parser design"
    assert len(project.warnings) == 1, "of git alone"


def test_a_long_description_leaves_room_for_the_rest(project: Project) -> None:
    project.feature("001-a", ACTIVE, " ".join(f"word{i}" for i in range(5_000)))

    assert len(project.about()) < 1_100
    assert project.about().endswith(" design")


def test_a_project_that_says_nothing_gives_nothing(project: Project) -> None:
    (project.root / "docs").mkdir()
    (project.root / "docs" / "features").write_text("a file")

    assert project.about() == ""


@pytest.mark.parametrize(("commits", "told"), [(3, ["c2"]), (4, ["c1", "c2", "c3"])])
def test_three_commits_are_compared_if_there_is_one_before_them_else_the_last_one(
    commits: int, told: list[str], repository: Project
) -> None:
    for i in range(commits):
        repository.commit(f"c{i}")

    assert repository.changed() == told


def test_a_shallow_clone_tells_of_the_last_commit(repository: Project, tmp_path: Path) -> None:
    for i in range(5):
        repository.commit(f"c{i}")
    clone = Project(tmp_path / "clone")
    repository.git("clone", "-q", "--depth", "2", repository.root.as_uri(), str(clone.root))
    bare = Project(tmp_path / "bare")
    repository.git("clone", "-q", "--depth", "1", repository.root.as_uri(), str(bare.root))

    assert clone.changed() == ["c4"]
    assert bare.changed() == []


def test_a_merge_counts_as_one_commit_with_all_its_files(repository: Project) -> None:
    for i in range(3):
        repository.commit(f"c{i}")
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("side1")
    repository.commit("side2")
    repository.git("checkout", "-q", "main")
    repository.commit("main1")
    repository.git("merge", "-q", "--no-edit", "side")

    assert set(repository.changed()) == {"c2", "main1", "side1", "side2"}
