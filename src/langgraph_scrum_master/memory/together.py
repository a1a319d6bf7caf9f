"""Several ledgers as one corpus: what is rare is rare in all of them together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from langgraph_scrum_master.memory.ledger import Ledger
from langgraph_scrum_master.rank.corpus import Tally, rarity
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.kinship import Kinship


class Together(Tally):
    """The counts of all ledgers added up."""

    def __init__(self, ledgers: Sequence[Ledger]) -> None:
        tallies = [ledger.tally for ledger in ledgers]
        self._ledgers = ledgers
        self.size = sum(tally.size for tally in tallies)
        self.length = sum(tally.length for tally in tallies)
        self.tokens = np.sum([tally.tokens for tally in tallies], axis=0)
        self.grams = np.sum([tally.grams for tally in tallies], axis=0)
        self.vectors = np.sum([tally.vectors for tally in tallies], axis=0)

    def term_rarity(self, terms: Array) -> Array:
        """How much each term counts."""
        return rarity(np.sum([ledger.term_counts(terms) for ledger in self._ledgers], axis=0), self.size)

    def kin(self, terms: Array, known: Kinship) -> Array:
        """The number that a word of each of these terms is known by there: as the first ledger has it that has one."""
        found = self._ledgers[0].kin(terms, known)
        for ledger in self._ledgers[1:]:
            missing = found == known.nobody
            if missing.any():
                found[missing] = ledger.kin(terms[missing], known)
        return found
