"""`scrum-master version`"""

from __future__ import annotations

import json
import platform
from importlib.metadata import version as installed_version

from langgraph_scrum_master.cli.memory import AsJson
from langgraph_scrum_master.cli.terminal import echo


def version(as_json: AsJson = False) -> None:
    """Print the installed version. With --json also the versions of Python and LangGraph."""
    own = installed_version("langgraph-scrum-master")
    if as_json:
        others = {"langgraph": installed_version("langgraph"), "python": platform.python_version()}
        echo(json.dumps({"langgraph-scrum-master": own, **others}))
    else:
        echo(own)
