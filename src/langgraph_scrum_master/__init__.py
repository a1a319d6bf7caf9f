"""The scrum master of a team of LangGraph agents.

It watches the team's state, notices when an agent lacks context, finds that context, and puts it into the state.
"""

from typing import Any

from langgraph_scrum_master._internal.lazy import lazy_exports

_get, _names = lazy_exports(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "sm_node":
        value = _get("ScrumMaster").from_env().node
    elif name == "__all__":
        value = [*_names(), "sm_node"]
    else:
        value = _get(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_names(), "sm_node"])
