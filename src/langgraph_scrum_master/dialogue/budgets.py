"""Token budgets for the sections of a dialogue prompt: fixed, dynamic or prioritized."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeAlias

from langgraph_scrum_master._internal.shapes import read, text_of
from langgraph_scrum_master.config import TokenBudget
from langgraph_scrum_master.dialogue.settings import DIALOGUE_BUDGET
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.model import freeze

BUDGET_SECTIONS = tuple(DIALOGUE_BUDGET)
"""The sections of a budget: system, history, entities, rag, query."""

QUERY_RESERVE = 100
"""Tokens on top of the query: for labels, delimiters and message overhead."""

SYSTEM_TOKENS = 400
"""Tokens of the system prompt in a dynamic budget."""

_SHORT, _MEDIUM = 3, 10
"""Maximum number of turns of a short dialogue and of one of medium length."""

_MANY_ENTITIES = 10
"""Above this number, entities get 1.3 times their share."""

_PERCENT = {_SHORT: (15, 15, 60), _MEDIUM: (30, 20, 40)}
_LONG = (40, 25, 25)
_DEFAULT_TOTAL = DIALOGUE_BUDGET.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The input of a budget strategy."""

    total: int
    query: int
    """Tokens of the user's turn."""
    turns: int = 0
    entities: int = 0
    chunks: int = 0
    wanted: Mapping[str, int] = field(default_factory=lambda: dict(DIALOGUE_BUDGET))
    """Tokens that each section would use if unlimited."""


BudgetStrategy: TypeAlias = Callable[[Demand], TokenBudget]
"""Allocates the tokens to the sections. An allocation above the total is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedBudget:
    """Gives each section a fixed share. The defaults split 4096 tokens into 500, 1000, 500, 1500 and 596."""

    system: float = DIALOGUE_BUDGET["system"] / _DEFAULT_TOTAL
    history: float = DIALOGUE_BUDGET["history"] / _DEFAULT_TOTAL
    entities: float = DIALOGUE_BUDGET["entities"] / _DEFAULT_TOTAL
    rag: float = DIALOGUE_BUDGET["rag"] / _DEFAULT_TOTAL
    query: float = DIALOGUE_BUDGET["query"] / _DEFAULT_TOTAL

    def __post_init__(self) -> None:
        shares = {each.name: getattr(self, each.name) for each in fields(self)}
        if any(share < 0 for share in shares.values()) or sum(shares.values()) > 1 + 1e-9:
            raise ConfigError(f"the shares of a budget must be 0 or more and sum to at most 1, got {shares!r}")

    def __call__(self, demand: Demand) -> TokenBudget:
        """Allocate the shares. A query longer than its share shrinks the other sections proportionally."""
        # The epsilon corrects rounding errors: 500 / 4096 of 4096 must be 500.
        allocated = {name: int(demand.total * getattr(self, name) + 1e-6) for name in BUDGET_SECTIONS}
        query = min(max(allocated.pop("query"), demand.query), demand.total)
        left, shared = demand.total - query, sum(allocated.values())
        if shared > left:
            allocated = {name: tokens * left // shared for name, tokens in allocated.items()}
        return TokenBudget(**allocated, query=query)


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicBudget:
    """Favours knowledge at the start of a dialogue and history later on."""

    def __call__(self, demand: Demand) -> TokenBudget:
        """Allocate the query and its reserve first. If they exceed the total, the query gets all of it."""
        query = min(demand.query + QUERY_RESERVE, demand.total)
        left = demand.total - query
        percent = next((share for turns, share in _PERCENT.items() if demand.turns <= turns), _LONG)
        history, entities, rag = (left * share // 100 for share in percent)
        if demand.entities > _MANY_ENTITIES:
            entities = entities * 13 // 10
            rag = max(0, left - SYSTEM_TOKENS - history - entities)
        if not demand.chunks:
            history, entities, rag = history + rag // 2, entities + rag // 2, 0
        system = min(SYSTEM_TOKENS, max(0, left - history - entities - rag))
        return TokenBudget(system=system, history=history, entities=entities, rag=rag, query=query)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrioritizedBudget:
    """Gives each section what it wants, in order, until the tokens run out. Sections not listed get none."""

    order: tuple[str, ...] = ("system", "history", "rag", "entities")

    def __post_init__(self) -> None:
        freeze(self, "order")
        unknown = [name for name in self.order if name not in BUDGET_SECTIONS]
        if unknown or len(set(self.order)) < len(self.order):
            raise ConfigError(f"order must list sections from {list(BUDGET_SECTIONS)}, each once, got {self.order!r}")

    def __call__(self, demand: Demand) -> TokenBudget:
        """Allocate the query and its reserve first."""
        query = min(demand.query + QUERY_RESERVE, demand.total)
        left, allocated = demand.total - query, dict.fromkeys(BUDGET_SECTIONS, 0)
        for name in self.order:
            if name != "query":
                allocated[name] = min(left, demand.wanted.get(name, 0))
                left -= allocated[name]
        return TokenBudget(**allocated | {"query": query})


STRATEGIES: dict[str, BudgetStrategy] = {
    "fixed": FixedBudget(),
    "dynamic": DynamicBudget(),
    "prioritized": PrioritizedBudget(),
}
"""The built-in strategies by name."""


def allocate_budget(strategy: BudgetStrategy, demand: Demand) -> TokenBudget:
    """Run a strategy and cut its budget to the total. The query is cut last."""
    allocated = strategy(demand).only(*BUDGET_SECTIONS)
    return _cut_to_total(allocated, demand.total, ("query", *BUDGET_SECTIONS[:-1]))


def _cut_to_total(budget: TokenBudget, total: int, order: Sequence[str]) -> TokenBudget:
    """Serve the sections in order until the total is used up."""
    left, tokens = total, dict(budget)
    for name in order:
        tokens[name] = min(left, tokens[name])
        left -= tokens[name]
    return TokenBudget(**tokens)


def redistribute_unused(budget: TokenBudget, used: Mapping[str, int], system: int) -> TokenBudget:
    """Move tokens unused by entities and knowledge to the system prompt if it needs them, then to the history."""
    tokens = dict(budget) | {name: min(budget[name], used[name]) for name in ("entities", "rag")}
    spare = budget.total - sum(tokens.values())
    wanted = min(spare, max(0, system - tokens["system"]))
    return TokenBudget(**tokens | {"system": tokens["system"] + wanted, "history": tokens["history"] + spare - wanted})


def strategy_name(strategy: BudgetStrategy) -> str:
    """The strategy's name in turn records."""
    known = {type(each): name for name, each in STRATEGIES.items()}
    return known.get(type(strategy)) or text_of(read(strategy, "__name__")) or type(strategy).__name__
