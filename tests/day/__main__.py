"""A user's first day, from the installation to the removal, outside the clone: `make day`.

Every step is what the documentation has a user do, in processes of its own. The first step that fails ends the day.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PICTURES = Path(os.environ["DAY_PICTURES"]) if "DAY_PICTURES" in os.environ else None

ADRS = {
    "0001-server-sessions.md": "# ADR-1: Sessions in the database\n\nStatus: superseded by ADR-2\n\nIt is a row.\n",
    "0002-signed-cookies.md": "# ADR-2: Sessions in signed cookies\n\nStatus: accepted\n\n## Decision\n"
    "The session cookie of the login is signed and valid for 12 hours. The server stores nothing.\n",
    "0003-prices.md": "# ADR-3: Prices in cents\n\nStatus: accepted\n\n## Decision\nPrices are whole cents.\n",
}


class Day:
    """The project of the day, and the programs that were installed for it."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "shop"
        self.environment = folder / "environment"
        self.bin = self.environment / "bin"
        home = folder / "home"
        for each in (self.project, home):
            each.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SCRUM_MASTER"))}
        self.variables = {**kept, "HOME": str(home), "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}"}

    def run(self, *command: str, given: str = "", fails: bool = False) -> str:
        """What a command prints on standard output; its exit code must be 0, unless it may fail."""
        done = subprocess.run(
            command, cwd=self.project, env=self.variables, input=given, capture_output=True, text=True, check=False
        )
        if done.returncode and not fails:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def master(self, *command: str, **options: Any) -> str:
        """What a command of the scrum master prints."""
        return self.run("scrum-master", *command, **options)


def expect(condition: object, message: str) -> None:
    """End the day with this message, unless the condition holds."""
    if not condition:
        raise SystemExit(message)


