"""Runs a coding agent's hooks as the agent does: a process each, JSON in, JSON out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

COMMAND = str(Path(sys.executable).with_name("scrum-master"))


class Answer(NamedTuple):
    code: int
    out: str
    log: str

    @property
    def response(self) -> dict[str, str]:
        output: dict[str, dict[str, str]] = json.loads(self.out)
        assert list(output) == ["hookSpecificOutput"]
        return output["hookSpecificOutput"]

    @property
    def context(self) -> str:
        return self.response["additionalContext"]

    @property
    def silent(self) -> bool:
        return (self.code, self.out) == (0, "")


def hook(name: str, event: Any, *options: str, **environment: Any) -> Answer:
    given = event if isinstance(event, bytes) else json.dumps(event).encode()
    # Where the machine is busy with other tests, a hook may take longer than its host would wait.
    patience = () if "--deadline" in options else ("--deadline", "60")
    return run("hook", name, *patience, *options, given=given, **environment)


def run(*arguments: str, given: bytes = b"", cwd: Path | None = None, **environment: Any) -> Answer:
    known = {key: value for key, value in os.environ.items() if not key.startswith("SCRUM_MASTER_")}
    done = subprocess.run(
        [COMMAND, *arguments], capture_output=True, check=False, input=given, env={**known, **environment}, cwd=cwd
    )
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())
