"""Converts values between Python and MeTTa."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master._internal.serialisation import Plain, json_shapes
from langgraph_scrum_master._internal.shapes import absent, mapping_of, read
from langgraph_scrum_master.dialogue.entities import EntityRegistry
from langgraph_scrum_master.errors import ConfigError, with_article

if TYPE_CHECKING:
    from hyperon import Atom, MeTTa

T = TypeVar("T")
D = TypeVar("D", EntityRegistry, EntityRegistry | None)

Predicates: TypeAlias = Mapping[str, Callable[..., object]]
"""Functions by their MeTTa names."""


def bind(metta: MeTTa, predicates: Predicates) -> None:
    """Register the functions as MeTTa operations."""
    from hyperon import OperationAtom

    for name, call in predicates.items():
        metta.register_atom(name, OperationAtom(name, _operation(name, call), unwrap=False))


def to_json(value: object) -> str:
    """The value as JSON, for inspection."""
    return json.dumps(_plain(value), ensure_ascii=False)


def instance(kind: type[T], value: object) -> T:
    """Return the value if it is of this type."""
    if not isinstance(value, kind):
        raise ConfigError(f"expected {with_article(kind)}, got {value!r:.80}")
    return value


def optional(kind: type[T], value: object) -> T | None:
    """Like `instance`, but allows no value."""
    return None if absent(value) else instance(kind, value)


def registry_of(state: object, default: D) -> EntityRegistry | D:
    """The registry in a dialogue's state, or the default."""
    registry = read(state, "entities", state)
    return registry if isinstance(registry, EntityRegistry) else default


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
        # Python errors become MeTTa errors, so that evaluation continues.
        except BaseException as raised:
            error = recordable(raised)
            return [E(S("Error"), E(S(name), *atoms), ValueAtom(f"{type(error).__name__}: {error}"))]

    return run


def _value(atom: Any) -> Any:
    """Convert an atom to a Python value."""
    from hyperon import ExpressionAtom, GroundedAtom

    if isinstance(atom, ExpressionAtom):
        return [_value(child) for child in atom.get_children()]
    if isinstance(atom, GroundedAtom):
        grounded = atom.get_object()
        return grounded.content if hasattr(grounded, "content") else grounded
    return str(atom)


def _atom(value: object) -> Atom:
    """Convert a Python value to an atom."""
    from hyperon import E, ValueAtom

    if type(value) in (list, tuple):
        return E(*(_atom(each) for each in value))  # type: ignore[attr-defined]
    return E() if value is None else ValueAtom(value)
