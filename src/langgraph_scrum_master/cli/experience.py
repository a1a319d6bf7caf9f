"""`scrum-master experience`"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from langgraph_scrum_master.cli.memory import AsJson, Embedder, Folder, Namespace, opened
from langgraph_scrum_master.text.domains import DOMAINS

if TYPE_CHECKING:
    from langgraph_scrum_master.learning.records import Experience
    from langgraph_scrum_master.learning.searcher import Searcher

experience = typer.Typer(no_args_is_help=True, help="Record what was tried, what came of it, and what it taught.")

Id = Annotated[str, typer.Argument(metavar="ID", help="As `start` printed it.")]
Hypothesis = Annotated[str, typer.Option(help="What is taken to be true.")]
Action = Annotated[str, typer.Option(help="What is done to find out.")]
Prediction = Annotated[str, typer.Option(help="What is to be seen if the hypothesis holds.")]


@experience.command()
def start(
    folder: Folder,
    domain: Annotated[str, typer.Option(help=f"One of {', '.join(DOMAINS)}.")],
    strategy: Annotated[str, typer.Option(help="Such as read-the-error.")],
    goal: Annotated[str, typer.Option(help="What is to be reached.")],
    hypothesis: Hypothesis = "",
    action: Action = "",
    prediction: Prediction = "",
    tier: Annotated[str, typer.Option(help="gold if a tool records it, silver by hand, bronze if unsure.")] = "silver",
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Begin one; prints its id."""
    from langgraph_scrum_master.learning.records import Experience

    begun = Experience(
        domain=domain,
        strategy=strategy,
        goal=goal,
        hypothesis=hypothesis,
        action=action,
        prediction=prediction,
        confidence_tier=tier,
    )
    asyncio.run(_searcher(folder, namespace, embedder, new=True).keep_experience(begun))
    typer.echo(json.dumps(begun.to_dict(), indent=2) if as_json else begun.id)


@experience.command()
def update(
    folder: Folder,
    identity: Id,
    strategy: Annotated[str, typer.Option(help="How it is gone about now.")] = "",
    hypothesis: Hypothesis = "",
    action: Action = "",
    prediction: Prediction = "",
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Try again with something else: what is given replaces what was, which stays in its history."""

    def next_one(known: Experience) -> Experience:
        return known.tried_again(strategy=strategy, hypothesis=hypothesis, action=action, prediction=prediction)

    _change(_searcher(folder, namespace, embedder), identity, next_one, as_json)


@experience.command()
def resolve(
    folder: Folder,
    identity: Id,
    outcome: Annotated[str, typer.Option(help="confirmed, falsified or abandoned.")],
    result: Annotated[str, typer.Option(help="What was seen in the end.")] = "",
    surprise: Annotated[str, typer.Option(help="What nobody would have expected.")] = "",
    root_cause: Annotated[str, typer.Option(help="Why the hypothesis was wrong.")] = "",
    root_cause_category: Annotated[str, typer.Option(help="Such as wrong-assumption.")] = "",
    what_worked: Annotated[str, typer.Option(help="What helped.")] = "",
    takeaway: Annotated[str, typer.Option(help="What to do another time.")] = "",
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Say what came of it."""

    def ended(known: Experience) -> Experience:
        return known.resolved(
            outcome,
            outcome_result=result,
            surprise=surprise,
            root_cause=root_cause,
            root_cause_category=root_cause_category,
            what_worked=what_worked,
            takeaway=takeaway,
        )

    _change(_searcher(folder, namespace, embedder), identity, ended, as_json)


@experience.command(name="list")
def list_(
    folder: Folder, namespace: Namespace = "default", embedder: Embedder = "static", as_json: AsJson = False
) -> None:
    """Show all, the newest first."""
    kept = asyncio.run(_searcher(folder, namespace, embedder).all_experiences())
    if as_json:
        typer.echo(json.dumps([each.to_dict() for each in kept], indent=2))
        return
    table = Table(Column("id", no_wrap=True), "domain", "strategy", "goal", "outcome", box=None)
    for each in kept:
        table.add_row(each.id, each.domain, each.strategy, Text(each.goal[:60]), each.outcome_status or "open")
    Console().print(table if kept else "Nothing was recorded yet.")


def _change(searcher: Searcher, identity: str, change: Callable[[Experience], Experience], as_json: bool) -> None:
    changed = asyncio.run(searcher.change_experience(identity, change))
    if as_json:
        typer.echo(json.dumps(changed.to_dict(), indent=2))


def _searcher(folder: Folder, namespace: str, embedder: str, new: bool = False) -> Searcher:
    from langgraph_scrum_master.learning.searcher import Searcher

    return Searcher(opened(folder, namespace, embedder, new=new))
