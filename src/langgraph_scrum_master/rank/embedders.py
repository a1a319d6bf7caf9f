"""Offline embedders: static token vectors from the wordllama wheel, or feature hashing without it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from langgraph_scrum_master._internal.shapes import well_formed
from langgraph_scrum_master.errors import ConfigError, ScrumMasterWarning
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.text.terms import STOP_WORDS, terms

if TYPE_CHECKING:
    import numpy as np

EMBEDDERS = ("static", "minilm", "hash")
"""The embedders that can be chosen by name."""

DIMENSIONS = 256

EMBEDDED_CHARACTERS = 8_000
"""Characters of a text that are embedded and compared; the rest is ignored."""

_WEIGHTS = "wordllama/weights/l2_supercat_256.safetensors"
_TOKENIZER = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"


def static_model() -> StaticEmbedder | None:
    """The static model, or None if the wheel is not installed."""
    embedder = _static_or_hash()
    return embedder if isinstance(embedder, StaticEmbedder) else None


def embedder_for(choice: str | Embedder) -> Embedder:
    """The embedder with this name, or the given object."""
    match choice:
        case "static":
            return _static_or_hash()
        case "hash":
            return HashEmbedder()
        case "minilm":
            return _minilm()
        case str():
            raise ConfigError(f"embedder must be among {EMBEDDERS}, or an object with embed_documents, got {choice!r}")
        case _:
            return choice


def is_sentence_model(embedder: Embedder) -> bool:
    """Whether the embedder encodes whole texts, not single words."""
    return not isinstance(embedder, StaticEmbedder | HashEmbedder)


class StaticEmbedder:
    """The mean of a text's token vectors, weighted by idf; deterministic, no download, 0.1 ms a text."""

    def __init__(self, weights: Path, tokenizer: Path) -> None:
        import safetensors.numpy
        from tokenizers import Tokenizer

        self.vectors: np.ndarray[Any, Any] = next(iter(safetensors.numpy.load_file(weights).values()))
        """One row per token."""
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A unit vector per text, without stop words; zeros for a text without words."""
        return [self.mean(ids).tolist() for ids in self.token_ids([_content(text) for text in texts])]

    def embed_query(self, text: str) -> list[float]:
        """The unit vector of one text."""
        return self.embed_documents([text])[0]

    def token_ids(self, texts: Sequence[str]) -> list[np.ndarray[Any, Any]]:
        """The tokens of each text."""
        import numpy as np

        cut = [well_formed(text[:EMBEDDED_CHARACTERS]) for text in texts]
        encoded = self._tokenizer.encode_batch(cut, add_special_tokens=False) if cut else []
        return [np.array(encoding.ids, dtype="<u2") for encoding in encoded]

    def unit_vectors(self, ids: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A unit vector for each of these tokens."""
        return self._unit_table.take(ids, axis=0)

    @cached_property
    def _unit_table(self) -> np.ndarray[Any, Any]:
        import numpy as np

        vectors = self.vectors.astype("float32")
        lengths = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
        table: np.ndarray[Any, Any] = vectors / np.maximum(lengths, 1e-9)
        return table

    def mean(self, ids: np.ndarray[Any, Any], weights: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
        """The weighted mean of these tokens' vectors, as a unit vector."""
        import numpy as np

        chosen = self.vectors[ids].astype("float32")
        # einsum stays in this thread: see `products`.
        return _unit(chosen.sum(axis=0) if weights is None else np.einsum("i,ij->j", weights, chosen))

    def means(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        """The unit vectors of many short, non-empty texts."""
        import numpy as np

        ids = self.token_ids(texts)
        lengths = np.array([max(1, len(each)) for each in ids])
        # A text without tokens gets one placeholder token with a zero vector.
        flat = np.concatenate([each if len(each) else np.zeros(1, "<u2") for each in ids])
        chosen = self.vectors[flat].astype("float32")
        chosen[np.repeat([not len(each) for each in ids], lengths)] = 0
        sums = np.add.reduceat(chosen, np.cumsum(lengths) - lengths, axis=0)
        return sums / np.maximum(np.sqrt((sums * sums).sum(axis=1, keepdims=True)), 1e-9)


class HashEmbedder:
    """Feature hashing of words: finds shared words, not shared meaning."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A unit vector per text; zeros for a text without words."""
        import numpy as np

        vectors = np.zeros((len(texts), DIMENSIONS), dtype="float32")
        for row, text in zip(vectors, texts, strict=True):
            for term in terms(text[:EMBEDDED_CHARACTERS]):
                hashed = crc32(term.encode())
                row[hashed % DIMENSIONS] += 1 if hashed & 0x8000_0000 else -1
        return [_unit(row).tolist() for row in vectors]

    def embed_query(self, text: str) -> list[float]:
        """The unit vector of one text."""
        return self.embed_documents([text])[0]


@cache
def _minilm() -> Embedder:
    from langgraph_scrum_master.rank.minilm import MiniLMEmbedder

    return MiniLMEmbedder()


@cache
def _static_or_hash() -> Embedder:
    try:
        wheel = distribution("wordllama")
    except PackageNotFoundError:
        warnings.warn(
            "the wordllama wheel with the default embedder's weights is not installed (there is none for this "
            "platform or Python): using embedder='hash', which finds shared words but not shared meaning",
            ScrumMasterWarning,
            stacklevel=3,
        )
        return HashEmbedder()
    return StaticEmbedder(Path(str(wheel.locate_file(_WEIGHTS))), Path(str(wheel.locate_file(_TOKENIZER))))


def _content(text: str) -> str:
    text = well_formed(text[:EMBEDDED_CHARACTERS])
    content = " ".join(word for word in text.split() if word.lower().strip(".,;:!?()'\"") not in STOP_WORDS)
    return content or text


def _unit(vector: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    length = float((vector @ vector) ** 0.5)
    return vector / length if length else vector
