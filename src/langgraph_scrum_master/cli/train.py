"""`scrum-master train`"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from langgraph_scrum_master.errors import ConfigError

_FEWEST = 20
"""Labelled turns without which nothing can be learned."""


def train(
    turns: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Labelled turns: JSON Lines with `content` and `label` (1 asks, 0 not)."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The weights file to write.")] = Path("asking.weights"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as a JSON object.")] = False,
) -> None:
    """Adapt the asking model to your own labelled turns.

    Starts from the model that comes with the package and keeps what your turns do not contradict. Every fifth turn is
    kept aside to compare both models; the weights that are written have seen them all. Give the file to
    `ScrumMaster(asking=...)`, or set `asking` in scrum-master.toml.
    """
    from langgraph_scrum_master.team.observe.asking.adapt import adapted, compared
    from langgraph_scrum_master.team.observe.asking.dataset import read_labelled_turns

    given = [turn for path in turns for turn in read_labelled_turns(path)]
    asking = sum(turn.asks for turn in given)
    if len(given) < _FEWEST or not 0 < asking < len(given):
        raise ConfigError(
            f"training needs at least {_FEWEST} labelled turns, some that ask and some that do not, "
            f"got {len(given)} of which {asking} ask"
        )
    with Console(stderr=True).status(f"Training on {len(given)} turns"):
        before, after = compared(given)
        content = adapted(given).to_bytes()
    try:
        output.write_bytes(content)
    except OSError as error:
        raise ConfigError(f"the weights cannot be written to {str(output)!r}: {error.strerror or error}") from None
    if as_json:
        figures = {"package": before._asdict(), "adapted": after._asdict()}
        typer.echo(json.dumps({"turns": len(given), "asking": asking, **figures, "written": str(output)}, indent=2))
        return
    console = Console()
    console.print(f"{len(given)} turns, {asking} of which ask. On every fifth turn, kept aside:")
    console.print(f"  the package's model  {before}")
    console.print(f"  adapted to yours     {after}")
    console.print(f"Wrote {output}.")
