"""Tokens for the sections of a dialogue's prompt: by fixed shares, by how the dialogue stands, or in an order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeAlias

from langgraph_scrum_master._internal.shapes import read, text_of
from langgraph_scrum_master.config import DIALOGUE_BUDGET, TokenBudget
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.model import freeze

BUDGET_SECTIONS = tuple(DIALOGUE_BUDGET)
"""What a budget is shared among: system, history, entities, rag, query."""

RESERVE = 100
"""Tokens beside the query's own: for labels, frames and what separates messages."""

SYSTEM = 400
"""Tokens that a system prompt gets where they are shared by how the dialogue stands."""

_SHORT, MEDIUM = 3, 10
"""Up to so many turns a dialogue is short, and then of medium length."""

MANY = 10
"""More entities than these get 1.3 times their share."""

_PERCENT = {_SHORT: (15, 15, 60), MEDIUM: (30, 20, 40)}
_LONG = (40, 25, 25)
_TABLE = DIALOGUE_BUDGET.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a budget is made for."""

    total: int
    query: int
    """Tokens of the user's turn."""
    turns: int = 0
    entities: int = 0
    chunks: int = 0
    wanted: Mapping[str, int] = field(default_factory=lambda: dict(DIALOGUE_BUDGET))
    """The tokens that each section would take if it could."""


BudgetStrategy: TypeAlias = Callable[[Demand], TokenBudget]
"""Shares the tokens among the sections. What it gives beyond the total is taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedBudget:
    """Each section its share: of 4096 tokens 500, 1000, 500, 1500 and 596."""

    system: float = DIALOGUE_BUDGET["system"] / _TABLE
    history: float = DIALOGUE_BUDGET["history"] / _TABLE
    entities: float = DIALOGUE_BUDGET["entities"] / _TABLE
    rag: float = DIALOGUE_BUDGET["rag"] / _TABLE
    query: float = DIALOGUE_BUDGET["query"] / _TABLE

    def __post_init__(self) -> None:
        shares = {each.name: getattr(self, each.name) for each in fields(self)}
        if any(share < 0 for share in shares.values()) or sum(shares.values()) > 1 + 1e-9:
            raise ConfigError(f"the shares of a budget must be 0 or more and 1 at most together, got {shares!r}")

    def __call__(self, demand: Demand) -> TokenBudget:
        """A query that is longer than its share makes the others smaller, all alike."""
        # A share that was written as a fraction must come out whole: 500 / 4096 of 4096 is 500.
        given = {name: int(demand.total * getattr(self, name) + 1e-6) for name in BUDGET_SECTIONS}
        query = min(max(given.pop("query"), demand.query), demand.total)
        left, shared = demand.total - query, sum(given.values())
        if shared > left:
            given = {name: tokens * left // shared for name, tokens in given.items()}
        return TokenBudget(**given, query=query)


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicBudget:
    """More knowledge at the start of a dialogue, more history later on."""

    def __call__(self, demand: Demand) -> TokenBudget:
        """The query and its reserve come first; where both are more than the total, the query gets all of it."""
        query = min(demand.query + RESERVE, demand.total)
        left = demand.total - query
        percent = next((share for turns, share in _PERCENT.items() if demand.turns <= turns), _LONG)
        history, entities, rag = (left * share // 100 for share in percent)
        if demand.entities > MANY:
            entities = entities * 13 // 10
            rag = max(0, left - SYSTEM - history - entities)
        if not demand.chunks:
            history, entities, rag = history + rag // 2, entities + rag // 2, 0
        system = min(SYSTEM, max(0, left - history - entities - rag))
        return TokenBudget(system=system, history=history, entities=entities, rag=rag, query=query)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrioritizedBudget:
    """The sections take what they want, one after the other, until nothing is left; one that is not named gets none."""

    order: tuple[str, ...] = ("system", "history", "rag", "entities")

    def __post_init__(self) -> None:
        freeze(self, "order")
        unknown = [name for name in self.order if name not in BUDGET_SECTIONS]
        if unknown or len(set(self.order)) < len(self.order):
            raise ConfigError(f"order must name sections among {list(BUDGET_SECTIONS)}, each once, got {self.order!r}")

    def __call__(self, demand: Demand) -> TokenBudget:
        """The query and its reserve come first."""
        query = min(demand.query + RESERVE, demand.total)
        left, given = demand.total - query, dict.fromkeys(BUDGET_SECTIONS, 0)
        for name in self.order:
            if name != "query":
                given[name] = min(left, demand.wanted.get(name, 0))
                left -= given[name]
        return TokenBudget(**given | {"query": query})


STRATEGIES: dict[str, BudgetStrategy] = {
    "fixed": FixedBudget(),
    "dynamic": DynamicBudget(),
    "prioritized": PrioritizedBudget(),
}
"""By their names."""


def budgeted(strategy: BudgetStrategy, demand: Demand) -> TokenBudget:
    """The budget of any strategy within the total; the query's tokens are the last to be taken back."""
    given = strategy(demand).only(*BUDGET_SECTIONS)
    return _within(given, demand.total, ("query", *BUDGET_SECTIONS[:-1]))


def _within(budget: TokenBudget, total: int, order: Sequence[str]) -> TokenBudget:
    """The budget cut to the total: the sections get theirs in this order, as long as there is any."""
    left, kept = total, dict(budget)
    for name in order:
        kept[name] = min(left, kept[name])
        left -= kept[name]
    return TokenBudget(**kept)


def spilled(budget: TokenBudget, used: Mapping[str, int], system: int) -> TokenBudget:
    """The budget with what entities and knowledge leave given to a longer system prompt, then to the history."""
    kept = dict(budget) | {name: min(budget[name], used[name]) for name in ("entities", "rag")}
    spare = budget.total - sum(kept.values())
    wanted = min(spare, max(0, system - kept["system"]))
    return TokenBudget(**kept | {"system": kept["system"] + wanted, "history": kept["history"] + spare - wanted})


def name_of(strategy: BudgetStrategy) -> str:
    """What the record of a turn calls it."""
    known = {type(each): name for name, each in STRATEGIES.items()}
    return known.get(type(strategy)) or text_of(read(strategy, "__name__")) or type(strategy).__name__
