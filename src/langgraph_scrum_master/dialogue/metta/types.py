"""The types of the predicates, declared in the space: `!(match &self (: embed-query $type) $type)`.

Operations check their arguments themselves, since MeTTa knows all numbers as `Number` and Python objects by no type.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyperon import MeTTa

TYPES = """
(: inject-context (-> String DialogueState KnowledgeBase Int InjectedContext))
(: allocate-token-budget (-> String DialogueState Int TokenBudget))
(: format-dialogue-history (-> DialogueState Int FormattedHistory))
(: format-entity-context (-> DialogueState (List ResolvedEntity) Int (List EntityContext)))
(: retrieve-rag-chunks (-> String (List ResolvedEntity) Int (List KnowledgeChunk)))
(: build-system-prompt (-> UserPreferences AgentPersonality Int String))
(: total-tokens (-> ContextContent Int))
(: handle-overflow (-> ContextContent TokenBudget ContextContent))
(: compress-content (-> ContextContent Int ContextContent))
(: compression-level (-> Float CompressionLevel))
(: summarize-turns (-> (List Turn) Int String))
(: format-recent-turns (-> (List Turn) (List FormattedTurn)))
(: assemble-history (-> (Maybe String) (List FormattedTurn) String))
(: select-entity-attributes (-> Entity Int (List (Pair String String))))
(: get-entity-relationships (-> Entity DialogueState (List EntityRelationship)))
(: format-entity (-> Entity Float (List (Pair String String)) EntityContext))
(: embed-query (-> String (List Float)))
(: search-vector-index (-> (List Float) Int (List SearchResult)))
(: apply-rag-boosts (-> (List SearchResult) (List ResolvedEntity) (List SearchResult)))
(: rerank-chunks (-> String (List SearchResult) (List SearchResult)))
(: format-chunk (-> Chunk DocumentSource String))
(: format-personality (-> AgentPersonality String))
(: format-preferences (-> UserPreferences String))
(: truncate-system-prompt (-> (List String) Int String))
(: simplify-formatting (-> FormattedHistory FormattedHistory))
(: aggressive-summarize (-> FormattedHistory FormattedHistory))
(: reduce-entity-detail (-> (List EntityContext) (List EntityContext)))
(: select-top-chunks (-> (List KnowledgeChunk) Int (List KnowledgeChunk)))
(: resolve-entities (-> String (List ResolvedEntity)))
(: get-entity (-> String Entity))
(: to-json (-> Atom String))
"""

_NAME = re.compile(r"\(: (\S+)")


def declare(metta: MeTTa, names: Collection[str]) -> None:
    """Declare the types of the predicates with these names."""
    metta.run("\n".join(line for line in TYPES.split("\n") if (match := _NAME.match(line)) and match[1] in names))
