"""The tool that agents can call."""

from __future__ import annotations

from langchain_core.tools import tool


@tool
def request_context(need: str) -> str:
    """Ask the scrum master for information that you lack and cannot find in the conversation.

    Say precisely what you need to know, in one or two sentences. The answer comes with your next turn.
    """
    return (
        f"Noted: {need}\nThe scrum master looks for it; what it finds comes with your next turn. "
        "If nothing comes, nothing was found: go on without it, or say what you cannot do."
    )
