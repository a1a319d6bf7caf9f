"""A replay as one self-contained HTML page."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from langgraph_scrum_master._internal.shapes import well_formed
from langgraph_scrum_master.cli.page_snapshots import Interned, SnapshotPool
from langgraph_scrum_master.cli.replay_output import conversations, difference_rows
from langgraph_scrum_master.model import digest
from langgraph_scrum_master.replay import Difference, Replay, ReplayStep, against_recorded
from langgraph_scrum_master.team.record.snapshots import SNAPSHOT_SCHEMA

_SCRIPTS = ("model.js", "timeline.js", "detail.js", "wrong.js", "app.js")


def page(data: Mapping[str, Any]) -> str:
    """The page that shows this data."""
    before, after = _template()
    return f"{before}{_in_script(json.dumps(data))}{after}"


def page_data(
    shown: Replay,
    title: str,
    differences: Difference | None = None,
    *,
    pool: SnapshotPool | None = None,
    live: bool = False,
    folder: str = "",
) -> dict[str, Any]:
    """The data of the page: all steps, the differences, and a digest that changes with them.

    With a pool of its snapshots, each step can be exported as a snapshot test; with `live`, into the folder.
    """
    configs, cycles = Interned(pool.configs if pool is not None else ()), Interned()
    rows = list(difference_rows(differences)) if differences is not None else None
    data = {
        "title": well_formed(title),
        "live": live,
        "folder": folder,
        "schema": SNAPSHOT_SCHEMA,
        "difference": rows,
        **replace(shown, steps=()).to_dict(),
        "steps": list(_steps(shown, configs, cycles, pool)),
        "configs": configs.values,
        "cycles": cycles.values,
        "pool": {"messages": pool.messages, "values": pool.values} if pool is not None else None,
    }
    return {**data, "digest": digest(json.dumps(data))}


def _steps(shown: Replay, configs: Interned, cycles: Interned, pool: SnapshotPool | None) -> Iterator[dict[str, Any]]:
    """The steps, grouped by conversation. What many have in common is stored once, and empty fields are left out."""
    snapshots = {
        id(step): snapshot for step, snapshot in zip(shown.steps, pool.snapshots if pool else (), strict=False)
    }
    for name, steps in conversations(shown.steps).items():
        for step in steps:
            data = {key: value for key, value in step.to_dict().items() if value not in ("", None, [], False, 0)}
            for key in ("turns", "considered"):
                data[key] = [{name: item for name, item in each.items() if item} for each in data.get(key, ())]
            yield {
                **data,
                "conversation": well_formed(name),
                "config": configs.add(data.get("config", {})),
                "cycles": [cycles.add(cycle) for cycle in data.get("cycles", ())],
                "differs": _differs(step),
                "snapshot": snapshots.get(id(step)),
            }


def _differs(step: ReplayStep) -> list[list[str]]:
    if not step.ran or (step.recorded is None and step.result is None and not step.failure):
        return []
    return [list(row[1:]) for row in difference_rows(against_recorded(Replay(steps=(step,))))]


def _in_script(text: str) -> str:
    # No message may end the script element.
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _template() -> tuple[str, str]:
    """The page before and after its data. Its policy allows only its own style and script, by their hashes."""
    folder = files("langgraph_scrum_master.cli").joinpath("inspector")

    def read(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

    style, script = read("style.css"), "".join(map(read, _SCRIPTS))
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    whole = read("page.html").replace("__POLICY__", policy).replace("__STYLE__", style)
    before, _, after = whole.replace("__SCRIPT__", script).partition("__DATA__")
    return before, after


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
