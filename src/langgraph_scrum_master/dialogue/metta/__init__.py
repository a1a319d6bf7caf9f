"""The predicates of dialogue prompts, for MeTTa.

How values pass: texts, numbers and truth values are MeTTa's own; a list or a pair is an expression of its items, and
nothing an empty one; a symbol comes in as its name; anything else is the Python object, grounded, which MeTTa's own
`py-atom` makes and `py-dot` reads. A dialogue is `((user "Hello!") (assistant "Hello."))`, or any session, grounded.
What fails is an `Error` that says why.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from langgraph_scrum_master.config import HistoryConfig
from langgraph_scrum_master.dialogue.budgets import BudgetStrategy
from langgraph_scrum_master.dialogue.entities import EntityRegistry
from langgraph_scrum_master.dialogue.knowledge import KnowledgeBase
from langgraph_scrum_master.dialogue.metta.dialogue import DialoguePredicates
from langgraph_scrum_master.dialogue.metta.entities import entity_predicates
from langgraph_scrum_master.dialogue.metta.knowledge import knowledge_predicates
from langgraph_scrum_master.dialogue.metta.values import bind, to_json
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
    """Let MeTTa call the predicates for these entities, which are `&entities`, and this knowledge, `&knowledge`.

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
    bind(metta, dialogue.by_name() | {"to-json": to_json})
    if entities is not None:
        metta.register_atom("&entities", ValueAtom(entities))
        bind(metta, entity_predicates(entities, count))
    if knowledge is not None:
        metta.register_atom("&knowledge", ValueAtom(knowledge))
        bind(metta, knowledge_predicates(knowledge, count))
