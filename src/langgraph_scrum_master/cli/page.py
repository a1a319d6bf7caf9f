"""A replay as one self-contained HTML page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from langgraph_scrum_master._internal.shapes import well_formed
from langgraph_scrum_master.cli.replay_output import conversations, difference_rows
from langgraph_scrum_master.model import digest
from langgraph_scrum_master.replay import Difference, Replay


def page(data: dict[str, Any]) -> str:
    """The page that shows this data."""
    return _template().replace("__DATA__", _in_script(json.dumps(data)))


def page_data(shown: Replay, title: str, differences: Difference | None = None, live: bool = False) -> dict[str, Any]:
    """The data of the page: all steps, the differences, and a digest that changes with them."""
    replayed = replace(shown, steps=()).to_dict() | {"steps": list(_steps(shown))}
    rows = list(difference_rows(differences)) if differences is not None else None
    data = {"title": well_formed(title), "live": live, "difference": rows, **replayed}
    return {**data, "digest": digest(json.dumps(data))}


def _steps(shown: Replay) -> Iterator[dict[str, Any]]:
    """The steps, grouped by conversation."""
    for name, steps in conversations(shown.steps).items():
        yield from ({**step.to_dict(), "conversation": well_formed(name)} for step in steps)


def _in_script(text: str) -> str:
    # No message may end the script element.
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _template() -> str:
    return files("langgraph_scrum_master.cli").joinpath("inspector.html").read_text(encoding="utf-8")
