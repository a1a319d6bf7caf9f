"""MeTTa predicates for entities."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph_scrum_master.dialogue.compress import prioritize_entities
from langgraph_scrum_master.dialogue.entities import (
    Entity,
    EntityRegistry,
    entity_context,
    relationships,
    select_attributes,
)
from langgraph_scrum_master.dialogue.metta.values import Predicates, registry_of
from langgraph_scrum_master.dialogue.model import EntityContext, EntityRelationship, ResolvedEntity
from langgraph_scrum_master.errors import NotFoundError
from langgraph_scrum_master.protocols import TokenCounter


def entity_predicates(registry: EntityRegistry, count: TokenCounter) -> Predicates:
    """The predicates for the registry. A registry in the dialogue's state takes precedence."""

    def get_entity(entity_id: str) -> Entity:
        if (entity := registry.get(entity_id)) is None:
            raise NotFoundError(f"there is no entity {entity_id!r}")
        return entity

    def contexts(state: object, resolved: Sequence[ResolvedEntity], tokens: int) -> tuple[EntityContext, ...]:
        return prioritize_entities(registry_of(state, registry).contexts(resolved), tokens, count)

    def related(entity: Entity, state: object) -> list[EntityRelationship]:
        return relationships(entity, {each.id: each for each in registry_of(state, registry)})

    return {
        "resolve-entities": registry.resolve,
        "get-entity": get_entity,
        "format-entity-context": contexts,
        "select-entity-attributes": select_attributes,
        "get-entity-relationships": related,
        "format-entity": entity_context,
    }
