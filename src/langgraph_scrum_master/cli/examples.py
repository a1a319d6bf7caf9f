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
    "train": {
        "train labelled.jsonl": "writes asking.weights",
        "train labelled.jsonl more.jsonl -o .scrum-master/asking.weights": "several files, another place",
    },
    "report": {
        "report audit.jsonl": "what came of the gaps of all runs",
        "report checkpoints.sqlite --thread 42 --json": "of one conversation, for a program",
    },
    "inspect": {
        "inspect checkpoints.sqlite --thread 42": "writes inspector.html",
        "inspect snapshots/ --serve --open": "a live page",
    },
    "memory": {
        "memory load decisions.jsonl": "",
        "memory search 'Which queue do refunds go to?'": "what an agent would be given",
        "memory check": "",
    },
    "memory load": {
        "memory load decisions.jsonl": "",
        "memory load decisions.jsonl --namespace shop": "for one of several tenants",
    },
    "memory search": {
        "memory search 'Which queue do refunds go to?'": "",
        "memory search refunds -k 20 --json": "more, for a program",
    },
    "memory check": {
        "memory check": "",
        "memory check --memory .scrum-master/memory --rebuild": "make again what is derived from the records",
    },
    "memory stats": {"memory stats": "", "memory stats --all --json": "of all namespaces, for a program"},
    "memory backup": {"memory backup memory-2026-03-02.sqlite3": "also while it is in use"},
    "memory export": {"memory export memories.jsonl": "", "memory export --namespace shop | gzip > shop.gz": ""},
    "memory import": {"memory import memories.jsonl": "", "memory import memories.jsonl --memory copy": ""},
    "memory forget": {
        "memory forget limit queue": "by their keys",
        "memory forget --before 2025-01-01": "what is older",
        "memory forget --session s-42": "what belongs to a session",
    },
    "index": {"index code .": "", "index commits .": "", "index docs docs/": "", "index values": ""},
    "index code": {
        "index code": "of the project that you are in",
        "index code ../shop --memory .scrum-master/memory": "",
    },
    "index commits": {
        "index commits": "of the project that you are in",
        "index commits ../shop --json": "for a program",
    },
    "index docs": {"index docs": "of the project that you are in", "index docs docs/": "of one folder"},
    "index values": {"index values": "", "index values --json": "for a program"},
    "remember": {"remember 'Refunds go to the queue refunds-v2.' --category decision --tag refunds": ""},
    "experience": {
        "experience start --domain debugging --strategy read-the-error --goal 'Refunds arrive'": "prints its id",
        "experience list": "what was tried, and what came of it",
    },
    "experience start": {
        "experience start --domain debugging --strategy read-the-error --goal 'Refunds arrive'": "prints its id",
    },
    "experience update": {
        "experience update ID --strategy bisect --hypothesis 'The queue was renamed'": "ID as start printed it",
    },
    "experience resolve": {
        "experience resolve ID --outcome confirmed --takeaway 'Look at the queue first'": "ID as start printed it",
    },
    "experience list": {"experience list": "", "experience list --json": "for a program"},
    "assemble": {"assemble 'how are carts deleted' --among code --among commits": ""},
    "premortem": {"premortem debugging --max-tokens 500": ""},
    "knowledge": {"knowledge add docs/refunds.md": "", "knowledge search 'refunds over 500'": ""},
    "knowledge add": {"knowledge add docs/refunds.md docs/queues.md --type page --date 2026-03-02": "prints their ids"},
    "knowledge remove": {"knowledge remove docs/refunds.md": "by its id"},
    "knowledge search": {"knowledge search 'refunds over 500' -k 3": ""},
    "brief": {"brief --project-root . --limit 10": ""},
    "records": {"records list store.sqlite": "", "records show store.sqlite session-1": "its newest turn"},
    "records list": {"records list store.sqlite": "", "records list store.sqlite session-1": "the turns of one"},
    "records show": {
        "records show store.sqlite session-1": "its newest turn",
        "records show store.sqlite session-1 turn-3 --json": "another, for a program",
    },
    "hook": {"hook user-prompt-submit < event.json": "as a coding agent calls it"},
    "hook session-start": {"hook session-start < event.json": "as a coding agent calls it"},
    "hook user-prompt-submit": {"hook user-prompt-submit < event.json": "as a coding agent calls it"},
    "hook post-tool-failure": {"hook post-tool-failure --deadline 4 < event.json": "on a slow machine"},
    "mcp": {"mcp --memory .scrum-master/memory": ""},
    "config": {"config show": "", "config show --json": "for a program"},
    "config show": {"config show": "", "config show --json": "for a program"},
    "version": {"version": "", "version --json": "with those of Python and LangGraph"},
}
"""By command, what to call, and what for if it does not say so itself."""


def below(name: str) -> str | None:
    """The text below a command's help; none if there is nothing to show."""
    calls = EXAMPLES.get(name, {})
    lines = [f"scrum-master {call}" + (f"   # {what}" if what else "") for call, what in calls.items()]
    return "\n".join(["For example:" if name else "Start with:", *lines]) if lines else None
