"""`scrum-master hook`"""

from __future__ import annotations

import typer

from langgraph_scrum_master.cli.session_start import session_start

hook = typer.Typer(no_args_is_help=True, help="Answer the hooks of a coding agent.")
hook.command()(session_start)
