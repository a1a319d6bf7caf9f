"""Weights of a linear model over hashed features, in one small file."""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from langgraph_scrum_master.errors import ConfigError

MAGIC = b"LSMW1\n"
"""The first bytes of a weights file."""


def bucket(name: str, bits: int) -> int:
    """The bucket of a feature."""
    return crc32(name.encode("utf-8", "surrogatepass")) & ((1 << bits) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearWeights:
    """A weight per bucket, quantised to integers from -127 to 127 that are multiplied by `unit`."""

    bits: int
    unit: float
    bias: float
    values: array[int]
    about: dict[str, Any]
    """Training data and thresholds."""

    def total(self, names: Iterable[str]) -> float:
        """The sum of the features' weights."""
        values, mask = self.values, (1 << self.bits) - 1
        return self.unit * sum([values[crc32(name.encode("utf-8", "surrogatepass")) & mask] for name in names])

    def to_bytes(self) -> bytes:
        """The content of a weights file; deterministic."""
        head = {"bits": self.bits, "unit": self.unit, "bias": self.bias, "about": self.about}
        written = json.dumps(head, sort_keys=True).encode()
        return MAGIC + written + b"\n" + zlib.compress(self.values.tobytes(), 9)

    @classmethod
    def from_bytes(cls, content: bytes, origin: str) -> LinearWeights:
        """The weights in a file's content."""
        try:
            if not content.startswith(MAGIC):
                raise ValueError("it does not start with the expected header")
            head, _, packed = content[len(MAGIC) :].partition(b"\n")
            fields = json.loads(head)
            values = array("b", zlib.decompress(packed))
            if len(values) != 1 << fields["bits"]:
                raise ValueError(f"it holds {len(values)} weights, not {1 << fields['bits']}")
            return cls(values=values, **fields)
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise ConfigError(f"{origin} is not a weights file of `scrum-master train`: {error}") from None

    @classmethod
    def load(cls, path: Path) -> LinearWeights:
        """The weights in this file."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ConfigError(f"the weights {str(path)!r} cannot be read: {error.strerror or error}") from None
        return cls.from_bytes(content, repr(str(path)))
