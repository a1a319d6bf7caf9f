"""Converts frozen dataclasses to plain data and back, for the state, snapshots, the audit log and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from langgraph_scrum_master.errors import DecodeError, with_article

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

_INT64 = range(-(2**63), 2**63)


def to_plain(value: object) -> Any:
    """The value as JSON types: dict, list, str, int, float, bool and None."""
    return _adapter(cast(Any, type(value))).dump_python(value, mode="json")


def from_plain(kind: type[T], data: object) -> T:
    """The value from the output of `to_plain`. Unknown keys are ignored, missing ones get their default."""
    from pydantic import ValidationError

    try:
        return cast(T, _adapter(cast(Any, kind)).validate_python(data))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc'])) or kind.__name__}: {e['msg']}" for e in error.errors())
        raise DecodeError(f"not {with_article(kind)}: {problems}, got {data!r:.200}") from error


def json_shapes(value: object) -> Any:
    """The value as JSON types, as a checkpoint would return it."""
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)
        case int():
            return int(value) if value in _INT64 else str(value)
        case float():
            return float(value) if isfinite(value) else None
        case dict() if all(type(item) is str for item in value.values()) and all(type(key) is str for key in value):
            # Fast path: most dicts have only texts.
            return dict(value)
        case Mapping():
            return {str(key): json_shapes(item) for key, item in value.items()}
        case list() | tuple():
            return [json_shapes(item) for item in value]
        case set() | frozenset():
            return sorted((json_shapes(item) for item in value), key=str)
        case _:
            return str(value)


class Plain:
    """Adds `to_dict` and `from_dict` to a frozen dataclass."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """This value as JSON types."""
        return cast(dict[str, Any], to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The value from the output of `to_dict`."""
        return from_plain(cls, data)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
