"""Conversations of teams at work, written for this project: who is stuck, who is not, who goes in circles."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

DATA = Path(__file__).parent / "data" / "scenarios"


def scenarios(name: str = "*") -> list[dict[str, Any]]:
    """The scenarios of a file, or of all."""
    paths = sorted(DATA.glob(f"{name}.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]


def agent_name(name: str) -> str:
    """The name as a framework would have it."""
    return re.sub(r"\W+", "_", name).strip("_").lower()


def messages(scenario: dict[str, Any]) -> list[AnyMessage]:
    """The conversation as a LangGraph supervisor would hold it; an instruction to an agent is a handoff."""
    found: list[AnyMessage] = []
    for i, said in enumerate(scenario["messages"]):
        own, text, name = f"{scenario['id']}-{i}", said["content"], agent_name(said["agent"])
        match said["kind"]:
            case "human":
                found.append(HumanMessage(text, id=own))
            case "system":
                found.append(SystemMessage(text, id=own))
            case "tool":
                found.append(ToolMessage(text, name=name, tool_call_id=f"call-{i}", id=own))
            case _ if said.get("to"):
                to = agent_name(said["to"])
                call = {"name": f"transfer_to_{to}", "args": {}, "id": own, "type": "tool_call"}
                found.append(AIMessage(text, name=name, id=own, tool_calls=[call]))
                done = f"Successfully transferred to {to}"
                found.append(ToolMessage(done, name=f"transfer_to_{to}", tool_call_id=own, id=f"{own}-to"))
            case _:
                found.append(AIMessage(text, name=name, id=own))
    return found
