"""`scrum-master experience`"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, get_args

import typer
from rich.table import Column
from rich.text import Text

from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.memory import AsJson, Embedder, Folder, Namespace, memory_at
from langgraph_scrum_master.cli.tables import FittingTable
from langgraph_scrum_master.cli.terminal import echo
from langgraph_scrum_master.learning.records import OutcomeStatus, RootCauseCategory, Strategy
from langgraph_scrum_master.text.domains import DOMAINS

if TYPE_CHECKING:
    from langgraph_scrum_master.learning.records import Experience
    from langgraph_scrum_master.learning.searcher import Searcher

experience = typer.Typer(no_args_is_help=True, help="Record what you tried, the outcome, and the lesson.")

_STRATEGIES = ", ".join(get_args(Strategy))

Id = Annotated[str, typer.Argument(metavar="ID", help="The id that `start` printed.")]
Hypothesis = Annotated[str, typer.Option(help="What you assume to be true.")]
Action = Annotated[str, typer.Option(help="What you do to test it.")]
Prediction = Annotated[str, typer.Option(help="What you expect to see if the hypothesis holds.")]


@experience.command()
def start(
    folder: Folder,
    domain: Annotated[str, typer.Option(help=f"One of {', '.join(DOMAINS)}.")],
    strategy: Annotated[str, typer.Option(help=f"One of {_STRATEGIES}.")],
    goal: Annotated[str, typer.Option(help="What you want to achieve.")],
    hypothesis: Hypothesis = "",
    action: Action = "",
    prediction: Prediction = "",
    tier: Annotated[
        str, typer.Option(help="gold if recorded by a tool, silver by hand, bronze if unsure, or abandoned.")
    ] = "silver",
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Start an experience and print its id."""
    from langgraph_scrum_master.learning.records import Experience

    started = Experience(
        domain=domain,
        strategy=strategy,
        goal=goal,
        hypothesis=hypothesis,
        action=action,
        prediction=prediction,
        confidence_tier=tier,
    )
    asyncio.run(_searcher(folder, namespace, embedder, new=True).keep_experience(started))
    echo(json.dumps(started.to_dict(), indent=2) if as_json else started.id)


@experience.command()
def update(
    folder: Folder,
    identity: Id,
    strategy: Annotated[str, typer.Option(help=f"The new strategy: one of {_STRATEGIES}.")] = "",
    hypothesis: Hypothesis = "",
    action: Action = "",
    prediction: Prediction = "",
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Record another attempt. Given values replace the current ones, which move to the history."""

    def next_attempt(known: Experience) -> Experience:
        return known.tried_again(strategy=strategy, hypothesis=hypothesis, action=action, prediction=prediction)

    _change(_searcher(folder, namespace, embedder), identity, next_attempt, as_json)


@experience.command()
def resolve(
    folder: Folder,
    identity: Id,
    outcome: Annotated[str, typer.Option(help=f"One of {', '.join(get_args(OutcomeStatus))}.")],
    result: Annotated[str, typer.Option(help="What you observed.")] = "",
    surprise: Annotated[str, typer.Option(help="What was unexpected.")] = "",
    root_cause: Annotated[str, typer.Option(help="Why the hypothesis was wrong.")] = "",
    root_cause_category: Annotated[str, typer.Option(help=f"One of {', '.join(get_args(RootCauseCategory))}.")] = "",
    what_worked: Annotated[str, typer.Option(help="What helped.")] = "",
    takeaway: Annotated[str, typer.Option(help="What to do next time.")] = "",
    namespace: Namespace = "default",
    embedder: Embedder = "static",
    as_json: AsJson = False,
) -> None:
    """Record the outcome of an experience."""

    def resolved(known: Experience) -> Experience:
        return known.resolved(
            outcome,
            outcome_result=result,
            surprise=surprise,
            root_cause=root_cause,
            root_cause_category=root_cause_category,
            what_worked=what_worked,
            takeaway=takeaway,
        )

    _change(_searcher(folder, namespace, embedder), identity, resolved, as_json)


@experience.command(name="list")
def list_(
    folder: Folder, namespace: Namespace = "default", embedder: Embedder = "static", as_json: AsJson = False
) -> None:
    """List all experiences, newest first."""
    experiences = asyncio.run(_searcher(folder, namespace, embedder).all_experiences())
    if as_json:
        echo(json.dumps([each.to_dict() for each in experiences], indent=2))
        return
    table = FittingTable(Column("id", no_wrap=True), "domain", "strategy", "goal", "outcome", box=None)
    for each in experiences:
        table.add_row(Text(each.id), each.domain, each.strategy, Text(each.goal[:60]), each.outcome_status or "open")
    Console().print(table if experiences else "No experiences yet.")


def _change(searcher: Searcher, identity: str, change: Callable[[Experience], Experience], as_json: bool) -> None:
    changed = asyncio.run(searcher.change_experience(identity, change))
    if as_json:
        echo(json.dumps(changed.to_dict(), indent=2))


def _searcher(folder: Folder, namespace: str, embedder: str, new: bool = False) -> Searcher:
    from langgraph_scrum_master.learning.searcher import Searcher

    return Searcher(memory_at(folder, namespace, embedder, new=new))
