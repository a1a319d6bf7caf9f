"""`scrum-master mcp`"""

from __future__ import annotations

from importlib.metadata import version

from langgraph_scrum_master.cli.logs import log_to_stderr
from langgraph_scrum_master.cli.memory import Embedder, Folder, Namespace, memory_at
from langgraph_scrum_master.errors import ConfigError, how_to_get


def mcp(folder: Folder, namespace: Namespace = "default", embedder: Embedder = "static") -> None:
    """Serve a memory to coding agents over MCP (Model Context Protocol), on standard input and output."""
    try:
        from langgraph_scrum_master.mcp import mcp_server
    except ModuleNotFoundError as error:
        raise ConfigError(f"the MCP server needs the extra 'mcp': {how_to_get('mcp')}") from error
    log_to_stderr()
    mcp_server(memory_at(folder, namespace, embedder, new=True), version("langgraph-scrum-master")).run()
