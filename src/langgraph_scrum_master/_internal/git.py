"""The package's only way to run git, safe on repositories that nobody vetted.

A repository's own configuration can name programs that git runs, even to list files. What could run one is switched off
here, on the command line and in the environment, both of which take precedence over the repository.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

SECONDS = 60.0
"""How long one call may take unless the caller says otherwise, by hand."""

_CONFIG = {
    # Files of the repository's choosing, such as a device without an end.
    "core.attributesFile": os.devnull,
    "diff.orderFile": os.devnull,
    "log.mailmap": "false",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.askPass": "",
    "core.sshCommand": "false",
    "credential.helper": "",
    "diff.external": "",
    "diff.submodule": "short",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "log.showSignature": "false",
    "protocol.allow": "never",
    # Only this scope and the user's may set it. A folder laid out like a bare repository is otherwise taken for one.
    "safe.bareRepository": "explicit",
}

Subcommand: TypeAlias = Literal["diff", "log", "ls-files", "rev-parse", "symbolic-ref"]
"""What the package needs of git. Those that compare files on disk, as `status` does, are not among them: they run the
repository's filters, which cannot be switched off."""

_DIFFING = ("--no-color", "--no-ext-diff", "--no-textconv")
_OPTIONS: dict[Subcommand, tuple[str, ...]] = {"diff": _DIFFING, "log": (*_DIFFING, "--no-show-signature")}
"""What a subcommand needs besides: drivers have names of the repository's choosing, so no setting switches them off."""

_ENVIRONMENT = {
    # Unlike `protocol.allow`, a repository's `protocol.<name>.allow` does not override it. No protocol is allowed.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}


class GitOutput(NamedTuple):
    """How a call ended, and what it printed."""

    code: int
    """The exit code; 0 if it worked."""
    text: str
    problem: str
    """The first line that it printed as an error."""


def git(root: Path, subcommand: Subcommand, *arguments: str, seconds: float = SECONDS) -> GitOutput:
    """What git prints in a folder, run so that nothing of the repository is executed.

    `diff` must be given two commits. Raises TimeoutError if it takes too long, and OSError if it cannot be run.
    """
    try:
        done = subprocess.run(
            _command(root, subcommand, *arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=max(0.0, seconds),
            env=_environment(),
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"git {subcommand} took longer than {seconds:g} s") from error
    problem = done.stderr.decode(errors="replace").strip().split("\n")[0]
    return GitOutput(done.returncode, done.stdout.decode(errors="replace"), problem)


def _command(root: Path, subcommand: Subcommand, *arguments: str) -> list[str]:
    settings = [part for name, value in _CONFIG.items() for part in ("-c", f"{name}={value}")]
    options = _OPTIONS.get(subcommand, ())
    return ["git", "--no-pager", *settings, "-C", str(root), subcommand, *options, *arguments]


def _environment() -> dict[str, str]:
    """The process's own, without variables that lead git elsewhere or have it run something."""
    own = {name: value for name, value in os.environ.items() if not name.upper().startswith("GIT_")}
    return own | _ENVIRONMENT
