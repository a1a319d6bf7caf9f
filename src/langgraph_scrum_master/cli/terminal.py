"""Prints texts to a terminal without what would steer it: escape sequences, control characters, changed directions."""

from __future__ import annotations

import shutil

import typer

from langgraph_scrum_master.text.sanitize import escaped_json, visible

NARROW = 60
"""The width in columns below which help is laid out for narrow terminals."""


def narrow_width() -> int | None:
    """The width of the terminal, by its size or `COLUMNS`, if it is narrow."""
    width = shutil.get_terminal_size().columns
    return width if width < NARROW else None


def echo(text: str, *, err: bool = False, utf_8: bool = False) -> None:
    """Print the text without control characters. `utf_8` ignores the encoding of the terminal."""
    shown = visible(text)
    typer.echo(shown.encode() if utf_8 else shown, err=err)


def echo_json(text: str) -> None:
    """Print JSON, with control characters as `\\u` escapes, so that it has the same data."""
    typer.echo(escaped_json(text))
