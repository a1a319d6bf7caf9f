"""Escapes texts of others, so that they cannot imitate the frame around them, hide anything, or steer a terminal."""

from __future__ import annotations

import json
import re
from html import escape
from unicodedata import normalize

FRAME_TAGS = ("injected_context", "context_item")
"""The tags of the frame around injected context."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
_OPENING = re.compile("[<＜﹤‹〈⟨˂ᐸ]")
_ROLE_TOKEN = re.compile(r"<(?=\|)|\[(?=/?INST\])", re.I)
_BLOCK = re.compile(r"^(?=#|[-*+>](?:\s|$)|`{3}|~{3})")
_REACH = 60
_LOOK_ALIKES = str.maketrans("асеіїјортхмпѕԁνοτειχ", "aceiijoptxmnsdnoteix")
_NAMES = tuple(tag.replace("_", "") for tag in FRAME_TAGS)


def visible(text: str) -> str:
    """The text without control and other invisible characters, except tabs and line ends, which become `\\n`."""
    return _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def escaped_json(text: str) -> str:
    """The JSON with its invisible characters as `\\u` escapes."""
    return _INVISIBLE.sub(lambda m: json.dumps(m[0])[1:-1], text)


def as_data(text: str) -> str:
    """The text without invisible characters, and with the frame's tags and role tokens escaped."""
    if _harmless(text):
        return text
    shown = visible(text)
    framed = _OPENING.sub(lambda m: "&lt;" if _names_our_frame(shown[m.end() : m.end() + _REACH]) else m[0], shown)
    return _ROLE_TOKEN.sub(lambda m: {"<": "&lt;", "[": "&#91;"}[m[0]], framed)


def _names_our_frame(following: str) -> bool:
    # Compares letters only, and maps look-alikes to ASCII.
    folded = normalize("NFKD", following).lower().translate(_LOOK_ALIKES)
    return "".join(char for char in folded if "a" <= char <= "z").startswith(_NAMES)


def one_line(text: str) -> str:
    """The text as data on one line."""
    if _harmless(text) and "  " not in text:
        return text.strip()
    return " ".join(as_data(text).split())


def _harmless(text: str) -> bool:
    """A fast check for texts that need no escaping, as most do."""
    return text.isascii() and text.isprintable() and "<" not in text and "[" not in text


def line_start(text: str) -> str:
    """The text as data at the start of a line, with Markdown block markers escaped."""
    return _BLOCK.sub(r"\\", one_line(text), count=1)


def as_attribute(text: str) -> str:
    """The text on one line, escaped for an attribute of a tag."""
    return escape(" ".join(_INVISIBLE.sub("", text).split()), quote=True)
