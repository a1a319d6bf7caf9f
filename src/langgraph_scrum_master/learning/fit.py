"""Fits items of several sources into one budget. No item takes more than a quarter of its source's share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from langgraph_scrum_master.learning.records import ContextItem
from langgraph_scrum_master.protocols import TokenCounter
from langgraph_scrum_master.text.similarity import SaidTexts
from langgraph_scrum_master.text.trim import trim

MAX_ITEM_FRACTION = 0.25
"""The largest share of its source's tokens that one item may take."""

_MIN_CUT = 0.6
"""The smallest share of that cap to which an item may be cut."""

_ELLIPSIS = "..."
_NO_POINTER = "*(truncated)*"
_FENCE = re.compile(r"^`{3,}", re.M)

Items = Mapping[str, Sequence[ContextItem]]
"""Items by section, best first."""


def distinct_items(items: Items) -> dict[str, list[ContextItem]]:
    """The items without duplicates of more relevant ones.

    The texts of values are compared with each other only: a value may quote one of its experiences. But a value that
    was derived from a single experience is a duplicate of it.
    """
    seen = {True: SaidTexts(), False: SaidTexts()}
    ids: set[object] = set()
    distinct: set[int] = set()
    for item in sorted((item for each in items.values() for item in each), key=lambda item: -item.relevance):
        if (known := _experience_id(item)) not in ids and seen[item.source == "value"].add(item.said):
            distinct.add(id(item))
            ids.update({known} - {None})
    return {name: [item for item in each if id(item) in distinct] for name, each in items.items()}


def _experience_id(item: ContextItem) -> object:
    """The id of the experience that an item is, or that it was derived from alone; None for other items."""
    if item.source == "value" and item.metadata.get("cluster_size") == 1:
        return next(iter(item.metadata.get("members", ())), item.metadata.get("id"))
    return item.metadata.get("id") if item.source in ("experience", "value") else None


def shares(wanted: Mapping[str, int], weights: Mapping[str, int], tokens: int) -> dict[str, int]:
    """Tokens for each section by its weight. The others share what a section does not need."""
    budget = dict.fromkeys(wanted, 0)
    hungry = {name for name, need in wanted.items() if need > 0}
    left = tokens
    while hungry and left > 0:
        whole = sum(weights[name] for name in hungry)
        offered = {name: left * weights[name] // whole for name in hungry}
        full = {name for name in hungry if budget[name] + offered[name] >= wanted[name]}
        for name in full or hungry:
            granted = min(offered[name], wanted[name] - budget[name]) if full else offered[name]
            budget[name] += granted
            left -= granted
        hungry -= full
        if not full:
            break
    return budget


def capped(item: ContextItem, cap: int, count: TokenCounter) -> ContextItem | None:
    """The item cut to `cap` tokens, with a pointer to its full text; None if nothing of it would be left."""
    if count(item.content) <= cap:
        return item
    note = f"\n\n{item.pointer or _NO_POINTER}"

    def closed(start: str) -> str:
        # Close a code block that was cut. Backticks inside a line open none.
        fences = _FENCE.findall(start)
        return f"{start}\n{fences[0]}{note}" if fences and fences.count(fences[0]) % 2 else f"{start}{note}"

    short = trim(item.content, lambda start: count(closed(start)) <= cap, _ELLIPSIS)
    return replace(item, content=closed(short), truncated=True) if short else None


def choose_items(
    items: Items, weights: Mapping[str, int], tokens: int, count: TokenCounter
) -> dict[str, list[ContextItem]]:
    """The best items of each section that fit into `tokens`, with two tokens for each separator."""
    cost = {id(item): count(item.content) + 2 for each in items.values() for item in each}
    wanted = {name: sum(cost[id(item)] for item in each) for name, each in items.items()}
    budget = shares(wanted, weights, tokens)
    total_weight = sum(weights[name] for name, each in items.items() if each)
    chosen: dict[str, list[ContextItem]] = {}
    rest: list[tuple[str, ContextItem]] = []
    left = tokens
    for name, each in items.items():
        room, chosen[name] = min(budget[name], left), []
        # A section that needs little has a small budget: its cap is at least a quarter of its weighted share.
        cap = int(max(budget[name], tokens * weights[name] // total_weight) * MAX_ITEM_FRACTION)
        for item in each:
            most = min(cap, room - 2)
            short = capped(item, most, count) if most >= min(cap * _MIN_CUT, count(item.content)) else None
            if short is None:
                rest.append((name, item))
                continue
            chosen[name].append(short)
            room -= count(short.content) + 2
            left -= count(short.content) + 2
    for name, item in sorted(rest, key=lambda pair: -pair[1].rank):
        if cost[id(item)] <= left and cost[id(item)] <= MAX_ITEM_FRACTION * tokens:
            chosen[name].append(item)
            left -= cost[id(item)]
    return chosen
