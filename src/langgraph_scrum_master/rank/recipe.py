"""The ranking configuration of a memory: custom models and spaces, tuning, and clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from langgraph_scrum_master.errors import ConfigError
from langgraph_scrum_master.protocols import Clock, Embedder
from langgraph_scrum_master.rank.query_time import query_time
from langgraph_scrum_master.rank.tuning import DEFAULT_TUNING, RankTuning

if TYPE_CHECKING:
    from langgraph_scrum_master.rank.query import Candidates, RankQuery


@runtime_checkable
class CustomSpace(Protocol):
    """A user-defined similarity space.

    It may also have `speaks(query) -> bool`: whether the space applies to the query.
    """

    @property
    def code(self) -> str:
        """Its short name, such as X1; the key of its strength in results."""
        ...

    @property
    def name(self) -> str:
        """Its name in words."""
        ...

    @property
    def weight(self) -> float:
        """Its weight in the agreement; a semantic space has 1."""
        ...

    def strengths(self, query: RankQuery, candidates: Candidates) -> Any:
        """The similarity of each candidate with the query, from 0 to 1, in the order of the candidates."""
        ...


Spaces: TypeAlias = Mapping[str, Embedder | CustomSpace]
"""By code: models that replace spaces (E5 to E13), and user-defined spaces (any other code)."""

_REPLACEABLE = tuple(f"E{i}" for i in range(5, 14))
_BUILT_IN = tuple(f"E{i}" for i in range(1, 14))
_PARTS = "has code, name, weight and strengths(query, candidates)"
_NOT_REPLACEABLE = {"E1": "pass the model for E1 as `embedder`"} | dict.fromkeys(
    ("E2", "E3", "E4"), "it compares times, not texts"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The ranking configuration of a memory."""

    models: Mapping[str, Embedder] = field(default_factory=dict)
    """Models that replace spaces, by code."""
    spaces: tuple[CustomSpace, ...] = ()
    """User-defined spaces, in addition to the thirteen."""
    tuning: RankTuning = DEFAULT_TUNING
    clock: Clock | None = None
    """Gives the time of queries that have none."""

    @classmethod
    def of(
        cls, spaces: Spaces | None = None, tuning: RankTuning = DEFAULT_TUNING, clock: Clock | None = None
    ) -> Recipe:
        """The recipe for a memory's arguments. Raises `ConfigError` if a space cannot be used."""
        if not isinstance(tuning, RankTuning):
            raise ConfigError(f"tuning must be a RankTuning, got {type(tuning).__name__}")
        custom: list[CustomSpace] = []
        models: dict[str, Embedder] = {}
        for code, given in (spaces or {}).items():
            if isinstance(given, CustomSpace):
                custom.append(_checked_space(code, given))
            else:
                models[code] = _checked_model(code, given)
        return cls(models=models, spaces=tuple(custom), tuning=tuning, clock=clock)

    @property
    def now(self) -> float | None:
        """The time of the query: set by the caller, else from the clock, else None."""
        known = query_time()
        return known if known is not None or self.clock is None else self.clock()


def _checked_model(code: str, model: Embedder) -> Embedder:
    if code not in _REPLACEABLE:
        hint = _NOT_REPLACEABLE.get(code, f"it must be among {[*_REPLACEABLE]}; a custom space {_PARTS}")
        raise ConfigError(f"spaces has a model for {code!r}: {hint}")
    if not (hasattr(model, "embed_documents") and hasattr(model, "embed_query")):
        raise ConfigError(f"the model for {code} must have embed_documents and embed_query, got {type(model).__name__}")
    return model


def _checked_space(code: str, space: CustomSpace) -> CustomSpace:
    if code in _BUILT_IN:
        raise ConfigError(f"spaces has a custom space for {code!r}, which is built in: use another code, such as X1")
    if space.code != code or code.split() != [code]:
        raise ConfigError(f"a space must be passed under its code, a single word, got {code!r} for {space.code!r}")
    if not 0 <= space.weight < float("inf"):
        raise ConfigError(f"the weight of {code} must be a finite number of at least 0, got {space.weight!r}")
    return space


DEFAULT_RECIPE = Recipe()
"""The default recipe."""
