"""`scrum-master report`"""

from __future__ import annotations

import json

from rich.text import Text

from langgraph_scrum_master.cli.console import Console
from langgraph_scrum_master.cli.memory import AsJson
from langgraph_scrum_master.cli.source import Source, Subgraph, Thread, print_source
from langgraph_scrum_master.cli.tables import folding_table
from langgraph_scrum_master.cli.terminal import echo


def report(
    source: Source,
    thread: Thread = None,
    subgraph: Subgraph = None,
    as_json: AsJson = False,
) -> None:
    """Report the outcomes of gaps: who lacked context and why, what was injected, and whether it was used.

    The source may be an audit log too. The report is computed from recordings only, without new searches. An
    injection counts as used if the agent's next turns take it up, and as asked again if the same need comes up later.
    """
    from langgraph_scrum_master.replay.report import report as make_report
    from langgraph_scrum_master.replay.tally import COUNTS

    outcomes = make_report(source, thread, subgraph)
    if as_json:
        shown = {
            "source": outcomes.source,
            "rows": [row.to_dict() for row in outcomes.rows],
            "total": outcomes.total.to_dict(),
            "threads": outcomes.threads,
        }
        echo(json.dumps(shown, indent=2))
        return
    print_source(outcomes.source)
    console = Console()
    if not outcomes.rows:
        console.print("No gaps recorded.")
        return
    total = outcomes.total
    # Columns without counts are left out, so that the table fits a terminal.
    counted = [name for name in COUNTS if name in ("gaps", "served") or getattr(total, name)]
    table = folding_table("agent", "reason", *(name.replace("_", " ") for name in counted))
    for row in (*outcomes.rows, total):
        counts = (str(getattr(row, name)) for name in counted)
        table.add_row(Text(row.agent or "all"), Text(row.reason.replace("_", " ")), *counts)
    console.print(table)
    console.print(_sentence(total.gaps, outcomes.threads, total.served, total.used, total.asked_again))


def _sentence(gaps: int, threads: int, served: int, used: int, again: int) -> str:
    where = f" in {threads} conversations" if threads > 1 else ""
    return f"{gaps} gaps{where}, {served} served; of these {used} used, {again} asked again."
