"""A replay as one HTML file that loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from langgraph_scrum_master.cli.replayed import difference_rows
from langgraph_scrum_master.replay import Considered, Difference, Replay, ReplayStep
from langgraph_scrum_master.shapes import well_formed

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1c1c1c }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .2rem .6rem; vertical-align: top }
tr { border-bottom: 1px solid #ddd } pre { white-space: pre-wrap; background: #f5f5f5; padding: .8rem }
.injected { color: #0a7d2c } .abstained { color: #9a6700 } .escalated { color: #b3261e } .silent { color: #777 }
"""


def page(replay: Replay, found: Difference | None) -> str:
    """The page: what differs, then each step; those with a gap open up."""
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Replay</title>',
            f"<style>{_STYLE}</style></head><body>",
            f"<h1>Replay of {len(replay.steps)} steps</h1>",
            *(_difference(found) if found is not None else ()),
            *(line for step in replay.steps for line in _step(step)),
            *(f"<p>{_text(problem.error)}</p>" for problem in replay.problems),
            "</body></html>",
        )
    )


def _difference(found: Difference) -> Iterator[str]:
    yield f"<h2>{len(found.steps)} of {found.compared} steps differ</h2>"
    yield from _table(("step", "what", "before", "after"), difference_rows(found))


def _step(step: ReplayStep) -> Iterator[str]:
    title = " · ".join(filter(None, (step.where, step.thread, f"step {step.step}", step.at)))
    head = f'<b>{_text(title)}</b> <span class="{step.outcome}">{step.outcome}</span>'
    said = f"{_text(step.speaker)}: {_text(step.said)}" if step.speaker else ""
    if step.result is None:
        yield f'<p class="silent">{head}<br>{said}</p>'
        return
    yield f"<details><summary>{head}<br>{said}</summary>"
    rows = ((g.agent, g.reason, f"{g.confidence:.2f}", ", ".join(g.indicators), g.context_query) for g in step.gaps)
    yield from _table(("agent", "reason", "confidence", "evidence", "needs"), rows)
    yield from _table(("", "score", "source", "context", "alike in"), map(_offer, step.considered))
    if step.budget is not None:
        use = step.budget
        yield (
            f"<p>{use.items} of {use.max_items} items, {use.tokens} of {use.max_tokens} tokens, "
            f"{use.size} of {use.max_size} bytes</p>"
        )
    yield f"<pre>{_text(step.result.text)}</pre></details>"


def _offer(considered: Considered) -> tuple[str, ...]:
    context = considered.context
    alike = ", ".join(f"{space} {strength:.2f}" for space, strength in context.strengths.items() if strength)
    return considered.fate, f"{context.relevance_score:.2f}", context.source, context.title or context.content, alike


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>"
    for row in rows:
        yield f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>"
    yield "</table>"


def _text(text: str) -> str:
    return escape(well_formed(text))
