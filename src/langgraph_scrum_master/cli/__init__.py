"""The `scrum-master` command: one file per command."""

from __future__ import annotations

from langgraph_scrum_master.cli.app import main

__all__ = ["main"]
