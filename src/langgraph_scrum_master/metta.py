"""The predicates of dialogue prompts, for MeTTa.

How values pass: texts, numbers and truth values are MeTTa's own; a list or a pair is an expression of its items; a
symbol comes in as its name; anything else is the Python object, grounded. What fails is an `Error` that says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from langgraph_scrum_master.blocking import wait_for
from langgraph_scrum_master.codec import to_plain
from langgraph_scrum_master.dialogue import EntityContext, KnowledgeChunk, ResolvedEntity
from langgraph_scrum_master.entities import Entity, EntityRegistry, entity_context, relationships, select_attributes
from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.knowledge import KnowledgeBase, SearchResult, format_chunk
from langgraph_scrum_master.protocols import TokenCounter
from langgraph_scrum_master.shapes import read, text_of
from langgraph_scrum_master.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from hyperon import Atom, MeTTa

T = TypeVar("T", EntityContext, KnowledgeChunk)

Predicates: TypeAlias = Mapping[str, Callable[..., object]]
"""What to call, by the name it has in MeTTa."""


class EmbeddedQuery(list[float]):
    """A query's vector, with its words, which count for the order too."""

    def __init__(self, text: str, vector: Sequence[float]) -> None:
        super().__init__(vector)
        self.text = text

    def __repr__(self) -> str:
        return f"EmbeddedQuery({self.text!r}, {len(self)} numbers)"


def register_predicates(
    metta: MeTTa,
    *,
    entities: EntityRegistry | None = None,
    knowledge: KnowledgeBase | None = None,
    count_tokens: TokenCounter = estimate_tokens,
) -> None:
    """Let MeTTa call the predicates for these entities, which are `&entities`, and this knowledge, `&knowledge`."""
    from hyperon import ValueAtom

    if entities is not None:
        metta.register_atom("&entities", ValueAtom(entities))
        bind(metta, entity_predicates(entities, count_tokens))
    if knowledge is not None:
        metta.register_atom("&knowledge", ValueAtom(knowledge))
        bind(metta, knowledge_predicates(knowledge, count_tokens))
    bind(metta, {"to-json": to_json})


def entity_predicates(registry: EntityRegistry, count_tokens: TokenCounter) -> Predicates:
    """What can be asked about entities."""

    def known(entity_id: str) -> Entity:
        if (entity := registry.get(entity_id)) is None:
            raise ConfigError(f"there is no entity {entity_id!r}")
        return entity

    def format_entity_context(state: object, resolved: Sequence[ResolvedEntity], tokens: int) -> list[EntityContext]:
        return _within(_registry(state, registry).contexts(resolved), tokens, count_tokens)

    def get_entity_relationships(entity: Entity, state: object) -> object:
        return relationships(entity, {each.id: each for each in _registry(state, registry)})

    return {
        "resolve-entities": registry.resolve,
        "get-entity": known,
        "format-entity-context": format_entity_context,
        "select-entity-attributes": select_attributes,
        "get-entity-relationships": get_entity_relationships,
        "format-entity": entity_context,
    }


def knowledge_predicates(base: KnowledgeBase, count_tokens: TokenCounter) -> Predicates:
    """What can be asked about documents."""

    def retrieve(query: str, entities: Sequence[ResolvedEntity], tokens: int) -> list[KnowledgeChunk]:
        return _within(wait_for(base.retrieve(query, entities)), tokens, count_tokens)

    def embed(query: str) -> EmbeddedQuery:
        from langgraph_scrum_master.rank.embedders import embedder_for

        return EmbeddedQuery(query, [float(number) for number in embedder_for("static").embed_query(query)])

    def search(query: object, limit: int) -> list[SearchResult]:
        if not isinstance(query, EmbeddedQuery):
            raise ConfigError(f"search-vector-index must be given what embed-query gave, got {query!r:.80}")
        return wait_for(base.search(query.text, limit))

    def rerank(query: str, results: Sequence[SearchResult]) -> list[SearchResult]:
        return wait_for(base.rerank(query, results))

    return {
        "retrieve-rag-chunks": retrieve,
        "embed-query": embed,
        "search-vector-index": search,
        "apply-rag-boosts": base.boost,
        "rerank-chunks": rerank,
        "format-chunk": _formatted,
        "select-top-chunks": lambda chunks, limit: chunks[: max(0, limit)],
    }


def to_json(value: object) -> str:
    """The value as JSON, to look at."""
    plain = [to_plain(each) for each in value] if isinstance(value, list) else to_plain(value)
    return json.dumps(plain, ensure_ascii=False)


def bind(metta: MeTTa, predicates: Predicates) -> None:
    """Let MeTTa call these."""
    from hyperon import OperationAtom

    for name, call in predicates.items():
        metta.register_atom(name, OperationAtom(name, _operation(name, call), unwrap=False))


def _operation(name: str, call: Callable[..., object]) -> Callable[..., list[Atom]]:
    from hyperon import E, S, ValueAtom

    def run(*atoms: Atom) -> list[Atom]:
        try:
            return [_atom(call(*map(_value, atoms)))]
        # Whatever goes wrong in Python is told where it was asked for, and MeTTa goes on.
        except Exception as error:
            return [E(S("Error"), E(S(name), *atoms), ValueAtom(f"{type(error).__name__}: {error}"))]

    return run


def _value(atom: Any) -> Any:
    """What an atom stands for in Python."""
    from hyperon import ExpressionAtom, GroundedAtom

    if isinstance(atom, ExpressionAtom):
        return [_value(child) for child in atom.get_children()]
    if isinstance(atom, GroundedAtom):
        held = atom.get_object()
        return held.content if hasattr(held, "content") else held
    return str(atom)


def _atom(value: object) -> Atom:
    """What stands for a Python value in MeTTa."""
    from hyperon import E, ValueAtom

    if type(value) in (list, tuple):
        return E(*(_atom(each) for each in value))  # type: ignore[attr-defined]
    return E() if value is None else ValueAtom(value)


def _registry(state: object, default: EntityRegistry) -> EntityRegistry:
    """The entities of a dialogue's state, or those that MeTTa was given."""
    found = read(state, "entities", state)
    return found if isinstance(found, EntityRegistry) else default


def _formatted(chunk: object, source: object) -> str:
    """A piece, or a text, below the document that it is from."""
    content, title = (
        given if isinstance(given, str) else read(given, name)
        for given, name in ((chunk, "content"), (source, "title"))
    )
    if not isinstance(content, str) or not isinstance(title, str):
        raise ConfigError(f"format-chunk must be given a piece and its document, got {chunk!r:.80} and {source!r:.80}")
    return format_chunk(content, title, text_of(read(source, "date")))


def _within(items: Sequence[T], tokens: int, count: TokenCounter) -> list[T]:
    """The first that fit together; one that does not is passed over."""
    kept: list[T] = []
    for item in items:
        if (needed := count(item.formatted)) <= tokens:
            kept.append(item)
            tokens -= needed
    return kept
