"""What another package plugs in: one file each, with public imports alone."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from builders import says
from langgraph_scrum_master import ScrumMaster

DETECTOR = '''
from langgraph_scrum_master.team import gap


def access_denied(observation):
    """A gap if the latest tool answer is a refusal."""
    last = observation.turns[-1] if observation.turns else None
    if last is not None and last.kind == "tool" and "permission denied" in last.text.lower():
        yield gap(
            observation,
            agent=observation.current_agent,
            reason="explicit_flag",
            query=f"how to get access: {last.text}",
            confidence=0.8,
            indicators=(f"access_denied@{last.id}",),
        )
'''

SOURCE = """
from langgraph_scrum_master import RetrievedContext


class Runbook:
    name = "runbook"

    async def find(self, query, state):
        text = "Restart the worker with `make restart`."
        return [RetrievedContext(source=self.name, content=text, relevance_score=0.9, title="Runbook")]
"""

COMMANDS = '''
import typer


def greet(name: str = "team", namespace: str = "none"):
    """Greet somebody."""
    typer.echo(f"Hello {name} of {namespace}")


sprint = typer.Typer(help="What a sprint is about.")


@sprint.command()
def goal():
    typer.echo("Ship it")


@sprint.command()
def end():
    typer.echo("Friday")


not_a_command = 42
'''


def loaded(folder: Path, code: str) -> Any:
    """The module of the one file."""
    file = folder / "third_party.py"
    file.write_text(code, encoding="utf-8")
    spec = spec_from_file_location("third_party", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_detector_is_one_function(tmp_path: Path) -> None:
    denied = {"role": "tool", "name": "ssh", "content": "Permission denied (publickey).", "id": "t1"}

    (gap,) = ScrumMaster(detectors=[loaded(tmp_path, DETECTOR).access_denied]).detect(
        {"messages": [says("ops", "I log in to the host."), denied]}
    )

    assert (gap.agent, gap.indicators) == ("ops", ("access_denied@t1",))


def test_a_source_is_one_class_and_its_own_name_warns_of_nothing(tmp_path: Path, logged: list[dict[str, Any]]) -> None:
    scrum_master = ScrumMaster(sources=[loaded(tmp_path, SOURCE).Runbook()])

    update = scrum_master.node.invoke({"messages": [says("ops", "How do I restart the worker?", id="m1")]})

    assert "make restart" in update["injected_context"]["text"]
    assert [entry for entry in logged if entry["log_level"] != "info"] == []


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a package that is installed and has commands, sound and broken ones."""
    entries = {
        "greet": "third_party_commands:greet",
        "sprint": "third_party_commands:sprint",
        "broken": "third_party_commands:not_a_command",
        "lost": "third_party_module_that_is_not_there:main",
        "version": "third_party_commands:greet",
    }
    (tmp_path / "third_party_commands.py").write_text(COMMANDS, encoding="utf-8")
    info = tmp_path / "third_party_commands-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party-commands\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (info / "entry_points.txt").write_text(f"[langgraph_scrum_master.commands]\n{lines}")
    return tmp_path


REFUSES_PLUG_INS = """
import importlib.metadata as metadata
found = metadata.entry_points
def refuses(**wanted):
    assert wanted["group"] != "langgraph_scrum_master.commands", "other packages were looked at"
    return found(**wanted)
metadata.entry_points = refuses
"""


def scrum_master(folder: Path, *arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    return subprocess.run(
        [sys.executable, "-c", f"{before}\nfrom langgraph_scrum_master.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        input="{}",
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "120"},
    )


@pytest.mark.slow
def test_commands_of_other_packages_are_commands(installed: Path) -> None:
    greeted = scrum_master(installed, "greet", "--name", "dev")
    goal = scrum_master(installed, "sprint", "goal")

    assert (greeted.stdout, greeted.stderr, greeted.returncode) == ("Hello dev of none\n", "", 0)
    assert (goal.stdout, goal.stderr, goal.returncode) == ("Ship it\n", "", 0)


@pytest.mark.slow
def test_settings_are_the_defaults_of_their_options_too(installed: Path) -> None:
    (installed / "scrum-master.toml").write_text('namespace = "shop"\n')

    assert scrum_master(installed, "greet").stdout == "Hello team of shop\n"


@pytest.mark.slow
def test_a_broken_command_is_reported_in_a_line_and_the_rest_works(installed: Path) -> None:
    helped = scrum_master(installed, "--help")
    called = scrum_master(installed, "lost")

    assert helped.returncode == 0
    assert all(name in helped.stdout for name in ("greet", "sprint", "detect"))
    assert [line.split(" cannot be loaded")[0] for line in sorted(helped.stderr.splitlines())] == [
        "scrum-master: the command 'broken' (third_party_commands:not_a_command)",
        "scrum-master: the command 'lost' (third_party_module_that_is_not_there:main)",
    ]
    assert called.stderr.splitlines() == [
        "scrum-master: the command 'lost' (third_party_module_that_is_not_there:main) cannot be loaded: "
        "ModuleNotFoundError: No module named 'third_party_module_that_is_not_there'"
    ]
    assert (called.stdout, called.returncode) == ("", 2)


@pytest.mark.slow
def test_our_own_commands_keep_their_names_and_do_not_look_at_other_packages(installed: Path) -> None:
    for arguments in (("hook", "session-start"), ("hook", "user-prompt-submit"), ("config", "show")):
        done = scrum_master(installed, *arguments, before=REFUSES_PLUG_INS)

        assert done.returncode == 0, done.stderr

    assert "Hello" not in scrum_master(installed, "version").stdout
