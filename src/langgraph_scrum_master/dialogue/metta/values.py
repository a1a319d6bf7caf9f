"""Values between Python and MeTTa."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from langgraph_scrum_master._internal.serialisation import Plain, json_shapes
from langgraph_scrum_master._internal.shapes import absent, mapping_of, read
from langgraph_scrum_master.dialogue.entities import EntityRegistry
from langgraph_scrum_master.errors import ConfigError, with_article

if TYPE_CHECKING:
    from hyperon import Atom, MeTTa

T = TypeVar("T")
D = TypeVar("D", EntityRegistry, EntityRegistry | None)

Predicates: TypeAlias = Mapping[str, Callable[..., object]]
"""What to call, by the name it has in MeTTa."""


def bind(metta: MeTTa, predicates: Predicates) -> None:
    """Let MeTTa call these."""
    from hyperon import OperationAtom

    for name, call in predicates.items():
        metta.register_atom(name, OperationAtom(name, _operation(name, call), unwrap=False))


def to_json(value: object) -> str:
    """The value as JSON, to look at."""
    return json.dumps(_plain(value), ensure_ascii=False)


def instance(kind: type[T], given: object) -> T:
    """What is given, if it is of this kind."""
    if not isinstance(given, kind):
        raise ConfigError(f"{with_article(kind)} must be given, got {given!r:.80}")
    return given


def optional(kind: type[T], given: object) -> T | None:
    """The same, or nothing."""
    return None if absent(given) else instance(kind, given)


def registry_of(state: object, default: D) -> EntityRegistry | D:
    """The entities of a dialogue's state, or those that MeTTa was given."""
    found = read(state, "entities", state)
    return found if isinstance(found, EntityRegistry) else default


def _plain(value: object) -> Any:
    match value:
        case Plain():
            return value.to_dict()
        case Mapping():
            return {str(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return _plain(mapping_of(value)) if is_dataclass(value) else json_shapes(value)


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