def install(day: Day) -> str:
    subprocess.run([sys.executable, "-m", "venv", day.environment], check=True)
    wanted = [f"{ROOT}[mcp,records]", "-c", str(ROOT / "constraints.txt")]
    day.run(str(day.bin / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted)
    return day.master("--version").strip()


def a_folder_of_adrs(day: Day) -> str:
    folder = day.project / "docs" / "adr"
    folder.mkdir(parents=True)
    for name, text in ADRS.items():
        (folder / name).write_text(text, encoding="utf-8")
    day.run("git", "init", "-q", ".")
    day.run("git", "add", "docs")
    day.master("index", "docs", ".")
    day.master("remember", "Restart the fake clock when `npm test` fails in Bash.", "--category", "workflow")
    resolve_an_experience(day)
    found = json.loads(day.master("memory", "search", "How long is the session cookie valid?", "-k", "1", "--json"))
    expect("12 hours" in json.dumps(found), f"the record that answers should be first: {found}")
    return f"{len(ADRS)} records indexed and searched"


def resolve_an_experience(day: Day) -> None:
    start = ("start", "--domain", "testing", "--strategy", "read-the-error", "--goal", "Find out why npm test fails")
    made = day.master("experience", *start, "--hypothesis", "A race").strip()
    end = ("--outcome", "falsified", "--result", "The clock was frozen", "--surprise", "Only in Bash")
    day.master("experience", "resolve", made, *end, "--takeaway", "Restart the fake clock")


def a_graph(day: Day) -> str:
    shutil.copy(HERE / "team.py", day.project)
    printed = day.run("python", "team.py", "monday", "tuesday")
    expect(printed.count("12 hours") == 2, f"both threads should end with the decision: {printed}")
    return "two threads, both served"


def look_back(day: Day) -> str:
    detected = json.loads(day.master("detect", "app.sqlite", "--thread", "monday", "--json"))
    expect("messages" in json.dumps(detected) or detected is not None, "detect reads the database")
    table = day.master("replay", "app.sqlite", "--thread", "monday")
    expect("injected" in table and "0002-signed-cookies" in table, f"the replay shows what happened:\n{table}")
    report = json.loads(day.master("report", "audit.jsonl", "--json"))
    expect('"used": 2' in json.dumps(report), f"both injections were used: {report}")
    return "detected, replayed, reported: 2 served, 2 used"


def inspector(day: Day) -> str:
    day.master("inspect", "app.sqlite", "--output", "inspector.html")
    page = day.project / "inspector.html"
    sizes = pictures(page) if (shutil.which("chromium") or shutil.which("chromium-browser")) else []
    seen = f", seen at {' and '.join(sizes)}" if sizes else "; no Chromium to look at it"
    return f"{page.stat().st_size / 1024:.0f} KB{seen}"


def pictures(page: Path) -> list[str]:
    sys.path.insert(0, str(ROOT / "tests"))
    from chromium import browser

    with browser() as chromium:
        for width, scheme in ((1400, "light"), (400, "dark")):
            look(chromium, page, width, scheme)
    return ["1400 px", "400 px"]


def look(chromium: Any, page: Path, width: int, scheme: str) -> None:
    """Open the page in a window: it shows the decision, fits, and has no errors."""
    shown = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    errors: list[str] = []
    shown.on("pageerror", lambda error: errors.append(str(error)))
    shown.goto(page.as_uri())
    text = shown.inner_text("body")
    expect("12 hours" in text and not errors, f"the page shows the injected decision: {errors} {text[:500]}")
    wide = shown.evaluate("document.documentElement.scrollWidth")
    expect(wide <= width, f"the page is {wide} wide in a window of {width}")
    if PICTURES:
        shown.screenshot(path=PICTURES / f"day-{width}.png")


def a_coding_agent(day: Day) -> str:
    day.master("hook", "install", "--project")
    settings = json.loads((day.project / ".claude" / "settings.json").read_text(encoding="utf-8"))
    transcript = day.project.parent / "transcript.jsonl"
    shutil.copy(HERE / "transcript.jsonl", transcript)
    events = [json.loads(line) for line in (HERE / "session.jsonl").read_text(encoding="utf-8").splitlines()]
    answers = [answered(day, settings, {**event, "transcript_path": str(transcript)}) for event in events]
    return f"{len(events)} events of two sessions, {sum(map(bool, answers))} answered"


def answered(day: Day, settings: Mapping[str, Any], event: dict[str, Any]) -> str:
    """What the hooks of an event answer, run as the coding agent runs them."""
    expected = event.pop("expect", None)
    event["cwd"] = str(day.project)
    subject = event.get("tool_name") or event.get("source", "")
    matching = [
        each["command"]
        for group in settings["hooks"].get(event["hook_event_name"], [])
        if re.fullmatch(group.get("matcher") or ".*", subject)
        for each in group["hooks"]
    ]
    expect(matching, f"no hook for {event['hook_event_name']}")
    # Hooks run with whatever PATH the coding agent has.
    bare = {**day.variables, "PATH": os.environ["PATH"], "CLAUDE_PROJECT_DIR": str(day.project)}
    printed = ""
    for command in matching:
        done = subprocess.run(
            ["sh", "-c", command],
            input=json.dumps(event),
            env=bare,
            cwd="/",
            capture_output=True,
            text=True,
            check=True,
        )
        printed += done.stdout
    if expected is not None:
        right = expected in printed if expected else not printed
        expect(right, f"{event} should be answered with {expected!r}, not {printed!r}")
    return printed


def a_server(day: Day) -> str:
    return asyncio.run(_talk(day))


async def _talk(day: Day) -> str:
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters

    command = str(day.bin / "scrum-master")
    server = StdioServerParameters(command=command, args=["mcp"], env=day.variables, cwd=day.project)
    async with Client(server) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        expect(len(tools) >= 5, f"too few tools: {tools}")
        searching = next(name for name in sorted(tools) if "search" in name)
        found = await client.call_tool(searching, {"query": "How long is the session cookie valid?"})
        expect("12 hours" in str(found), f"{searching} should find the decision: {found}")
    return f"{len(tools)} tools, searched"


def leave(day: Day) -> str:
    day.master("hook", "uninstall", "--project")
    settings = day.project / ".claude" / "settings.json"
    expect(not settings.exists() or "scrum-master" not in settings.read_text(encoding="utf-8"), "hooks are left")
    day.run("python", "-m", "pip", "uninstall", "-q", "-y", "langgraph-scrum-master")
    left = [path for path in day.environment.rglob("*scrum*master*") if "__pycache__" not in path.parts]
    expect(not left, f"left in the environment: {left}")
    return "nothing left in the environment and in the settings"


STEPS: dict[str, Callable[[Day], str]] = {
    "install": install,
    "index a folder of ADRs": a_folder_of_adrs,
    "run a graph with SqliteSaver": a_graph,
    "detect, replay, report": look_back,
    "inspect": inspector,
    "hooks of a coding agent": a_coding_agent,
    "MCP server": a_server,
    "uninstall": leave,
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        day = Day(Path(folder).resolve())
        for name, step in STEPS.items():
            started = perf_counter()
            ended = step(day)
            print(f"{name:<30} {perf_counter() - started:6.1f} s  {ended}", flush=True)


if __name__ == "__main__":
    main()
