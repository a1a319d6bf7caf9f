"""MeTTa predicates for dialogue prompts.

Strings, numbers and booleans are MeTTa values. Lists and tuples are expressions, and None is the empty expression.
Symbols are passed as their names. Anything else is a grounded Python object, created with `py-atom` and read with
`py-dot`. A dialogue is `((user "Hello!") (assistant "Hello."))` or a grounded session. A failure returns an `Error`
expression with the reason. The types of the predicates are declared in the space.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from langgraph_scrum_master.dialogue.budgets import BudgetStrategy
from langgraph_scrum_master.dialogue.entities import EntityRegistry
from langgraph_scrum_master.dialogue.knowledge import KnowledgeBase
from langgraph_scrum_master.dialogue.metta.dialogue import DialoguePredicates
from langgraph_scrum_master.dialogue.metta.entities import entity_predicates
from langgraph_scrum_master.dialogue.metta.knowledge import knowledge_predicates
from langgraph_scrum_master.dialogue.metta.types import declare
from langgraph_scrum_master.dialogue.metta.values import bind, to_json
from langgraph_scrum_master.dialogue.settings import HistoryConfig
from langgraph_scrum_master.dialogue.summarize import ExtractiveSummarizer
from langgraph_scrum_master.protocols import Clock, Summarizer, TokenCounter
from langgraph_scrum_master.retrieval.counting import reliable
from langgraph_scrum_master.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from hyperon import MeTTa

__all__ = ["bind", "register_predicates"]


def register_predicates(
    metta: MeTTa,
    *,
    entities: EntityRegistry | None = None,
    knowledge: KnowledgeBase | None = None,
    instructions: str = "",
    summarizer: Summarizer | None = None,
    strategy: str | BudgetStrategy = "dynamic",
    history: HistoryConfig = HistoryConfig(),  # noqa: B008 - frozen
    clock: Clock = time.time,
    count_tokens: TokenCounter = estimate_tokens,
) -> None:
    """Register the predicates in MeTTa, and the entities and knowledge as `&entities` and `&knowledge`.

    The other options are those of `PromptAssembler`.
    """
    from hyperon import ValueAtom

    count = reliable(count_tokens)
    dialogue = DialoguePredicates(
        entities=entities,
        knowledge=knowledge,
        instructions=instructions,
        summarizer=summarizer or ExtractiveSummarizer(count),
        strategy=strategy,
        history=history,
        clock=clock,
        count=count,
    )
    predicates: dict[str, Callable[..., object]] = dialogue.by_name() | {"to-json": to_json}
    if entities is not None:
        metta.register_atom("&entities", ValueAtom(entities))
        predicates |= entity_predicates(entities, count)
    if knowledge is not None:
        metta.register_atom("&knowledge", ValueAtom(knowledge))
        predicates |= knowledge_predicates(knowledge, count)
    bind(metta, predicates)
    declare(metta, predicates)
