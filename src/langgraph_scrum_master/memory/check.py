"""Whether a memory still finds what it keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from langgraph_scrum_master.codec import Plain
from langgraph_scrum_master.memory.ledger import Ledger
from langgraph_scrum_master.memory.records import SEARCHED, Kind

SAMPLES = 20
"""Records of a kind that are looked for by their own vector."""

AMONG = 10
"""Nearest among which a record must be found by its own vector; others may be equal to it."""

NearestKeys: TypeAlias = Callable[[Kind, Any, int], list[tuple[str, float]]]
"""The keys of the records of a kind whose vectors are nearest, with their cosines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCheck(Plain):
    """What a check found."""

    records: int
    """Records in the ledger."""
    missing: tuple[str, ...] = ()
    """Keys that Chroma does not have."""
    strangers: tuple[str, ...] = ()
    """Keys that only Chroma has."""
    unfound: tuple[str, ...] = ()
    """Keys that Chroma has, and does not find by their own vector."""
    damaged: tuple[Kind, ...] = ()
    repaired: int = 0
    """Records that were given to Chroma again."""

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.damaged


def check(ledger: Ledger, keys_of: Callable[[Kind], Sequence[str]], nearest: NearestKeys) -> MemoryCheck:
    """Compare Chroma's keys with the ledger's, and look for some of them."""
    total, missing, strangers, unfound, damaged = 0, [], [], [], []
    for kind in SEARCHED:
        kept = {record.key: vector for record, vector in ledger.every(kind)}
        there = set(keys_of(kind))
        total += len(kept)
        lost, foreign = sorted(set(kept) - there), sorted(there - set(kept))
        sample = [key for key in sorted(kept) if key in there][:: max(1, len(kept) // SAMPLES)]
        unseen = [key for key in sample if not _found(key, nearest(kind, kept[key], min(AMONG, len(there))))]
        missing += lost
        strangers += foreign
        unfound += unseen
        if lost or foreign or len(unseen) > len(sample) // 2:
            damaged.append(kind)
    return MemoryCheck(
        records=total,
        missing=tuple(missing),
        strangers=tuple(strangers),
        unfound=tuple(unfound),
        damaged=tuple(damaged),
    )


def _found(key: str, near: Sequence[tuple[str, float]]) -> bool:
    # Where all that is found is as near as the record itself, there are more of the same than were asked for.
    return key in dict(near) or (bool(near) and near[-1][1] > _THE_SAME)


_THE_SAME = 0.999
