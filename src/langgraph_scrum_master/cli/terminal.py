"""Prints texts to a terminal without what would steer it: escape sequences, control characters, changed directions."""

from __future__ import annotations

import typer

from langgraph_scrum_master.text.sanitize import escaped_json, visible


def echo(text: str, *, err: bool = False, utf_8: bool = False) -> None:
    """Print the text without control characters. `utf_8` ignores the encoding of the terminal."""
    shown = visible(text)
    typer.echo(shown.encode() if utf_8 else shown, err=err)


def echo_json(text: str) -> None:
    """Print JSON, with control characters as `\\u` escapes, so that it has the same data."""
    typer.echo(escaped_json(text))
