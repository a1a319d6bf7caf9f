"""What a session in a project's folder is about: the active feature, its phase, the files that changed lately."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from langgraph_scrum_master._internal.shapes import file_text, text_of
from langgraph_scrum_master.briefing.bank import Warn
from langgraph_scrum_master.text.terms import plain_words
from langgraph_scrum_master.text.trim import trim

MOST_KEYWORDS = 20
"""Keywords that changed files give."""

MOST_DESCRIPTION = 1_000
"""Characters of a feature's description that are looked at."""

GIT_SECONDS = 1.5
"""What git has in all, however often it is asked."""

_SECTION = re.compile(r"^##", re.M)
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
"""Variables that would have git look into another repository than the one it is shown."""


def collect_context_signals(root: Path, warn: Warn) -> str:
    """The words that tell what the session is about, each once; empty if nothing does."""
    return " ".join(plain_words(*_feature_signals(root, warn), *collect_git_signals(root, warn)))


def collect_git_signals(root: Path, warn: Warn, seconds: float = GIT_SECONDS) -> list[str]:
    """Folders, names and endings of the files that the last commits changed; none if the head is detached."""
    until = monotonic() + seconds
    try:
        branch = _git(root, until, "symbolic-ref", "-q", "HEAD")
        if branch.returncode == 1:
            return []
        if branch.returncode:
            warn(f"no files of git count: {_told(branch)}")
            return []
        changed = _git(root, until, "diff", "--name-only", "-z", "HEAD~3..HEAD", "--")
        if changed.returncode:
            changed = _git(root, until, "diff", "--name-only", "-z", "HEAD~1..HEAD", "--")
    except subprocess.TimeoutExpired:
        warn(f"no files of git count: it took longer than {seconds:g} s")
        return []
    except (OSError, ValueError) as error:
        warn(f"no files of git count, it cannot be run: {error}")
        return []
    return path_keywords(changed.stdout.decode(errors="replace").split("\0")) if not changed.returncode else []


def path_keywords(paths: Iterable[str]) -> list[str]:
    """The parts of the paths, each once; what is hidden is passed over."""
    shown = (path for path in paths if not path.startswith(".") and "/." not in path)
    parts = dict.fromkeys(part for path in shown for part in re.split(r"[/.]", path) if part)
    return list(parts)[:MOST_KEYWORDS]


def _feature_signals(root: Path, warn: Warn) -> list[str]:
    feature = _active_feature(root / "docs" / "features", warn)
    if feature is None:
        return []
    folder, meta = feature
    if not (slug := text_of(meta.get("slug"))):
        warn(f"{folder / '.meta.json'} must have a text as 'slug', got {meta.get('slug')!r:.80}")
    return [slug, _first_paragraph(folder / "spec.md"), text_of(meta.get("lastCompletedPhase"))]


def _active_feature(features: Path, warn: Warn) -> tuple[Path, Mapping[str, Any]] | None:
    """The folder of the active feature and what is noted on it; of several, that which was noted last."""
    active: list[tuple[int, str, Path, Mapping[str, Any]]] = []
    try:
        folders = [entry.path for entry in os.scandir(features) if entry.is_dir()]
    except OSError:
        return None
    for path in sorted(folders):
        note = Path(path, ".meta.json")
        try:
            if note.exists() and (meta := _meta(note)).get("status") == "active":
                active.append((note.stat().st_mtime_ns, path, Path(path), meta))
        except (ValueError, OSError, RecursionError) as error:
            warn(f"{note} {error}")
    if not active:
        return None
    return max(active, key=lambda each: each[:2])[2:]


def _meta(note: Path) -> dict[str, Any]:
    try:
        meta = json.loads(text := file_text(note))
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from error
    if not isinstance(meta, dict):
        raise ValueError(f"must hold a JSON object, got {text!r:.80}")
    return meta


def _first_paragraph(spec: Path) -> str:
    try:
        text = file_text(spec)
    except ValueError:
        return ""
    return trim(
        _SECTION.split(text, maxsplit=1)[0][: 4 * MOST_DESCRIPTION], lambda start: len(start) <= MOST_DESCRIPTION
    )


def _git(root: Path, until: float, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    return subprocess.run(
        ["git", "-C", str(root), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=max(0.0, until - monotonic()),
        env=environment | {"GIT_OPTIONAL_LOCKS": "0"},
    )


def _told(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode(errors="replace").strip().split("\n")[0]
