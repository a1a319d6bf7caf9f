"""Example calls, shown below each command's help."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, Mapping[str, str]] = {
    "": {
        "run": "see what it does",
        "detect state.json": "try it on a state of your own",
        "replay run.jsonl": "or on a whole run",
        "inspect run.jsonl --open": "open the same run in the browser",
        "config show": "list all settings",
    },
    "run": {"run": "", "run --json": "as JSON"},
    "detect": {
        "detect state.json": "",
        "detect checkpoints.sqlite": "the latest state of each thread",
        "detect - --json < state.json": "from standard input, as JSON",
    },
    "snapshot": {
        "snapshot checkpoints.sqlite": "list the threads",
        "snapshot checkpoints.sqlite --thread 42 --out run.jsonl": "save one thread",
    },
    "replay": {
        "replay checkpoints.sqlite": "the threads of SqliteSaver",
        "replay checkpoints.sqlite --thread 42 --subgraph team/dev": "a subgraph of it",
        "replay snapshots/ --against bold.toml": "two configurations side by side",
        "replay snapshots/ --check": "in CI: exit code 1 on any difference from the recording",
        "replay conversation.json --format html > page.html": "messages of another framework, as a page",
    },
    "train": {
        "train labelled.jsonl": "writes asking.weights",
        "train labelled.jsonl more.jsonl -o .scrum-master/asking.weights": "several files, another output file",
    },
    "report": {
        "report audit.jsonl": "outcomes of the gaps of all runs",
        "report checkpoints.sqlite --thread 42 --json": "one conversation, as JSON",
    },
    "inspect": {
        "inspect checkpoints.sqlite": "writes inspector.html, with all threads",
        "inspect snapshots/ --serve --open": "a live page, on which settings can be tried",
    },
    "memory": {
        "memory load decisions.jsonl": "",
        "memory search 'Which queue do refunds go to?'": "what an agent would get",
        "memory check": "",
    },
    "memory load": {
        "memory load decisions.jsonl": "",
        "memory load decisions.jsonl --namespace shop": "for one of several tenants",
    },
    "memory search": {
        "memory search 'Which queue do refunds go to?'": "",
        "memory search refunds -k 20 --json": "more results, as JSON",
    },
    "memory check": {
        "memory check": "",
        "memory check --memory .scrum-master/memory --rebuild": "rebuild indexes and statistics from the records",
    },
    "memory stats": {"memory stats": "", "memory stats --all --json": "all namespaces, as JSON"},
    "memory backup": {"memory backup memory-2026-03-02.sqlite3": "safe while the memory is in use"},
    "memory export": {"memory export memories.jsonl": "", "memory export --namespace shop | gzip > shop.gz": ""},
    "memory import": {"memory import memories.jsonl": "", "memory import memories.jsonl --memory copy": ""},
    "memory list": {"memory list": "", "memory list --shelf sessions --limit 50 --json": "what hooks keep, as JSON"},
    "memory show": {"memory show limit": "by key"},
    "memory edit": {"memory edit limit --text 'The limit is 500 euros.' --verified": "by key"},
    "memory forget": {
        "memory forget limit queue": "by key",
        "memory forget --before 2025-01-01": "by age",
        "memory forget --session s-42": "by session",
    },
    "index": {"index code .": "", "index commits .": "", "index docs docs/": "", "index values": ""},
    "index code": {
        "index code": "the current project",
        "index code ../shop --memory .scrum-master/memory": "",
    },
    "index commits": {
        "index commits": "the current project",
        "index commits ../shop --json": "as JSON",
    },
    "index docs": {"index docs": "the current project", "index docs docs/": "one folder"},
    "index values": {"index values": "", "index values --json": "as JSON"},
    "remember": {"remember 'Refunds go to the queue refunds-v2.' --category decision --tag refunds": ""},
    "experience": {
        "experience start --domain debugging --strategy read-the-error --goal 'Refunds arrive'": "prints its id",
        "experience list": "what was tried, and the outcomes",
    },
    "experience start": {
        "experience start --domain debugging --strategy read-the-error --goal 'Refunds arrive'": "prints its id",
    },
    "experience update": {
        "experience update ID --strategy divide-and-conquer --hypothesis 'The queue was renamed'": "the id from start",
    },
    "experience resolve": {
        "experience resolve ID --outcome confirmed --takeaway 'Look at the queue first'": "the id from start",
    },
    "experience list": {"experience list": "", "experience list --json": "as JSON"},
    "assemble": {"assemble 'how are carts deleted' --among code --among commits": ""},
    "premortem": {"premortem debugging --max-tokens 500": ""},
    "knowledge": {"knowledge add docs/refunds.md": "", "knowledge search 'refunds over 500'": ""},
    "knowledge add": {"knowledge add docs/refunds.md docs/queues.md --type page --date 2026-03-02": "prints the ids"},
    "knowledge remove": {"knowledge remove docs/refunds.md": "by id"},
    "knowledge search": {"knowledge search 'refunds over 500' -k 3": ""},
    "brief": {"brief --project-root . --limit 10": ""},
    "records": {"records list store.sqlite": "", "records show store.sqlite session-1": "the latest turn"},
    "records list": {
        "records list store.sqlite": "",
        "records list store.sqlite session-1": "the turns of one session",
    },
    "records show": {
        "records show store.sqlite session-1": "the latest turn",
        "records show store.sqlite session-1 turn-3 --json": "another turn, as JSON",
    },
    "hook": {
        "hook install --print": "the settings for Claude Code",
        "hook install": "write them for this project",
        "hook user-prompt-submit < event.json": "as a coding agent calls it",
    },
    "hook install": {"hook install": "for this project", "hook install --user": "for all of your projects"},
    "hook uninstall": {"hook uninstall": "from this project", "hook uninstall --user": "from your own settings"},
    "hook stop": {"hook stop < event.json": "as a coding agent calls it"},
    "hook pre-compact": {"hook pre-compact < event.json": "as a coding agent calls it"},
    "hook session-end": {"hook session-end < event.json": "as a coding agent calls it"},
    "hook session-start": {"hook session-start < event.json": "as a coding agent calls it"},
    "hook user-prompt-submit": {"hook user-prompt-submit < event.json": "as a coding agent calls it"},
    "hook post-tool-failure": {"hook post-tool-failure --deadline 4 < event.json": "on a slow machine"},
    "mcp": {"mcp --memory .scrum-master/memory": ""},
    "config": {"config show": "", "config write": "a scrum-master.toml to start from"},
    "config show": {"config show": "", "config show --json": "as JSON"},
    "config write": {"config write": "", "config write --briefing --print": "show the settings of briefings"},
    "version": {"version": "", "version --json": "including Python and LangGraph"},
}
"""By command: example calls, each with a comment where it is not self-explanatory."""


def examples_for(name: str) -> str | None:
    """The examples shown below a command's help, or None."""
    calls = EXAMPLES.get(name, {})
    lines = [f"scrum-master {call}" + (f"   # {comment}" if comment else "") for call, comment in calls.items()]
    return "\n".join(["Examples:" if name else "Start with:", *lines]) if lines else None
