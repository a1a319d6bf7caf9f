"""Items of several sources in one budget: each source its share, no item more than a quarter of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from langgraph_scrum_master.learning.records import ContextItem
from langgraph_scrum_master.protocols import TokenCounter
from langgraph_scrum_master.text.similarity import SaidTexts
from langgraph_scrum_master.text.trim import trim

MAX_ITEM_FRACTION = 0.25
"""The share of its source's tokens that one item may take."""

_LEAST = 0.6
"""The share of that to which an item may be cut, to fill what is left."""

_MORE = "..."
_NO_POINTER = "*(truncated)*"
_FENCE = re.compile(r"^`{3,}", re.M)

Items = Mapping[str, Sequence[ContextItem]]
"""By section, the best first."""


def distinct_items(items: Items) -> dict[str, list[ContextItem]]:
    """The items without those that say what a more relevant one says; values only among themselves.

    A value is said in the words of one of its experiences, and stays all the same.
    """
    shelves = {True: SaidTexts(), False: SaidTexts()}
    ranked = sorted((item for each in items.values() for item in each), key=lambda item: -item.relevance)
    kept = {id(item) for item in ranked if shelves[item.source == "value"].add(item.said)}
    return {name: [item for item in each if id(item) in kept] for name, each in items.items()}


def shares(wanted: Mapping[str, int], weights: Mapping[str, int], tokens: int) -> dict[str, int]:
    """Tokens for each section by its weight; what one does not need goes to the others."""
    budget = dict.fromkeys(wanted, 0)
    hungry = {name for name, need in wanted.items() if need > 0}
    left = tokens
    while hungry and left > 0:
        whole = sum(weights[name] for name in hungry)
        offered = {name: left * weights[name] // whole for name in hungry}
        full = {name for name in hungry if budget[name] + offered[name] >= wanted[name]}
        for name in full or hungry:
            given = min(offered[name], wanted[name] - budget[name]) if full else offered[name]
            budget[name] += given
            left -= given
        hungry -= full
        if not full:
            break
    return budget


def capped(item: ContextItem, cap: int, count: TokenCounter) -> ContextItem | None:
    """The item within so many tokens, with where the rest of it is; None if nothing of it would be left."""
    if count(item.content) <= cap:
        return item
    note = f"\n\n{item.pointer or _NO_POINTER}"

    def ended(start: str) -> str:
        # A block of code that was opened is closed; backticks inside a line open none.
        fences = _FENCE.findall(start)
        return f"{start}\n{fences[0]}{note}" if fences and fences.count(fences[0]) % 2 else f"{start}{note}"

    short = trim(item.content, lambda start: count(ended(start)) <= cap, _MORE)
    return replace(item, content=ended(short), truncated=True) if short else None


def within(items: Items, weights: Mapping[str, int], tokens: int, count: TokenCounter) -> dict[str, list[ContextItem]]:
    """As many of the best of each section as fit, all together in so many tokens.

    What stands between items counts as well: two tokens each.
    """
    cost = {id(item): count(item.content) + 2 for each in items.values() for item in each}
    wanted = {name: sum(cost[id(item)] for item in each) for name, each in items.items()}
    budget = shares(wanted, weights, tokens)
    found = sum(weights[name] for name, each in items.items() if each)
    chosen: dict[str, list[ContextItem]] = {}
    rest: list[tuple[str, ContextItem]] = []
    left = tokens
    for name, each in items.items():
        room, chosen[name] = min(budget[name], left), []
        # What it would have had if all that found anything had taken their share is the least that an item may have a
        # quarter of.
        cap = int(max(budget[name], tokens * weights[name] // found) * MAX_ITEM_FRACTION)
        for item in each:
            most = min(cap, room - 2)
            short = capped(item, most, count) if most >= min(cap * _LEAST, count(item.content)) else None
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
