"""Renders entities for prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langgraph_scrum_master.dialogue.entities.entity import Entity
from langgraph_scrum_master.dialogue.model import EntityContext, EntityRelationship
from langgraph_scrum_master.text.sanitize import one_line
from langgraph_scrum_master.text.trim import trim

PREFERRED_ATTRIBUTES = ("email", "phone", "title", "department", "location")
"""Attributes listed before others, in this order."""

_MAX_CHARACTERS = 300
"""Maximum length of a description or an attribute."""

Attributes = Sequence[tuple[str, str]]


def select_attributes(entity: Entity, limit: int) -> list[tuple[str, str]]:
    """The first `limit` non-empty attributes, preferred ones first."""
    attributes = {name: value for name, value in entity.attributes.items() if value.strip()}
    by_lower = {name.lower(): name for name in reversed(attributes)}
    first = [by_lower[name] for name in PREFERRED_ATTRIBUTES if name in by_lower]
    names = [*first, *(name for name in attributes if name not in first)]
    return [(name, attributes[name]) for name in names[: max(0, limit)]]


def relationships(entity: Entity, known: Mapping[str, Entity]) -> list[EntityRelationship]:
    """The entity's relations to known entities. Others are skipped."""
    return [
        EntityRelationship(
            relation=each.relation, target_id=each.target_id, target_name=known[each.target_id].canonical_name
        )
        for each in entity.relations
        if each.target_id in known
    ]


def entity_context(
    entity: Entity,
    relevance: float,
    attributes: Attributes,
    related: Sequence[EntityRelationship] = (),
    template: str = "",
) -> EntityContext:
    """Render an entity, by the template if there is one."""
    return EntityContext(
        entity_id=entity.id,
        name=entity.canonical_name,
        entity_type=entity.entity_type,
        description=_line(entity.description),
        attributes=tuple(attributes),
        relationships=tuple(related),
        relevance=relevance,
        formatted=_fill_template(template, entity, attributes, related)
        if template
        else _format(entity, attributes, related),
        compressed=_compress(entity, attributes),
    )


def _format(entity: Entity, attributes: Attributes, related: Sequence[EntityRelationship]) -> str:
    lines = [_heading(entity)]
    if description := _line(entity.description):
        lines.append(f"  {description}")
    lines += [f"  {pair}" for pair in _pairs(attributes)]
    if related:
        lines.append(f"  Related: {_related_names(related)}")
    return "\n".join(lines)


def _fill_template(template: str, entity: Entity, attributes: Attributes, related: Sequence[EntityRelationship]) -> str:
    return template.format(
        name=_line(entity.canonical_name),
        type=_line(entity.entity_type),
        description=_line(entity.description),
        attributes=", ".join(_pairs(attributes)),
        related=_related_names(related),
    )


def _pairs(attributes: Attributes) -> list[str]:
    return [f"{_line(name)}: {_line(value)}" for name, value in attributes]


def _related_names(related: Sequence[EntityRelationship]) -> str:
    return ", ".join(f"{_line(each.relation)} {_line(each.target_name)}" for each in related)


def _compress(entity: Entity, attributes: Attributes) -> str:
    if not attributes:
        return _heading(entity)
    name, value = attributes[0]
    return f"{_heading(entity)}: {_line(name)} {_line(value)}"


def _heading(entity: Entity) -> str:
    kind = f" ({_line(entity.entity_type)})" if entity.entity_type.strip() else ""
    return f"• {_line(entity.canonical_name)}{kind}"


def _line(text: str) -> str:
    """The text on one line, so that it cannot imitate another entity."""
    return trim(one_line(text), lambda start: len(start) <= _MAX_CHARACTERS)
