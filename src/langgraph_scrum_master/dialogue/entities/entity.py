"""A person or thing, as it is known."""

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
    """What an entity is to another, as in `reports to`."""

    relation: str
    target_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity(Plain):
    """A person or thing that a dialogue may be about."""

    canonical_name: str
    id: str = ""
    """The words of the name if there is none, as in `john-smith`."""
    entity_type: str = ""
    """Such as person, team or product."""
    aliases: tuple[str, ...] = ()
    description: str = ""
    attributes: dict[str, str] = field(default_factory=dict, hash=False)
    relations: tuple[Relation, ...] = ()
    salience: float = 0.0
    """From 0 to 1: how much the dialogue is about it just now."""

    def __post_init__(self) -> None:
        _listed(self, "aliases", str)
        _listed(self, "relations", Relation)
        given: Any = self.attributes
        if not isinstance(given, Mapping):
            raise ConfigError(f"attributes must be a dict of texts, got {given!r}")
        texts = {str(name): str(value) for name, value in given.items() if value is not None}
        object.__setattr__(self, "attributes", texts)
        clamp(self, "salience", 0.0, 1.0)
        for name in (self.canonical_name, *self.aliases):
            if not words_in(name):
                raise ConfigError(f"a name must be a text with a letter, a digit or a sign in it, got {name!r}")
        if not self.id:
            object.__setattr__(self, "id", "-".join(map(fold, self.canonical_name.replace("-", " ").split())))


def _listed(entity: Entity, name: str, kind: type) -> None:
    given: Any = getattr(entity, name)
    if not isinstance(given, list | tuple) or not all(isinstance(each, kind) for each in given):
        raise ConfigError(f"{name} must be a list of {kind.__name__}, got {given!r}")
    freeze(entity, name)
