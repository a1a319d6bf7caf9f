"""Several ledgers as one corpus: what is rare is rare in all of them together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from langgraph_scrum_master.memory.ledger import Ledger
from langgraph_scrum_master.rank.corpus import PRIOR, prior_tokens, rarity
from langgraph_scrum_master.rank.features import Array
from langgraph_scrum_master.rank.kinship import Kinship


class Together:
    """The counts of all ledgers added up, where they are asked for."""

    def __init__(self, ledgers: Sequence[Ledger]) -> None:
        self._ledgers = ledgers
        self._tallies = [ledger.tally for ledger in ledgers]
        self._size = sum(tally.size for tally in self._tallies)

    @property
    def mean_length(self) -> float:
        """Terms of a record, on average."""
        return self._mean([tally.mean_length for tally in self._tallies])

    @property
    def mean_grams(self) -> float:
        """Filled places of a record, on average."""
        return self._mean([tally.mean_grams for tally in self._tallies])

    @property
    def centre(self) -> Array:
        """The mean of the records' vectors, less what too few of them say."""
        added: Array = np.sum([tally.vectors for tally in self._tallies], axis=0)
        return added / (self._size + PRIOR)

    def token_rarity(self, tokens: Array) -> Array:
        """How much each of these tokens of the static model counts."""
        counts = np.sum([tally.tokens[tokens] for tally in self._tallies], axis=0)
        return rarity(counts + prior_tokens()[tokens], self._size)

    def gram_rarity(self, places: Array) -> Array:
        """How much each of these places for letters in a row counts."""
        return rarity(np.sum([tally.grams[places] for tally in self._tallies], axis=0), self._size)

    def term_rarity(self, terms: Array) -> Array:
        """How much each term counts."""
        return rarity(np.sum([ledger.term_counts(terms) for ledger in self._ledgers], axis=0), self._size)

    def kin(self, terms: Array, known: Kinship) -> Array:
        """The number that a word of each of these terms is known by there: as the first ledger has it that has one."""
        found = self._ledgers[0].kin(terms, known)
        for ledger in self._ledgers[1:]:
            missing = found == known.nobody
            if missing.any():
                found[missing] = ledger.kin(terms[missing], known)
        return found

    def _mean(self, each: Sequence[float]) -> float:
        return sum(mean * tally.size for mean, tally in zip(each, self._tallies, strict=True)) / max(1, self._size)
