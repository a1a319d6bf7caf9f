"""The entities of a dialogue: a registry, recognition in texts, and rendering for prompts."""

from __future__ import annotations

from langgraph_scrum_master.dialogue.entities.contexts import entity_context, relationships, select_attributes
from langgraph_scrum_master.dialogue.entities.entity import Entity, Relation
from langgraph_scrum_master.dialogue.entities.registry import EntityRegistry

__all__ = ["Entity", "EntityRegistry", "Relation", "entity_context", "relationships", "select_attributes"]
