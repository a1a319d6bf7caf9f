"""Panels and tables that several commands print."""

from __future__ import annotations

import re
from itertools import groupby

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.terminal_theme import MONOKAI
from rich.text import Text

from langgraph_scrum_master._internal.shapes import well_formed
from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.demo import Playback
from langgraph_scrum_master.cli.tables import FittingTable
from langgraph_scrum_master.model import ContextGap, InjectionResult

MOST_DROPPED = 6
"""Maximum number of dropped contexts shown. The result has them all."""

_FONT_FACE = re.compile(r"@font-face \{[^{}]*\}\s*")
_COLOURS = {"analyst": "cyan", "architect": "blue", "dev": "yellow", "tester": "green", "scrum_master": "magenta"}
_WHY = {
    "below_bar": "not relevant enough",
    "already_seen": "already seen by the agent",
    "duplicate": "duplicate of a better one",
    "far_below_best": "far below the best score",
    "only_a_heading": "only a heading",
    "not_picked": "the chat model picked others",
    "over_items": "over the item limit",
    "over_budget": "over the budget",
}


def comparison(console: Console, task: str, alone: Playback, helped: Playback) -> None:
    """Print both runs: the timelines, the gap, the contexts, the injected text, and the two endings side by side."""
    console.print(Panel(Text(task, style="bold"), title="The team's task", border_style="white"))
    console.print(_timeline("Without the scrum master", alone))
    console.print(_timeline("With the scrum master", helped))
    if helped.result is not None:
        console.print(gap_panel(helped.result.gap))
        console.print(contexts_table(helped.result))
        console.print(text_panel(helped.text, helped.result.total_tokens, "developer"))
    console.print(_endings(alone, helped))


def gap_panel(gap: ContextGap, where: str = "") -> Panel:
    """Who lacks what, with the evidence."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column()
    facts.add_row("agent", f"[bold]{escape(gap.agent)}[/]")
    facts.add_row("reason", f"{escape(gap.reason)}, confidence {gap.confidence:.2f}")
    facts.add_row("evidence", escape(", ".join(gap.indicators)))
    facts.add_row("needs", escape(well_formed(gap.context_query)))
    return Panel(facts, title=f"The gap{f' in {escape(where)}' if where else ''}", border_style="yellow")


def svg(console: Console) -> str:
    """Everything printed so far as a self-contained SVG."""
    return _FONT_FACE.sub("", console.export_svg(title="make run", theme=MONOKAI, unique_id="run"))


def _timeline(title: str, playback: Playback) -> Table:
    table = FittingTable(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", expand=True)
    table.add_column("step", justify="right", style="dim", width=5)
    table.add_column("who", width=13)
    table.add_column("says or does")
    number = 1
    for (who, said), same in groupby(playback.steps, key=lambda step: (step.who, step.said)):
        times = len(list(same))
        steps = str(number) if times == 1 else f"{number}-{number + times - 1}"
        table.add_row(steps, _styled_name(who), escape(said) + (f" [bold red]× {times}[/]" if times > 1 else ""))
        number += times
    return table


def _styled_name(who: str) -> Text:
    return Text(who, style=_COLOURS.get(who, "white"))


def contexts_table(result: InjectionResult) -> Table:
    """The contexts considered: which were kept, and why the others were dropped."""
    table = FittingTable(
        title="What was considered", box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", expand=True
    )
    table.add_column("", width=7)
    table.add_column("score", justify="right", width=5)
    table.add_column("source", width=12)
    table.add_column("context", ratio=1)
    table.add_column("why", ratio=1)
    for context in result.contexts_retrieved:
        why = "trimmed to the budget" if context.truncated else "relevant, new, fits"
        table.add_row(
            "[green]kept[/]", f"{context.relevance_score:.2f}", escape(context.source), escape(context.title), why
        )
    for drop in result.dropped[:MOST_DROPPED]:
        table.add_row(
            "dropped",
            f"{drop.relevance_score:.2f}",
            escape(drop.source),
            escape(drop.title),
            _WHY[drop.why],
            style="dim",
        )
    if (rest := len(result.dropped) - MOST_DROPPED) > 0:
        table.add_row("", "", "", f"and {rest} more", "", style="dim")
    return table


def text_panel(text: str, tokens: int, reader: str, reads: str = "reads") -> Panel:
    """The injected text, as the agent reads it."""
    shown = Syntax(text, "markdown", word_wrap=True, background_color="default")
    return Panel(shown, title=f"What the {escape(reader)} {reads}, {tokens} tokens", border_style="magenta")


def _endings(alone: Playback, helped: Playback) -> Table:
    side_by_side = Table.grid(expand=True)
    side_by_side.add_column(ratio=1)
    side_by_side.add_column(ratio=1)
    side_by_side.add_row(_ending("Without", alone), _ending("With", helped))
    return side_by_side


def _ending(title: str, playback: Playback) -> Panel:
    mark = "[green]✓ gate passed[/]" if playback.passed else "[red]✗ stuck[/]"
    count = f"[dim]{len(playback.steps)} steps[/]"
    body = Group(Text.from_markup(f"{mark}  {count}"), Text(playback.ending))
    return Panel(body, title=f"{title} the scrum master", border_style="green" if playback.passed else "red")
