"""What a prompt is told of an entity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langgraph_scrum_master.dialogue.entities.entity import Entity
from langgraph_scrum_master.dialogue.model import EntityContext, EntityRelationship
from langgraph_scrum_master.text.sanitize import one_line
from langgraph_scrum_master.text.trim import trim

FIRST = ("email", "phone", "title", "department", "location")
"""Attributes that are told before others, in this order."""

_LONGEST = 300
"""Characters of a description or an attribute."""

Attributes = Sequence[tuple[str, str]]


def select_attributes(entity: Entity, limit: int) -> list[tuple[str, str]]:
    """The attributes that tell most, at most so many; empty ones are left out."""
    told = {name: value for name, value in entity.attributes.items() if value.strip()}
    by_fold = {name.lower(): name for name in reversed(told)}
    first = [by_fold[name] for name in FIRST if name in by_fold]
    names = [*first, *(name for name in told if name not in first)]
    return [(name, told[name]) for name in names[: max(0, limit)]]


def relationships(entity: Entity, known: Mapping[str, Entity]) -> list[EntityRelationship]:
    """What it is to others that are known; those that are gone are passed over."""
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
    """The entity with what is to be told of it, as text, by a template if there is one."""
    return EntityContext(
        entity_id=entity.id,
        name=entity.canonical_name,
        entity_type=entity.entity_type,
        description=_line(entity.description),
        attributes=tuple(attributes),
        relationships=tuple(related),
        relevance=relevance,
        formatted=_templated(template, entity, attributes, related)
        if template
        else _formatted(entity, attributes, related),
        compressed=_compressed(entity, attributes),
    )


def _formatted(entity: Entity, attributes: Attributes, related: Sequence[EntityRelationship]) -> str:
    lines = [_heading(entity)]
    if description := _line(entity.description):
        lines.append(f"  {description}")
    lines += [f"  {told}" for told in _told(attributes)]
    if related:
        lines.append(f"  Related: {_others(related)}")
    return "\n".join(lines)


def _templated(template: str, entity: Entity, attributes: Attributes, related: Sequence[EntityRelationship]) -> str:
    return template.format(
        name=_line(entity.canonical_name),
        type=_line(entity.entity_type),
        description=_line(entity.description),
        attributes=", ".join(_told(attributes)),
        related=_others(related),
    )


def _told(attributes: Attributes) -> list[str]:
    return [f"{_line(name)}: {_line(value)}" for name, value in attributes]


def _others(related: Sequence[EntityRelationship]) -> str:
    return ", ".join(f"{_line(each.relation)} {_line(each.target_name)}" for each in related)


def _compressed(entity: Entity, attributes: Attributes) -> str:
    if not attributes:
        return _heading(entity)
    name, value = attributes[0]
    return f"{_heading(entity)}: {_line(name)} {_line(value)}"


def _heading(entity: Entity) -> str:
    kind = f" ({_line(entity.entity_type)})" if entity.entity_type.strip() else ""
    return f"• {_line(entity.canonical_name)}{kind}"


def _line(text: str) -> str:
    """The text as data on one line: it could look like another entity otherwise."""
    return trim(one_line(text), lambda start: len(start) <= _LONGEST)
