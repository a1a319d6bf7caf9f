"""The people and things that a dialogue is about."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil, log2
from pathlib import Path
from threading import RLock
from typing import Any

from langgraph_scrum_master._internal.logs import logger
from langgraph_scrum_master.config import EntityContextConfig
from langgraph_scrum_master.dialogue.entities.contexts import entity_context, relationships, select_attributes
from langgraph_scrum_master.dialogue.entities.entity import Entity
from langgraph_scrum_master.dialogue.entities.extract import extracted
from langgraph_scrum_master.dialogue.entities.files import read_entities, write_entities
from langgraph_scrum_master.dialogue.entities.names import Names
from langgraph_scrum_master.dialogue.model import EntityContext, ResolvedEntity
from langgraph_scrum_master.errors import ConfigError, NotFoundError
from langgraph_scrum_master.protocols import ChatModel
from langgraph_scrum_master.text.spelling import spelled

ACTIVE = 0.1
"""The salience from which the dialogue is about an entity."""

_BESIDE = 0.7
"""What the salience of an entity that was not named counts beside the confidence of one that was."""


class EntityRegistry:
    """Knows entities, finds them in texts, and remembers which of them the dialogue is about.

    An entity is as salient as its last mention was sure; that halves every `half_life` turns. A turn is a text that is
    observed: looking up changes nothing. May be used from several threads.
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
        self._since: dict[str, int] = {}
        self._names: Names | None = None
        self._lock = RLock()
        for entity in entities:
            self.add(entity)

    @classmethod
    def load(
        cls, path: str | Path, *, config: EntityContextConfig | None = None, model: ChatModel | None = None
    ) -> EntityRegistry:
        """The registry of a file that was saved, or written by hand as JSON or TOML. Blocks while it reads."""
        entities, turn = read_entities(Path(path))
        return cls(entities, config=config, model=model, turn=turn)

    def save(self, path: str | Path) -> None:
        """Write all entities with their salience to a JSON file, in one step. Blocks while it writes."""
        with self._lock:
            entities, turn = list(self), self._turn
        write_entities(Path(path), entities, turn)

    def add(self, entity: Entity) -> Entity:
        """Take in an entity; its id must be new, unless it is the same entity again."""
        given: object = entity
        if not isinstance(given, Entity):
            raise ConfigError(f"an Entity must be given, with its canonical_name, got {given!r:.80}")
        with self._lock:
            known = self._entities.get(entity.id)
            if known is not None and replace(known, salience=entity.salience) != entity:
                raise ConfigError(
                    f"there is another entity with the id {entity.id!r}: update it, or give this one an id of its own"
                )
            if known is None:
                self._put(entity)
            return entity

    def update(self, entity_id: str, **changes: Any) -> Entity:
        """The entity with these fields changed; its id stays."""
        with self._lock:
            known = self._known(entity_id)
            if unknown := changes.keys() - set(_CHANGEABLE):
                raise ConfigError(f"of an entity {', '.join(_CHANGEABLE)} can be changed, got {sorted(unknown)}")
            changed = replace(known, **changes)
            self._put(changed)
            return changed

    def remove(self, entity_id: str) -> bool:
        """Let go of an entity; whether it was there. Relations to it are told no more, until it is added again."""
        with self._lock:
            gone = self._entities.pop(entity_id, None)
            self._since.pop(entity_id, None)
            self._names = None
            return gone is not None

    def mention(self, entity_id: str, confidence: float = 1.0) -> None:
        """Note that the dialogue is about an entity in this turn, whatever words it uses."""
        with self._lock:
            known = self._known(entity_id)
            self._entities[entity_id] = replace(known, salience=max(known.salience, confidence))
            self._since[entity_id] = self._turn

    def observe(self, text: str) -> Sequence[ResolvedEntity]:
        """Take in the next turn of the dialogue: what it names becomes salient, the others less so."""
        with self._lock:
            self._turn += 1
            found = self.resolve(text)
            for each in found:
                self.mention(each.entity_id, each.confidence)
            return found

    def after(self, texts: Sequence[str]) -> EntityRegistry:
        """The registry as it is where a dialogue has said these texts, oldest first, before its next turn.

        What they name is as salient as if they had been observed, or as it is here if that is more. This one stays as
        it is, so that many dialogues can share it.
        """
        with self._lock:
            following = EntityRegistry(self, config=self._config)
            following._names = names = self._found_names()
        lasting = ceil(self._config.half_life * log2(1 / ACTIVE))
        for age, text in enumerate(reversed(texts[-lasting:]), 1):
            for entity_id, confidence, _ in names.find(text):
                following.mention(entity_id, confidence * 0.5 ** (age / self._config.half_life))
        return following

    async def aobserve(self, text: str, deadline: float = 5.0) -> Sequence[ResolvedEntity]:
        """The same, after the model, if there is one, has named entities of the text that were not known.

        If it fails or is late, that is logged, and those that are known are found all the same.
        """
        if self._model is not None:
            try:
                new = await asyncio.wait_for(extracted(text, self._model), deadline)
            except Exception as error:
                logger.warning("extraction.failed", error=f"{type(error).__name__}: {error}")
                new = []
            self._take_in(new)
        return self.observe(text)

    def resolve(self, text: str) -> Sequence[ResolvedEntity]:
        """The entities named in the text, most confident first; of equally sure ones the more salient first."""
        with self._lock:
            best: dict[str, ResolvedEntity] = {}
            for entity_id, confidence, words in self._found_names().find(text):
                if entity_id not in best or confidence > best[entity_id].confidence:
                    name = self._entities[entity_id].canonical_name
                    best[entity_id] = ResolvedEntity(
                        entity_id=entity_id, canonical_name=name, confidence=confidence, mention=words
                    )
            return sorted(best.values(), key=lambda each: (-each.confidence, -self.salience(each.entity_id)))

    def contexts(self, resolved: Sequence[ResolvedEntity]) -> Sequence[EntityContext]:
        """What is to be told of the resolved entities and of the most salient others, most relevant first."""
        with self._lock:
            relevant: dict[str, float] = {}
            for each in resolved:
                if each.entity_id in self._entities:
                    relevant[each.entity_id] = max(each.confidence, relevant.get(each.entity_id, 0.0))
            for entity in self.salient(self._config.max_entities):
                relevant.setdefault(entity.id, entity.salience * _BESIDE)
            ordered = sorted(relevant.items(), key=lambda pair: -pair[1])
            told = [(each, score) for each, score in ordered if score >= self._config.min_relevance]
            return [self._context(each, score) for each, score in told[: self._config.max_entities]]

    def salient(self, limit: int) -> list[Entity]:
        """The entities that the dialogue is about, the most salient first."""
        active = [entity for entity in self if entity.salience >= ACTIVE]
        return sorted(active, key=lambda entity: -entity.salience)[:limit]

    @property
    def active_count(self) -> int:
        """How many the dialogue is about just now."""
        return sum(entity.salience >= ACTIVE for entity in self)

    def salience(self, entity_id: str) -> float:
        """How much the dialogue is about the entity, from 0 to 1."""
        with self._lock:
            return self._known(entity_id).salience

    def get(self, entity_id: str) -> Entity | None:
        """The entity with this id, as salient as it is now."""
        with self._lock:
            return self._known(entity_id) if entity_id in self._entities else None

    def __iter__(self) -> Iterator[Entity]:
        with self._lock:
            return iter([self._known(entity_id) for entity_id in self._entities])

    def __len__(self) -> int:
        return len(self._entities)

    def _known(self, entity_id: str) -> Entity:
        if entity_id not in self._entities:
            raise NotFoundError(f"there is no entity {entity_id!r}: add it first")
        entity, turns = self._entities[entity_id], self._turn - self._since[entity_id]
        if not turns or not entity.salience:
            return entity
        return replace(entity, salience=entity.salience * 0.5 ** (turns / self._config.half_life))

    def _put(self, entity: Entity) -> None:
        self._entities[entity.id] = entity
        self._since[entity.id] = self._turn
        self._names = None

    def _found_names(self) -> Names:
        if self._names is None:
            self._names = Names(self._entities.values())
        return self._names

    def _take_in(self, new: Iterable[Entity]) -> None:
        """Add those whose name nobody has yet."""
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
