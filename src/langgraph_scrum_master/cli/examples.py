"""What stands below each command's help: calls to copy."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, Mapping[str, str]] = {
    "": {
        "run": "see what it does",
        "detect state.json": "try it on a state of yours",
        "replay run.jsonl": "and on a whole run",
        "inspect run.jsonl --open": "look at that in the browser",
        "config show": "see what can be set",
    },
    "run": {"run": "", "run --json": "for a program"},
    "detect": {"detect state.json": "", "detect - --json < state.json": "from standard input, for a program"},
    "snapshot": {
        "snapshot checkpoints.sqlite": "which threads there are",
        "snapshot checkpoints.sqlite --thread 42 --out run.jsonl": "save one",
    },
    "replay": {
        "replay checkpoints.sqlite --thread 42": "a thread of SqliteSaver",
        "replay checkpoints.sqlite --thread 42 --subgraph team/dev": "a graph inside of it",
        "replay snapshots/ --against bold.toml": "two configurations side by side",
        "replay snapshots/ --check": "in CI: exit code 1 if it differs from what was recorded",
        "replay conversation.json --format html > page.html": "messages of another framework, as a page",
    },
    "inspect": {
        "inspect checkpoints.sqlite --thread 42": "writes inspector.html",
        "inspect snapshots/ --serve --open": "a live page",
    },
    "memory": {
        "memory load decisions.jsonl": "",
        "memory search 'Which queue do refunds go to?'": "what an agent would be given",
        "memory check --repair": "",
    },
    "index": {"index code .": "", "index commits .": "", "index docs docs/": "", "index values": ""},
    "remember": {"remember 'Refunds go to the queue refunds-v2.' --category decision --tag refunds": ""},
    "experience": {
        "experience start --domain debugging --strategy read-the-error --goal 'Refunds arrive'": "prints its id",
        "experience list": "what was tried, and what came of it",
    },
    "assemble": {"assemble 'how are carts deleted' --among code --among commits": ""},
    "premortem": {"premortem debugging --max-tokens 500": ""},
    "knowledge": {"knowledge add docs/refunds.md": "", "knowledge search 'refunds over 500'": ""},
    "brief": {"brief --project-root . --limit 10": ""},
    "records": {"records list store.sqlite": "", "records show store.sqlite session-1": "its newest turn"},
    "hook": {"hook user-prompt-submit < event.json": "as a coding agent calls it"},
    "mcp": {"mcp --memory .scrum-master/memory": ""},
    "config": {"config show": "", "config show --json": "for a program"},
}
"""By command, what to call, and what for if it does not say so itself."""


def below(name: str) -> str | None:
    """The text below a command's help; none if there is nothing to show."""
    calls = EXAMPLES.get(name, {})
    lines = [f"scrum-master {call}" + (f"   # {what}" if what else "") for call, what in calls.items()]
    return "\n".join(["For example:" if name else "Start with:", *lines]) if lines else None
