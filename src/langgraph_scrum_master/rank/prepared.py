"""What ranking computes of a single text, cached: some sources rank the same texts at every gap."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock

from langgraph_scrum_master.rank.features import Array, Features, features_of, static_tokens, vocabulary

MAX_PREPARED_BYTES = 64_000_000
"""The size of the cache, estimated. By hand: about 3,000 documents of one page."""

_BATCH = 64
"""Texts that are prepared together. By hand."""

_BYTES_PER_WORD = 150
"""An entry of a dict with its word, about. By hand."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedText:
    """The features of a text, its words by the number of their stem, and all its tokens in order."""

    features: Features
    packed: bytes
    words: Mapping[int, str]
    tokens: Array

    @property
    def size(self) -> int:
        """Bytes in memory, estimated."""
        return 3 * len(self.packed) + self.tokens.nbytes + _BYTES_PER_WORD * len(self.words)


def prepared(texts: Sequence[str]) -> list[PreparedText]:
    """What ranking needs of each text. Texts that were prepared lately are not read again."""
    keys = [blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest() for text in texts]
    known = _cache.get(keys)
    new = [(key, text) for key, text in dict(zip(keys, texts, strict=True)).items() if key not in known]
    # In batches, so that a caller with a deadline finds more done each time.
    for start in range(0, len(new), _BATCH):
        batch = new[start : start + _BATCH]
        made = dict(zip((key for key, _ in batch), _prepare([text for _, text in batch]), strict=True))
        _cache.add(made)
        known |= made
    return [known[key] for key in keys]


def _prepare(texts: Sequence[str]) -> list[PreparedText]:
    tokens = static_tokens(texts)
    return [
        PreparedText(features=features, packed=features.pack(), words=vocabulary(text), tokens=ids)
        for text, features, ids in zip(texts, features_of(texts, tokens=tokens), tokens, strict=True)
    ]


class _Cache:
    """The texts prepared lately, up to `MAX_PREPARED_BYTES`; for use by several threads."""

    def __init__(self) -> None:
        self._texts: OrderedDict[bytes, PreparedText] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, keys: Iterable[bytes]) -> dict[bytes, PreparedText]:
        with self._lock:
            known = {key: self._texts[key] for key in keys if key in self._texts}
            for key in known:
                self._texts.move_to_end(key)
        return known

    def add(self, made: Mapping[bytes, PreparedText]) -> None:
        with self._lock:
            for key, text in made.items():
                if key not in self._texts:
                    self._texts[key] = text
                    self._bytes += text.size
            while self._bytes > MAX_PREPARED_BYTES:
                self._bytes -= self._texts.popitem(last=False)[1].size


_cache = _Cache()
