"""Vectors for texts, offline: from the weights inside the wordllama wheel, or by hashing where there is none."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from langgraph_scrum_master.errors import ConfigError, ScrumMasterWarning
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.shapes import well_formed
from langgraph_scrum_master.text.terms import STOP_WORDS, terms

if TYPE_CHECKING:
    import numpy as np

EMBEDDERS = ("static", "hash")
"""Those that have a name."""

DIMENSIONS = 256

LOOKED_AT = 8_000
"""Characters of a text that its vector and its score are made from."""

_WEIGHTS = "wordllama/weights/l2_supercat_256.safetensors"
_TOKENIZER = "wordllama/tokenizers/l2_supercat_tokenizer_config.json"


def embedder_for(choice: str | Embedder) -> Embedder:
    """The embedder of that name, or the one given."""
    match choice:
        case "static":
            return _static_or_hash()
        case "hash":
            return HashEmbedder()
        case str():
            raise ConfigError(f"embedder must be among {EMBEDDERS}, or an object with embed_documents, got {choice!r}")
        case _:
            return choice


class StaticEmbedder:
    """The mean of a text's word vectors, stop words left out; deterministic, no download, about 0.1 ms a text."""

    def __init__(self, weights: Path, tokenizer: Path) -> None:
        import safetensors.numpy
        from tokenizers import Tokenizer

        self._vectors: np.ndarray[Any, Any] = next(iter(safetensors.numpy.load_file(weights).values()))
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A unit vector per text; zeros for a text without words."""
        if not texts:
            return []
        encoded = self._tokenizer.encode_batch([_content(text) for text in texts], add_special_tokens=False)
        return [self._mean(encoding.ids) for encoding in encoded]

    def embed_query(self, text: str) -> list[float]:
        """The unit vector of one text."""
        return self.embed_documents([text])[0]

    def _mean(self, ids: Sequence[int]) -> list[float]:
        if not ids:
            return [0.0] * self._vectors.shape[1]
        return _unit(self._vectors[ids].astype("float32").sum(axis=0))


class HashEmbedder:
    """Words hashed into a fixed number of places: finds shared words, not shared meaning."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A unit vector per text; zeros for a text without words."""
        import numpy as np

        vectors = np.zeros((len(texts), DIMENSIONS), dtype="float32")
        for row, text in zip(vectors, texts, strict=True):
            for term in terms(text[:LOOKED_AT]):
                place = crc32(term.encode())
                row[place % DIMENSIONS] += 1 if place & 0x8000_0000 else -1
        return [_unit(row) for row in vectors]

    def embed_query(self, text: str) -> list[float]:
        """The unit vector of one text."""
        return self.embed_documents([text])[0]


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
    text = well_formed(text[:LOOKED_AT])
    kept = " ".join(word for word in text.split() if word.lower().strip(".,;:!?()'\"") not in STOP_WORDS)
    return kept or text


def _unit(vector: np.ndarray[Any, Any]) -> list[float]:
    length = float((vector @ vector) ** 0.5)
    listed: list[float] = (vector / length if length else vector).tolist()
    return listed
