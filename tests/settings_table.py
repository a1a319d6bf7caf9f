"""Renders the settings table of docs/reference.md from the declarations: `python tests/settings_table.py` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from langgraph_scrum_master._internal.settings import Setting, settings_of
from langgraph_scrum_master.cli.settings import CONFIGS
from langgraph_scrum_master.cli.settings_template import docstrings

PAGE = Path(__file__).parents[1] / "docs" / "reference.md"

BEGIN, END = "<!-- settings: begin -->\n", "<!-- settings: end -->\n"
"""The table is between these lines."""


def settings_table(configs: Iterable[type] = CONFIGS) -> str:
    """The settings that the dataclasses declare, as a Markdown table."""
    head = ["| setting | default | environment | meaning |", "|---|---|---|---|"]
    rows = [row(each, docstrings(config)) for config in configs for each in settings_of(config)]
    return "".join(f"{line}\n" for line in head + rows)


def row(setting: Setting, meanings: Mapping[str, str]) -> str:
    """The row of a setting. Raises KeyError if its field has no docstring."""
    meaning = meanings[setting.name].replace("|", r"\|")
    return f"| `{setting.name}` | {_shown(setting.default)} | `{setting.variable}` | {meaning} |"


def with_table(page: str, table: str) -> str:
    """The page with this table in place of its own."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"


def _shown(default: object) -> str:
    if default is None or default == {}:
        return "none"
    if isinstance(default, tuple):
        return ", ".join(default)
    return str(default).lower() if isinstance(default, bool) else str(default)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), settings_table()), encoding="utf-8")
