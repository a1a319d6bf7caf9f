"""The registry of a dialogue's entities."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import ceil, log2
from pathlib import Path
from threading import RLock
from typing import Any

from langgraph_scrum_master._internal.foreign import awaited
from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master.dialogue.entities.contexts import entity_context, relationships, select_attributes
from langgraph_scrum_master.dialogue.entities.entity import Entity
from langgraph_scrum_master.dialogue.entities.extract import extract_entities
from langgraph_scrum_master.dialogue.entities.files import read_entities, write_entities
from langgraph_scrum_master.dialogue.entities.names import NameIndex
from langgraph_scrum_master.dialogue.model import EntityContext, ResolvedEntity
from langgraph_scrum_master.dialogue.settings import EntityContextConfig
from langgraph_scrum_master.errors import ConfigError, NotFoundError
from langgraph_scrum_master.protocols import ChatModel
from langgraph_scrum_master.text.spelling import spelled

ACTIVE = 0.1
"""Minimum salience of an active entity."""

_SALIENCE_WEIGHT = 0.7
"""Relevance of an entity that is not mentioned, as a share of its salience."""


class EntityRegistry:
    """Stores entities, finds them in texts and tracks their salience in the dialogue.

    The salience of an entity is the confidence of its last mention and halves every `half_life` turns. Each observed
    text is a turn; lookups change nothing. Thread-safe.
    """

    def __init__(
        self,
        entities: Iterable[Entity] = (),
        *,
        config: EntityContextConfig | None = None,
        model: ChatModel | None = None,
        turn: int = 0,
    ) -> None:
        self._config = config or EntityContextConfig()
        self._model = model
        self._turn = turn
        self._entities: dict[str, Entity] = {}
        self._last_mention: dict[str, int] = {}
        self._names: NameIndex | None = None
        self._lock = RLock()
        for entity in entities:
            self.add(entity)

    @classmethod
    def load(
        cls, path: str | Path, *, config: EntityContextConfig | None = None, model: ChatModel | None = None
    ) -> EntityRegistry:
        """Load a saved registry, or a JSON or TOML file written by hand. Blocks."""
        entities, turn = read_entities(Path(path))
        return cls(entities, config=config, model=model, turn=turn)

    def save(self, path: str | Path) -> None:
        """Write all entities with their salience to a JSON file, atomically. Blocks."""
        with self._lock:
            entities, turn = list(self), self._turn
        write_entities(Path(path), entities, turn)

    def add(self, entity: Entity) -> Entity:
        """Add an entity. Its id must be new, unless the entity is the same."""
        candidate: object = entity
        if not isinstance(candidate, Entity):
            raise ConfigError(f"expected an Entity with a canonical_name, got {candidate!r:.80}")
        with self._lock:
            known = self._entities.get(entity.id)
            if known is not None and replace(known, salience=entity.salience) != entity:
                raise ConfigError(
                    f"there is another entity with the id {entity.id!r}: update it, or use a different id"
                )
            if known is None:
                self._put(entity)
            return entity

    def update(self, entity_id: str, **changes: Any) -> Entity:
        """Change fields of an entity. The id cannot be changed."""
        with self._lock:
            known = self._current(entity_id)
            if unknown := changes.keys() - set(_CHANGEABLE):
                raise ConfigError(
                    f"the fields of an entity that can be changed are {', '.join(_CHANGEABLE)}, got {sorted(unknown)}"
                )
            changed = replace(known, **changes)
            self._put(changed)
            return changed

    def remove(self, entity_id: str) -> bool:
        """Remove an entity, and return whether it existed. Relations to it are hidden until it is added again."""
        with self._lock:
            removed = self._entities.pop(entity_id, None)
            self._last_mention.pop(entity_id, None)
            self._names = None
            return removed is not None

    def mention(self, entity_id: str, confidence: float = 1.0) -> None:
        """Mark an entity as mentioned in this turn, even if the text does not name it."""
        with self._lock:
            known = self._current(entity_id)
            self._entities[entity_id] = replace(known, salience=max(known.salience, confidence))
            self._last_mention[entity_id] = self._turn

    def observe(self, text: str) -> Sequence[ResolvedEntity]:
        """Process the next turn: entities it mentions become salient, others decay."""
        with self._lock:
            self._turn += 1
            resolved = self.resolve(text)
            for each in resolved:
                self.mention(each.entity_id, each.confidence)
            return resolved

    def after(self, texts: Sequence[str]) -> EntityRegistry:
        """A copy of the registry for a dialogue with these texts so far, oldest first.

        Entities they mention are as salient as if the texts had been observed, or as in this registry if that is more.
        This registry does not change, so dialogues can share it.
        """
        with self._lock:
            registry = EntityRegistry(self, config=self._config)
            registry._names = names = self._name_index()
        window = ceil(self._config.half_life * log2(1 / ACTIVE))
        for age, text in enumerate(reversed(texts[-window:]), 1):
            for entity_id, confidence, _ in names.find(text):
                registry.mention(entity_id, confidence * 0.5 ** (age / self._config.half_life))
        return registry

    async def aobserve(self, text: str, deadline: float = 5.0) -> Sequence[ResolvedEntity]:
        """Like `observe`, but first adds new entities that the model, if any, finds in the text.

        If the model fails or times out, that is logged, and known entities are still found.
        """
        if self._model is not None:
            try:
                new = await asyncio.wait_for(awaited(partial(extract_entities, text, self._model)), deadline)
            except Exception as error:
                logger.warning("extraction.failed", error=f"{type(error).__name__}: {error}")
                new = []
            self._add_new(new)
        return self.observe(text)

    def resolve(self, text: str) -> Sequence[ResolvedEntity]:
        """The entities mentioned in the text, by confidence, then by salience."""
        with self._lock:
            best: dict[str, ResolvedEntity] = {}
            for entity_id, confidence, mention in self._name_index().find(text):
                if entity_id not in best or confidence > best[entity_id].confidence:
                    name = self._entities[entity_id].canonical_name
                    best[entity_id] = ResolvedEntity(
                        entity_id=entity_id, canonical_name=name, confidence=confidence, mention=mention
                    )
            return sorted(best.values(), key=lambda each: (-each.confidence, -self.salience(each.entity_id)))

    def contexts(self, resolved: Sequence[ResolvedEntity]) -> Sequence[EntityContext]:
        """Render the resolved entities and the most salient others, most relevant first."""
        with self._lock:
            relevant: dict[str, float] = {}
            for each in resolved:
                if each.entity_id in self._entities:
                    relevant[each.entity_id] = max(each.confidence, relevant.get(each.entity_id, 0.0))
            for entity in self.salient(self._config.max_entities):
                relevant.setdefault(entity.id, entity.salience * _SALIENCE_WEIGHT)
            ordered = sorted(relevant.items(), key=lambda pair: -pair[1])
            selected = [(each, score) for each, score in ordered if score >= self._config.min_relevance]
            return [self._context(each, score) for each, score in selected[: self._config.max_entities]]

    def salient(self, limit: int) -> list[Entity]:
        """The active entities, most salient first."""
        active = [entity for entity in self if entity.salience >= ACTIVE]
        return sorted(active, key=lambda entity: -entity.salience)[:limit]

    @property
    def active_count(self) -> int:
        """The number of active entities."""
        return sum(entity.salience >= ACTIVE for entity in self)

    def salience(self, entity_id: str) -> float:
        """The entity's current salience, from 0 to 1."""
        with self._lock:
            return self._current(entity_id).salience

    def get(self, entity_id: str) -> Entity | None:
        """The entity with this id and its current salience, or None."""
        with self._lock:
            return self._current(entity_id) if entity_id in self._entities else None

    def __iter__(self) -> Iterator[Entity]:
        with self._lock:
            return iter([self._current(entity_id) for entity_id in self._entities])

    def __len__(self) -> int:
        return len(self._entities)

    def _current(self, entity_id: str) -> Entity:
        if entity_id not in self._entities:
            raise NotFoundError(f"there is no entity {entity_id!r}: add it first")
        entity, turns = self._entities[entity_id], self._turn - self._last_mention[entity_id]
        if not turns or not entity.salience:
            return entity
        return replace(entity, salience=entity.salience * 0.5 ** (turns / self._config.half_life))

    def _put(self, entity: Entity) -> None:
        self._entities[entity.id] = entity
        self._last_mention[entity.id] = self._turn
        self._names = None

    def _name_index(self) -> NameIndex:
        if self._names is None:
            self._names = NameIndex(self._entities.values())
        return self._names

    def _add_new(self, new: Iterable[Entity]) -> None:
        """Add the entities whose names are new."""
        with self._lock:
            for entity in new:
                known = {spelled(each.mention) for each in self.resolve(entity.canonical_name)}
                if spelled(entity.canonical_name) not in known and entity.id not in self._entities:
                    self._put(entity)

    def _context(self, entity_id: str, relevance: float) -> EntityContext:
        entity = self._entities[entity_id]
        attributes = select_attributes(entity, self._config.attributes_per_entity)
        related = relationships(entity, self._entities) if self._config.include_relationships else []
        return entity_context(entity, relevance, attributes, related, self._config.template)


_CHANGEABLE = [name for name in Entity.__dataclass_fields__ if name != "id"]
