"""`scrum-master train`"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.errors import ConfigError

_MIN_TURNS = 20
"""Labelled turns required for training."""


def train(
    turns: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Labelled turns: JSON Lines with `content` and `label` (1 if it asks, else 0)."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The weights file to write.")] = Path("asking.weights"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")] = False,
) -> None:
    """Adapt the asking model to your own labelled turns.

    Training starts from the package's model. Every fifth turn is held out to compare both models; the written weights
    are trained on all turns. Pass the file to `ScrumMaster(asking=...)`, or set `asking` in scrum-master.toml.
    """
    from langgraph_scrum_master.team.observe.asking.adapt import adapted, compared
    from langgraph_scrum_master.team.observe.asking.dataset import read_labelled_turns

    labelled = [turn for path in turns for turn in read_labelled_turns(path)]
    asking = sum(turn.asks for turn in labelled)
    if len(labelled) < _MIN_TURNS or not 0 < asking < len(labelled):
        raise ConfigError(
            f"training needs at least {_MIN_TURNS} labelled turns, both asking and not asking, "
            f"got {len(labelled)}, {asking} of them asking"
        )
    with Console(stderr=True).status(f"Training on {len(labelled)} turns"):
        before, after = compared(labelled)
        content = adapted(labelled).to_bytes()
    try:
        output.write_bytes(content)
    except OSError as error:
        raise ConfigError(f"cannot write the weights to {str(output)!r}: {error.strerror or error}") from None
    if as_json:
        metrics = {"package": before._asdict(), "adapted": after._asdict()}
        echo(json.dumps({"turns": len(labelled), "asking": asking, **metrics, "written": str(output)}, indent=2))
        return
    console = Console(markup=False)
    console.print(f"{len(labelled)} turns, {asking} of them asking. On every fifth turn, held out:")
    console.print(f"  the package's model  {before}")
    console.print(f"  adapted model        {after}")
    console.print(f"Wrote {output}.")
