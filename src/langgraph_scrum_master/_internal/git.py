"""Runs git, safely on untrusted repositories. No other module runs git.

A repository's configuration can name programs that git runs, even to list files. This module disables them on the
command line and in the environment, both of which take precedence over the repository.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

SECONDS = 60.0
"""The default timeout of a call, by hand."""

_CONFIG = {
    # Files that the repository names can be endless devices.
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
    # Otherwise git treats any folder with the layout of a bare repository as one.
    "safe.bareRepository": "explicit",
}

Subcommand: TypeAlias = Literal["diff", "log", "ls-files", "rev-parse", "symbolic-ref"]
"""The supported subcommands. Those that compare files on disk, such as `status`, run the repository's filters, which
cannot be disabled."""

_DIFF_OPTIONS = ("--no-color", "--no-ext-diff", "--no-textconv")
_OPTIONS: dict[Subcommand, tuple[str, ...]] = {"diff": _DIFF_OPTIONS, "log": (*_DIFF_OPTIONS, "--no-show-signature")}
"""Options per subcommand. They disable drivers, which the repository names, so that no setting can."""

_ENVIRONMENT = {
    # Unlike `protocol.allow`, a repository's `protocol.<name>.allow` cannot override it. Empty allows none.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}


class GitOutput(NamedTuple):
    """The exit code and the output of a call."""

    code: int
    """The exit code; 0 for success."""
    text: str
    problem: str
    """The first line on standard error."""


def git(root: Path, subcommand: Subcommand, *arguments: str, seconds: float = SECONDS) -> GitOutput:
    """The output of git in a folder. No code of the repository is executed.

    `diff` needs two commits. Raises TimeoutError after `seconds`, and OSError if git cannot be run.
    """
    try:
        process = subprocess.run(
            _command(root, subcommand, *arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=max(0.0, seconds),
            env=_environment(),
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"git {subcommand} took longer than {seconds:g} s") from error
    problem = process.stderr.decode(errors="replace").strip().split("\n")[0]
    return GitOutput(process.returncode, process.stdout.decode(errors="replace"), problem)


def _command(root: Path, subcommand: Subcommand, *arguments: str) -> list[str]:
    settings = [part for name, value in _CONFIG.items() for part in ("-c", f"{name}={value}")]
    options = _OPTIONS.get(subcommand, ())
    return ["git", "--no-pager", *settings, "-C", str(root), subcommand, *options, *arguments]


def _environment() -> dict[str, str]:
    """The environment without `GIT_` variables, which can redirect git or name programs."""
    own = {name: value for name, value in os.environ.items() if not name.upper().startswith("GIT_")}
    return own | _ENVIRONMENT
