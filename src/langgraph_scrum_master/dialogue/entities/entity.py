"""The entity model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraph_scrum_master._internal.serialisation import Plain
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.model import clamp, freeze
from langgraph_scrum_master.text.spelling import fold, words_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation(Plain):
    """A relation to another entity, such as `reports to`."""

    relation: str
    target_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity(Plain):
    """A person or thing that a dialogue may mention."""

    canonical_name: str
    id: str = ""
    """Derived from the name by default, as in `john-smith`."""
    entity_type: str = ""
    """Such as person, team or product."""
    aliases: tuple[str, ...] = ()
    description: str = ""
    attributes: dict[str, str] = field(default_factory=dict, hash=False)
    relations: tuple[Relation, ...] = ()
    salience: float = 0.0
    """Current importance in the dialogue, from 0 to 1."""

    def __post_init__(self) -> None:
        _check_list(self, "aliases", str)
        _check_list(self, "relations", Relation)
        attributes: Any = self.attributes
        if not isinstance(attributes, Mapping):
            raise ConfigError(f"attributes must be a dict of strings, got {attributes!r}")
        texts = {str(name): str(value) for name, value in attributes.items() if value is not None}
        object.__setattr__(self, "attributes", texts)
        clamp(self, "salience", 0.0, 1.0)
        for name in (self.canonical_name, *self.aliases):
            if not words_in(name):
                raise ConfigError(f"a name must contain a letter, digit or symbol, got {name!r}")
        if not self.id:
            object.__setattr__(self, "id", "-".join(map(fold, self.canonical_name.replace("-", " ").split())))


def _check_list(entity: Entity, name: str, kind: type) -> None:
    items: Any = getattr(entity, name)
    if not isinstance(items, list | tuple) or not all(isinstance(each, kind) for each in items):
        raise ConfigError(f"{name} must be a list of {kind.__name__}, got {items!r}")
    freeze(entity, name)
