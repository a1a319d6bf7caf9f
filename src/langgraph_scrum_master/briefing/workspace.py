"""Signals on what a session is about: the active feature, its phase and recently changed files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from langgraph_scrum_master._internal.git import GitOutput, git
from langgraph_scrum_master._internal.shapes import file_text, text_of
from langgraph_scrum_master.briefing.bank import Warn
from langgraph_scrum_master.text.terms import plain_words
from langgraph_scrum_master.text.trim import trim

MAX_KEYWORDS = 20
"""The maximum number of keywords from changed files."""

MAX_DESCRIPTION = 1_000
"""The maximum number of characters of a feature's description."""

GIT_SECONDS = 1.5
"""The timeout for all calls of git together."""

_SECTION = re.compile(r"^##", re.M)


def collect_context_signals(root: Path, warn: Warn) -> str:
    """The distinct words of all signals, as a query; empty if there are none."""
    return " ".join(plain_words(*_feature_signals(root, warn), *collect_git_signals(root, warn)))


def collect_git_signals(root: Path, warn: Warn, seconds: float = GIT_SECONDS) -> list[str]:
    """Path components of the files that the last commits changed; none on a detached head."""
    until = monotonic() + seconds
    try:
        branch = git(root, "symbolic-ref", "-q", "HEAD", seconds=until - monotonic())
        if branch.code == 1:
            return []
        if branch.code:
            warn(f"git signals are ignored: {branch.problem}")
            return []
        changed = _changed(root, 3, until - monotonic())
        if changed.code:
            changed = _changed(root, 1, until - monotonic())
    except TimeoutError:
        warn(f"git signals are ignored: git took longer than {seconds:g} s")
        return []
    except (OSError, ValueError) as error:
        warn(f"git signals are ignored: git cannot be run: {error}")
        return []
    return path_keywords(changed.text.split("\0")) if not changed.code else []


def _changed(root: Path, commits: int, seconds: float) -> GitOutput:
    return git(root, "diff", "--name-only", "-z", f"HEAD~{commits}..HEAD", "--", seconds=seconds)


def path_keywords(paths: Iterable[str]) -> list[str]:
    """The distinct components of the paths. Hidden paths are skipped."""
    visible = (path for path in paths if not path.startswith(".") and "/." not in path)
    parts = dict.fromkeys(part for path in visible for part in re.split(r"[/.]", path) if part)
    return list(parts)[:MAX_KEYWORDS]


def _feature_signals(root: Path, warn: Warn) -> list[str]:
    feature = _active_feature(root / "docs" / "features", warn)
    if feature is None:
        return []
    folder, meta = feature
    if not (slug := text_of(meta.get("slug"))):
        warn(f"{folder / '.meta.json'} must have a text as 'slug', got {meta.get('slug')!r:.80}")
    return [slug, _first_paragraph(folder / "spec.md"), text_of(meta.get("lastCompletedPhase"))]


def _active_feature(features: Path, warn: Warn) -> tuple[Path, Mapping[str, Any]] | None:
    """The folder and metadata of the active feature; of several, the one modified last."""
    active: list[tuple[int, str, Path, Mapping[str, Any]]] = []
    try:
        folders = [entry.path for entry in os.scandir(features) if entry.is_dir()]
    except OSError:
        return None
    for path in sorted(folders):
        file = Path(path, ".meta.json")
        try:
            if file.exists() and (meta := _meta(file)).get("status") == "active":
                active.append((file.stat().st_mtime_ns, path, Path(path), meta))
        except (ValueError, OSError, RecursionError) as error:
            warn(f"{file} {error}")
    if not active:
        return None
    return max(active, key=lambda each: each[:2])[2:]


def _meta(file: Path) -> dict[str, Any]:
    try:
        meta = json.loads(text := file_text(file))
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error}") from error
    if not isinstance(meta, dict):
        raise ValueError(f"must be a JSON object, got {text!r:.80}")
    return meta


def _first_paragraph(spec: Path) -> str:
    try:
        text = file_text(spec)
    except ValueError:
        return ""
    return trim(_SECTION.split(text, maxsplit=1)[0][: 4 * MAX_DESCRIPTION], lambda start: len(start) <= MAX_DESCRIPTION)
